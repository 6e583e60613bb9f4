//! Frees jobs of dead holders, and overdue jobs.

use super::Weakness;
use super::world::{Row, World};
use rewheel_core::store::{StoreResult, Sweep, Watched};
use rewheel_core::{
    Cause, Failure, HolderId, JobEvent, JobId, Retain, State, Status, Timestamp, Transition, Wanted,
};

/// A lease that is taken away from its holder.
struct Taken {
    job: JobId,
    holder: HolderId,
    wanted: Option<Wanted>,
}

impl World {
    pub(super) fn sweep(&mut self, sweep: &Sweep, now: Timestamp) -> StoreResult<Vec<JobEvent>> {
        let Sweep { by, limit, keep, watched } = *sweep;
        self.must_be_alive(by)?;
        let taken = self.jobs.values().filter_map(|row| self.taken(row, watched, now));
        let taken: Vec<Taken> = taken.take(limit).collect();
        Ok(taken.into_iter().map(|taken| self.take_over(&taken, by, keep, now)).collect())
    }

    /// Returns the lease to take away: the job is leased, but its holder is dead or it is overdue.
    fn taken(&self, row: &Row, watched: Watched, now: Timestamp) -> Option<Taken> {
        let Status::Leased { holder, overdue, wanted } = row.job.status else { return None };
        let is_overdue = overdue <= now
            && watched.has_passed(row.leased, overdue)
            && !self.is_weak(Weakness::NoOverdue);
        let is_free = !self.is_alive(holder) || is_overdue;
        is_free.then_some(Taken { job: row.job.id, holder, wanted })
    }

    fn take_over(&mut self, taken: &Taken, by: HolderId, keep: Retain, now: Timestamp) -> JobEvent {
        let kind = self.jobs[&taken.job].job.lane.kind.clone();
        let takeovers_max = self.kinds[&kind].kind.takeovers_max;
        let transition = self.jobs[&taken.job].transition(State::Scheduled, Cause::Takeover);
        let (to, counted) = self.write(taken.job, |row| {
            let counts = row.started == Some(row.job.fence);
            row.job.takeovers += 1;
            row.job.takeovers_counted += u32::from(counts);
            // The previous holder may come back and settle under the old fence.
            row.job.fence = row.job.fence.next();
            let counted = row.job.takeovers_counted;
            let to = match taken.wanted {
                Some(wanted) => wanted.state(),
                None if counts && counted >= takeovers_max => {
                    row.job.failure = Some(Failure::of_takeovers(counted));
                    State::Dead
                }
                None => State::Scheduled,
            };
            (to, counted)
        });
        let failure = (to == State::Dead).then(|| Failure::of_takeovers(counted));
        let (takeovers, failure) = (transition.takeovers + 1, failure.as_ref());
        let transition =
            Transition { to, takeovers, takeovers_counted: counted, failure, ..transition };
        self.note_fate(taken.job, &transition, Some(by), now);
        self.let_go(taken.job, to, keep, now);
        self.report_lane(taken.job);
        JobEvent {
            job: taken.job,
            kind,
            from: State::Leased,
            to,
            cause: Cause::Takeover,
            holder: Some(taken.holder),
            at: now,
        }
    }
}
