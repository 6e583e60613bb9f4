//! Finds jobs by their idempotency key.

use super::super::error::VerbError;
use super::super::lane_rows::tenant_text;
use super::super::row::{bytes, get};
use super::super::transaction::Transaction;
use super::keys;
use super::read::find;
use crate::tables::{KEY_LANES_MAX, too_many_lanes};
use mysql_async::Value;
use rewheel_core::store::Filter;
use rewheel_core::{Job, JobId, Key, KindName};

/// Returns every job that has the key and matches the filter. One lookup for each kind and tenant.
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
    let mut names: Vec<Value> = Vec::new();
    for kind in kinds {
        let wanted =
            || -> Vec<Value> { vec![kind.into(), kind.into(), tenant.into(), tenant.into()] };
        let row = tx.find(include_str!("../sql/count_lanes.sql"), wanted()).await?;
        let lanes: u64 = row.map_or(Ok(0), |row| get(&row, 0))?;
        if lanes > KEY_LANES_MAX as u64 {
            return Err(too_many_lanes().into());
        }
        let mut values = wanted();
        values.push((KEY_LANES_MAX as u64).into());
        for row in tx.rows(include_str!("../sql/named_lanes.sql"), values).await? {
            let (kind, tenant): (String, String) = (get(&row, 0)?, get(&row, 1)?);
            names.push(keys::name(&kind, &tenant, key.as_str()).to_vec().into());
        }
    }
    let now = [tx.now.as_millis().into()];
    let rows = tx.run_list(include_str!("../sql/keyed_jobs.sql"), &[], &names, &now).await?.rows;
    let mut ids = Vec::with_capacity(rows.len());
    for row in rows {
        ids.push(JobId::from_bytes(bytes(&row, 0)?));
    }
    let mut found = find(tx, &ids).await?;
    found.retain(|job| filter.matches(job));
    found.sort_by_key(|job| job.id);
    Ok(found)
}
