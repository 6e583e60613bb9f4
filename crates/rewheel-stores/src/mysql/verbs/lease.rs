//! Registers holders, renews leases and expires dead holders.

use super::super::error::{VerbError, unreadable};
use super::super::row::{bytes, count, duration, get, id16, instant, millis, unsigned, wanted};
use super::super::transaction::Transaction;
use mysql_async::{Row, Value};
use rewheel_core::store::{HolderExpiry, Renewed, StoreError, WantedJob, WatchShare};
use rewheel_core::{
    Fence, Format, Holder, HolderId, JobId, Lease, Limits, NewHolder, Role, Timestamp,
};
use std::time::Duration;

/// How often, and with which pauses, an expiry tries to lock its holder: a quarter of a second in all, because the caller must send its own
/// heartbeats.
pub(in super::super) const LOCK_TRIES: usize = 25;
pub(in super::super) const LOCK_PAUSE: Duration = Duration::from_millis(10);

pub(in super::super) async fn join(
    tx: &mut Transaction<'_>,
    holder: &NewHolder,
) -> Result<Timestamp, VerbError> {
    let now = tx.now;
    let used = tx.find(include_str!("../sql/share_format.sql"), vec![]).await?;
    let used: u32 = used.map_or(Ok(0), |row| get(&row, 0))?;
    if holder.format.get() < used {
        let what = "this node or worker runs a release that is too old for the jobs in this store: upgrade it";
        return Err(StoreError::Rejected(what.into()).into());
    }
    let owner = holder.role.owner().map(|owner| owner.to_string());
    let values = vec![
        id16(holder.id.to_bytes()),
        holder.name.as_str().into(),
        millis(holder.lease_ttl).into(),
        now.as_millis().into(),
        holder.role.as_str().into(),
        owner.into(),
        holder.format.get().into(),
    ];
    tx.execute(include_str!("../sql/join.sql"), values).await?;
    let values = vec![id16(holder.id.to_bytes()), now.as_millis().into()];
    tx.execute(include_str!("../sql/join_renewals.sql"), values).await?;
    match tx.alive(holder.id).await? {
        Some(_) => Ok(now),
        None => Err(StoreError::HolderDead(holder.id).into()),
    }
}

/// What became of a heartbeat.
pub(in super::super) enum Beat {
    Renewed(Renewed),
    /// The holder is dead.
    Dead,
    /// The store does not know the holder. Also returns the epoch that the store is in, and its time.
    Gone {
        epoch: i64,
        now: Timestamp,
    },
}

pub(in super::super) async fn renew(
    tx: &mut Transaction<'_>,
    holder: HolderId,
) -> Result<Beat, VerbError> {
    let id = id16(holder.to_bytes());
    let values = vec![tx.now.as_millis().into(), id.clone()];
    if tx.execute(include_str!("../sql/renew.sql"), values).await? != 1 {
        return unknown_beat(tx, holder).await;
    }
    let Some(row) = tx.find(include_str!("../sql/renewals.sql"), vec![id]).await? else {
        return unknown_beat(tx, holder).await;
    };
    let (number, renewals): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
    let values = vec![number.into(), (Limits::BATCH_MAX as u64).into()];
    let mut wishes = Vec::new();
    for row in tx.rows(include_str!("../sql/wanted.sql"), values).await? {
        let fence = Fence::new(unsigned(get(&row, 1)?));
        let lease = Lease { job: JobId::from_bytes(bytes(&row, 0)?), fence };
        if let Some(wanted) = wanted(get(&row, 2)?)? {
            wishes.push(WantedJob { lease, wanted });
        }
    }
    Ok(Beat::Renewed(Renewed { at: tx.now, renewals: unsigned(renewals), wanted: wishes }))
}

/// Returns why a holder could not renew.
async fn unknown_beat(tx: &mut Transaction<'_>, holder: HolderId) -> Result<Beat, VerbError> {
    if tx.number(holder).await?.is_some() {
        return Ok(Beat::Dead);
    }
    let row = tx.find(include_str!("../sql/latest_epoch.sql"), vec![]).await?;
    let epoch: Option<i64> = row.map_or(Ok(None), |row| get(&row, 0))?;
    Ok(Beat::Gone { epoch: epoch.unwrap_or(0), now: tx.now })
}

pub(in super::super) async fn leave(
    tx: &mut Transaction<'_>,
    holder: HolderId,
) -> Result<(), VerbError> {
    let id = id16(holder.to_bytes());
    let values = vec![tx.now.as_millis().into(), id.clone()];
    tx.execute(include_str!("../sql/leave.sql"), values).await?;
    tx.execute(include_str!("../sql/leave_renewals.sql"), vec![id]).await.map(drop)
}

pub(in super::super) async fn holders(tx: &mut Transaction<'_>) -> Result<Vec<Holder>, VerbError> {
    read_holders(tx, include_str!("../sql/holders.sql"), vec![]).await
}

pub(in super::super) async fn watched_holders(
    tx: &mut Transaction<'_>,
    share: WatchShare,
) -> Result<Vec<Holder>, VerbError> {
    let (of, [one, other]) = share.remainders();
    let values = vec![of.into(), one.into(), other.into()];
    read_holders(tx, include_str!("../sql/watched_holders.sql"), values).await
}

async fn read_holders(
    tx: &mut Transaction<'_>,
    sql: &'static str,
    values: Vec<Value>,
) -> Result<Vec<Holder>, VerbError> {
    let rows = tx.rows(sql, values).await?;
    rows.iter().map(|row| read_holder(row, tx.now)).collect()
}

pub(in super::super) async fn holder(
    tx: &mut Transaction<'_>,
    id: HolderId,
) -> Result<Option<Holder>, VerbError> {
    let row = tx.find(include_str!("../sql/holder.sql"), vec![id16(id.to_bytes())]).await?;
    row.map(|row| read_holder(&row, tx.now)).transpose()
}

fn read_holder(row: &Row, now: Timestamp) -> Result<Holder, VerbError> {
    let (lease_ttl, renewed) = (duration(get(row, 2)?), instant(get(row, 5)?));
    let owner: Option<String> = get(row, 8)?;
    Ok(Holder {
        id: HolderId::from_bytes(bytes(row, 0)?),
        name: get(row, 1)?,
        role: Role::of(&get::<String>(row, 7)?, owner.as_deref()),
        lease_ttl,
        format: Format::new(get(row, 9)?),
        renewals: unsigned(get(row, 3)?),
        joined: instant(get(row, 4)?),
        renewed,
        expired: renewed.plus(lease_ttl) <= now,
        died: get::<Option<i64>>(row, 6)?.map(instant),
    })
}

/// Expires a holder whose heartbeats have stopped. `None`: its row is locked; a node that is leasing jobs to it finishes within
/// milliseconds, or is paused in the middle of it. Then this transaction must end: the server may have rolled it back.
pub(in super::super) async fn expire_holder(
    tx: &mut Transaction<'_>,
    by: HolderId,
    other: HolderId,
    renewals: u64,
) -> Result<Option<HolderExpiry>, VerbError> {
    match try_expire(tx, by, other, renewals).await {
        Err(trouble) if trouble.is_lock() => Ok(None),
        done => done.map(Some),
    }
}

async fn try_expire(
    tx: &mut Transaction<'_>,
    by: HolderId,
    other: HolderId,
    renewals: u64,
) -> Result<HolderExpiry, VerbError> {
    if tx.alive(by).await?.is_none() {
        return Err(StoreError::HolderDead(by).into());
    }
    let id = id16(other.to_bytes());
    let row = tx.find(include_str!("../sql/lock_holder.sql"), vec![id.clone()]).await?;
    let Some(row) = row else { return Ok(HolderExpiry::Dead) };
    let (lease_ttl, died): (i64, Option<i64>) = (get(&row, 0)?, get(&row, 1)?);
    if died.is_some() {
        return Ok(HolderExpiry::Dead);
    }
    let row = tx.find(include_str!("../sql/lock_renewals.sql"), vec![id.clone()]).await?;
    let row = row.ok_or_else(|| unreadable("the heartbeats of a holder"))?;
    let expires = instant(get(&row, 1)?).plus(duration(lease_ttl));
    if unsigned(get(&row, 0)?) != renewals || expires > tx.now {
        return Ok(HolderExpiry::Alive);
    }
    let values = vec![id.clone(), count(renewals)];
    if tx.execute(include_str!("../sql/expire_renewals.sql"), values).await? != 1 {
        return Ok(HolderExpiry::Alive);
    }
    let values = vec![tx.now.as_millis().into(), id];
    if tx.execute(include_str!("../sql/expire_holder.sql"), values).await? != 1 {
        let what = "the holder that is to be expired changed under its lock";
        return Err(StoreError::Unavailable(what.into()).into());
    }
    Ok(HolderExpiry::Expired)
}
