//! The interface that every job store implements.
//!
//! The traits are small and their methods take batches. No method takes the current time as an argument: all times are measured
//! by the clock of the store. Arguments are durations. Results are times of that clock, together with the time left until then. A
//! store is correct if it passes the conformance suite of `rewheel-testkit`.
//!
//! The error of a method says what to do next, see [`StoreError`]. Every method that writes may be repeated when its response was
//! lost, except [`KindStore::grant`].
//!
//! # Cancel safety
//!
//! If the future of a method is dropped, it is unknown whether the method has written. This is the same as after a lost
//! response: the caller may repeat the call.

mod error;
mod clock;
mod insert;
mod reserve;
mod change_report;
mod claim;
mod slots;
mod extend;
mod settle;
mod sweep;
mod watch_share;
mod change;
mod filter;
mod groups_released;
mod group_name;
mod books;
mod sample;
mod history;
mod kinds_since;
mod halving;

pub use self::books::{Books, Prune, Pruned, Tally};
pub use self::change::{Change, ChangeScope, ChangeVerb, Changed, Edit};
pub use self::change_report::StoreChange;
pub use self::claim::{
    Claim, Direct, FleetLimit, LaneHead, Leased, LimitOf, LimitWait, LimitedClaim, LimitedClaimed,
    Visit,
};
pub use self::clock::ClockOffset;
pub use self::error::{BoxError, StoreError};
pub use self::extend::Extension;
pub use self::filter::{
    AttemptRange, AttemptRangeError, Count, Cursor, CursorError, FailureScan, Failures, Filter,
    Page, PageRequest,
};
pub use self::group_name::GroupName;
pub use self::groups_released::GroupsReleased;
pub use self::halving::halving;
pub use self::history::{
    HistoryFold, HistoryPage, HistoryPosition, HistoryRow, HistoryScan, HistoryStore,
};
pub use self::insert::{IfRefused, Insert, Inserted, Refusal, Sent};
pub use self::kinds_since::KindsSince;
pub use self::reserve::Reserve;
pub use self::sample::{Sample, SampleStore, SampleTurn};
pub use self::settle::{AttemptEnd, AttemptRecord, AttemptTiming, Outcome, Settled, Settlement};
pub use self::slots::{FleetSlots, LimitUse};
pub use self::sweep::{DeadLetter, HolderExpiry, Renewed, Sweep, WantedJob, Watched};
pub use self::watch_share::WatchShare;

use crate::audit::{Actor, AuditEntry};
use crate::budget::RetryAsk;
use crate::event::JobEvent;
use crate::id::{HolderId, JobId};
use crate::job::{Job, Lane, Retain};
use crate::job_result::StoredResult;
use crate::kind::{Kind, KindChange, KindChanged, KindEdit, KindEdited, NewKind};
use crate::lease::{Holder, Lease, NewHolder};
use crate::name::KindName;
use crate::timestamp::Timestamp;
use crate::token::{NewToken, Token, TokenId, TokenPut, TokenRevoked};
use async_trait::async_trait;
use std::fmt::Debug;
use std::time::Duration;

/// The result of a store method.
pub type StoreResult<T> = Result<T, StoreError>;

/// Stores new jobs.
#[async_trait]
pub trait SubmitStore: Send + Sync {
    /// Stores new jobs, and returns once they are durable: one result for each, in order. A job that is refused changes nothing.
    async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>>;

    /// Reserves part of a tenant's limit of live jobs. The new reservation replaces the previous reservation of the holder.
    /// Returns the reserved number, see [`Reserve::granted`]. Reservations of dead holders are released. Concurrent requests for
    /// one tenant run one after the other.
    async fn reserve(&self, reserve: &Reserve) -> StoreResult<u64>;
}

/// Leases jobs to holders, and receives the results of attempts.
#[async_trait]
pub trait WorkStore: Send + Sync {
    /// Returns lanes of these kinds that have scheduled jobs, in order, starting after `after`, at most `limit`. The earliest due
    /// time of each lane is a hint: a transaction that commits late may add a job with an earlier due time.
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> StoreResult<Vec<LaneHead>>;

    /// Of the given lanes, returns those that have scheduled jobs, in any order, each with its earliest due time. The cost depends
    /// on the number of lanes given, not on the number of lanes in the store.
    async fn lane_heads(&self, lanes: &[Lane]) -> StoreResult<Vec<LaneHead>>;

    /// Leases jobs that are due within the horizon to a live holder, the earliest due first within a lane. Each job goes to only
    /// one holder, with a larger fence. The cost depends on the visited lanes and the returned jobs. A claim returns no jobs
    /// of a paused or parked kind. Exception: a holder that takes the right to probe a parked kind gets one job.
    async fn claim(&self, claim: &Claim<'_>) -> StoreResult<Vec<Leased>>;

    /// Claims like [`WorkStore::claim`] with horizon zero, and enforces fleet-wide limits.
    ///
    /// For [`concurrency_max`](FleetLimit::concurrency_max), every leased job of the kind or tenant counts: it does not matter
    /// which claim leased the job, and jobs of a dead holder count until they are swept. So a slot becomes free when its job
    /// is settled, given back or taken over, and no slot is ever lost. Claims under the same limit run one after the other.
    ///
    /// With an [`interval`](field@FleetLimit::interval), a claim leases at most one job under that limit, and only if the last
    /// start is at least that long ago by the store's clock. Unused starts do not accumulate: the time between two starts is
    /// never shorter than the interval, even if holders join, die or restart. A changed interval counts from the last start. A
    /// claim that leases no job uses up no start.
    ///
    /// Leases made by [`WorkStore::claim`] and by [`Direct`] inserts count but are not checked: a kind with a limit is claimed
    /// only by this method.
    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> StoreResult<LimitedClaimed>;

    /// Records that these jobs start now. If such a job is then taken over, the takeover counts towards `takeovers_max`. Engines
    /// call this only for jobs that were taken over before. Returns for each job whether the holder still has it.
    async fn start(&self, holder: HolderId, leases: &[Lease]) -> StoreResult<Vec<bool>>;

    /// Replaces the payload of a job that the holder has: the next attempt gets the new payload, on any holder. The key still
    /// refers to the submitted payload. Returns whether the holder still has the job.
    async fn checkpoint(&self, holder: HolderId, lease: Lease, payload: &[u8])
    -> StoreResult<bool>;

    /// Writes the results of attempts. Each result is written in one transaction with its attempt record. Returns one result for
    /// each, in order. If a user requested a pause or cancel during the attempt, applies it, see [`Decision::state`]. A write is
    /// guarded by (job, holder, fence): a dead holder may still settle jobs that have not been swept yet, but it cannot keep a job
    /// for a sticky retry.
    ///
    /// [`Decision::state`]: crate::Decision::state
    async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>>;

    /// Gives back jobs that were not started: the due time stays the same, and no attempt is used. If a user requested a
    /// pause or cancel of a leased job, applies it. Returns one result for each, in order.
    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>>;

    /// Gives a running attempt more time before it is overdue. The fence stays the same. Returns when the attempt is overdue now;
    /// `None` if the holder no longer has the job.
    async fn extend(
        &self,
        holder: HolderId,
        extension: &Extension,
    ) -> StoreResult<Option<Timestamp>>;

    /// Returns the jobs that the holder has, ordered by job, starting after `after`, at most `limit`. Leaves out leases younger
    /// than `older_than`, whose claim may still be in progress. If `older_than` is zero, it leaves out no lease, even if the
    /// clock was set back.
    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<Lease>>;
}

/// Registers holders, renews leases and expires dead holders.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Registers a holder. Repeating it changes nothing.
    async fn join(&self, holder: &NewHolder) -> StoreResult<Timestamp>;

    /// Renews a holder's lease, and returns what users requested for its jobs. Writes one row, independent of the number of jobs of the holder.
    async fn renew(&self, holder: HolderId) -> StoreResult<Renewed>;

    /// Deregisters a holder. Other holders sweep the jobs that it still has. Repeating it changes nothing.
    async fn leave(&self, holder: HolderId) -> StoreResult<()>;

    /// Returns every holder that is alive or died recently.
    async fn holders(&self) -> StoreResult<Vec<Holder>>;

    /// Returns all living engines, and the living workers of one share. A fleet can have many more workers than engines, so an engine
    /// reads only its share of the workers with each heartbeat. Each worker is in the shares of two engines.
    async fn watched_holders(&self, share: WatchShare) -> StoreResult<Vec<Holder>>;

    /// Returns one holder, if it is alive or died recently.
    async fn holder(&self, id: HolderId) -> StoreResult<Option<Holder>>;

    /// Marks another holder as dead, if its lease has expired and it has not renewed the lease since `renewals` was read.
    /// [`ExpiryWatch`](crate::ExpiryWatch) decides which holders may be expired.
    async fn expire_holder(
        &self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
    ) -> StoreResult<HolderExpiry>;

    /// Frees jobs whose holder is dead or unknown, and overdue jobs; at most `limit`. [`Watched`] tells the store for how long
    /// the sweeping holder has observed the clock, see there. Due times and attempts stay unchanged. If a user requested a
    /// pause or cancel of a leased job, applies it. A job with as many counted takeovers as its kind allows becomes a dead
    /// letter.
    async fn sweep(&self, sweep: &Sweep) -> StoreResult<Vec<JobEvent>>;
}

/// Stores kinds and their settings.
#[async_trait]
pub trait KindStore: Send + Sync {
    /// Writes settings; creates kinds that are new. Does not change whether a kind is paused or parked.
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> StoreResult<()>;

    /// Returns every kind, ordered by name.
    async fn kinds(&self) -> StoreResult<Vec<Kind>>;

    /// Returns the kinds that changed since an earlier read, which returned `since`; all of them for zero, and after a kind was
    /// deleted. A change that commits late is not missed. The cost depends on the number of changed kinds only.
    async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince>;

    /// Pauses, resumes, parks, unparks or probes a kind.
    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged>;

    /// Writes, changes or deletes a kind for a user, with an audit log entry. Compares the version in the same transaction.
    /// Deletes a kind only if it has no job that is scheduled, leased, paused or dead; its retry budget is deleted with it.
    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited>;

    /// Adds to the retry budgets of these kinds what the attempts of a holder have earned, and grants the retries that the
    /// holder wants, limited by the balance: see [`RetryPool::grant`]. Returns the number of granted retries for each kind, in
    /// order; each kind may appear once. Do not repeat the call when its response was lost, because the attempts would
    /// then count twice. The lost grant only means fewer retries.
    ///
    /// [`RetryPool::grant`]: crate::RetryPool::grant
    async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>>;
}

/// Stores API tokens.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Stores a token, with an audit log entry. Deletes tokens that ended long ago, see
    /// [`Token::is_forgotten`].
    async fn put_token(&self, token: &NewToken, by: &Actor) -> StoreResult<TokenPut>;

    /// Returns every token, ordered by name, including ended ones.
    async fn tokens(&self) -> StoreResult<Vec<Token>>;

    /// Revokes a token, with an audit log entry. The token is never valid again.
    async fn revoke_token(&self, id: TokenId, by: &Actor) -> StoreResult<TokenRevoked>;
}

/// Changes jobs for users, and does periodic maintenance.
#[async_trait]
pub trait OperateStore: Send + Sync {
    /// Changes jobs for a user, with an audit log entry for each job that was changed or has a requested change. Returns one
    /// result for each, in order. Repeating a change has no effect. [`ChangeVerb::leads_to`] defines the effect of each change in each
    /// state.
    async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>>;

    /// Ends live jobs whose deadline has passed, in any live state, at most `limit`. A leased job ends only after the
    /// additional time `grace`, so that its holder can still settle a result that was in time.
    async fn deadlines(&self, grace: Duration, limit: usize) -> StoreResult<Vec<JobEvent>>;

    /// Releases the first job of groups that have waiting jobs and no job that may run. Other methods release jobs themselves, in most
    /// cases in the transaction that ends the job before. This method finds what they missed: a process died in between, two transactions
    /// did not see each other, a user's transaction submitted a job, or the setting [`OnDead`](crate::OnDead) changed. It also repairs a
    /// group whose first job was removed by a release that knows no groups. Checks at most `limit` groups with unfinished jobs that are no
    /// dead letters, and continues with the next ones at the next call: fewer than `limit` mean that it has come to the end. Returns how
    /// many groups it checked and how many jobs it released.
    async fn release_groups(&self, limit: usize) -> StoreResult<GroupsReleased>;

    /// Returns dead letters that have not been announced, the oldest first.
    async fn unannounced(&self, limit: usize) -> StoreResult<Vec<DeadLetter>>;

    /// Marks these dead letters as announced.
    async fn announce(&self, dead: &[DeadLetter]) -> StoreResult<()>;

    /// Deletes expired data, at most as much as requested. If all numbers in the result are zero, nothing is left to delete now. A store
    /// that keeps many ended jobs may delete them later, all at once: by at most a fifth of their retention or a minute.
    async fn prune(&self, prune: &Prune) -> StoreResult<Pruned>;
}

/// Reads jobs and statistics, without blocking the processing of jobs.
#[async_trait]
pub trait ReadStore: Send + Sync {
    /// Returns the store's time.
    async fn now(&self) -> StoreResult<Timestamp>;

    /// Returns one job, with its payload.
    async fn get(&self, job: JobId) -> StoreResult<Option<Job>>;

    /// Of the given jobs, returns those that exist, in any state, without payloads, each once, in any order. Uses a few
    /// statements per batch.
    async fn find(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>>;

    /// Of the given jobs, returns those that are live (scheduled, leased or paused), without payloads, each once, in any
    /// order. Uses one statement per batch.
    async fn live(&self, jobs: &[JobId]) -> StoreResult<Vec<Job>>;

    /// Returns jobs that match the filter, the newest id first, without payloads. A page may have fewer jobs than the limit and
    /// still have a next page. Its cursor does not contain the id of a job that the filter excludes.
    async fn list(&self, filter: &Filter, page: &PageRequest) -> StoreResult<Page<Job>>;

    /// Counts jobs that match the filter, scanning at most `scan_max` of them.
    async fn count(&self, filter: &Filter, scan_max: usize) -> StoreResult<Count>;

    /// Returns live jobs and dead letters whose latest attempt failed, the newest of each. Reads a bounded number of rows, and
    /// only the columns that describe the failure.
    async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures>;

    /// Returns the settled attempts of a job, in the order they were settled. Of the failed ones, the first
    /// [`Limits::ATTEMPTS_FIRST_KEPT`](crate::Limits::ATTEMPTS_FIRST_KEPT) and the last
    /// [`Limits::ATTEMPTS_LAST_KEPT`](crate::Limits::ATTEMPTS_LAST_KEPT): stores keep no more than those. An attempt that
    /// succeeded is the last one, as long as the job is kept.
    async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>>;

    /// Returns what is known of the result of a job; `None` if it has none.
    async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>>;

    /// Returns those of these jobs that are no longer live: they have ended, or do not exist. Uses one statement per batch that
    /// reads no row of a job, so that an engine can ask often for the jobs that its clients wait for.
    async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>>;

    /// Returns the audit log of one job or of all jobs, the latest entry first, starting before `before`.
    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>>;

    /// Counts the jobs of each kind by state, and finds the earliest due time of the scheduled ones.
    async fn tally(&self) -> StoreResult<Vec<Tally>>;

    /// Returns groups that have waiting jobs and no job that may run, at most `limit`, always in the same order. There may be some for a
    /// moment, also on a healthy store: a group is stuck only if [`OperateStore::release_groups`] does not release its first job.
    async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>>;

    /// Returns why jobs under these limits would wait now, one result for each, in order; the same as
    /// [`WorkStore::claim_limited`] returns for lanes that have jobs. Takes no slot and waits for no lock.
    async fn limit_waits(&self, limits: &[FleetLimit]) -> StoreResult<Vec<Option<LimitWait>>>;

    /// Reads the job accounting in one snapshot.
    async fn books(&self) -> StoreResult<Books>;
}

/// A job store: all traits above, and its capabilities.
#[async_trait]
pub trait Store:
    SubmitStore
    + WorkStore
    + LeaseStore
    + KindStore
    + TokenStore
    + OperateStore
    + ReadStore
    + SampleStore
    + HistoryStore
    + Debug
{
    /// Returns the capabilities of the store.
    fn capabilities(&self) -> Capabilities;

    /// Returns the risks: settings of the store, its server or its file that weaken its guarantees. An empty list is good.
    async fn risks(&self) -> StoreResult<Vec<Risk>>;

    /// Returns whether jobs are paused because their rows cannot be read. This is also one of the risks, but this check is cheap, so callers can repeat it often.
    async fn unreadable(&self) -> StoreResult<Option<Risk>>;

    /// Returns a watch that reports changes from now on.
    fn watch(&self) -> Box<dyn Watch>;

    /// Returns a number that changes if another process may have changed jobs without a report to watchers in this process; any lane may
    /// then have changed. A caller that first reads this number and then lists the lanes misses no committed job. Jobs that users submit
    /// by SQL do not have to change the number.
    async fn unreported_changes(&self) -> StoreResult<u64>;

    /// Finishes pending work and closes files or connections. Later calls return [`StoreError::Closed`].
    async fn close(&self) -> StoreResult<()>;
}

/// Waits for a change in the store, to act before the next poll.
#[async_trait]
pub trait Watch: Send {
    /// Returns when a job may have become claimable, when a kind was changed, or when a user requested a pause or cancel of a
    /// leased job. The method may return once for several changes, and may return without a change. Never returns if the
    /// store cannot report changes, see [`Capabilities::wakes`]. If the wait is dropped, no report is lost.
    async fn changed(&mut self) -> StoreChange;
}

/// Capabilities of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Name of the store: `memory`, `sqlite`, …
    pub name: &'static str,
    /// Whether acknowledged data outlives the process.
    pub durable: bool,
    /// Whether several processes may share the store.
    pub shared: bool,
    /// Whether these processes may run on several machines.
    pub remote: bool,
    /// Which watchers are notified of a change.
    pub wakes: Wakes,
    /// Whether the store groups concurrent requests into one commit. If not, the caller has to group them.
    pub groups: bool,
    /// The largest payload that it accepts.
    pub payload_bytes_max: usize,
}

/// A setting that weakens a guarantee of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Risk {
    /// The setting: `synchronous`, `fsync`, …
    pub name: &'static str,
    /// What may be lost, and what to do.
    pub message: String,
}

/// Which watchers are notified of a change at once; all others find it at their next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// None.
    None,
    /// Watchers in the process that made the change.
    Process,
    /// Watchers in every process.
    Fleet,
}
