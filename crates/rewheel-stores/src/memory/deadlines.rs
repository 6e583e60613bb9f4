//! Ends jobs whose deadline has passed, and lists dead letters that were not announced yet.

use super::world::{Row, World};
use rewheel_core::store::DeadLetter;
use rewheel_core::{Cause, Failure, JobEvent, JobId, Retain, State, Status, Timestamp, Transition};
use std::time::Duration;

impl World {
    pub(super) fn deadlines(
        &mut self,
        grace: Duration,
        limit: usize,
        now: Timestamp,
    ) -> Vec<JobEvent> {
        let late = self.jobs.values().filter(|row| row.is_late(grace, now));
        let late: Vec<JobId> = late.map(|row| row.job.id).take(limit).collect();
        late.into_iter().map(|job| self.miss_deadline(job, now)).collect()
    }

    fn miss_deadline(&mut self, id: JobId, now: Timestamp) -> JobEvent {
        let failure = Failure::of_deadline();
        let transition = self.jobs[&id].transition(State::Dead, Cause::Deadline);
        self.note_fate(id, &Transition { failure: Some(&failure), ..transition }, None, now);
        let event = self.write(id, |row| {
            let holder = row.holder();
            if holder.is_some() {
                row.job.fence = row.job.fence.next();
            }
            row.job.failure = Some(failure);
            JobEvent {
                job: id,
                kind: row.job.lane.kind.clone(),
                from: row.job.state(),
                to: State::Dead,
                cause: Cause::Deadline,
                holder,
                at: now,
            }
        });
        // The retention does not matter: a dead letter is kept until an operator handles it.
        self.let_go(id, State::Dead, Retain::default(), now);
        event
    }

    pub(super) fn unannounced(&self, limit: usize) -> Vec<DeadLetter> {
        let mut dead: Vec<DeadLetter> = self.jobs.values().filter_map(Row::unannounced).collect();
        dead.sort_by_key(|letter| (letter.died, letter.job));
        dead.truncate(limit);
        dead
    }

    pub(super) fn announce(&mut self, dead: &[DeadLetter], now: Timestamp) {
        for letter in dead {
            let row = self.jobs.get_mut(&letter.job);
            if let Some(row) = row.filter(|row| row.job.version == letter.version) {
                row.announced = Some(now);
            }
        }
    }
}

impl Row {
    fn is_late(&self, grace: Duration, now: Timestamp) -> bool {
        let Some(deadline) = self.job.deadline else { return false };
        match self.job.status {
            Status::Scheduled | Status::Paused => deadline <= now,
            Status::Leased { .. } => deadline.plus(grace) <= now,
            Status::Succeeded(_) | Status::Failed(_) | Status::Dead(_) | Status::Cancelled(_) => {
                false
            }
        }
    }

    fn unannounced(&self) -> Option<DeadLetter> {
        let Status::Dead(died) = self.job.status else { return None };
        self.announced.is_none().then(|| DeadLetter {
            job: self.job.id,
            version: self.job.version,
            lane: self.job.lane.clone(),
            attempt: self.job.attempt,
            died,
            failure: self.job.failure.clone(),
        })
    }
}
