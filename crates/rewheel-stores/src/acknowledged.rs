//! Remembers the latest jobs that this process acknowledged, to count those that a failover, a restart or a restore forgot.

use rewheel_core::JobId;
use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of remembered jobs of each sort: 13 seconds at 5,000 jobs per second, in 1 MiB. A standby that is further behind has
/// forgotten more than this process can count.
const REMEMBERED_MAX: usize = 65_536;

/// The latest jobs that were stored and that have ended, each acknowledged to its caller.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    submitted: VecDeque<JobId>,
    ended: VecDeque<JobId>,
    /// Those of the ended jobs that were not kept: they are in no table.
    dropped: VecDeque<JobId>,
    /// The epoch that began, until the jobs are checked.
    epoch: Option<i64>,
}

/// Jobs to look for after an epoch has begun.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) epoch: i64,
    pub(crate) submitted: Vec<JobId>,
    pub(crate) ended: Vec<JobId>,
    pub(crate) dropped: HashSet<JobId>,
}

impl Acknowledged {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers jobs that were stored.
    pub(crate) fn submitted(&self, jobs: impl Iterator<Item = JobId>) {
        remember(&mut self.known().submitted, jobs);
    }

    /// Remembers jobs that have ended for good, each with whether it is kept.
    pub(crate) fn ended(&self, jobs: impl Iterator<Item = (JobId, bool)> + Clone) {
        let known = &mut *self.known();
        remember(&mut known.ended, jobs.clone().map(|(job, _)| job));
        let dropped = jobs.filter(|(_, is_kept)| !is_kept);
        remember(&mut known.dropped, dropped.map(|(job, _)| job));
    }

    /// Asks for a check, because an epoch began.
    pub(crate) fn ask(&self, epoch: i64) {
        self.known().epoch = Some(epoch);
    }

    /// Returns what to check, if an epoch began. Jobs that were acknowledged since are checked too: they are found.
    pub(crate) fn check(&self) -> Option<Check> {
        let known = self.known();
        Some(Check {
            epoch: known.epoch?,
            submitted: known.submitted.iter().copied().collect(),
            ended: known.ended.iter().copied().collect(),
            dropped: known.dropped.iter().copied().collect(),
        })
    }

    /// Forgets the jobs that were counted, so that the next check does not count them again.
    pub(crate) fn checked(&self, epoch: i64, counted: &HashSet<JobId>) {
        let mut known = self.known();
        known.submitted.retain(|job| !counted.contains(job));
        known.ended.retain(|job| !counted.contains(job));
        // Another epoch may have begun meanwhile.
        known.epoch = known.epoch.filter(|asked| *asked != epoch);
    }
}

fn remember(known: &mut VecDeque<JobId>, jobs: impl Iterator<Item = JobId>) {
    known.extend(jobs);
    let beyond = known.len().saturating_sub(REMEMBERED_MAX);
    known.drain(..beyond);
}

#[cfg(test)]
mod tests {
    use super::{Acknowledged, REMEMBERED_MAX};
    use rewheel_core::JobId;
    use std::collections::HashSet;

    fn job(number: usize) -> JobId {
        JobId::from_bytes((number as u128).to_be_bytes())
    }

    #[test]
    fn the_latest_jobs_are_checked_once_after_an_epoch_began() {
        let known = Acknowledged::default();
        known.submitted((0..REMEMBERED_MAX).map(job));
        known.submitted([job(REMEMBERED_MAX), job(REMEMBERED_MAX + 1)].into_iter());
        known.ended([(job(7), true), (job(8), false)].into_iter());
        assert!(known.check().is_none());
        known.ask(3);
        let check = known.check().expect("an epoch began");
        assert_eq!(
            (check.epoch, check.submitted.len(), check.submitted[0]),
            (3, REMEMBERED_MAX, job(2))
        );
        assert_eq!((check.ended, check.dropped), (vec![job(7), job(8)], HashSet::from([job(8)])));
        known.checked(3, &HashSet::from([job(7), job(8), job(9)]));
        assert!(known.check().is_none());
        known.ask(4);
        let check = known.check().expect("another began");
        assert_eq!((check.submitted.len(), check.ended.len()), (REMEMBERED_MAX - 3, 0));
        // One more began during that check.
        known.ask(5);
        known.checked(4, &HashSet::new());
        assert_eq!(known.check().map(|check| check.epoch), Some(5));
    }
}
