//! Capacity that a claim reserves for the jobs it will return.

use super::Admission;
use super::kind::FleetRule;
use super::ticket::InHand;
use rewheel_core::{Job, Lane};
use std::sync::Arc;

/// Whether a lane is worth a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Whether its kind and its tenant have capacity for more.
    pub(crate) is_open: bool,
    /// Whether fleet-wide limits apply to it.
    pub(crate) is_limited: bool,
    /// The weight of its tenant.
    pub(crate) weight: u32,
}

/// The capacity reserved for a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Maximum number of jobs.
    pub(crate) jobs: usize,
    /// Whether its one job is the probe of a parked kind.
    pub(crate) is_probe: bool,
    /// Fleet-wide limits: of its kind and of its tenant.
    pub(crate) fleet: [FleetRule; 2],
}

/// Capacity reserved for claims in progress. Two claims never use the same capacity; dropping it releases what was not used.
#[derive(Debug)]
pub(crate) struct Reservation {
    admission: Arc<Admission>,
    lanes: Vec<(Lane, usize)>,
}

impl Reservation {
    pub(super) const fn new(admission: Arc<Admission>) -> Reservation {
        Reservation { admission, lanes: Vec::new() }
    }

    /// Reserves capacity for jobs of a lane, at most `wanted`.
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

    /// Ends the reservation with the claimed jobs. Returns one guard for each job: a due job counts from now on, others when they
    /// become due.
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
