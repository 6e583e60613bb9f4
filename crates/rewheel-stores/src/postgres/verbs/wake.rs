//! Wakes nodes for jobs that were stored.

use super::super::PostgresStore;
use rewheel_core::store::{Inserted, StoreChange};
use rewheel_core::{NewJob, Timestamp};

/// Other nodes are woken for jobs that are due within this time; later jobs are found by polling.
const WAKES_WITHIN_MS: i64 = 1_000;

/// The same in a store with many lanes: a poll reads only some of them, so that other nodes may not find the job in time.
const WAKES_WITHIN_MS_OF_MANY: i64 = 120_000;

impl PostgresStore {
    /// Wakes this node, and other nodes for jobs that are due soon.
    pub(super) fn wake_for(&self, jobs: &[NewJob], now: Timestamp, answers: &[Inserted]) {
        let within = match self.shared.lanes.are_many() {
            true => WAKES_WITHIN_MS_OF_MANY,
            false => WAKES_WITHIN_MS,
        };
        let soon = now.as_millis().saturating_add(within);
        // Each with the job that was added last: most jobs of a batch are in the same lane as the job before.
        let (mut here, mut everywhere): (Option<Report<'_>>, Option<Report<'_>>) = (None, None);
        for (job, answer) in jobs.iter().zip(answers) {
            let Inserted::Created { due, leased } = answer else { continue };
            if leased.is_some() {
                // It cannot be claimed: its lane is as it was.
                continue;
            }
            let is_soon = due.as_millis() <= soon;
            let report = if is_soon { &mut everywhere } else { &mut here };
            let (change, last) = report.get_or_insert_with(|| ((&job.lane()).into(), job));
            if !last.is_beside(job) {
                change.add(&job.lane());
                *last = job;
            }
        }
        if let Some((change, _)) = everywhere {
            self.wake(change);
        }
        if let Some((change, _)) = here {
            self.shared.woken.wake(change);
        }
    }
}

/// The lanes to report, and the job that was added last.
type Report<'a> = (StoreChange, &'a NewJob);
