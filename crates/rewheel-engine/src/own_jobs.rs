//! Lists the engine's own jobs: schedules and bulk operations.

use futures_util::future::try_join_all;
use rewheel_core::store::{Store, StoreResult};
use rewheel_core::{Job, JobId};

/// The parent of every schedule. No job has this id.
pub(crate) const SCHEDULES: JobId = directory(1);

/// The parent of every bulk operation. No job has this id.
pub(crate) const OPERATIONS: JobId = directory(2);

/// How many jobs to read at the same time: enough to hide most round trips, and few enough to leave connections to others.
pub(crate) const READ_AT_ONCE: usize = 16;

/// Returns the id that the jobs of one list have as their parent. Stores have an index by parent and none by kind, so this makes the cost
/// of a list independent of all other jobs.
const fn directory(number: u8) -> JobId {
    let mut bytes = [0; 16];
    bytes[15] = number;
    JobId::from_bytes(bytes)
}

/// Reads at most [`READ_AT_ONCE`] listed jobs again, with the payloads that a list leaves out. Returns one result for each, in order.
pub(crate) async fn read(store: &dyn Store, jobs: &[Job]) -> StoreResult<Vec<Option<Job>>> {
    debug_assert!(jobs.len() <= READ_AT_ONCE, "too many jobs at once: {}", jobs.len());
    try_join_all(jobs.iter().map(|job| store.get(job.id))).await
}
