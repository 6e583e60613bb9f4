//! Registers holders, renews leases and expires dead holders.

use super::super::error::VerbError;
use super::super::row::{bytes, count, duration, get, id16, instant, millis, unsigned, wanted};
use super::super::transaction::Transaction;
use mysql_async::{Row, Value};
use rewheel_core::store::{HolderExpiry, Renewed, StoreError, WantedJob, WatchShare};
use rewheel_core::{
    Fence, Format, Holder, HolderId, JobId, Lease, Limits, NewHolder, Role, Timestamp,
};

pub(in super::super) async fn join(
    tx: &mut Transaction<'_>,
    holder: &NewHolder,
) -> Result<Timestamp, VerbError> {
    // Until the end of this transaction, no job of a larger format is stored.
    let used = tx.find(include_str!("../sql/share_format.sql"), Vec::new()).await?;
    let used: u32 = used.map_or(Ok(0), |row| get(&row, 0))?;
    if tx.number(holder.id).await?.is_none() {
        if holder.format.get() < used {
            let why = format!("the release of {} is too old for jobs in this store", holder.name);
            return Err(StoreError::Rejected(why.into()).into());
        }
        let joined = tx.execute(include_str!("../sql/join.sql"), values(holder, tx.now)).await;
        match joined {
            Ok(_) => {}
            // The same call was repeated at the same time.
            Err(trouble) if trouble.is_duplicate() => {}
            Err(trouble) => return Err(trouble),
        }
    }
    match tx.alive(holder.id).await? {
        Some(_) => Ok(tx.now),
        None => Err(StoreError::HolderDead(holder.id).into()),
    }
}

fn values(holder: &NewHolder, now: Timestamp) -> Vec<Value> {
    // A name is shown, and need not be whole.
    let mut name = holder.name.clone();
    while name.len() > Limits::HOLDER_NAME_BYTES_MAX {
        name.pop();
    }
    vec![
        id16(holder.id.to_bytes()),
        name.into(),
        holder.role.as_str().into(),
        holder.role.owner().map(|owner| owner.to_string()).into(),
        millis(holder.lease_ttl).into(),
        holder.format.get().into(),
        now.as_millis().into(),
        now.as_millis().into(),
    ]
}

pub(in super::super) async fn renew(
    tx: &mut Transaction<'_>,
    holder: HolderId,
) -> Result<Renewed, VerbError> {
    let id = id16(holder.to_bytes());
    let values = vec![tx.now.as_millis().into(), id.clone()];
    if tx.execute(include_str!("../sql/renew.sql"), values).await? == 0 {
        return Err(StoreError::HolderDead(holder).into());
    }
    let row = tx.find(include_str!("../sql/renewed.sql"), vec![id]).await?;
    let row = row.ok_or(StoreError::HolderDead(holder))?;
    let (number, renewals): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
    let values = vec![number.into(), count(Limits::BATCH_MAX as u64)];
    let mut wishes = Vec::new();
    for row in tx.rows(include_str!("../sql/wanted.sql"), values).await? {
        let fence = Fence::new(unsigned(get(&row, 1)?));
        let lease = Lease { job: JobId::from_bytes(bytes(&row, 0)?), fence };
        if let Some(wanted) = wanted(get(&row, 2)?)? {
            wishes.push(WantedJob { lease, wanted });
        }
    }
    Ok(Renewed { at: tx.now, renewals: unsigned(renewals), wanted: wishes })
}

pub(in super::super) async fn leave(
    tx: &mut Transaction<'_>,
    holder: HolderId,
) -> Result<(), VerbError> {
    let values = vec![tx.now.as_millis().into(), id16(holder.to_bytes())];
    tx.execute(include_str!("../sql/leave.sql"), values).await.map(drop)
}

pub(in super::super) async fn holders(tx: &mut Transaction<'_>) -> Result<Vec<Holder>, VerbError> {
    let rows = tx.rows(include_str!("../sql/holders.sql"), Vec::new()).await?;
    rows.iter().map(|row| read_holder(row, tx.now)).collect()
}

pub(in super::super) async fn watched_holders(
    tx: &mut Transaction<'_>,
    share: WatchShare,
) -> Result<Vec<Holder>, VerbError> {
    let (of, [one, other]) = share.remainders();
    let values = vec![of.into(), one.into(), other.into()];
    let rows = tx.rows(include_str!("../sql/watched_holders.sql"), values).await?;
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

pub(in super::super) async fn expire_holder(
    tx: &mut Transaction<'_>,
    by: HolderId,
    other: HolderId,
    renewals: u64,
) -> Result<HolderExpiry, VerbError> {
    if tx.alive(by).await?.is_none() {
        return Err(StoreError::HolderDead(by).into());
    }
    let now = Value::from(tx.now.as_millis());
    let values = vec![now.clone(), id16(other.to_bytes()), count(renewals), now];
    if tx.execute(include_str!("../sql/expire_holder.sql"), values).await? == 1 {
        return Ok(HolderExpiry::Expired);
    }
    Ok(match tx.alive(other).await? {
        Some(_) => HolderExpiry::Alive,
        None => HolderExpiry::Dead,
    })
}
