//! Reserves room for new jobs under a tenant's job cap.

use super::super::error::VerbError;
use super::super::row::{count, holder_uuid, unsigned};
use super::super::session::{Param, Session};
use super::super::statements::{FIND_HOLDER, RESERVE, RESERVE_DROP, RESERVE_KEEP, RESERVE_LOCK};
use rewheel_core::store::{Reserve, StoreError};

pub(in super::super) async fn reserve(
    session: &Session<'_>,
    reserve: &Reserve,
) -> Result<u64, VerbError> {
    let tenant = reserve.tenant.as_str();
    // A separate statement, so that the next one sees everything that was committed before the
    // lock.
    session.query(&RESERVE_LOCK, &[&tenant]).await?;
    let params: [Param<'_>; 2] = [&holder_uuid(reserve.holder), &session.offset()];
    let row = session.one(&FIND_HOLDER, &params).await?;
    let holder: Option<i32> = row.try_get(1)?;
    let lives = row.try_get::<_, Option<bool>>(2)?.unwrap_or(false);
    let holder = holder.filter(|_| lives).ok_or(StoreError::HolderDead(reserve.holder))?;
    session.execute(&RESERVE_DROP, &[&tenant, &holder]).await?;
    let (due, held) =
        (session.shared.lanes.floors.for_count(), session.shared.overdue.peek_if_long());
    let most = count(reserve.jobs_max);
    let offset = session.offset();
    let params: [Param<'_>; 7] =
        [&tenant, &most, &due.lanes, &due.from, &held.at, &held.list, &offset];
    let row = session.one(&RESERVE, &params).await?;
    let granted = reserve.granted(unsigned(row.try_get(0)?), unsigned(row.try_get(1)?));
    if granted > 0 {
        session.execute(&RESERVE_KEEP, &[&tenant, &holder, &count(granted)]).await?;
    }
    Ok(granted)
}
