//! Registers holders, renews leases and expires dead holders.

use super::super::error::VerbError;
use super::super::row::{duration, instant, millis, unsigned, wanted};
use super::super::transaction::Transaction;
use super::super::writer::count;
use rewheel_core::store::{HolderExpiry, Renewed, StoreError, WantedJob, WatchShare};
use rewheel_core::{
    Fence, Format, Holder, HolderId, JobId, Lease, Limits, NewHolder, Role, Timestamp,
};

pub(in super::super) fn join(
    tx: &Transaction<'_, '_>,
    holder: &NewHolder,
) -> Result<Timestamp, VerbError> {
    let now = tx.now;
    let (id, role) = (holder.id.to_bytes(), holder.role.as_str());
    let owner = holder.role.owner().map(|owner| owner.to_string());
    let values = (
        id,
        &holder.name,
        millis(holder.lease_ttl),
        now.as_millis(),
        role,
        owner,
        holder.format.get(),
    );
    tx.execute(include_str!("../sql/join.sql"), values)?;
    match tx.alive(holder.id)? {
        Some(_) => Ok(now),
        None => Err(StoreError::HolderDead(holder.id).into()),
    }
}

pub(in super::super) fn renew(
    tx: &Transaction<'_, '_>,
    holder: HolderId,
) -> Result<Renewed, VerbError> {
    let values = (holder.to_bytes(), tx.now.as_millis());
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (number, renewals) = tx
        .find(include_str!("../sql/renew.sql"), values, read)?
        .ok_or(StoreError::HolderDead(holder))?;
    let statement = tx.sql(include_str!("../sql/wanted.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query((number, Limits::BATCH_MAX))?;
    let mut wishes = Vec::new();
    while let Some(row) = rows.next()? {
        let fence = Fence::new(unsigned(row.get(1)?));
        let lease = Lease { job: JobId::from_bytes(row.get(0)?), fence };
        if let Some(wanted) = wanted(row.get(2)?)? {
            wishes.push(WantedJob { lease, wanted });
        }
    }
    Ok(Renewed { at: tx.now, renewals: unsigned(renewals), wanted: wishes })
}

pub(in super::super) fn leave(tx: &Transaction<'_, '_>, holder: HolderId) -> Result<(), VerbError> {
    tx.execute(include_str!("../sql/leave.sql"), (holder.to_bytes(), tx.now.as_millis()))?;
    Ok(())
}

pub(in super::super) fn holders(tx: &Transaction<'_, '_>) -> Result<Vec<Holder>, VerbError> {
    read_holders(tx, include_str!("../sql/holders.sql"), ())
}

pub(in super::super) fn watched_holders(
    tx: &Transaction<'_, '_>,
    share: WatchShare,
) -> Result<Vec<Holder>, VerbError> {
    let (of, [one, other]) = share.remainders();
    read_holders(tx, include_str!("../sql/watched_holders.sql"), (of, one, other))
}

fn read_holders(
    tx: &Transaction<'_, '_>,
    sql: &'static str,
    values: impl rusqlite::Params,
) -> Result<Vec<Holder>, VerbError> {
    let statement = tx.sql(sql)?;
    let mut statement = statement.get();
    let mut rows = statement.query(values)?;
    let mut holders = Vec::new();
    while let Some(row) = rows.next()? {
        holders.push(read_holder(row, tx.now)?);
    }
    Ok(holders)
}

pub(in super::super) fn holder(
    tx: &Transaction<'_, '_>,
    id: HolderId,
) -> Result<Option<Holder>, VerbError> {
    let values = [id.to_bytes()];
    tx.find(include_str!("../sql/holder.sql"), values, |row| read_holder(row, tx.now))
}

fn read_holder(row: &rusqlite::Row<'_>, now: Timestamp) -> rusqlite::Result<Holder> {
    let (lease_ttl, renewed) = (duration(row.get(2)?), instant(row.get(5)?));
    let owner = row.get::<_, Option<String>>(8)?;
    Ok(Holder {
        id: HolderId::from_bytes(row.get(0)?),
        name: row.get(1)?,
        role: Role::of(&row.get::<_, String>(7)?, owner.as_deref()),
        lease_ttl,
        format: Format::new(row.get(9)?),
        renewals: unsigned(row.get(3)?),
        joined: instant(row.get(4)?),
        renewed,
        expired: renewed.plus(lease_ttl) <= now,
        died: row.get::<_, Option<i64>>(6)?.map(instant),
    })
}

pub(in super::super) fn expire_holder(
    tx: &Transaction<'_, '_>,
    by: HolderId,
    other: HolderId,
    renewals: u64,
) -> Result<HolderExpiry, VerbError> {
    if tx.alive(by)?.is_none() {
        return Err(StoreError::HolderDead(by).into());
    }
    let values = (other.to_bytes(), count(renewals), tx.now.as_millis());
    if tx.execute(include_str!("../sql/expire_holder.sql"), values)? == 1 {
        return Ok(HolderExpiry::Expired);
    }
    Ok(if tx.alive(other)?.is_some() { HolderExpiry::Alive } else { HolderExpiry::Dead })
}
