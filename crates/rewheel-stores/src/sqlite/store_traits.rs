//! Implements the store traits for SQLite: sends each verb to the writer or a reader thread.

use super::job_columns::Payload;
use super::space::Space;
use super::verbs::insert::{Batch, PAYLOAD_BYTES_MAX};
use super::verbs::{
    budgets, change, claim, failures, groups, insert, kinds, lease, limits, prune, read, reserve,
    results, sample, settle, sweep, unreadable,
};
use super::{SqliteStore, Synchronous};
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
use std::time::Duration;

impl SqliteStore {
    /// Recomputes the remaining times of claimed jobs: the commit has taken time since they were
    /// read.
    fn refresh(&self, leased: &mut [Leased]) {
        let left = |until| crate::clock::left(&self.shared.clock, until);
        for leased in leased {
            leased.due_in = left(leased.job.due);
            leased.deadline_in = leased.job.deadline.map(left);
        }
    }
}

#[async_trait]
impl SubmitStore for SqliteStore {
    async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        insert.check()?;
        let batch = Batch {
            jobs: insert.jobs.to_vec(),
            if_refused: insert.if_refused,
            sent: insert.sent,
            direct: insert.direct,
        };
        self.write(batch.jobs.len(), move |tx| insert::insert(tx, &batch)).await
    }

    async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64> {
        let reserve = reserve.clone();
        self.write(1, move |tx| reserve::reserve(tx, &reserve)).await
    }
}

#[async_trait]
impl WorkStore for SqliteStore {
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>> {
        let (mut kinds, after) = (kinds.to_vec(), after.cloned());
        self.look(move |tx| claim::lanes(tx, &mut kinds, after.as_ref(), limit)).await
    }

    async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>> {
        let lanes = lanes.to_vec();
        self.look(move |tx| claim::lane_heads(tx, &lanes)).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>> {
        let wish = claim::Wish {
            holder: claim.holder,
            visits: claim.visits.to_vec(),
            horizon: claim.horizon,
            limit: claim.limit,
        };
        let mut leased = self.write(wish.limit, move |tx| claim::claim(tx, &wish)).await?;
        self.refresh(&mut leased);
        Ok(leased)
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> StoreResult<LimitedClaimed> {
        let wish = claim::Wish {
            holder: claim.holder,
            visits: claim.visits.to_vec(),
            horizon: Duration::ZERO,
            limit: claim.limit,
        };
        let limits = claim.limits.to_vec();
        let claimed =
            self.write(wish.limit, move |tx| limits::claim_limited(tx, &wish, &limits)).await;
        let mut claimed = claimed?;
        self.refresh(&mut claimed.leased);
        Ok(claimed)
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> StoreResult<Vec<bool>> {
        let leases = leases.to_vec();
        self.write(leases.len(), move |tx| claim::start(tx, holder, &leases)).await
    }

    async fn checkpoint(
        &self,
        holder: HolderId,
        lease: Lease,
        payload: &[u8],
    ) -> StoreResult<bool> {
        refuse_large(payload, PAYLOAD_BYTES_MAX)?;
        let payload = payload.to_vec();
        self.write(1, move |tx| claim::checkpoint(tx, holder, lease, &payload)).await
    }

    async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        let settlements = settlements.to_vec();
        self.write(settlements.len(), move |tx| settle::settle(tx, holder, &settlements)).await
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        let leases = leases.to_vec();
        self.write(leases.len(), move |tx| settle::give_back(tx, holder, &leases, keep)).await
    }

    async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>> {
        let extension = *extension;
        self.write(1, move |tx| claim::extend(tx, holder, &extension)).await
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>> {
        self.look(move |tx| claim::held(tx, holder, older_than, after, limit)).await
    }
}

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn join(&self, holder: &NewHolder) -> StoreResult<Timestamp> {
        let holder = holder.clone();
        self.live(move |tx| lease::join(tx, &holder)).await
    }

    async fn renew(&self, holder: HolderId) -> StoreResult<Renewed> {
        self.live(move |tx| lease::renew(tx, holder)).await
    }

    async fn leave(&self, holder: HolderId) -> StoreResult<()> {
        self.live(move |tx| lease::leave(tx, holder)).await
    }

    async fn holders(&self) -> StoreResult<Vec<Holder>> {
        self.look(|tx| lease::holders(tx)).await
    }

    async fn watched_holders(&self, share: WatchShare) -> StoreResult<Vec<Holder>> {
        self.look(move |tx| lease::watched_holders(tx, share)).await
    }

    async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>> {
        self.look(move |tx| lease::holder(tx, id)).await
    }

    async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry> {
        self.live(move |tx| lease::expire_holder(tx, by, other, renewals)).await
    }

    async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        let sweep = *sweep;
        self.write(sweep.limit, move |tx| sweep::sweep(tx, &sweep)).await
    }
}

#[async_trait]
impl KindStore for SqliteStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> StoreResult<()> {
        let (kinds, by) = (kinds.to_vec(), by.clone());
        self.write(kinds.len(), move |tx| kinds::put_kinds(tx, &kinds, &by)).await
    }

    async fn kinds(&self) -> StoreResult<Vec<Kind>> {
        self.read(|tx| kinds::kinds(tx)).await
    }

    async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince> {
        self.read(move |tx| kinds::kinds_since(tx, since)).await
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        let (kind, change, by) = (kind.clone(), change.clone(), by.clone());
        self.write(1, move |tx| kinds::change_kind(tx, &kind, &change, &by)).await
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited> {
        let (edit, by) = (edit.clone(), by.clone());
        self.write(1, move |tx| kinds::edit_kind(tx, &edit, &by)).await
    }

    async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>> {
        let asks = asks.to_vec();
        self.write(asks.len(), move |tx| budgets::grant(tx, &asks)).await
    }
}

#[async_trait]
impl OperateStore for SqliteStore {
    async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        let (changes, by) = (changes.to_vec(), by.clone());
        self.write(changes.len(), move |tx| change::change(tx, &changes, &by, keep)).await
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> StoreResult<Vec<JobEvent>> {
        self.write(limit, move |tx| sweep::deadlines(tx, grace, limit)).await
    }

    async fn release_groups(&self, limit: usize) -> StoreResult<GroupsReleased> {
        self.release_lines(limit).await
    }

    async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>> {
        self.read(move |tx| read::unannounced(tx, limit)).await
    }

    async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()> {
        let dead = dead.to_vec();
        self.write(dead.len(), move |tx| prune::announce(tx, &dead)).await
    }

    async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        let wish = *prune;
        self.write(wish.limit, move |tx| prune::prune(tx, &wish)).await
    }
}

#[async_trait]
impl ReadStore for SqliteStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        self.read(|tx| Ok(tx.now)).await
    }

    async fn get(&self, job: JobId) -> StoreResult<Option<Job>> {
        self.read(move |tx| read::get(tx, job, Payload::Read)).await
    }

    async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        let jobs = jobs.to_vec();
        self.read(move |tx| read::find(tx, &jobs)).await
    }

    async fn live(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        let jobs = jobs.to_vec();
        self.read(move |tx| read::live(tx, &jobs)).await
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> StoreResult<Page<Job>> {
        let (filter, page) = (filter.clone(), *page);
        self.read(move |tx| read::list(tx, &filter, &page)).await
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> StoreResult<Count> {
        let filter = filter.clone();
        self.read(move |tx| read::count(tx, &filter, scan_max)).await
    }

    async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures> {
        let scan = scan.clone();
        self.read(move |tx| failures::failures(tx, &scan)).await
    }

    async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>> {
        self.read(move |tx| read::attempts(tx, job)).await
    }

    async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>> {
        self.read(move |tx| results::result(tx, job)).await
    }

    async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        let jobs = jobs.to_vec();
        self.read(move |tx| results::ended(tx, &jobs)).await
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        self.read(move |tx| read::audit(tx, job, before, limit)).await
    }

    async fn tally(&self) -> StoreResult<Vec<Tally>> {
        self.read(|tx| sample::tally(tx)).await
    }

    async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>> {
        self.read(move |tx| groups::stuck_groups(tx, limit)).await
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> StoreResult<Vec<Option<LimitWait>>> {
        let limits = limits.to_vec();
        self.read(move |tx| limits::limit_waits(tx, &limits)).await
    }

    async fn books(&self) -> StoreResult<Books> {
        self.read(|tx| read::books(tx)).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn risks(&self) -> StoreResult<Vec<Risk>> {
        let mut risks = self.read(|tx| read::risks(tx)).await?;
        if let Synchronous::Normal = self.shared.synchronous {
            let message = "normal: a power failure may lose the last acknowledged jobs; remove synchronous=normal";
            risks.push(Risk { name: "synchronous", message: message.to_owned() });
        }
        risks.extend(self.shared.files.risks());
        let (free, all) = self.read(|tx| read::free_pages(tx)).await?;
        risks.extend(Space { log: self.shared.files.log_bytes(), free, all }.risks());
        Ok(risks)
    }

    async fn unreadable(&self) -> StoreResult<Option<Risk>> {
        self.read(|tx| unreadable::unreadable(tx)).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "sqlite",
            durable: true,
            shared: true,
            remote: false,
            wakes: Wakes::Process,
            groups: true,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn watch(&self) -> Box<dyn Watch> {
        self.shared.woken.watch()
    }

    async fn unreported_changes(&self) -> StoreResult<u64> {
        self.write(1, |tx| claim::data_version(tx)).await
    }

    async fn close(&self) -> StoreResult<()> {
        // Joining threads blocks, but each thread ends after its current statement.
        self.close_and_wait();
        Ok(())
    }
}
