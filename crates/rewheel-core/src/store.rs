//! The interface that every job store implements.
//!
//! The traits are small and their verbs take batches. No verb takes the time: a store has a clock
//! of its own, the only one that all holders agree on; verbs take durations, and answer with
//! instants of that clock and with what is left until them. A store is whatever passes the
//! conformance suite of `rewheel-testkit`.
//!
//! A verb that fails says what to do next, see [`StoreError`]. Every verb that writes may be
//! repeated when its answer was lost, [`KindStore::grant`] excepted.
//!
//! # Cancel safety
//!
//! A future of a verb that is dropped may or may not have written: the caller then knows as much as
//! after a lost answer, and may repeat it.

mod error;
mod clock;
mod insert;
mod reserve;
mod claim;
mod slots;
mod extend;
mod settle;
mod sweep;
mod change;
mod filter;
mod books;
mod sample;
mod kinds_since;
mod halving;

pub use self::books::{Books, Prune, Pruned, Tally};
pub use self::change::{Change, Changed, Edit, What};
pub use self::claim::{
    Claim, Direct, FleetLimit, LaneHead, Leased, LimitOf, LimitWait, LimitedClaim, LimitedClaimed,
    Visit,
};
pub use self::clock::ClockOffset;
pub use self::error::{BoxError, StoreError};
pub use self::extend::Extension;
pub use self::filter::{
    Count, Cursor, CursorError, FailureScan, Failures, Filter, Page, PageRequest,
};
pub use self::halving::halving;
pub use self::insert::{IfRefused, Insert, Inserted, Refusal, Sent};
pub use self::kinds_since::KindsSince;
pub use self::reserve::Reserve;
pub use self::sample::{Sample, SampleStore, SampleTurn};
pub use self::settle::{AttemptRecord, Outcome, Ran, Settled, Settlement};
pub use self::slots::{FleetSlots, LimitUse};
pub use self::sweep::{Burial, DeadLetter, Renewed, Sweep, WantedJob, Watched};

use crate::audit::{Actor, AuditEntry};
use crate::budget::RetryAsk;
use crate::event::JobEvent;
use crate::id::{HolderId, JobId};
use crate::job::{Job, Keep, Lane};
use crate::kind::{Kind, KindChange, KindChanged, KindEdit, KindEdited, NewKind};
use crate::lease::{Holder, Lease, NewHolder};
use crate::name::KindName;
use crate::timestamp::Timestamp;
use crate::token::{NewToken, Token, TokenId, TokenPut, TokenRevoked};
use async_trait::async_trait;
use std::fmt::Debug;
use std::time::Duration;

/// What a verb answers.
pub type Answer<T> = Result<T, StoreError>;

/// Takes jobs in.
#[async_trait]
pub trait SubmitStore: Send + Sync {
    /// Stores new jobs, and answers once they are durable: one answer for each, in order. A job
    /// that is refused changes nothing.
    async fn insert(&self, insert: &Insert<'_>) -> Answer<Vec<Inserted>>;

    /// Sets room aside among the live jobs that a tenant may have, in place of what the holder had
    /// set aside before. Returns how much, see [`Reserve::granted`]. What the dead had set aside is
    /// free. Two who ask for one tenant at once are served one after the other.
    async fn reserve(&self, reserve: &Reserve) -> Answer<u64>;
}

/// Hands jobs out, and takes back what became of them.
#[async_trait]
pub trait WorkStore: Send + Sync {
    /// Returns lanes of these kinds that have scheduled jobs, in their order from the one behind
    /// `after` on, at most `limit`. The earliest due of each is a hint: a transaction that
    /// commits late may bring an earlier one.
    async fn lanes(
        &self,
        kinds: &[KindName],
        after: Option<&Lane>,
        limit: usize,
    ) -> Answer<Vec<LaneHead>>;

    /// Leases jobs that are due within the horizon to a live holder, within a lane those due first.
    /// Each goes to one holder only, with a larger fence. Costs as much as the lanes visited and
    /// the jobs returned. A kind that is paused or parked gives nothing; its prober gets one job
    /// for each time that it won the right to probe.
    async fn claim(&self, claim: &Claim<'_>) -> Answer<Vec<Leased>>;

    /// Claims as [`WorkStore::claim`] does with horizon zero, and keeps limits that hold for the whole fleet.
    ///
    /// A lease is what counts against [`concurrency_max`](FleetLimit::concurrency_max): every leased job of the kind or tenant
    /// counts, whatever claim leased it, also of a dead holder until it is swept. So a slot is free again when its job is
    /// settled, given back or taken over, and none is ever lost. Limited claims of one limit are served one after the other.
    ///
    /// With an [`interval`](field@FleetLimit::interval) a claim leases at most one job under that limit, and only if the last start is
    /// so long ago by the store's clock. Time without starts does not add up: no two starts are closer than the interval,
    /// whatever holders join, die or restart. A changed interval counts from the last start. A claim that leases nothing
    /// takes nothing.
    ///
    /// Leases made by [`WorkStore::claim`] and by [`Direct`] inserts count, but do not ask: a kind with a limit is claimed by this
    /// verb only.
    async fn claim_limited(&self, claim: &LimitedClaim<'_>) -> Answer<LimitedClaimed>;

    /// Records that these jobs start now: a takeover counts against them from here on. Meant for
    /// suspects only. Answers for each whether the holder still has it.
    async fn start(&self, holder: HolderId, leases: &[Lease]) -> Answer<Vec<bool>>;

    /// Replaces the payload of a job that the holder has: the next attempt goes on from there, whoever
    /// makes it. The key remembers the payload that was submitted. Answers whether the holder still
    /// has the job.
    async fn checkpoint(&self, holder: HolderId, lease: Lease, payload: &[u8]) -> Answer<bool>;

    /// Writes what became of attempts, each item with its record or not at all. One answer for
    /// each, in order. What a person wanted meanwhile is obeyed, see [`Decision::state`]. The
    /// guard is (job, holder, fence): a holder that died may still settle what nobody has swept
    /// yet, but its sticky retries are let go.
    ///
    /// [`Decision::state`]: crate::Decision::state
    async fn settle(&self, holder: HolderId, settlements: &[Settlement]) -> Answer<Vec<Settled>>;

    /// Returns jobs that were not started: due unchanged, no attempt used. What a person wanted
    /// meanwhile is obeyed. One answer for each, in order.
    async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Keep,
    ) -> Answer<Vec<Settled>>;

    /// Gives a running attempt more time before it is overdue. The fence stays the same. Answers when the attempt is overdue
    /// now; `None` if the holder does not have the job any more.
    async fn extend(&self, holder: HolderId, extension: &Extension) -> Answer<Option<Timestamp>>;

    /// Returns what the holder has, by job from the one behind `after` on, at most `limit`. Leases
    /// younger than `older_than` are left out: their claim may still be on its way. With zero none is, also where the clock was
    /// set back since.
    async fn held(
        &self,
        holder: HolderId,
        older_than: Duration,
        after: Option<JobId>,
        limit: usize,
    ) -> Answer<Vec<Lease>>;
}

/// Knows who is alive.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Brings a holder to life. Repeating it changes nothing.
    async fn join(&self, holder: &NewHolder) -> Answer<Timestamp>;

    /// Keeps a holder alive, and tells what people want of its jobs. Writes one row, however many
    /// jobs it holds.
    async fn renew(&self, holder: HolderId) -> Answer<Renewed>;

    /// Ends a holder's life. What it still has is swept by others. Repeating it changes nothing.
    async fn leave(&self, holder: HolderId) -> Answer<()>;

    /// Returns every holder that lives or died of late.
    async fn holders(&self) -> Answer<Vec<Holder>>;

    /// Returns one holder, if it lives or died recently.
    async fn holder(&self, id: HolderId) -> Answer<Option<Holder>>;

    /// Ends the life of another holder, provided that its lease has run out and that it has not
    /// renewed since its `renewals` were seen. Who may be buried is for [`Vigil`](crate::Vigil) to
    /// say.
    async fn bury(&self, by: HolderId, other: HolderId, renewals: u64) -> Answer<Burial>;

    /// Frees jobs whose holder is not alive, known or unknown, and jobs that are overdue as far as
    /// the sweeper [`Watched`] the clock: at most `limit`. Due and attempts stay as they are. What a person wanted meanwhile is obeyed; a job
    /// whose recorded starts ended in as many takeovers as its kind allows becomes a dead letter.
    async fn sweep(&self, sweep: &Sweep) -> Answer<Vec<JobEvent>>;
}

/// Knows the kinds.
#[async_trait]
pub trait KindStore: Send + Sync {
    /// Writes settings; a kind that is new begins to exist. Pause and park are left as they are.
    async fn put_kinds(&self, kinds: &[NewKind], by: &Actor) -> Answer<()>;

    /// Returns every kind, by name.
    async fn kinds(&self) -> Answer<Vec<Kind>>;

    /// Returns the kinds that changed since an earlier reading, which said `since`; all of them for zero, and after a kind was
    /// deleted. Misses no change that commits late. Costs as much as the changed kinds, however many there are.
    async fn kinds_since(&self, since: u64) -> Answer<KindsSince>;

    /// Pauses, parks or probes a kind.
    async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> Answer<KindChanged>;

    /// Writes, changes or deletes a kind on behalf of a person, with an entry in the audit log. The version is compared in the
    /// same transaction. A kind is deleted only while it has no job that is scheduled, leased, paused or dead; its retry
    /// budget goes with it.
    async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> Answer<KindEdited>;

    /// Takes in what a holder's attempts have earned for retries of these kinds, and hands out what it
    /// wants as far as there is so much: see [`RetryPool::grant`]. Answers how many retries of each are
    /// granted, in order; each kind is asked for once. Not to be repeated when its answer was lost,
    /// which would earn twice: what was said is forgotten, and less is granted, never more.
    ///
    /// [`RetryPool::grant`]: crate::RetryPool::grant
    async fn grant(&self, asks: &[RetryAsk]) -> Answer<Vec<u32>>;
}

/// Knows who may do what over the wire.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Stores a token, with an entry in the audit log. Forgets those that ended long ago, see
    /// [`Limits::ENDED_TOKENS_KEPT`](crate::Limits::ENDED_TOKENS_KEPT).
    async fn put_token(&self, token: &NewToken, by: &Actor) -> Answer<TokenPut>;

    /// Returns every token, by name, those that ended included.
    async fn tokens(&self) -> Answer<Vec<Token>>;

    /// Takes a token back, with an entry in the audit log. It is never of use again.
    async fn revoke_token(&self, id: TokenId, by: &Actor) -> Answer<TokenRevoked>;
}

/// Does what people and time ask for.
#[async_trait]
pub trait OperateStore: Send + Sync {
    /// Changes jobs on behalf of a person, with an entry in the audit log for each that was changed
    /// or wanted. One answer for each, in order. Doing again what is done already changes nothing.
    /// What each does to a job in which state is said by [`What::leads_to`].
    async fn change(&self, changes: &[Change], by: &Actor, keep: Keep) -> Answer<Vec<Changed>>;

    /// Ends live jobs whose deadline has passed, at most `limit`, whatever they are doing. Those
    /// that a holder has get `grace` to be settled with what they did in time.
    async fn deadlines(&self, grace: Duration, limit: usize) -> Answer<Vec<JobEvent>>;

    /// Returns dead letters that nobody has been told of, the oldest first.
    async fn unannounced(&self, limit: usize) -> Answer<Vec<DeadLetter>>;

    /// Notes that somebody was told of these dead letters.
    async fn announce(&self, dead: &[DeadLetter]) -> Answer<()>;

    /// Deletes what need not be kept any longer, at most as much as asked. Zero of everything means
    /// that nothing is left to do.
    async fn prune(&self, prune: &Prune) -> Answer<Pruned>;
}

/// Answers questions, without disturbing the work.
#[async_trait]
pub trait ReadStore: Send + Sync {
    /// Returns the store's time.
    async fn now(&self) -> Answer<Timestamp>;

    /// Returns one job, with its payload.
    async fn get(&self, job: JobId) -> Answer<Option<Job>>;

    /// Returns those of these jobs that exist, in whatever state, without payloads, each once, in any order: a few statements
    /// for a batch.
    async fn find(&self, jobs: &[JobId]) -> Answer<Vec<Job>>;

    /// Returns those of these jobs that are live (scheduled, leased or paused), without payloads, each once, in any order: one statement
    /// for a batch.
    async fn live(&self, jobs: &[JobId]) -> Answer<Vec<Job>>;

    /// Returns jobs that the filter lets through, the newest id first, without payloads. A page may
    /// be short and still have a next one. Its cursor names no job that the filter keeps back.
    async fn list(&self, filter: &Filter, page: &PageRequest) -> Answer<Page<Job>>;

    /// Counts jobs that the filter lets through, looking at no more than `scan_max` of them.
    async fn count(&self, filter: &Filter, scan_max: usize) -> Answer<Count>;

    /// Returns live jobs and dead letters whose latest attempt failed, the newest of each. Reads a bounded number of rows,
    /// and of each only what tells one failure from another.
    async fn failures(&self, scan: &FailureScan) -> Answer<Failures>;

    /// Returns the failed attempts of a job, in the order they were settled: the first
    /// [`Limits::ATTEMPTS_FIRST_KEPT`](crate::Limits::ATTEMPTS_FIRST_KEPT) and the last
    /// [`Limits::ATTEMPTS_LAST_KEPT`](crate::Limits::ATTEMPTS_LAST_KEPT). Stores keep no more than those.
    async fn attempts(&self, job: JobId) -> Answer<Vec<AttemptRecord>>;

    /// Returns the audit log, the latest first, of one job or of all, from before `before` on.
    async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<Vec<AuditEntry>>;

    /// Counts the jobs of each kind by state, and finds the earliest due of those scheduled.
    async fn tally(&self) -> Answer<Vec<Tally>>;

    /// Returns why jobs under these limits would wait now, one answer for each, in order: what
    /// [`WorkStore::claim_limited`] answers for lanes that have jobs. Takes nothing and waits for no lock.
    async fn limit_waits(&self, limits: &[FleetLimit]) -> Answer<Vec<Option<LimitWait>>>;

    /// Reads the books in one snapshot.
    async fn books(&self) -> Answer<Books>;
}

/// A place that keeps jobs: every trait above, and what it can do.
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
    + Debug
{
    /// Returns what it can do.
    fn capabilities(&self) -> Capabilities;

    /// Returns what makes its promises weaker than they should be: settings of its own, of its server or of its file. None is
    /// what a doctor wants to hear.
    async fn risks(&self) -> Answer<Vec<Risk>>;

    /// Returns whether jobs are paused because their rows cannot be read. One of the risks, cheap enough to be asked for often.
    async fn unreadable(&self) -> Answer<Option<Risk>>;

    /// Returns something that waits for changes from now on.
    fn watch(&self) -> Box<dyn Watch>;

    /// Finishes what was begun and lets go of the files or connections. Verbs that come later
    /// answer [`StoreError::Closed`].
    async fn close(&self) -> Answer<()>;
}

/// Waits for a reason to look into the store before the next poll is due.
#[async_trait]
pub trait Watch: Send {
    /// Returns once a job may have become claimable, a kind was changed or something is wanted of
    /// a holder. Several reasons may be answered by one return, and a return may be for nothing.
    /// Never returns where the store cannot tell, see [`Capabilities::wakes`].
    async fn changed(&mut self);
}

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What it is called: `memory`, `sqlite`, …
    pub name: &'static str,
    /// Whether what it acknowledged outlives its process.
    pub durable: bool,
    /// Whether several processes may share it.
    pub shared: bool,
    /// Whether these may be on several machines.
    pub remote: bool,
    /// Who hears of a change.
    pub wakes: Wakes,
    /// Whether it makes one commit of what is asked of it at the same time; otherwise whoever uses it gathers.
    pub groups: bool,
    /// The longest payload it takes.
    pub payload_bytes_max: usize,
}

/// Something that makes a promise weaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Risk {
    /// The setting: `synchronous`, `fsync`, …
    pub name: &'static str,
    /// What may be lost by it, and what to do.
    pub message: String,
}

/// Who hears of a change at once; all others find it at their next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// Nobody.
    Nobody,
    /// Watchers in the process that made it.
    Process,
    /// Watchers in every process.
    Fleet,
}
