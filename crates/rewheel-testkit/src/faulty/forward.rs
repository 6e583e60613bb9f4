//! Forwards each verb to the wrapped store.

use super::{FaultyStore, Verb};
use async_trait::async_trait;
use rewheel_core::store::{
    AttemptRecord, Books, Capabilities, Change, Changed, Claim, Count, DeadLetter, Extension,
    FailureScan, Failures, Filter, FleetLimit, GroupName, GroupsReleased, HistoryFold, HistoryPage,
    HistoryRow, HistoryScan, HistoryStore, HolderExpiry, Insert, Inserted, KindStore, KindsSince,
    LaneHead, LeaseStore, Leased, LimitWait, LimitedClaim, LimitedClaimed, OperateStore, Page,
    PageRequest, Prune, Pruned, ReadStore, Renewed, Reserve, Risk, Sample, SampleStore, Settled,
    Settlement, Store, StoreChange, StoreResult, SubmitStore, Sweep, Tally, TokenStore, Wakes,
    Watch, WatchShare, WorkStore,
};
use rewheel_core::{
    Actor, AuditEntry, Holder, HolderId, Job, JobEvent, JobId, Kind, KindChange, KindChanged,
    KindEdit, KindEdited, KindName, Lane, Lease, NewHolder, NewKind, NewToken, Retain, RetryAsk,
    StoredResult, Timestamp, Token, TokenId, TokenPut, TokenRevoked,
};
use std::future::pending;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[async_trait]
impl SubmitStore for FaultyStore {
    async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        self.check(insert.jobs.iter().map(|job| job.id))?;
        self.through(Verb::Insert, self.inner.insert(insert)).await
    }

    async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64> {
        self.through(Verb::Reserve, self.inner.reserve(reserve)).await
    }
}

#[async_trait]
impl WorkStore for FaultyStore {
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>> {
        self.through(Verb::Lanes, self.inner.lanes(kinds, after, limit)).await
    }

    async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>> {
        self.through(Verb::LaneHeads, self.inner.lane_heads(lanes)).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>> {
        self.through(Verb::Claim, self.inner.claim(claim)).await
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> StoreResult<LimitedClaimed> {
        self.through(Verb::ClaimLimited, self.inner.claim_limited(claim)).await
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> StoreResult<Vec<bool>> {
        self.check(leases.iter().map(|lease| lease.job))?;
        self.through(Verb::Start, self.inner.start(holder, leases)).await
    }

    async fn checkpoint(
        &self,
        holder: HolderId,
        lease: Lease,
        payload: &[u8],
    ) -> StoreResult<bool> {
        self.check([lease.job].into_iter())?;
        self.through(Verb::Checkpoint, self.inner.checkpoint(holder, lease, payload)).await
    }

    async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        self.check(settlements.iter().map(|settlement| settlement.lease.job))?;
        self.through(Verb::Settle, self.inner.settle(holder, settlements)).await
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        self.check(leases.iter().map(|lease| lease.job))?;
        self.through(Verb::GiveBack, self.inner.give_back(holder, leases, keep)).await
    }

    async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>> {
        self.check([extension.lease.job].into_iter())?;
        self.through(Verb::Extend, self.inner.extend(holder, extension)).await
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>> {
        self.through(Verb::Held, self.inner.held(holder, older_than, after, limit)).await
    }
}

#[async_trait]
impl LeaseStore for FaultyStore {
    async fn join(&self, holder: &NewHolder) -> StoreResult<Timestamp> {
        self.through(Verb::Join, self.inner.join(holder)).await
    }

    async fn renew(&self, holder: HolderId) -> StoreResult<Renewed> {
        self.through(Verb::Renew, self.inner.renew(holder)).await
    }

    async fn leave(&self, holder: HolderId) -> StoreResult<()> {
        self.through(Verb::Leave, self.inner.leave(holder)).await
    }

    async fn holders(&self) -> StoreResult<Vec<Holder>> {
        self.through(Verb::Holders, self.inner.holders()).await
    }

    async fn watched_holders(&self, share: WatchShare) -> StoreResult<Vec<Holder>> {
        self.through(Verb::WatchedHolders, self.inner.watched_holders(share)).await
    }

    async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>> {
        self.through(Verb::Holder, self.inner.holder(id)).await
    }

    async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry> {
        self.through(Verb::ExpireHolder, self.inner.expire_holder(by, other, renewals)).await
    }

    async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        self.through(Verb::Sweep, self.inner.sweep(sweep)).await
    }
}

#[async_trait]
impl KindStore for FaultyStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> StoreResult<()> {
        self.through(Verb::PutKinds, self.inner.put_kinds(kinds, by)).await
    }

    async fn kinds(&self) -> StoreResult<Vec<Kind>> {
        self.through(Verb::Kinds, self.inner.kinds()).await
    }

    async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince> {
        self.through(Verb::KindsSince, self.inner.kinds_since(since)).await
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        self.through(Verb::ChangeKind, self.inner.change_kind(kind, change, by)).await
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited> {
        self.through(Verb::EditKind, self.inner.edit_kind(edit, by)).await
    }

    async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>> {
        self.through(Verb::Grant, self.inner.grant(asks)).await
    }
}

#[async_trait]
impl TokenStore for FaultyStore {
    async fn put_token(&self, token: &NewToken, by: &Actor) -> StoreResult<TokenPut> {
        self.through(Verb::PutToken, self.inner.put_token(token, by)).await
    }

    async fn tokens(&self) -> StoreResult<Vec<Token>> {
        self.through(Verb::Tokens, self.inner.tokens()).await
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> StoreResult<TokenRevoked> {
        self.through(Verb::RevokeToken, self.inner.revoke_token(id, by)).await
    }
}

#[async_trait]
impl OperateStore for FaultyStore {
    async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        self.check(changes.iter().map(|change| change.job))?;
        self.through(Verb::Change, self.inner.change(changes, by, keep)).await
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> StoreResult<Vec<JobEvent>> {
        self.through(Verb::Deadlines, self.inner.deadlines(grace, limit)).await
    }

    async fn release_groups(&self, limit: usize) -> StoreResult<GroupsReleased> {
        self.through(Verb::ReleaseGroups, self.inner.release_groups(limit)).await
    }

    async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>> {
        self.through(Verb::Unannounced, self.inner.unannounced(limit)).await
    }

    async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()> {
        self.check(dead.iter().map(|letter| letter.job))?;
        self.through(Verb::Announce, self.inner.announce(dead)).await
    }

    async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        self.through(Verb::Prune, self.inner.prune(prune)).await
    }
}

#[async_trait]
impl ReadStore for FaultyStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        self.through(Verb::Now, self.inner.now()).await
    }

    async fn get(&self, job: JobId) -> StoreResult<Option<Job>> {
        self.through(Verb::Get, self.inner.get(job)).await
    }

    async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        self.through(Verb::Find, self.inner.find(jobs)).await
    }

    async fn live(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        self.through(Verb::Live, self.inner.live(jobs)).await
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> StoreResult<Page<Job>> {
        self.through(Verb::List, self.inner.list(filter, page)).await
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> StoreResult<Count> {
        self.through(Verb::Count, self.inner.count(filter, scan_max)).await
    }

    async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures> {
        self.through(Verb::Failures, self.inner.failures(scan)).await
    }

    async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>> {
        self.through(Verb::Attempts, self.inner.attempts(job)).await
    }

    async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>> {
        self.through(Verb::Result, self.inner.result(job)).await
    }

    async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        self.through(Verb::Ended, self.inner.ended(jobs)).await
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        self.through(Verb::Audit, self.inner.audit(job, before, limit)).await
    }

    async fn tally(&self) -> StoreResult<Vec<Tally>> {
        self.through(Verb::Tally, self.inner.tally()).await
    }

    async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>> {
        self.through(Verb::StuckGroups, self.inner.stuck_groups(limit)).await
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> StoreResult<Vec<Option<LimitWait>>> {
        self.through(Verb::LimitWaits, self.inner.limit_waits(limits)).await
    }

    async fn books(&self) -> StoreResult<Books> {
        self.through(Verb::Books, self.inner.books()).await
    }
}

#[async_trait]
impl HistoryStore for FaultyStore {
    async fn report_history(&self, rows: &[HistoryRow]) -> StoreResult<Timestamp> {
        self.through(Verb::ReportHistory, self.inner.report_history(rows)).await
    }

    async fn history(&self, scan: &HistoryScan) -> StoreResult<HistoryPage> {
        self.through(Verb::History, self.inner.history(scan)).await
    }

    async fn fold_history(&self, fold: &HistoryFold) -> StoreResult<bool> {
        self.through(Verb::FoldHistory, self.inner.fold_history(fold)).await
    }
}

#[async_trait]
impl SampleStore for FaultyStore {
    async fn sample_now(&self, rows_max: usize) -> StoreResult<Option<Sample>> {
        self.through(Verb::SampleNow, self.inner.sample_now(rows_max)).await
    }

    async fn sample(&self) -> StoreResult<Option<Sample>> {
        self.through(Verb::Sample, self.inner.sample()).await
    }

    async fn take_sample(&self) -> StoreResult<bool> {
        self.through(Verb::TakeSample, self.inner.take_sample()).await
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn risks(&self) -> StoreResult<Vec<Risk>> {
        self.inner.risks().await
    }

    async fn unreadable(&self) -> StoreResult<Option<Risk>> {
        self.inner.unreadable().await
    }

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        let wakes = if self.is_silent { Wakes::None } else { inner.wakes };
        Capabilities { wakes, ..inner }
    }

    fn watch(&self) -> Box<dyn Watch> {
        if self.is_silent { Box::new(Silence) } else { self.inner.watch() }
    }

    async fn unreported_changes(&self) -> StoreResult<u64> {
        let inner = self.through(Verb::UnreportedChanges, self.inner.unreported_changes()).await?;
        Ok(if self.is_silent { self.unheard.fetch_add(1, Ordering::Relaxed) } else { inner })
    }

    async fn close(&self) -> StoreResult<()> {
        self.inner.close().await
    }
}

/// A watcher that is never woken.
struct Silence;

#[async_trait]
impl Watch for Silence {
    async fn changed(&mut self) -> StoreChange {
        pending().await
    }
}
