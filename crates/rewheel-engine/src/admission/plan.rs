//! Capacity that a claim reserves for the jobs it will return.

use super::Admission;
use super::kind::FleetRule;
use super::ticket::InHand;
use rewheel_core::{Job, Lane};
use std::sync::Arc;

/// Whether a lane is worth a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Whether its kind and its tenant have room for more.
    pub(crate) is_open: bool,
    /// Whether limits over the fleet hold for it.
    pub(crate) is_limited: bool,
    /// How much its tenant is given beside others.
    pub(crate) weight: u32,
}

/// What was reserved for a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grant {
    /// How many jobs may come.
    pub(crate) jobs: usize,
    /// Whether its one job is the probe of a parked kind.
    pub(crate) is_probe: bool,
    /// Limits over the fleet: of its kind and of its tenant.
    pub(crate) fleet: [FleetRule; 2],
}

/// Room that claims on their way may fill. Two claims never count on the same room; what did not come is free again when
/// this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    admission: Arc<Admission>,
    lanes: Vec<(Lane, usize)>,
}

impl Reservation {
    pub(super) const fn new(admission: Arc<Admission>) -> Reservation {
        Reservation { admission, lanes: Vec::new() }
    }

    /// Reserves room for jobs of a lane, at most `wanted`.
    pub(crate) fn reserve(&mut self, lane: &Lane, wanted: usize) -> Grant {
        let now = self.admission.now();
        let of = |is_same: &dyn Fn(&Lane) -> bool| -> usize {
            self.lanes.iter().filter(|(one, _)| is_same(one)).map(|(_, jobs)| jobs).sum()
        };
        let mine = [of(&|one| one.kind == lane.kind), of(&|one| one.tenant == lane.tenant)];
        let grant = self.admission.machine().reserve(lane, wanted, mine, now);
        if grant.jobs > 0 {
            self.lanes.push((lane.clone(), grant.jobs));
        }
        grant
    }

    /// Ends the reservation with what came. Returns one guard for each job: it is counted from here on if it is due, and later
    /// when it comes due.
    pub(crate) fn came<'j>(
        mut self,
        jobs: impl Iterator<Item = (&'j Job, bool)>,
    ) -> Vec<Option<InHand>> {
        let admission = Arc::clone(&self.admission);
        let now = admission.now();
        let mut machine = admission.machine();
        for (lane, jobs) in std::mem::take(&mut self.lanes) {
            machine.unreserve(&lane, jobs);
        }
        let mut hold = |job: &Job| {
            let id = machine.queue(&job.lane.kind, job.lane.tenant.as_ref(), now);
            InHand::new(&admission, id, job.lane.tenant.as_ref())
        };
        jobs.map(|(job, is_due)| is_due.then(|| hold(job))).collect()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.lanes.is_empty() {
            return;
        }
        let mut machine = self.admission.machine();
        for (lane, jobs) in &self.lanes {
            machine.unreserve(lane, *jobs);
        }
    }
}
