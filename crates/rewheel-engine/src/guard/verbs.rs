//! Implements the store traits for the guarded store.

use super::{GuardedStore, within};
use async_trait::async_trait;
use rewheel_core::store::{
    Answer, AttemptRecord, Books, Burial, Capabilities, Change, Changed, Claim, Count, DeadLetter,
    Extension, FailureScan, Failures, Filter, FleetLimit, Insert, Inserted, KindStore, KindsSince,
    LaneHead, LeaseStore, Leased, LimitWait, LimitedClaim, LimitedClaimed, OperateStore, Page,
    PageRequest, Prune, Pruned, ReadStore, Renewed, Reserve, Risk, Sample, SampleStore, Sent,
    Settled, Settlement, Store, SubmitStore, Sweep, Tally, TokenStore, Watch, WorkStore,
};
use rewheel_core::{
    Actor, AuditEntry, Holder, HolderId, Job, JobEvent, JobId, Keep, Kind, KindChange, KindChanged,
    KindEdit, KindEdited, KindName, Lane, Lease, NewHolder, NewKind, NewToken, RetryAsk, Timestamp,
    Token, TokenId, TokenPut, TokenRevoked,
};
use std::time::Duration;

#[async_trait]
impl SubmitStore for GuardedStore {
    async fn insert(&self, insert: &Insert<'_>) -> Answer<Vec<Inserted>> {
        let again = Insert { sent: Sent::Again, ..insert.clone() };
        self.call("insert", &self.insert, |attempt| {
            self.inner.insert(if attempt.is_retry() { &again } else { insert })
        })
        .await
    }

    async fn reserve(&self, reserve: &Reserve) -> Answer<u64> {
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
    ) -> Answer<Vec<LaneHead>> {
        self.call("lanes", &self.usual, |_| self.inner.lanes(kinds, after, limit)).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> Answer<Vec<Leased>> {
        self.call("claim", &self.usual, |_| self.inner.claim(claim)).await
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> Answer<LimitedClaimed> {
        self.call("claim_limited", &self.usual, |_| self.inner.claim_limited(claim)).await
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> Answer<Vec<bool>> {
        self.call("start", &self.usual, |_| self.inner.start(holder, leases)).await
    }

    async fn checkpoint(&self, holder: HolderId, lease: Lease, payload: &[u8]) -> Answer<bool> {
        self.call("checkpoint", &self.usual, |_| self.inner.checkpoint(holder, lease, payload))
            .await
    }

    async fn settle(&self, holder: HolderId, settlements: &[Settlement]) -> Answer<Vec<Settled>> {
        self.call("settle", &self.usual, |_| self.inner.settle(holder, settlements)).await
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Keep,
    ) -> Answer<Vec<Settled>> {
        self.call("give_back", &self.usual, |_| self.inner.give_back(holder, leases, keep)).await
    }

    async fn extend(&self, holder: HolderId, extension: &Extension) -> Answer<Option<Timestamp>> {
        self.call("extend", &self.usual, |_| self.inner.extend(holder, extension)).await
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> Answer<Vec<Lease>> {
        self.call("held", &self.usual, |_| self.inner.held(holder, older_than, after, limit)).await
    }
}

#[async_trait]
impl LeaseStore for GuardedStore {
    async fn join(&self, holder: &NewHolder) -> Answer<Timestamp> {
        self.call("join", &self.life, |_| self.inner.join(holder)).await
    }

    async fn renew(&self, holder: HolderId) -> Answer<Renewed> {
        self.call("renew", &self.beat, |_| self.inner.renew(holder)).await
    }

    async fn leave(&self, holder: HolderId) -> Answer<()> {
        self.call("leave", &self.life, |_| self.inner.leave(holder)).await
    }

    async fn holders(&self) -> Answer<Vec<Holder>> {
        self.call("holders", &self.beat, |_| self.inner.holders()).await
    }

    async fn holder(&self, id: HolderId) -> Answer<Option<Holder>> {
        self.call("holder", &self.usual, |_| self.inner.holder(id)).await
    }

    async fn bury(&self, by: HolderId, other: HolderId, renewals: u64) -> Answer<Burial> {
        self.call("bury", &self.beat, |_| self.inner.bury(by, other, renewals)).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Answer<Vec<JobEvent>> {
        self.call("sweep", &self.usual, |_| self.inner.sweep(sweep)).await
    }
}

#[async_trait]
impl KindStore for GuardedStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> Answer<()> {
        self.call("put_kinds", &self.usual, |_| self.inner.put_kinds(kinds, by)).await
    }

    async fn kinds(&self) -> Answer<Vec<Kind>> {
        self.call("kinds", &self.usual, |_| self.inner.kinds()).await
    }

    async fn kinds_since(&self, since: u64) -> Answer<KindsSince> {
        self.call("kinds_since", &self.usual, |_| self.inner.kinds_since(since)).await
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> Answer<KindChanged> {
        self.call("change_kind", &self.usual, |_| self.inner.change_kind(kind, change, by)).await
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> Answer<KindEdited> {
        // A repetition after a lost response would find the version changed by itself.
        let way = if edit.if_version.is_some() { &self.once } else { &self.usual };
        self.call("edit_kind", way, |_| self.inner.edit_kind(edit, by)).await
    }

    async fn grant(&self, asks: &[RetryAsk]) -> Answer<Vec<u32>> {
        // Not repeated: the earnings would count twice. The next heartbeat asks again.
        self.call("grant", &self.beat, |_| self.inner.grant(asks)).await
    }
}

#[async_trait]
impl TokenStore for GuardedStore {
    async fn put_token(&self, token: &NewToken, by: &Actor) -> Answer<TokenPut> {
        self.call("put_token", &self.usual, |_| self.inner.put_token(token, by)).await
    }

    async fn tokens(&self) -> Answer<Vec<Token>> {
        self.call("tokens", &self.usual, |_| self.inner.tokens()).await
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> Answer<TokenRevoked> {
        self.call("revoke_token", &self.usual, |_| self.inner.revoke_token(id, by)).await
    }
}

#[async_trait]
impl OperateStore for GuardedStore {
    async fn change(&self, changes: &[Change], by: &Actor, keep: Keep) -> Answer<Vec<Changed>> {
        // A repetition after a lost response would find the version changed by itself.
        let is_conditional = changes.iter().any(|change| change.if_version.is_some());
        let way = if is_conditional { &self.once } else { &self.usual };
        self.call("change", way, |_| self.inner.change(changes, by, keep)).await
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> Answer<Vec<JobEvent>> {
        self.call("deadlines", &self.usual, |_| self.inner.deadlines(grace, limit)).await
    }

    async fn unannounced(&self, limit: usize) -> Answer<Vec<DeadLetter>> {
        self.call("unannounced", &self.usual, |_| self.inner.unannounced(limit)).await
    }

    async fn announce(&self, dead: &[DeadLetter]) -> Answer<()> {
        self.call("announce", &self.usual, |_| self.inner.announce(dead)).await
    }

    async fn prune(&self, prune: &Prune) -> Answer<Pruned> {
        self.call("prune", &self.usual, |_| self.inner.prune(prune)).await
    }
}

#[async_trait]
impl ReadStore for GuardedStore {
    async fn now(&self) -> Answer<Timestamp> {
        self.call("now", &self.usual, |_| self.inner.now()).await
    }

    async fn get(&self, job: JobId) -> Answer<Option<Job>> {
        self.call("get", &self.usual, |_| self.inner.get(job)).await
    }

    async fn find(&self, jobs: &[JobId]) -> Answer<Vec<Job>> {
        self.call("find", &self.usual, |_| self.inner.find(jobs)).await
    }

    async fn live(&self, jobs: &[JobId]) -> Answer<Vec<Job>> {
        self.call("live", &self.usual, |_| self.inner.live(jobs)).await
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> Answer<Page<Job>> {
        self.call("list", &self.usual, |_| self.inner.list(filter, page)).await
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> Answer<Count> {
        self.call("count", &self.usual, |_| self.inner.count(filter, scan_max)).await
    }

    async fn failures(&self, scan: &FailureScan) -> Answer<Failures> {
        self.call("failures", &self.usual, |_| self.inner.failures(scan)).await
    }

    async fn attempts(&self, job: JobId) -> Answer<Vec<AttemptRecord>> {
        self.call("attempts", &self.usual, |_| self.inner.attempts(job)).await
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<Vec<AuditEntry>> {
        self.call("audit", &self.usual, |_| self.inner.audit(job, before, limit)).await
    }

    async fn tally(&self) -> Answer<Vec<Tally>> {
        self.call("tally", &self.usual, |_| self.inner.tally()).await
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> Answer<Vec<Option<LimitWait>>> {
        self.call("limit_waits", &self.usual, |_| self.inner.limit_waits(limits)).await
    }

    async fn books(&self) -> Answer<Books> {
        self.call("books", &self.usual, |_| self.inner.books()).await
    }
}

#[async_trait]
impl SampleStore for GuardedStore {
    async fn sample_now(&self, rows_max: usize) -> Answer<Option<Sample>> {
        self.call("sample_now", &self.usual, |_| self.inner.sample_now(rows_max)).await
    }

    async fn sample(&self) -> Answer<Option<Sample>> {
        self.call("sample", &self.usual, |_| self.inner.sample()).await
    }

    async fn take_sample(&self) -> Answer<bool> {
        self.call("take_sample", &self.long, |_| self.inner.take_sample()).await
    }
}

#[async_trait]
impl Store for GuardedStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn risks(&self) -> Answer<Vec<Risk>> {
        self.call("risks", &self.usual, |_| self.inner.risks()).await
    }

    async fn unreadable(&self) -> Answer<Option<Risk>> {
        self.call("unreadable", &self.usual, |_| self.inner.unreadable()).await
    }

    fn watch(&self) -> Box<dyn Watch> {
        self.inner.watch()
    }

    async fn close(&self) -> Answer<()> {
        // Neither refused nor repeated: closing an unavailable store must not hang.
        let time_max = self.usual.time_max;
        within(time_max, time_max, self.inner.close()).await
    }
}
