//! Registers holders, renews their leases and expires dead holders.

use super::super::RedisStore;
use super::super::connection::Use;
use super::super::error::unreadable;
use super::super::pack::{Args, duration, instant, number};
use super::super::reply::Reply;
use super::super::script::{EXPIRE_HOLDER, HOLDER, HOLDERS, JOIN, LEAVE, RENEW};
use super::super::values::{Lease as StoredLease, Reader, Unreadable};
use rewheel_core::store::{HolderExpiry, Renewed, StoreResult, WantedJob, WatchShare};
use rewheel_core::{
    Format, Holder, HolderId, Lease, Limits, NewHolder, Role, Timestamp, WorkerOwner,
};

impl RedisStore {
    pub(in super::super) async fn join(&self, new: &NewHolder) -> StoreResult<Timestamp> {
        let owner = new.role.owner().map(|owner| owner.to_string()).unwrap_or_default();
        // A name is shown, and need not be whole.
        let mut name = new.name.clone();
        while name.len() > Limits::HOLDER_NAME_BYTES_MAX {
            name.pop();
        }
        let args = Args::default()
            .bytes(&new.id.to_bytes())
            .millis(new.lease_ttl)
            .number(new.format.get().into())
            .flag(new.role != Role::Engine)
            .bytes(name.as_bytes())
            .bytes(owner.as_bytes());
        self.run_alive(Use::Life, &JOIN, args, new.id).await?.time()
    }

    pub(in super::super) async fn renew(&self, holder: HolderId) -> StoreResult<Renewed> {
        let args = Args::default().bytes(&holder.to_bytes()).count(Limits::BATCH_MAX);
        let answer = self.run_alive(Use::Life, &RENEW, args, holder).await?;
        let [at, renewals, wanted] = answer.parts()?;
        let wanted = wanted.list()?.into_iter().map(|wanted| {
            let [job, lease] = wanted.parts()?;
            let job = job.job()?;
            let lease = StoredLease::read(&lease.must()?).map_err(|why| unreadable(why.0))?;
            let is_his = lease.holder == holder;
            let wanted = lease.wanted.filter(|_| is_his);
            Ok(wanted.map(|wanted| WantedJob { lease: Lease { job, fence: lease.fence }, wanted }))
        });
        let wanted: StoreResult<Vec<Option<WantedJob>>> = wanted.collect();
        let wanted = wanted?.into_iter().flatten().collect();
        Ok(Renewed { at: at.time()?, renewals: renewals.count()?, wanted })
    }

    pub(in super::super) async fn leave(&self, holder: HolderId) -> StoreResult<()> {
        let args = Args::default().bytes(&holder.to_bytes());
        self.run_on(Use::Life, &LEAVE, args).await.map(drop)
    }

    pub(in super::super) async fn holders(&self) -> StoreResult<Vec<Holder>> {
        let [now, rows] = self.run_on(Use::Life, &HOLDERS, Args::default()).await?.parts()?;
        read_holders(rows, now.time()?)
    }

    pub(in super::super) async fn watched_holders(
        &self,
        share: WatchShare,
    ) -> StoreResult<Vec<Holder>> {
        let number = |id: HolderId| {
            let [.., a, b, c, d] = id.to_bytes();
            u64::from(u32::from_be_bytes([a, b, c, d]))
        };
        let mut holders = self.holders().await?;
        holders.retain(|holder| {
            holder.died.is_none() && (holder.role == Role::Engine || share.has(number(holder.id)))
        });
        Ok(holders)
    }

    pub(in super::super) async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>> {
        let args = Args::default().bytes(&id.to_bytes());
        let [now, row] = self.run_on(Use::Life, &HOLDER, args).await?.parts()?;
        let now = now.time()?;
        let row = row.bytes()?;
        row.map(|row| read_holder(id, &row, now).map_err(|why| unreadable(why.0))).transpose()
    }

    pub(in super::super) async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry> {
        let args = Args::default().bytes(&by.to_bytes()).bytes(&other.to_bytes());
        let args = args.number(number(renewals));
        let answer = self.run_alive(Use::Life, &EXPIRE_HOLDER, args, by).await?;
        Ok(match answer.text()?.as_str() {
            "expired" => HolderExpiry::Expired,
            "alive" => HolderExpiry::Alive,
            _ => HolderExpiry::Dead,
        })
    }
}

/// Reads all holders, ordered by id.
pub(super) fn read_holders(rows: Reply, now: Timestamp) -> StoreResult<Vec<Holder>> {
    let mut rows = rows.list()?.into_iter();
    let mut holders = Vec::new();
    while let (Some(id), Some(row)) = (rows.next(), rows.next()) {
        let row = row.must()?;
        holders.push(read_holder(id.holder()?, &row, now).map_err(|why| unreadable(why.0))?);
    }
    holders.sort_unstable_by_key(|holder| holder.id);
    Ok(holders)
}

fn read_holder(id: HolderId, row: &[u8], now: Timestamp) -> Result<Holder, Unreadable> {
    let mut from = Reader(row);
    let (died, renewals) = (from.f64()?, from.whole()?);
    let (renewed, joined, ttl) =
        (instant(from.f64()?), instant(from.f64()?), duration(from.f64()?));
    let (format, is_worker) = (Format::new(from.u32()?), from.u8()? != 0);
    let name = String::from_utf8_lossy(from.short()?).into_owned();
    let owner = String::from_utf8_lossy(from.short()?).into_owned();
    let role =
        if is_worker { Role::Worker { owner: WorkerOwner::parse(&owner) } } else { Role::Engine };
    Ok(Holder {
        id,
        name,
        role,
        lease_ttl: ttl,
        format,
        renewals,
        joined,
        renewed,
        expired: renewed.plus(ttl) <= now,
        died: (died != 0.0).then(|| instant(died)),
    })
}
