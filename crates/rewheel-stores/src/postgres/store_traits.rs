//! Implements the store traits for PostgreSQL: runs each verb in the session it needs.

use super::PostgresStore;
use super::fleet::Fleet;
use super::verbs::insert::PAYLOAD_BYTES_MAX;
use super::verbs::{
    budgets, claim, failures, groups, kinds, lane_heads, lease, limits, prune, read, reserve,
    results, risks, sample, unreadable,
};
use crate::payload::refuse_large;
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
impl SubmitStore for PostgresStore {
    async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        let answers = self.insert_batch(insert).await?;
        self.acknowledge(insert.jobs, &answers);
        Ok(answers)
    }

    async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64> {
        let session = self.transaction().await?;
        let reserved = reserve::reserve(&session, reserve).await;
        session.end(reserved).await
    }
}

#[async_trait]
impl WorkStore for PostgresStore {
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>> {
        // What it releases is in the lanes that are read next. If it fails, other jobs need not wait.
        if let Err(error) = self.release_listed().await {
            tracing::debug!(%error, "failed to release listed jobs of groups: retrying at the next poll");
        }
        let session = self.read().await?;
        if let Some(reading) = self.shared.lanes.floors.look()
            && let Err(trouble) = lane_heads::look_below(&session, &reading).await
        {
            return session.end(Err(trouble)).await;
        }
        let heads = lane_heads::lanes(&session, kinds, after, limit).await;
        session.end(heads).await
    }

    async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>> {
        let session = self.read().await?;
        let heads = lane_heads::lane_heads(&session, lanes).await;
        session.end(heads).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>> {
        self.claim_batch(claim).await
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> StoreResult<LimitedClaimed> {
        self.claim_limited_batch(claim).await
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> StoreResult<Vec<bool>> {
        let session = self.write().await?;
        let started = claim::start(&session, holder, leases).await;
        session.end(started).await
    }

    async fn checkpoint(
        &self,
        holder: HolderId,
        lease: Lease,
        payload: &[u8],
    ) -> StoreResult<bool> {
        refuse_large(payload, PAYLOAD_BYTES_MAX)?;
        let session = self.write().await?;
        let saved = claim::checkpoint(&session, holder, lease, payload).await;
        session.end(saved).await
    }

    async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        self.settle_batch(holder, settlements).await
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        self.give_back_batch(holder, leases, keep).await
    }

    async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>> {
        let session = self.write().await?;
        let extended = claim::extend(&session, holder, extension).await;
        session.end(extended).await
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>> {
        if after.is_none() {
            self.shelve(older_than, Some(holder)).await?;
        }
        let session = self.read().await?;
        let leases = claim::held(&session, holder, older_than, after, limit).await;
        session.end(leases).await
    }
}

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn join(&self, holder: &NewHolder) -> StoreResult<Timestamp> {
        let session = self.live().await?;
        let joined = lease::join(&session, holder).await;
        session.end(joined).await
    }

    async fn renew(&self, holder: HolderId) -> StoreResult<Renewed> {
        let session = self.live().await?;
        let before = self.shared.epochs.renewals_of(holder);
        let renewed = lease::renew(&session, holder).await;
        let renewed = session.end(renewed).await?;
        self.shared.epochs.renewed(holder, before, renewed.renewals);
        Ok(renewed)
    }

    async fn leave(&self, holder: HolderId) -> StoreResult<()> {
        let session = self.live().await?;
        let left = lease::leave(&session, holder).await;
        session.end(left).await
    }

    async fn holders(&self) -> StoreResult<Vec<Holder>> {
        let session = self.read().await?;
        let holders = lease::holders(&session).await;
        session.end(holders).await
    }

    async fn watched_holders(&self, share: WatchShare) -> StoreResult<Vec<Holder>> {
        let session = self.read().await?;
        let holders = lease::watched_holders(&session, share).await;
        session.end(holders).await
    }

    async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>> {
        let session = self.read().await?;
        let holder = lease::holder(&session, id).await;
        session.end(holder).await
    }

    async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry> {
        // Not on the heartbeat's connection: our own lease must not wait behind another holder's
        // expiry.
        let session = self.hasty().await?;
        match lease::expire_holder(&session, by, other, renewals).await {
            Err(trouble) if trouble.is_lock() => session.undo(HolderExpiry::Alive).await,
            burial => session.end(burial).await,
        }
    }

    async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        self.sweep_batch(sweep).await
    }
}

#[async_trait]
impl KindStore for PostgresStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> StoreResult<()> {
        self.write_kinds(kinds, by).await
    }

    async fn kinds(&self) -> StoreResult<Vec<Kind>> {
        let session = self.read().await?;
        let kinds = kinds::kinds(&session).await;
        let kinds = session.end(kinds).await?;
        self.shared.lanes.keep_kinds(&kinds);
        Ok(kinds)
    }

    async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince> {
        let session = self.read().await?;
        let read = kinds::kinds_since(&session, since).await;
        let read = session.end(read).await?;
        if read.all {
            self.shared.lanes.keep_kinds(&read.kinds);
        }
        Ok(read)
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        self.write_kind(kind, change, by).await
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited> {
        self.write_edit(edit, by).await
    }

    async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>> {
        // Not on the heartbeat's connection: our own lease must not wait behind the locks of a
        // grant.
        let session = self.write().await?;
        let granted = budgets::grant(&session, asks).await;
        session.end(granted).await
    }
}

#[async_trait]
impl OperateStore for PostgresStore {
    async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        self.change_batch(changes, by, keep).await
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> StoreResult<Vec<JobEvent>> {
        self.deadlines_batch(grace, limit).await
    }

    async fn release_groups(&self, limit: usize) -> StoreResult<GroupsReleased> {
        self.release_groups_batch(limit).await
    }

    async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>> {
        let session = self.read().await?;
        let letters = read::unannounced(&session, limit).await;
        session.end(letters).await
    }

    async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()> {
        let session = self.write().await?;
        let announced = prune::announce(&session, dead).await;
        session.end(announced).await
    }

    async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        self.prune_batch(prune).await
    }
}

#[async_trait]
impl ReadStore for PostgresStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        let session = self.read().await?;
        let now = session.now().await;
        session.end(now).await
    }

    async fn get(&self, job: JobId) -> StoreResult<Option<Job>> {
        let session = self.read().await?;
        let job = read::get(&session, job).await;
        session.end(job).await
    }

    async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        let session = self.read().await?;
        let found = read::find(&session, jobs).await;
        session.end(found).await
    }

    async fn live(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        let session = self.read().await?;
        let live = read::live(&session, jobs).await;
        session.end(live).await
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> StoreResult<Page<Job>> {
        let session = self.snapshot().await?;
        let page = read::list(&session, filter, page).await;
        session.end(page).await
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> StoreResult<Count> {
        let session = self.snapshot().await?;
        let count = read::count(&session, filter, scan_max).await;
        session.end(count).await
    }

    async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures> {
        let session = self.snapshot().await?;
        let failures = failures::failures(&session, scan).await;
        session.end(failures).await
    }

    async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>> {
        let session = self.read().await?;
        let attempts = read::attempts(&session, job).await;
        session.end(attempts).await
    }

    async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>> {
        let session = self.read().await?;
        let result = results::result(&session, job).await;
        session.end(result).await
    }

    async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        let session = self.read().await?;
        let ended = results::ended(&session, jobs).await;
        session.end(ended).await
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        let session = self.read().await?;
        let entries = read::audit(&session, job, before, limit).await;
        session.end(entries).await
    }

    async fn tally(&self) -> StoreResult<Vec<Tally>> {
        let session = self.long_snapshot().await?;
        let tallies = sample::tally(&session).await;
        session.end(tallies).await
    }

    async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>> {
        let session = self.read().await?;
        let found = groups::stuck_groups(&session, limit).await;
        session.end(found).await
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> StoreResult<Vec<Option<LimitWait>>> {
        let session = self.read().await?;
        let waits = limits::limit_waits(&session, limits).await;
        session.end(waits).await
    }

    async fn books(&self) -> StoreResult<Books> {
        let session = self.read().await?;
        let books = read::books(&session).await;
        session.end(books).await
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn risks(&self) -> StoreResult<Vec<Risk>> {
        let session = self.read().await?;
        let risks = risks::risks(&session).await;
        session.end(risks).await
    }

    async fn unreadable(&self) -> StoreResult<Option<Risk>> {
        let session = self.read().await?;
        let unreadable = unreadable::unreadable(&session).await;
        session.end(unreadable).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "postgres",
            durable: true,
            shared: true,
            remote: true,
            wakes: if self.shared.fleet.is_some() { Wakes::Fleet } else { Wakes::Process },
            groups: false,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn watch(&self) -> Box<dyn Watch> {
        self.shared.woken.watch()
    }

    async fn unreported_changes(&self) -> StoreResult<u64> {
        // A connection that listens again reports that any lane may have changed.
        let listens = self.shared.fleet.as_ref().is_some_and(Fleet::is_listening);
        Ok(if listens { 0 } else { self.shared.unheard.fetch_add(1, Ordering::Relaxed) + 1 })
    }

    async fn close(&self) -> StoreResult<()> {
        self.shared.work.close();
        self.shared.life.close();
        if let Some(vacuum) = &self.shared.vacuum {
            vacuum.close();
        }
        if let Some(fleet) = &self.shared.fleet {
            fleet.close();
        }
        Ok(())
    }
}
