//! Implements the store traits: runs each verb in a transaction.

use super::epoch::{self, Heartbeat, Restored};
use super::error::{Stage, judge};
use super::job_columns::Payload;
use super::verbs::aside::{Aside, AsideAfter};
use super::verbs::insert::Lines;
use super::verbs::lease::Beat;
use super::verbs::settle::Share;
use super::verbs::sweep::{Budget, CLAIMS_READ as CLAIMS_RAISED, Swept};
use super::verbs::{
    aside, audit, books, budgets, change, claim, claim_ends, failures, groups, held, insert, kinds,
    lane_heads, lease, limits, read, reserve, results, risks, sample, settle, sweep,
};
use super::{MysqlStore, read, snapshot, write};
use crate::payload::refuse_large;
use async_trait::async_trait;
use rewheel_core::store::{
    AttemptRecord, Books, Capabilities, Change, Changed, Claim, Count, DeadLetter, Extension,
    FailureScan, Failures, Filter, FleetLimit, GroupName, GroupsReleased, HolderExpiry, Insert,
    Inserted, KindStore, KindsSince, LaneHead, LeaseStore, Leased, LimitWait, LimitedClaim,
    LimitedClaimed, OperateStore, Page, PageRequest, Prune, Pruned, ReadStore, Renewed, Reserve,
    Risk, Settled, Settlement, Store, StoreError, StoreResult, SubmitStore, Sweep, Tally, Wakes,
    Watch, WatchShare, WorkStore,
};
use rewheel_core::{
    Actor, AuditEntry, Holder, HolderId, Job, JobEvent, JobId, Kind, KindChange, KindChanged,
    KindEdit, KindEdited, KindName, Lane, Lease, NewHolder, NewKind, Retain, RetryAsk,
    StoredResult, Timestamp,
};
use std::time::Duration;

/// Maximum number of transactions of one sweep that move long leases out of the range that claims read: some thousand claims. The next
/// sweep continues with the others.
const ASIDE_ROUNDS_MAX: usize = 100;

/// A failed transaction does not undo the earlier transactions of its batch. The caller repeats the whole batch; the store then answers for the parts that it has written as it did before.
fn after_part<T>(part: StoreResult<Vec<T>>, before: &[T]) -> StoreResult<Vec<T>> {
    match part {
        Err(StoreError::Unavailable(why) | StoreError::Full(why)) if !before.is_empty() => {
            Err(StoreError::Ambiguous(why))
        }
        part => part,
    }
}

impl MysqlStore {
    /// Begins an epoch: older data was restored.
    async fn begin_epoch(&self) -> StoreResult<()> {
        let mut connection = self.shared.life.get().await?;
        connection.begin();
        let restored = Restored::After(self.shared.epoch.current());
        let epoch = epoch::find(&mut connection, restored).await;
        let epoch = epoch.map_err(|trouble| judge(trouble, Stage::Committing))?;
        connection.finish();
        self.shared.observe(epoch);
        Ok(())
    }

    /// Moves the jobs of a page of long claims out of the range that claims read. Returns where the next page begins.
    async fn set_aside(
        &self,
        page: AsideAfter,
        budget: &mut Budget,
    ) -> StoreResult<Option<AsideAfter>> {
        let Aside { next, stuck } = write!(self, tx => aside::set_long_leases_aside(tx, page))?;
        if !stuck.is_empty() {
            read!(self, tx => aside::set_aside_alone(tx, &stuck, budget))?;
        }
        Ok(next)
    }
}

#[async_trait]
impl SubmitStore for MysqlStore {
    async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        insert.check()?;
        write!(self, tx => insert::insert(tx, insert, Lines::Release))
    }

    async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64> {
        write!(self, tx => reserve::reserve(tx, reserve))
    }
}

#[async_trait]
impl WorkStore for MysqlStore {
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>> {
        read!(self, tx => lane_heads::lanes(tx, kinds, after, limit))
    }

    async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>> {
        read!(self, tx => lane_heads::lane_heads(tx, lanes))
    }

    async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>> {
        write!(self, tx => claim::claim(tx, claim))
    }

    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> StoreResult<LimitedClaimed> {
        write!(self, tx => limits::claim_limited(tx, claim))
    }

    async fn start(&self, holder: HolderId, leases: &[Lease]) -> StoreResult<Vec<bool>> {
        write!(self, tx => held::start(tx, holder, leases))
    }

    async fn checkpoint(
        &self,
        holder: HolderId,
        lease: Lease,
        payload: &[u8],
    ) -> StoreResult<bool> {
        refuse_large(payload, self.shared.payload_bytes_max)?;
        write!(self, tx => held::checkpoint(tx, holder, lease, payload))
    }

    async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        let mut answers = Vec::with_capacity(settlements.len());
        while answers.len() < settlements.len() {
            let rest = &settlements[answers.len()..];
            let share = Share::AsTimeAllows;
            let part = async { write!(self, tx => settle::settle(tx, holder, rest, share)) };
            answers.extend(after_part(part.await, &answers)?);
        }
        Ok(answers)
    }

    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        let mut answers = Vec::with_capacity(leases.len());
        while answers.len() < leases.len() {
            let rest = &leases[answers.len()..];
            let part = async { write!(self, tx => settle::give_back(tx, holder, rest, keep)) };
            answers.extend(after_part(part.await, &answers)?);
        }
        Ok(answers)
    }

    async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>> {
        write!(self, tx => held::extend(tx, holder, extension))
    }

    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>> {
        read!(self, tx => held::held(tx, holder, older_than, after, limit))
    }
}

#[async_trait]
impl LeaseStore for MysqlStore {
    async fn join(&self, holder: &NewHolder) -> StoreResult<Timestamp> {
        write!(self, life, tx => lease::join(tx, holder))
    }

    async fn renew(&self, holder: HolderId) -> StoreResult<Renewed> {
        let before = self.shared.epoch.heartbeat_of(holder);
        let renewed = match write!(self, life, tx => lease::renew(tx, holder))? {
            Beat::Renewed(renewed) => renewed,
            Beat::Dead => return Err(StoreError::HolderDead(holder)),
            Beat::Gone { epoch, now } => {
                // Another node may have noticed before that the data is older than the holder.
                self.shared.observe(epoch);
                let is_restored = before.is_some_and(|before| !before.may_be_pruned(now));
                if is_restored && self.shared.epoch.heartbeat_of(holder).is_some() {
                    self.begin_epoch().await?;
                }
                return Err(StoreError::HolderDead(holder));
            }
        };
        let heartbeat = Heartbeat { renewals: renewed.renewals, at: renewed.at };
        if self.shared.epoch.went_back(holder, before, heartbeat) {
            self.begin_epoch().await?;
        }
        Ok(renewed)
    }

    async fn leave(&self, holder: HolderId) -> StoreResult<()> {
        write!(self, life, tx => lease::leave(tx, holder))
    }

    async fn holders(&self) -> StoreResult<Vec<Holder>> {
        read!(self, tx => lease::holders(tx))
    }

    async fn watched_holders(&self, share: WatchShare) -> StoreResult<Vec<Holder>> {
        read!(self, tx => lease::watched_holders(tx, share))
    }

    async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>> {
        read!(self, tx => lease::holder(tx, id))
    }

    async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry> {
        for _ in 0..lease::LOCK_TRIES {
            // Each try is a transaction of its own: a lock that it did not get may have rolled it back.
            let tried = write!(self, life, tx => lease::expire_holder(tx, by, other, renewals))?;
            match tried {
                Some(done) => return Ok(done),
                None => tokio::time::sleep(lease::LOCK_PAUSE).await,
            }
        }
        let what = "another node is leasing jobs to the holder that is to be expired";
        Err(StoreError::Unavailable(what.into()))
    }

    async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>> {
        let Swept { events, late } = write!(self, tx => sweep::sweep(tx, sweep))?;
        // Claims whose jobs users' transactions ended: the sweep stands, whatever becomes of it.
        let subtract = async { write!(self, tx => claim_ends::subtract(tx)) };
        if let Err(error) = subtract.await {
            tracing::debug!(%error, "ended jobs of users' transactions are still counted as leased");
        }
        // These only make sweeps and claims faster: the sweep stands, whatever becomes of them.
        for claims in late.chunks(CLAIMS_RAISED) {
            let raise = async { write!(self, tx => sweep::raise_overdue(tx, claims)) };
            if let Err(error) = raise.await {
                tracing::debug!(%error, "the next sweep reads the same claims again");
            }
        }
        let mut after = Some((i64::MIN, i64::MIN));
        // For all pages together: the events of the sweep wait for this.
        let mut budget = Budget::quarter_of(self.shared.timeout);
        for _ in 0..ASIDE_ROUNDS_MAX {
            let Some(page) = after else { break };
            if budget.is_spent().await {
                break;
            }
            after = self.set_aside(page, &mut budget).await.unwrap_or_else(|error| {
                tracing::debug!(%error, "failed to move jobs with long leases out of the range that claims read: the next sweep tries again");
                None
            });
        }
        Ok(events)
    }
}

#[async_trait]
impl KindStore for MysqlStore {
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> StoreResult<()> {
        write!(self, tx => kinds::put_kinds(tx, kinds, by))
    }

    async fn kinds(&self) -> StoreResult<Vec<Kind>> {
        read!(self, tx => kinds::kinds(tx))
    }

    async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince> {
        snapshot!(self, tx => kinds::kinds_since(tx, since))
    }

    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        write!(self, tx => kinds::change_kind(tx, kind, change, by))
    }

    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited> {
        write!(self, tx => kinds::edit_kind(tx, edit, by))
    }

    async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>> {
        write!(self, tx => budgets::grant(tx, asks))
    }
}

#[async_trait]
impl OperateStore for MysqlStore {
    async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        let mut answers = Vec::with_capacity(changes.len());
        while answers.len() < changes.len() {
            let rest = &changes[answers.len()..];
            let part = async { write!(self, tx => change::change(tx, rest, by, keep)) };
            answers.extend(after_part(part.await, &answers)?);
        }
        Ok(answers)
    }

    async fn deadlines(&self, grace: Duration, limit: usize) -> StoreResult<Vec<JobEvent>> {
        write!(self, tx => sweep::deadlines(tx, grace, limit))
    }

    async fn release_groups(&self, limit: usize) -> StoreResult<GroupsReleased> {
        let after = self.shared.groups_checked.get();
        // Usually no line needs anything: then nothing is locked.
        let checked = read!(self, tx => groups::check(tx, &after, limit))?;
        self.shared.groups_checked.set(checked.last, checked.count, limit);
        let released = match checked.needy.is_empty() {
            true => 0,
            false => write!(self, tx => groups::release_lines(tx, &checked.needy))?,
        };
        Ok(GroupsReleased { checked: checked.count, released })
    }

    async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>> {
        read!(self, tx => books::unannounced(tx, limit))
    }

    async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()> {
        write!(self, tx => books::announce(tx, dead))
    }

    async fn prune(&self, prune: &Prune) -> StoreResult<Pruned> {
        self.prune_batch(prune).await
    }
}

#[async_trait]
impl ReadStore for MysqlStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        read!(self, tx => std::future::ready(Ok(tx.now)))
    }

    async fn get(&self, job: JobId) -> StoreResult<Option<Job>> {
        snapshot!(self, tx => read::get(tx, job, Payload::Read))
    }

    async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        snapshot!(self, tx => read::find(tx, jobs))
    }

    async fn live(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>> {
        read!(self, tx => read::live(tx, jobs))
    }

    async fn list(&self, filter: &Filter, page: &PageRequest) -> StoreResult<Page<Job>> {
        snapshot!(self, tx => read::list(tx, filter, page))
    }

    async fn count(&self, filter: &Filter, scan_max: usize) -> StoreResult<Count> {
        snapshot!(self, tx => read::count(tx, filter, scan_max))
    }

    async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures> {
        snapshot!(self, tx => failures::failures(tx, scan))
    }

    async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>> {
        snapshot!(self, tx => results::attempts(tx, job))
    }

    async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>> {
        read!(self, tx => results::result(tx, job))
    }

    async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        read!(self, tx => results::ended(tx, jobs))
    }

    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        read!(self, tx => audit::read(tx, job, before, limit))
    }

    async fn tally(&self) -> StoreResult<Vec<Tally>> {
        snapshot!(self, tx => sample::tally(tx))
    }

    async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>> {
        read!(self, tx => groups::stuck_groups(tx, limit))
    }

    async fn limit_waits(&self, limits: &[FleetLimit]) -> StoreResult<Vec<Option<LimitWait>>> {
        read!(self, tx => limits::limit_waits(tx, limits))
    }

    async fn books(&self) -> StoreResult<Books> {
        snapshot!(self, tx => books::books(tx))
    }
}

#[async_trait]
impl Store for MysqlStore {
    async fn risks(&self) -> StoreResult<Vec<Risk>> {
        self.check_risks().await
    }

    async fn unreadable(&self) -> StoreResult<Option<Risk>> {
        read!(self, tx => risks::unreadable(tx))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "mysql",
            durable: true,
            shared: true,
            remote: true,
            wakes: Wakes::Process,
            groups: false,
            payload_bytes_max: self.shared.payload_bytes_max,
        }
    }

    fn watch(&self) -> Box<dyn Watch> {
        self.shared.woken.watch()
    }

    async fn unreported_changes(&self) -> StoreResult<u64> {
        read!(self, tx => lane_heads::unreported(tx))
    }

    async fn close(&self) -> StoreResult<()> {
        self.shared.work.close();
        self.shared.life.close();
        Ok(())
    }
}
