//! The results of jobs that succeeded.

use super::Weakness;
use super::world::World;
use rewheel_core::store::{AttemptEnd, AttemptRecord, Settled, Settlement};
use rewheel_core::{GivenResult, HolderId, JobId, Limits, State, StoredResult, Timestamp};

/// The stored result of a job.
pub(super) struct ResultRow {
    pub(super) what: StoredResult,
    /// When it is deleted; when it is no longer remembered, once it was deleted.
    expires: Timestamp,
}

impl World {
    /// Stores the result of a settlement that ended its job.
    pub(super) fn keep_result(&mut self, settlement: &Settlement, answer: Settled, now: Timestamp) {
        let Some(result) = &settlement.result else { return };
        let job = settlement.lease.job;
        let row = self.jobs.get(&job);
        let has_succeeded = row.is_some_and(|row| row.job.state() == State::Succeeded);
        let counts = matches!(answer, Settled::Applied(_)) && has_succeeded;
        let is_lost = counts && self.is_weak(Weakness::ResultLost);
        if is_lost || !counts && !self.is_weak(Weakness::ResultOfAnySettle) {
            return;
        }
        let what = match result.clone() {
            GivenResult::Kept(result) => StoredResult::Kept(result),
            GivenResult::Dropped(why) => StoredResult::Dropped(why),
        };
        self.results.insert(job, ResultRow { what, expires: now.plus(settlement.keep.job) });
    }

    pub(super) fn result(&self, job: JobId) -> Option<StoredResult> {
        let row = self.results.get(&job)?;
        // The job may be pruned before its result.
        let is_kept = self.jobs.contains_key(&job);
        Some(if is_kept { row.what.clone() } else { StoredResult::Pruned })
    }

    /// Deletes results whose retention has ended, and later forgets them.
    pub(super) fn prune_results(&mut self, limit: usize, now: Timestamp) -> u64 {
        let is_old = |row: &ResultRow| row.expires <= now;
        let forgotten =
            self.results.extract_if(.., |_, row| row.what == StoredResult::Pruned && is_old(row));
        let forgotten = forgotten.take(limit).count();
        let old = self.results.values_mut().filter(|row| row.what != StoredResult::Pruned);
        let mut deleted = 0;
        for row in old.filter(|row| is_old(row)).take(limit) {
            row.what = StoredResult::Pruned;
            row.expires = now.plus(Limits::RESULTS_REMEMBERED);
            deleted += 1;
        }
        deleted.max(forgotten as u64)
    }

    /// Returns those of these jobs that are not live.
    pub(super) fn ended(&self, jobs: &[JobId]) -> Vec<JobId> {
        let is_live = |id: &JobId| self.jobs.get(id).is_some_and(|row| row.job.state().is_live());
        jobs.iter().filter(|id| !is_live(id)).copied().collect()
    }
}

/// Returns the record of an attempt that succeeded, and of which its history says nothing.
pub(super) fn success(
    holder: HolderId,
    settlement: &Settlement,
    attempt: u32,
    now: Timestamp,
) -> Option<AttemptRecord> {
    settlement.is_plain_success().then(|| AttemptRecord {
        attempt,
        fence: settlement.lease.fence,
        holder,
        started: super::settle::earlier(now, settlement.ran.started_ago),
        duration: settlement.ran.duration,
        ended: AttemptEnd::Succeeded(settlement.code.clone()),
        decision: settlement.decision.as_str().to_owned(),
        delay: None,
        dropped: 0,
    })
}
