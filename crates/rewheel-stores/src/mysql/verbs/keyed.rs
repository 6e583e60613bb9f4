//! Finds jobs by their idempotency key.

use super::super::error::{VerbError, unreadable};
use super::super::row::{bytes, count, get};
use super::super::transaction::{Transaction, tenant_text};
use super::keys::{KeyName, name};
use super::read::find;
use crate::tables::{KEY_LANES_MAX, too_many_lanes};
use mysql_async::Value;
use rewheel_core::store::Filter;
use rewheel_core::{Job, JobId, Key, KindName};
use std::collections::BTreeSet;

/// Returns every job that has the key and matches the filter.
pub(super) async fn keyed(
    tx: &mut Transaction<'_>,
    filter: &Filter,
    key: &Key,
) -> Result<Vec<Job>, VerbError> {
    let kinds: Vec<Option<&str>> = match filter.kinds.is_empty() {
        true => vec![None],
        false => filter.kinds.iter().map(|kind| Some(KindName::as_str(kind))).collect(),
    };
    let tenant = filter.tenant.as_ref().map(|tenant| tenant_text(Some(tenant)));
    let mut names: BTreeSet<KeyName> = BTreeSet::new();
    for kind in kinds {
        match (kind, tenant) {
            (Some(kind), Some(tenant)) => drop(names.insert(name(kind, tenant, key.as_str()))),
            (kind, tenant) => names.extend(names_in_lanes(tx, kind, tenant, key).await?),
        }
    }
    let names: Vec<Value> = names.iter().map(|name| Value::from(name.as_slice())).collect();
    let now = [Value::from(tx.now.as_millis())];
    let rows = tx.run_list(include_str!("../sql/keyed_jobs.sql"), &[], &names, &now).await?.rows;
    let jobs = rows.iter().map(|row| bytes(row, 0).map(JobId::from_bytes));
    let jobs = jobs.collect::<Result<Vec<JobId>, _>>()?;
    let mut found = find(tx, &jobs).await?;
    found.retain(|job| filter.matches(job));
    found.sort_by_key(|job| job.id);
    Ok(found)
}

/// Returns the names that a key has in all kinds and tenants with jobs, or in those of one kind or tenant.
async fn names_in_lanes(
    tx: &mut Transaction<'_>,
    kind: Option<&str>,
    tenant: Option<&str>,
    key: &Key,
) -> Result<Vec<KeyName>, VerbError> {
    let (kind, tenant) = (Value::from(kind), Value::from(tenant));
    // One more than the limit, to know whether there are more.
    let limit = count(KEY_LANES_MAX as u64 + 1);
    let values = vec![kind.clone(), kind, tenant.clone(), tenant, limit];
    let rows = tx.rows(include_str!("../sql/named_lanes.sql"), values).await?;
    if rows.len() > KEY_LANES_MAX {
        return Err(too_many_lanes().into());
    }
    let read = |row| -> Result<KeyName, VerbError> {
        let (kind, tenant): (String, Vec<u8>) = (get(row, 0)?, get(row, 1)?);
        let tenant = String::from_utf8(tenant).map_err(|_| unreadable("a tenant"))?;
        Ok(name(&kind, &tenant, key.as_str()))
    };
    rows.iter().map(read).collect()
}
