//! Finds jobs by their idempotency key.

use super::super::error::VerbError;
use super::super::row::{count as number, job_id, tenant_text, unsigned};
use super::super::session::{Param, Session};
use super::super::statements::KEYED_JOBS;
use super::read::get;
use crate::tables::{KEY_LANES_MAX, too_many_lanes};
use rewheel_core::store::Filter;
use rewheel_core::{Job, Key, KindName};
use uuid::Uuid;

/// Returns every job that has the key and matches the filter.
pub(super) async fn keyed(
    session: &Session<'_>,
    filter: &Filter,
    key: &Key,
) -> Result<Vec<Job>, VerbError> {
    let kinds: Vec<&str> = filter.kinds.iter().map(KindName::as_str).collect();
    let kinds = (!kinds.is_empty()).then_some(kinds);
    let tenant = filter.tenant.as_ref().map(|tenant| tenant_text(Some(tenant)));
    let now = session.now().await?.as_millis();
    let limit = number((KEY_LANES_MAX as u64).saturating_add(1));
    let params: [Param<'_>; 5] = [&key.as_str(), &now, &kinds, &tenant, &limit];
    let row = session.one(&KEYED_JOBS, &params).await?;
    if unsigned(row.try_get(0)?) > KEY_LANES_MAX as u64 {
        return Err(too_many_lanes().into());
    }
    let mut found: Vec<Job> = Vec::new();
    for id in row.try_get::<_, Vec<Uuid>>(1)? {
        let job = get(session, job_id(id)).await?.filter(|job| filter.matches(job));
        found.extend(job.map(|job| Job { payload: None, ..job }));
    }
    Ok(found)
}
