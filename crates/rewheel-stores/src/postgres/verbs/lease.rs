//! Registers holders, renews leases and expires dead holders.

use super::super::error::VerbError;
use super::super::row::{
    count, counter, duration, fence, holder_id, holder_uuid, instant, job_id, millis, small,
    unsigned, wanted,
};
use super::super::session::{Param, Session};
use super::super::statements::{
    EXPIRE_HOLDER, FIND_HOLDER, HOLDER, HOLDERS, JOIN, LEAVE, RENEW, WATCHED_HOLDERS,
};
use rewheel_core::store::{HolderExpiry, Renewed, StoreError, WantedJob, WatchShare};
use rewheel_core::{Format, Holder, HolderId, Lease, Limits, NewHolder, Role, Timestamp};
use tokio_postgres::Row;

pub(in super::super) async fn join(
    session: &Session<'_>,
    holder: &NewHolder,
) -> Result<Timestamp, VerbError> {
    let (id, offset) = (holder_uuid(holder.id), session.offset());
    // The name is only for display: drop characters that the server cannot store.
    let name = holder.name.replace('\0', "");
    let (role, owner) = (holder.role.as_str(), holder.role.owner().map(|owner| owner.to_string()));
    let (lease_ttl, format) = (millis(holder.lease_ttl), counter(holder.format.get()));
    let params: [Param<'_>; 7] = [&id, &offset, &name, &lease_ttl, &role, &owner, &format];
    if let Some(row) = session.find(&JOIN, &params).await? {
        return Ok(instant(row.try_get(0)?));
    }
    let row = session.one(&FIND_HOLDER, &[&id, &offset]).await?;
    match row.try_get::<_, Option<bool>>(2)? {
        Some(true) => Ok(instant(row.try_get(0)?)),
        Some(false) | None => Err(StoreError::HolderDead(holder.id).into()),
    }
}

pub(in super::super) async fn renew(
    session: &Session<'_>,
    holder: HolderId,
) -> Result<Renewed, VerbError> {
    let params: [Param<'_>; 3] =
        [&holder_uuid(holder), &session.offset(), &count(Limits::BATCH_MAX as u64)];
    let rows = session.query(&RENEW, &params).await?;
    let first = rows.first().ok_or(StoreError::HolderDead(holder))?;
    let mut wishes = Vec::new();
    for row in &rows {
        if let (Some(job), Some(wanted)) = (row.try_get(2)?, wanted(row.try_get(4)?)?) {
            let lease = Lease { job: job_id(job), fence: fence(row.try_get(3)?) };
            wishes.push(WantedJob { lease, wanted });
        }
    }
    Ok(Renewed {
        at: instant(first.try_get(0)?),
        renewals: unsigned(first.try_get(1)?),
        wanted: wishes,
    })
}

pub(in super::super) async fn leave(
    session: &Session<'_>,
    holder: HolderId,
) -> Result<(), VerbError> {
    session.execute(&LEAVE, &[&holder_uuid(holder), &session.offset()]).await.map(drop)
}

pub(in super::super) async fn holders(session: &Session<'_>) -> Result<Vec<Holder>, VerbError> {
    let rows = session.query(&HOLDERS, &[&session.offset()]).await?;
    rows.iter().map(read_holder).collect()
}

pub(in super::super) async fn watched_holders(
    session: &Session<'_>,
    share: WatchShare,
) -> Result<Vec<Holder>, VerbError> {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let (of, remainders) = share.remainders();
    let [one, other] = remainders.map(number);
    let params: [Param<'_>; 4] = [&session.offset(), &number(of), &one, &other];
    let rows = session.query(&WATCHED_HOLDERS, &params).await?;
    rows.iter().map(read_holder).collect()
}

pub(in super::super) async fn holder(
    session: &Session<'_>,
    id: HolderId,
) -> Result<Option<Holder>, VerbError> {
    let row = session.find(&HOLDER, &[&session.offset(), &holder_uuid(id)]).await?;
    row.as_ref().map(read_holder).transpose()
}

fn read_holder(row: &Row) -> Result<Holder, VerbError> {
    let now = instant(row.try_get(0)?);
    let (lease_ttl, renewed) = (duration(row.try_get(3)?), instant(row.try_get(6)?));
    Ok(Holder {
        id: holder_id(row.try_get(1)?),
        name: row.try_get(2)?,
        role: Role::of(row.try_get(8)?, row.try_get(9)?),
        lease_ttl,
        format: Format::new(small(row.try_get(10)?)),
        renewals: unsigned(row.try_get(4)?),
        joined: instant(row.try_get(5)?),
        renewed,
        expired: renewed.plus(lease_ttl) <= now,
        died: row.try_get::<_, Option<i64>>(7)?.map(instant),
    })
}

pub(in super::super) async fn expire_holder(
    session: &Session<'_>,
    by: HolderId,
    other: HolderId,
    renewals: u64,
) -> Result<HolderExpiry, VerbError> {
    let params: [Param<'_>; 4] =
        [&holder_uuid(by), &holder_uuid(other), &count(renewals), &session.offset()];
    let row = session.one(&EXPIRE_HOLDER, &params).await?;
    let (by_lives, expired, lived) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    match (by_lives, expired, lived) {
        (false, ..) => Err(StoreError::HolderDead(by).into()),
        (true, true, _) => Ok(HolderExpiry::Expired),
        (true, false, false) => Ok(HolderExpiry::Dead),
        (true, false, true) => {
            // It was alive when this statement began; another node may have expired it meanwhile.
            let row = session.one(&FIND_HOLDER, &[&holder_uuid(other), &session.offset()]).await?;
            let lives = row.try_get::<_, Option<bool>>(2)?.unwrap_or(false);
            Ok(if lives { HolderExpiry::Alive } else { HolderExpiry::Dead })
        }
    }
}
