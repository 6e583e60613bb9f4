//! Implements the store traits for the Redis store.

use super::script::NOW;
use super::{Args, PAYLOAD_BYTES_MAX, RedisStore};
use async_trait::async_trait;
use rewheel_core::store::{
    AttemptRecord, Books, Capabilities, Change, Changed, Claim, Count, DeadLetter, Extension,
    FailureScan, Failures, Filter, FleetLimit, GroupName, GroupsReleased, HolderExpiry, Insert,
    Inserted, KindStore, KindsSince, LaneHead, LeaseStore, Leased, LimitWait, LimitedClaim,
    LimitedClaimed, OperateStore, Page, PageRequest, Prune, Pruned, ReadStore, Renewed, Reserve,
    Risk, Settled, Settlement, Store, StoreResult, SubmitStore, Sweep, Tally, Wakes, Watch,
    WatchShare, WorkStore,
};
use rewheel_core::{
    Actor, AuditEntry, Holder, HolderId, Job, JobEvent, JobId, Kind, KindChange, KindChanged,
    KindEdit, KindEdited, KindName, Lane, Lease, NewHolder, NewKind, Retain, RetryAsk,
    StoredResult, Timestamp,
};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[async_trait]
impl SubmitStore for RedisStore {
    async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        RedisStore::insert(self, insert).await
    }

    async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64> {
        RedisStore::reserve(self, reserve).await
    }
}

#[async_trait]
impl WorkStore for RedisStore {
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>> {
        RedisStore::lanes(self, kinds, after, limit).await
    }

    async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>> {
        RedisStore::lane_heads(self, lanes).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>> {
        RedisStore::claim(self, claim).await
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> StoreResult<LimitedClaimed> {
        RedisStore::claim_limited(self, claim).await
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> StoreResult<Vec<bool>> {
        RedisStore::start(self, holder, leases).await
    }

    async fn checkpoint(
        &self,
        holder: HolderId,
        lease: Lease,
        payload: &[u8],
    ) -> StoreResult<bool> {
        RedisStore::checkpoint(self, holder, lease, payload).await
    }

    async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        RedisStore::settle(self, holder, settlements).await
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        RedisStore::give_back(self, holder, leases, keep).await
    }

    async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>> {
        RedisStore::extend(self, holder, extension).await
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>> {
        RedisStore::held(self, holder, older_than, after, limit).await
    }
}

#[async_trait]
impl LeaseStore for RedisStore {
    async fn join(&self, holder: &NewHolder) -> StoreResult<Timestamp> {
        RedisStore::join(self, holder).await
    }

    async fn renew(&self, holder: HolderId) -> StoreResult<Renewed> {
        RedisStore::renew(self, holder).await
    }

    async fn leave(&self, holder: HolderId) -> StoreResult<()> {
        RedisStore::leave(self, holder).await
    }

    async fn holders(&self) -> StoreResult<Vec<Holder>> {
        RedisStore::holders(self).await
    }

    async fn watched_holders(&self, share: WatchShare) -> StoreResult<Vec<Holder>> {
        RedisStore::watched_holders(self, share).await
    }

    async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>> {
        RedisStore::holder(self, id).await
    }

    async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry> {
        RedisStore::expire_holder(self, by, other, renewals).await
    }

    async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        RedisStore::sweep(self, sweep).await
    }
}

#[async_trait]
impl KindStore for RedisStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> StoreResult<()> {
        RedisStore::put_kinds(self, kinds, by).await
    }

    async fn kinds(&self) -> StoreResult<Vec<Kind>> {
        RedisStore::kinds(self).await
    }

    async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince> {
        RedisStore::kinds_since(self, since).await
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        RedisStore::change_kind(self, kind, change, by).await
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited> {
        RedisStore::edit_kind(self, edit, by).await
    }

    async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>> {
        RedisStore::grant(self, asks).await
    }
}

#[async_trait]
impl OperateStore for RedisStore {
    async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        RedisStore::change(self, changes, by, keep).await
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> StoreResult<Vec<JobEvent>> {
        RedisStore::deadlines(self, grace, limit).await
    }

    async fn release_groups(&self, limit: usize) -> StoreResult<GroupsReleased> {
        RedisStore::release_groups(self, limit).await
    }

    async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>> {
        RedisStore::unannounced(self, limit).await
    }

    async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()> {
        RedisStore::announce(self, dead).await
    }

    async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        RedisStore::prune(self, prune).await
    }
}

#[async_trait]
impl ReadStore for RedisStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        self.read(&NOW, Args::default()).await?.time()
    }

    async fn get(&self, job: JobId) -> StoreResult<Option<Job>> {
        RedisStore::get(self, job).await
    }

    async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        RedisStore::find(self, jobs).await
    }

    async fn live(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        let mut found = RedisStore::find(self, jobs).await?;
        found.retain(|job| job.state().is_live());
        Ok(found)
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> StoreResult<Page<Job>> {
        RedisStore::list(self, filter, page).await
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> StoreResult<Count> {
        RedisStore::count(self, filter, scan_max).await
    }

    async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures> {
        RedisStore::failures(self, scan).await
    }

    async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>> {
        RedisStore::attempts(self, job).await
    }

    async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>> {
        RedisStore::result(self, job).await
    }

    async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        RedisStore::ended(self, jobs).await
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        RedisStore::audit(self, job, before, limit).await
    }

    async fn tally(&self) -> StoreResult<Vec<Tally>> {
        RedisStore::tally(self).await
    }

    async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>> {
        RedisStore::stuck_groups(self, limit).await
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> StoreResult<Vec<Option<LimitWait>>> {
        RedisStore::limit_waits(self, limits).await
    }

    async fn books(&self) -> StoreResult<Books> {
        RedisStore::books(self).await
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn risks(&self) -> StoreResult<Vec<Risk>> {
        RedisStore::risks(self).await
    }

    async fn unreadable(&self) -> StoreResult<Option<Risk>> {
        RedisStore::unreadable(self).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "redis",
            durable: true,
            shared: true,
            remote: true,
            wakes: Wakes::Fleet,
            groups: false,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn watch(&self) -> Box<dyn Watch> {
        self.shared.woken.watch()
    }

    async fn unreported_changes(&self) -> StoreResult<u64> {
        // A connection that listens again reports that any lane may have changed.
        let listens = self.shared.hearing.is_listening();
        Ok(if listens { 0 } else { self.shared.unheard.fetch_add(1, Ordering::Relaxed) + 1 })
    }

    async fn close(&self) -> StoreResult<()> {
        self.shared.hearing.close();
        self.shared.connections.close().await;
        Ok(())
    }
}
