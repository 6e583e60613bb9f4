//! Enforces `payload_bytes_max` for every job that enters through an engine.

use crate::caps;
use crate::shared::Shared;
use rewheel_core::NewJob;
use rewheel_core::store::{IfRefused, Insert, Inserted, Refusal, StoreResult};
use std::sync::Arc;

/// Says why a payload is too large. Jobs of the engine itself are as large as they must be.
pub(crate) fn refusal(job: &NewJob, bytes_max: usize) -> Option<Refusal> {
    let bytes = job.payload.len();
    let is_large = bytes > bytes_max && !job.kind.is_reserved();
    is_large.then_some(Refusal::AbovePayloadLimit { bytes, bytes_max })
}

/// Inserts the jobs whose payload is small enough, and refuses the others.
pub(crate) async fn insert(
    shared: &Arc<Shared>,
    insert: &Insert<'_>,
) -> StoreResult<Vec<Inserted>> {
    let refusal = |job: &NewJob| refusal(job, shared.settings.payload_bytes_max);
    if insert.jobs.iter().all(|job| refusal(job).is_none()) {
        return caps::insert(shared, insert).await;
    }
    let refused = |job| refusal(job).map(Inserted::Refused);
    if insert.if_refused == IfRefused::StoreNothing {
        let answers = insert.jobs.iter().map(|job| refused(job).unwrap_or(Inserted::LeftOut));
        return Ok(answers.collect());
    }
    let rest = insert.jobs.iter().filter(|job| refusal(job).is_none());
    let rest: Vec<NewJob> = rest.cloned().collect();
    let stored = caps::insert(shared, &Insert { jobs: &rest, ..insert.clone() }).await?;
    let mut stored = stored.into_iter();
    let answer = |job| refused(job).or_else(|| stored.next()).unwrap_or(Inserted::LeftOut);
    Ok(insert.jobs.iter().map(answer).collect())
}
