//! Implements the store traits for the memory store.

use super::MemoryStore;
use super::world::Row;
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
use std::collections::BTreeSet;
use std::time::Duration;

/// The same limit as SQLite's. A payload should refer to data rather than contain it.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;

#[async_trait]
impl SubmitStore for MemoryStore {
    async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        insert.check()?;
        self.run(|world, now| world.insert(insert, now))
    }

    async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64> {
        self.run(|world, _| world.reserve(reserve))
    }
}

#[async_trait]
impl WorkStore for MemoryStore {
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>> {
        self.run(|world, now| Ok(world.lanes(kinds, after, limit, now)))
    }

    async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>> {
        self.run(|world, now| Ok(world.lane_heads(lanes, now)))
    }

    async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>> {
        self.run(|world, now| world.claim(claim, now))
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> StoreResult<LimitedClaimed> {
        self.run(|world, now| world.claim_limited(claim, now))
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> StoreResult<Vec<bool>> {
        self.run(|world, _| Ok(leases.iter().map(|lease| world.start(holder, *lease)).collect()))
    }

    async fn checkpoint(
        &self,
        holder: HolderId,
        lease: Lease,
        payload: &[u8],
    ) -> StoreResult<bool> {
        refuse_large(payload, PAYLOAD_BYTES_MAX)?;
        self.run(|world, _| Ok(world.checkpoint(holder, lease, payload)))
    }

    async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        #[cfg(feature = "test-faults")]
        assert!(!self.shared.panics_in_settle, "a bug in settle");
        self.run(|world, now| {
            Ok(settlements.iter().map(|one| world.settle(holder, one, now)).collect())
        })
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        self.run(|world, now| {
            Ok(leases.iter().map(|lease| world.give_back(holder, *lease, keep, now)).collect())
        })
    }

    async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>> {
        self.run(|world, now| Ok(world.extend(holder, extension, now)))
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>> {
        self.run(|world, now| Ok(world.held(holder, older_than, after, limit, now)))
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn join(&self, holder: &NewHolder) -> StoreResult<Timestamp> {
        self.run(|world, now| world.join(holder, now))
    }

    async fn renew(&self, holder: HolderId) -> StoreResult<Renewed> {
        self.run(|world, now| world.renew(holder, now))
    }

    async fn leave(&self, holder: HolderId) -> StoreResult<()> {
        self.run(|world, now| {
            world.leave(holder, now);
            Ok(())
        })
    }

    async fn holders(&self) -> StoreResult<Vec<Holder>> {
        self.run(|world, now| Ok(world.holders(now)))
    }

    async fn watched_holders(&self, share: WatchShare) -> StoreResult<Vec<Holder>> {
        self.run(|world, now| Ok(world.watched_holders(share, now)))
    }

    async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>> {
        self.run(|world, now| Ok(world.holder(id, now)))
    }

    async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry> {
        self.run(|world, now| world.expire_holder(by, other, renewals, now))
    }

    async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        self.run(|world, now| world.sweep(sweep, now))
    }
}

#[async_trait]
impl KindStore for MemoryStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> StoreResult<()> {
        self.run(|world, now| {
            kinds.iter().for_each(|kind| world.put_kind(kind, by, now));
            Ok(())
        })
    }

    async fn kinds(&self) -> StoreResult<Vec<Kind>> {
        self.run(|world, _| Ok(world.kinds.values().map(|row| row.kind.clone()).collect()))
    }

    async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince> {
        self.run(|world, _| Ok(world.kinds_since(since)))
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        self.run(|world, now| Ok(world.change_kind(kind, change, by, now)))
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited> {
        self.run(|world, now| Ok(world.edit_kind(edit, by, now)))
    }

    async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>> {
        self.run(|world, now| Ok(asks.iter().map(|ask| world.grant(ask, now)).collect()))
    }
}

#[async_trait]
impl OperateStore for MemoryStore {
    async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        self.run(|world, now| {
            Ok(changes.iter().map(|change| world.change(change, by, keep, now)).collect())
        })
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> StoreResult<Vec<JobEvent>> {
        self.run(|world, now| Ok(world.deadlines(grace, limit, now)))
    }

    async fn release_groups(&self, limit: usize) -> StoreResult<GroupsReleased> {
        self.run(|world, now| Ok(world.release_groups(limit, now)))
    }

    async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>> {
        self.run(|world, _| Ok(world.unannounced(limit)))
    }

    async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()> {
        self.run(|world, now| {
            world.announce(dead, now);
            Ok(())
        })
    }

    async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        self.run(|world, now| Ok(world.prune(prune, now)))
    }
}

#[async_trait]
impl ReadStore for MemoryStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        self.run(|_, now| Ok(now))
    }

    async fn get(&self, job: JobId) -> StoreResult<Option<Job>> {
        self.run(|world, _| Ok(world.jobs.get(&job).map(Row::whole)))
    }

    async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        self.run(|world, _| {
            let ids: BTreeSet<&JobId> = jobs.iter().collect();
            let rows = ids.into_iter().filter_map(|id| world.jobs.get(id));
            Ok(rows.map(|row| row.job.clone()).collect())
        })
    }

    async fn live(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        let mut found = self.find(jobs).await?;
        found.retain(|job| job.state().is_live());
        Ok(found)
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> StoreResult<Page<Job>> {
        self.run(|world, now| Ok(world.list(filter, page, now)))
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> StoreResult<Count> {
        self.run(|world, now| Ok(world.count(filter, scan_max, now)))
    }

    async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures> {
        self.run(|world, _| Ok(world.failures(scan)))
    }

    async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>> {
        self.run(|world, _| Ok(world.attempts(job)))
    }

    async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>> {
        self.run(|world, _| Ok(world.result(job)))
    }

    async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        self.run(|world, _| Ok(world.ended(jobs)))
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        self.run(|world, _| Ok(world.audit(job, before, limit)))
    }

    async fn tally(&self) -> StoreResult<Vec<Tally>> {
        self.run(|world, _| Ok(world.tally()))
    }

    async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>> {
        self.run(|world, _| Ok(world.stuck_groups(limit)))
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> StoreResult<Vec<Option<LimitWait>>> {
        self.run(|world, now| {
            let wait = |limit: &FleetLimit| limit.wait(world.limit_use(limit), now);
            Ok(limits.iter().map(wait).collect())
        })
    }

    async fn books(&self) -> StoreResult<Books> {
        self.run(|world, _| Ok(world.books()))
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn risks(&self) -> StoreResult<Vec<Risk>> {
        let message =
            "the memory store loses all jobs when the process ends: use SQLite or PostgreSQL"
                .to_owned();
        Ok(vec![Risk { name: "durable", message }])
    }

    async fn unreadable(&self) -> StoreResult<Option<Risk>> {
        Ok(None)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "memory",
            durable: false,
            shared: false,
            remote: false,
            wakes: Wakes::Process,
            groups: false,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn watch(&self) -> Box<dyn Watch> {
        self.shared.changes.watch()
    }

    async fn unreported_changes(&self) -> StoreResult<u64> {
        // No other process can reach it.
        Ok(0)
    }

    async fn close(&self) -> StoreResult<()> {
        self.lock()?.closed = true;
        Ok(())
    }
}
