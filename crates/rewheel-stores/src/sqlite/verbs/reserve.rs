//! Reserves room for new jobs under a tenant's job cap.

use super::super::error::VerbError;
use super::super::row::unsigned;
use super::super::transaction::Transaction;
use super::super::writer::count;
use rewheel_core::store::{Reserve, StoreError};

pub(in super::super) fn reserve(
    tx: &Transaction<'_, '_>,
    reserve: &Reserve,
) -> Result<u64, VerbError> {
    let holder = tx.alive(reserve.holder)?.ok_or(StoreError::HolderDead(reserve.holder))?;
    let tenant = reserve.tenant.as_str();
    tx.execute(include_str!("../sql/reserve_drop.sql"), (tenant, holder))?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let most = (tenant, count(reserve.jobs_max));
    let (live, others) =
        tx.find(include_str!("../sql/reserve.sql"), most, read)?.unwrap_or_default();
    let granted = reserve.granted(unsigned(live), unsigned(others));
    if granted > 0 {
        tx.execute(include_str!("../sql/reserve_keep.sql"), (tenant, holder, count(granted)))?;
    }
    Ok(granted)
}
