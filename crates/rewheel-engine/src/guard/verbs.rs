//! Implements the store traits for the guarded store.

use super::{GuardedStore, within};
use async_trait::async_trait;
use rewheel_core::store::{
    AttemptRecord, Books, Capabilities, Change, Changed, Claim, Count, DeadLetter, Extension,
    FailureScan, Failures, Filter, FleetLimit, GroupName, GroupsReleased, HistoryFold, HistoryPage,
    HistoryRow, HistoryScan, HistoryStore, HolderExpiry, Insert, Inserted, KindStore, KindsSince,
    LaneHead, LeaseStore, Leased, LimitWait, LimitedClaim, LimitedClaimed, OperateStore, Page,
    PageRequest, Prune, Pruned, ReadStore, Renewed, Reserve, Risk, Sample, SampleStore, Sent,
    Settled, Settlement, Store, StoreResult, SubmitStore, Sweep, Tally, TokenStore, Watch,
    WatchShare, WorkStore,
};
use rewheel_core::{
    Actor, AuditEntry, Holder, HolderId, Job, JobEvent, JobId, Kind, KindChange, KindChanged,
    KindEdit, KindEdited, KindName, Lane, Lease, NewHolder, NewKind, NewToken, Retain, RetryAsk,
    StoredResult, Timestamp, Token, TokenId, TokenPut, TokenRevoked,
};
use std::time::Duration;

#[async_trait]
impl SubmitStore for GuardedStore {
    async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        let again = Insert { sent: Sent::Again, ..insert.clone() };
        self.call("insert", &self.insert, |attempt| {
            self.inner.insert(if attempt.is_retry() { &again } else { insert })
        })
        .await
    }

    async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64> {
        self.call("reserve", &self.usual, |_| self.inner.reserve(reserve)).await
    }
}

#[async_trait]
impl WorkStore for GuardedStore {
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>> {
        self.call("lanes", &self.usual, |_| self.inner.lanes(kinds, after, limit)).await
    }

    async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>> {
        self.call("lane_heads", &self.usual, |_| self.inner.lane_heads(lanes)).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>> {
        self.call("claim", &self.usual, |_| self.inner.claim(claim)).await
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> StoreResult<LimitedClaimed> {
        self.call("claim_limited", &self.usual, |_| self.inner.claim_limited(claim)).await
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> StoreResult<Vec<bool>> {
        self.call("start", &self.usual, |_| self.inner.start(holder, leases)).await
    }

    async fn checkpoint(
        &self,
        holder: HolderId,
        lease: Lease,
        payload: &[u8],
    ) -> StoreResult<bool> {
        self.call("checkpoint", &self.usual, |_| self.inner.checkpoint(holder, lease, payload))
            .await
    }

    async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        self.call("settle", &self.usual, |_| self.inner.settle(holder, settlements)).await
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        self.call("give_back", &self.usual, |_| self.inner.give_back(holder, leases, keep)).await
    }

    async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>> {
        self.call("extend", &self.usual, |_| self.inner.extend(holder, extension)).await
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>> {
        self.call("held", &self.usual, |_| self.inner.held(holder, older_than, after, limit)).await
    }
}

#[async_trait]
impl LeaseStore for GuardedStore {
    async fn join(&self, holder: &NewHolder) -> StoreResult<Timestamp> {
        self.call("join", &self.join, |_| self.inner.join(holder)).await
    }

    async fn renew(&self, holder: HolderId) -> StoreResult<Renewed> {
        self.call("renew", &self.beat, |_| self.inner.renew(holder)).await
    }

    async fn leave(&self, holder: HolderId) -> StoreResult<()> {
        self.call("leave", &self.leave, |_| self.inner.leave(holder)).await
    }

    async fn holders(&self) -> StoreResult<Vec<Holder>> {
        self.call("holders", &self.beat, |_| self.inner.holders()).await
    }

    async fn watched_holders(&self, share: WatchShare) -> StoreResult<Vec<Holder>> {
        self.call("watched_holders", &self.beat, |_| self.inner.watched_holders(share)).await
    }

    async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>> {
        self.call("holder", &self.usual, |_| self.inner.holder(id)).await
    }

    async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry> {
        self.call("expire_holder", &self.beat, |_| self.inner.expire_holder(by, other, renewals))
            .await
    }

    async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        self.call("sweep", &self.usual, |_| self.inner.sweep(sweep)).await
    }
}

#[async_trait]
impl KindStore for GuardedStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> StoreResult<()> {
        self.call("put_kinds", &self.usual, |_| self.inner.put_kinds(kinds, by)).await
    }

    async fn kinds(&self) -> StoreResult<Vec<Kind>> {
        self.call("kinds", &self.usual, |_| self.inner.kinds()).await
    }

    async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince> {
        self.call("kinds_since", &self.usual, |_| self.inner.kinds_since(since)).await
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        self.call("change_kind", &self.usual, |_| self.inner.change_kind(kind, change, by)).await
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited> {
        // A repetition after a lost response would find the version changed by itself.
        let way = if edit.if_version.is_some() { &self.once } else { &self.usual };
        self.call("edit_kind", way, |_| self.inner.edit_kind(edit, by)).await
    }

    async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>> {
        // Not repeated: the earnings would count twice. The next heartbeat asks again.
        self.call("grant", &self.beat, |_| self.inner.grant(asks)).await
    }
}

#[async_trait]
impl TokenStore for GuardedStore {
    async fn put_token(&self, token: &NewToken, by: &Actor) -> StoreResult<TokenPut> {
        self.call("put_token", &self.usual, |_| self.inner.put_token(token, by)).await
    }

    async fn tokens(&self) -> StoreResult<Vec<Token>> {
        self.call("tokens", &self.usual, |_| self.inner.tokens()).await
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> StoreResult<TokenRevoked> {
        self.call("revoke_token", &self.usual, |_| self.inner.revoke_token(id, by)).await
    }
}

#[async_trait]
impl OperateStore for GuardedStore {
    async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        // A repetition after a lost response would find the version changed by itself.
        let is_conditional = changes.iter().any(|change| change.if_version.is_some());
        let way = if is_conditional { &self.once } else { &self.usual };
        self.call("change", way, |_| self.inner.change(changes, by, keep)).await
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> StoreResult<Vec<JobEvent>> {
        self.call("deadlines", &self.usual, |_| self.inner.deadlines(grace, limit)).await
    }

    async fn release_groups(&self, limit: usize) -> StoreResult<GroupsReleased> {
        self.call("release_groups", &self.usual, |_| self.inner.release_groups(limit)).await
    }

    async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>> {
        self.call("unannounced", &self.usual, |_| self.inner.unannounced(limit)).await
    }

    async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()> {
        self.call("announce", &self.usual, |_| self.inner.announce(dead)).await
    }

    async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        self.call("prune", &self.long, |_| self.inner.prune(prune)).await
    }
}

#[async_trait]
impl ReadStore for GuardedStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        self.call("now", &self.usual, |_| self.inner.now()).await
    }

    async fn get(&self, job: JobId) -> StoreResult<Option<Job>> {
        self.call("get", &self.usual, |_| self.inner.get(job)).await
    }

    async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        self.call("find", &self.usual, |_| self.inner.find(jobs)).await
    }

    async fn live(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        self.call("live", &self.usual, |_| self.inner.live(jobs)).await
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> StoreResult<Page<Job>> {
        self.call("list", &self.usual, |_| self.inner.list(filter, page)).await
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> StoreResult<Count> {
        self.call("count", &self.usual, |_| self.inner.count(filter, scan_max)).await
    }

    async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures> {
        self.call("failures", &self.usual, |_| self.inner.failures(scan)).await
    }

    async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>> {
        self.call("attempts", &self.usual, |_| self.inner.attempts(job)).await
    }

    async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>> {
        self.call("result", &self.usual, |_| self.inner.result(job)).await
    }

    async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        self.call("ended", &self.usual, |_| self.inner.ended(jobs)).await
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        self.call("audit", &self.usual, |_| self.inner.audit(job, before, limit)).await
    }

    async fn tally(&self) -> StoreResult<Vec<Tally>> {
        self.call("tally", &self.usual, |_| self.inner.tally()).await
    }

    async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>> {
        self.call("stuck_groups", &self.usual, |_| self.inner.stuck_groups(limit)).await
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> StoreResult<Vec<Option<LimitWait>>> {
        self.call("limit_waits", &self.usual, |_| self.inner.limit_waits(limits)).await
    }

    async fn books(&self) -> StoreResult<Books> {
        self.call("books", &self.usual, |_| self.inner.books()).await
    }
}

#[async_trait]
impl HistoryStore for GuardedStore {
    async fn report_history(&self, rows: &[HistoryRow]) -> StoreResult<Timestamp> {
        self.call("report_history", &self.usual, |_| self.inner.report_history(rows)).await
    }

    async fn history(&self, scan: &HistoryScan) -> StoreResult<HistoryPage> {
        self.call("history", &self.usual, |_| self.inner.history(scan)).await
    }

    async fn fold_history(&self, fold: &HistoryFold) -> StoreResult<bool> {
        self.call("fold_history", &self.usual, |_| self.inner.fold_history(fold)).await
    }
}

#[async_trait]
impl SampleStore for GuardedStore {
    async fn sample_now(&self, rows_max: usize) -> StoreResult<Option<Sample>> {
        self.call("sample_now", &self.usual, |_| self.inner.sample_now(rows_max)).await
    }

    async fn sample(&self) -> StoreResult<Option<Sample>> {
        self.call("sample", &self.usual, |_| self.inner.sample()).await
    }

    async fn take_sample(&self) -> StoreResult<bool> {
        self.call("take_sample", &self.long, |_| self.inner.take_sample()).await
    }
}

#[async_trait]
impl Store for GuardedStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn risks(&self) -> StoreResult<Vec<Risk>> {
        self.call("risks", &self.usual, |_| self.inner.risks()).await
    }

    async fn unreadable(&self) -> StoreResult<Option<Risk>> {
        self.call("unreadable", &self.usual, |_| self.inner.unreadable()).await
    }

    fn watch(&self) -> Box<dyn Watch> {
        self.inner.watch()
    }

    async fn unreported_changes(&self) -> StoreResult<u64> {
        self.call("unreported_changes", &self.usual, |_| self.inner.unreported_changes()).await
    }

    async fn close(&self) -> StoreResult<()> {
        // Neither refused nor repeated: closing an unavailable store must not hang.
        let time_max = self.usual.time_max;
        within(time_max, time_max, self.inner.close()).await
    }
}
