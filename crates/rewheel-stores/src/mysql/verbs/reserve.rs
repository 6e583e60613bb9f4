//! Reserves room for new jobs under a tenant's job cap.

use super::super::error::VerbError;
use super::super::row::{count, get, unsigned};
use super::super::transaction::Transaction;
use mysql_async::Value;
use rewheel_core::store::{Reserve, StoreError};

pub(in super::super) async fn reserve(
    tx: &mut Transaction<'_>,
    reserve: &Reserve,
) -> Result<u64, VerbError> {
    let tenant = Value::from(reserve.tenant.as_str());
    tx.execute(include_str!("../sql/reserve_lock.sql"), vec![tenant.clone()]).await?;
    let holder = tx.alive(reserve.holder).await?;
    let holder = holder.ok_or(StoreError::HolderDead(reserve.holder))?;
    let mut gone = vec![holder];
    for row in tx.rows(include_str!("../sql/reserve_dead.sql"), vec![tenant.clone()]).await? {
        gone.push(get(&row, 0)?);
    }
    for holder in gone {
        let values = vec![tenant.clone(), holder.into()];
        tx.execute(include_str!("../sql/reserve_drop.sql"), values).await?;
    }
    let most = count(reserve.jobs_max);
    let values = vec![tenant.clone(), most.clone(), tenant.clone(), most, tenant.clone()];
    let row = tx.find(include_str!("../sql/reserve.sql"), values).await?;
    let (live, others) = match row {
        Some(row) => (unsigned(get(&row, 0)?), unsigned(get(&row, 1)?)),
        None => (0, 0),
    };
    let granted = reserve.granted(live, others);
    if granted > 0 {
        let values = vec![tenant, holder.into(), count(granted)];
        tx.execute(include_str!("../sql/reserve_keep.sql"), values).await?;
    }
    Ok(granted)
}
