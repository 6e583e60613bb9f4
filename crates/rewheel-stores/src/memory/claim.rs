//! Claims due jobs.

use super::Weakness;
use super::world::World;
use rewheel_core::store::{Claim, Extension, Leased, StoreResult, Visit};
use rewheel_core::{HolderId, JobId, KindName, Lease, Status, Timestamp};
use std::time::Duration;

impl World {
    pub(super) fn claim(&mut self, claim: &Claim<'_>, now: Timestamp) -> StoreResult<Vec<Leased>> {
        if !self.is_weak(Weakness::NoLiveHolder) {
            self.must_be_alive(claim.holder)?;
        }
        let mut claimed = Vec::new();
        for visit in claim.visits {
            let room = visit.limit.min(claim.limit - claimed.len());
            let horizon = match self.is_weak(Weakness::DebouncedEarly) {
                true => claim.horizon,
                false => visit.lane.horizon(claim.horizon),
            };
            let until = now.plus(horizon);
            claimed.extend(self.visit(visit, claim.holder, until, room, now));
        }
        Ok(claimed)
    }

    /// Leases due jobs of a lane, at most `room`.
    pub(super) fn visit(
        &mut self,
        visit: &Visit,
        holder: HolderId,
        until: Timestamp,
        room: usize,
        now: Timestamp,
    ) -> Vec<Leased> {
        let room = room.min(self.open_for(holder, &visit.lane.kind));
        let jobs = self.claimable(visit, until, room, now);
        jobs.into_iter().map(|job| self.lease(job, holder, visit, now)).collect()
    }

    /// Returns how many jobs of a kind a holder may claim.
    fn open_for(&self, holder: HolderId, kind: &KindName) -> usize {
        let Some(row) = self.kinds.get(kind).filter(|row| !row.kind.paused) else { return 0 };
        match &row.kind.parked {
            None => usize::MAX,
            Some(parked) if parked.prober == Some(holder) && row.probe.is_none() => 1,
            Some(_) => 0,
        }
    }

    fn claimable(
        &self,
        visit: &Visit,
        until: Timestamp,
        limit: usize,
        now: Timestamp,
    ) -> Vec<JobId> {
        let is_wanted = |job: &JobId| {
            // A job past its deadline does not start any more: `deadlines` ends it.
            self.jobs[job].job.deadline.is_none_or(|deadline| deadline > now)
        };
        let lane = self.lanes.get(&visit.lane).into_iter().flatten();
        lane.take_while(|(due, ..)| *due <= until)
            .map(|(.., job)| *job)
            .filter(is_wanted)
            .take(limit)
            .collect()
    }

    fn lease(&mut self, id: JobId, holder: HolderId, visit: &Visit, now: Timestamp) -> Leased {
        if let Some(row) = self.kinds.get_mut(&visit.lane.kind)
            && row.kind.parked.is_some()
        {
            row.probe = Some(id);
        }
        self.write(id, |row| {
            let timeout = visit.timeout(row.job.attempt_timeout);
            let overdue = now.max(row.job.due).plus(timeout).plus(visit.grace);
            row.lease(holder, overdue, now);
            row.job.version = row.job.version.next();
            Leased {
                job: row.whole(),
                due_in: row.job.due.since(now),
                deadline_in: row.job.deadline.map(|deadline| deadline.since(now)),
            }
        })
    }

    pub(super) fn start(&mut self, holder: HolderId, lease: Lease) -> bool {
        let is_alive = self.is_alive(holder);
        let row = self.jobs.get_mut(&lease.job);
        match row.filter(|row| is_alive && row.is_leased_as(holder, lease.fence)) {
            Some(row) => {
                row.started = Some(lease.fence);
                true
            }
            None => false,
        }
    }

    pub(super) fn checkpoint(&mut self, holder: HolderId, lease: Lease, payload: &[u8]) -> bool {
        let row = self.jobs.get_mut(&lease.job);
        match row.filter(|row| row.is_leased_as(holder, lease.fence)) {
            Some(row) => {
                row.payload = payload.to_vec();
                row.job.version = row.job.version.next();
                true
            }
            None => false,
        }
    }

    pub(super) fn extend(
        &mut self,
        holder: HolderId,
        extension: &Extension,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let is_alive = self.is_alive(holder);
        let row = self.jobs.get_mut(&extension.lease.job)?;
        if !is_alive || !row.is_leased_as(holder, extension.lease.fence) {
            return None;
        }
        let leased = row.leased;
        let Status::Leased { overdue, .. } = &mut row.job.status else { return None };
        *overdue = extension.overdue(leased, *overdue, now);
        Some(*overdue)
    }

    pub(super) fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<Lease> {
        self.jobs
            .values()
            .filter(|row| after.is_none_or(|after| row.job.id > after))
            .filter(|row| row.holder() == Some(holder))
            .filter(|row| older_than.is_zero() || row.leased.plus(older_than) <= now)
            .map(|row| Lease { job: row.job.id, fence: row.job.fence })
            .take(limit)
            .collect()
    }
}
