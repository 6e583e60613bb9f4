//! Forwards each verb to the wrapped store.

use super::{FaultyStore, Verb};
use async_trait::async_trait;
use rewheel_core::store::{
    Answer, AttemptRecord, Books, Burial, Capabilities, Change, Changed, Claim, Count, DeadLetter,
    Extension, FailureScan, Failures, Filter, FleetLimit, Insert, Inserted, KindStore, KindsSince,
    LaneHead, LeaseStore, Leased, LimitWait, LimitedClaim, LimitedClaimed, OperateStore, Page,
    PageRequest, Prune, Pruned, ReadStore, Renewed, Reserve, Risk, Sample, SampleStore, Settled,
    Settlement, Store, SubmitStore, Sweep, Tally, TokenStore, Wakes, Watch, WorkStore,
};
use rewheel_core::{
    Actor, AuditEntry, Holder, HolderId, Job, JobEvent, JobId, Keep, Kind, KindChange, KindChanged,
    KindEdit, KindEdited, KindName, Lane, Lease, NewHolder, NewKind, NewToken, RetryAsk, Timestamp,
    Token, TokenId, TokenPut, TokenRevoked,
};
use std::future::pending;
use std::time::Duration;

#[async_trait]
impl SubmitStore for FaultyStore {
    async fn insert(&self, insert: &Insert<'_>) -> Answer<Vec<Inserted>> {
        self.check(insert.jobs.iter().map(|job| job.id))?;
        self.through(Verb::Insert, self.inner.insert(insert)).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Answer<u64> {
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
    ) -> Answer<Vec<LaneHead>> {
        self.through(Verb::Lanes, self.inner.lanes(kinds, after, limit)).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> Answer<Vec<Leased>> {
        self.through(Verb::Claim, self.inner.claim(claim)).await
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> Answer<LimitedClaimed> {
        self.through(Verb::ClaimLimited, self.inner.claim_limited(claim)).await
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> Answer<Vec<bool>> {
        self.check(leases.iter().map(|lease| lease.job))?;
        self.through(Verb::Start, self.inner.start(holder, leases)).await
    }

    async fn checkpoint(&self, holder: HolderId, lease: Lease, payload: &[u8]) -> Answer<bool> {
        self.check([lease.job].into_iter())?;
        self.through(Verb::Checkpoint, self.inner.checkpoint(holder, lease, payload)).await
    }

    async fn settle(&self, holder: HolderId, settlements: &[Settlement]) -> Answer<Vec<Settled>> {
        self.check(settlements.iter().map(|settlement| settlement.lease.job))?;
        self.through(Verb::Settle, self.inner.settle(holder, settlements)).await
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Keep,
    ) -> Answer<Vec<Settled>> {
        self.check(leases.iter().map(|lease| lease.job))?;
        self.through(Verb::GiveBack, self.inner.give_back(holder, leases, keep)).await
    }

    async fn extend(&self, holder: HolderId, extension: &Extension) -> Answer<Option<Timestamp>> {
        self.check([extension.lease.job].into_iter())?;
        self.through(Verb::Extend, self.inner.extend(holder, extension)).await
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> Answer<Vec<Lease>> {
        self.through(Verb::Held, self.inner.held(holder, older_than, after, limit)).await
    }
}

#[async_trait]
impl LeaseStore for FaultyStore {
    async fn join(&self, holder: &NewHolder) -> Answer<Timestamp> {
        self.through(Verb::Join, self.inner.join(holder)).await
    }

    async fn renew(&self, holder: HolderId) -> Answer<Renewed> {
        self.through(Verb::Renew, self.inner.renew(holder)).await
    }

    async fn leave(&self, holder: HolderId) -> Answer<()> {
        self.through(Verb::Leave, self.inner.leave(holder)).await
    }

    async fn holders(&self) -> Answer<Vec<Holder>> {
        self.through(Verb::Holders, self.inner.holders()).await
    }

    async fn holder(&self, id: HolderId) -> Answer<Option<Holder>> {
        self.through(Verb::Holder, self.inner.holder(id)).await
    }

    async fn bury(&self, by: HolderId, other: HolderId, renewals: u64) -> Answer<Burial> {
        self.through(Verb::Bury, self.inner.bury(by, other, renewals)).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Answer<Vec<JobEvent>> {
        self.through(Verb::Sweep, self.inner.sweep(sweep)).await
    }
}

#[async_trait]
impl KindStore for FaultyStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> Answer<()> {
        self.through(Verb::PutKinds, self.inner.put_kinds(kinds, by)).await
    }

    async fn kinds(&self) -> Answer<Vec<Kind>> {
        self.through(Verb::Kinds, self.inner.kinds()).await
    }

    async fn kinds_since(&self, since: u64) -> Answer<KindsSince> {
        self.through(Verb::KindsSince, self.inner.kinds_since(since)).await
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> Answer<KindChanged> {
        self.through(Verb::ChangeKind, self.inner.change_kind(kind, change, by)).await
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> Answer<KindEdited> {
        self.through(Verb::EditKind, self.inner.edit_kind(edit, by)).await
    }

    async fn grant(&self, asks: &[RetryAsk]) -> Answer<Vec<u32>> {
        self.through(Verb::Grant, self.inner.grant(asks)).await
    }
}

#[async_trait]
impl TokenStore for FaultyStore {
    async fn put_token(&self, token: &NewToken, by: &Actor) -> Answer<TokenPut> {
        self.through(Verb::PutToken, self.inner.put_token(token, by)).await
    }

    async fn tokens(&self) -> Answer<Vec<Token>> {
        self.through(Verb::Tokens, self.inner.tokens()).await
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> Answer<TokenRevoked> {
        self.through(Verb::RevokeToken, self.inner.revoke_token(id, by)).await
    }
}

#[async_trait]
impl OperateStore for FaultyStore {
    async fn change(&self, changes: &[Change], by: &Actor, keep: Keep) -> Answer<Vec<Changed>> {
        self.check(changes.iter().map(|change| change.job))?;
        self.through(Verb::Change, self.inner.change(changes, by, keep)).await
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> Answer<Vec<JobEvent>> {
        self.through(Verb::Deadlines, self.inner.deadlines(grace, limit)).await
    }

    async fn unannounced(&self, limit: usize) -> Answer<Vec<DeadLetter>> {
        self.through(Verb::Unannounced, self.inner.unannounced(limit)).await
    }

    async fn announce(&self, dead: &[DeadLetter]) -> Answer<()> {
        self.check(dead.iter().map(|letter| letter.job))?;
        self.through(Verb::Announce, self.inner.announce(dead)).await
    }

    async fn prune(&self, prune: &Prune) -> Answer<Pruned> {
        self.through(Verb::Prune, self.inner.prune(prune)).await
    }
}

#[async_trait]
impl ReadStore for FaultyStore {
    async fn now(&self) -> Answer<Timestamp> {
        self.through(Verb::Now, self.inner.now()).await
    }

    async fn get(&self, job: JobId) -> Answer<Option<Job>> {
        self.through(Verb::Get, self.inner.get(job)).await
    }

    async fn find(&self, jobs: &[JobId]) -> Answer<Vec<Job>> {
        self.through(Verb::Find, self.inner.find(jobs)).await
    }

    async fn live(&self, jobs: &[JobId]) -> Answer<Vec<Job>> {
        self.through(Verb::Live, self.inner.live(jobs)).await
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> Answer<Page<Job>> {
        self.through(Verb::List, self.inner.list(filter, page)).await
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> Answer<Count> {
        self.through(Verb::Count, self.inner.count(filter, scan_max)).await
    }

    async fn failures(&self, scan: &FailureScan) -> Answer<Failures> {
        self.through(Verb::Failures, self.inner.failures(scan)).await
    }

    async fn attempts(&self, job: JobId) -> Answer<Vec<AttemptRecord>> {
        self.through(Verb::Attempts, self.inner.attempts(job)).await
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<Vec<AuditEntry>> {
        self.through(Verb::Audit, self.inner.audit(job, before, limit)).await
    }

    async fn tally(&self) -> Answer<Vec<Tally>> {
        self.through(Verb::Tally, self.inner.tally()).await
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> Answer<Vec<Option<LimitWait>>> {
        self.through(Verb::LimitWaits, self.inner.limit_waits(limits)).await
    }

    async fn books(&self) -> Answer<Books> {
        self.through(Verb::Books, self.inner.books()).await
    }
}

#[async_trait]
impl SampleStore for FaultyStore {
    async fn sample_now(&self, rows_max: usize) -> Answer<Option<Sample>> {
        self.through(Verb::SampleNow, self.inner.sample_now(rows_max)).await
    }

    async fn sample(&self) -> Answer<Option<Sample>> {
        self.through(Verb::Sample, self.inner.sample()).await
    }

    async fn take_sample(&self) -> Answer<bool> {
        self.through(Verb::TakeSample, self.inner.take_sample()).await
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn risks(&self) -> Answer<Vec<Risk>> {
        self.inner.risks().await
    }

    async fn unreadable(&self) -> Answer<Option<Risk>> {
        self.inner.unreadable().await
    }

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        let wakes = if self.is_silent { Wakes::Nobody } else { inner.wakes };
        Capabilities { wakes, ..inner }
    }

    fn watch(&self) -> Box<dyn Watch> {
        if self.is_silent { Box::new(Silence) } else { self.inner.watch() }
    }

    async fn close(&self) -> Answer<()> {
        self.inner.close().await
    }
}

/// A watcher that is never woken.
struct Silence;

#[async_trait]
impl Watch for Silence {
    async fn changed(&mut self) {
        pending().await
    }
}
