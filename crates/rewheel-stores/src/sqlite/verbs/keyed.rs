//! Finds jobs by their idempotency key.

use super::super::error::VerbError;
use super::super::job_columns::Payload;
use super::super::transaction::{Transaction, tenant_text};
use super::super::writer::count as number;
use super::read::get;
use crate::tables::{KEY_LANES_MAX, too_many_lanes};
use rewheel_core::store::Filter;
use rewheel_core::{Job, JobId, Key, KindName};

/// Returns every job that has the key and matches the filter.
pub(super) fn keyed(
    tx: &mut Transaction<'_, '_>,
    filter: &Filter,
    key: &Key,
) -> Result<Vec<Job>, VerbError> {
    let kinds: Vec<Option<&str>> = match filter.kinds.is_empty() {
        true => vec![None],
        false => filter.kinds.iter().map(|kind| Some(KindName::as_str(kind))).collect(),
    };
    let tenant = filter.tenant.as_ref().map(|tenant| tenant_text(Some(tenant)));
    let mut found: Vec<Job> = Vec::new();
    for kind in kinds {
        let looked_at: Option<i64> =
            tx.find(include_str!("../sql/count_lanes.sql"), (kind, tenant), |row| row.get(0))?;
        if looked_at.is_some_and(|lanes| lanes > number(KEY_LANES_MAX as u64)) {
            return Err(too_many_lanes().into());
        }
        let statement = tx.sql(include_str!("../sql/keyed_jobs.sql"))?;
        let mut statement = statement.get();
        let limit = number(KEY_LANES_MAX as u64);
        let values = (key.as_str(), tx.now.as_millis(), kind, tenant, limit);
        let mut rows = statement.query(values)?;
        let mut ids = Vec::new();
        while let Some(row) = rows.next()? {
            ids.push(JobId::from_bytes(row.get(0)?));
        }
        for id in ids {
            found.extend(get(tx, id, Payload::LeaveOut)?.filter(|job| filter.matches(job)));
        }
    }
    found.sort_by_key(|job| job.id);
    found.dedup_by_key(|job| job.id);
    Ok(found)
}
