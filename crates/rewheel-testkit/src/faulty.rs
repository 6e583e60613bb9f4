//! A store wrapper that injects failures.

mod forward;

use rewheel_core::JobId;
use rewheel_core::store::{Store, StoreError, StoreResult};
use std::collections::{HashMap, HashSet, VecDeque};
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

/// Forwards every verb to another store, except for calls that it was told to fail.
///
/// A store may lose a call before it was received, lose the response after the work was done, or
/// never respond. Callers must handle all three with the same few steps: wait, repeat, read what
/// they hold.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    withheld: AtomicU64,
    /// How often a silent store was asked for changes.
    unheard: AtomicU64,
    weather: Option<Box<FaultPlan>>,
    is_silent: bool,
}

/// Delays a call, and decides whether it fails.
pub type FaultPlan =
    dyn Fn(Verb) -> Pin<Box<dyn Future<Output = Option<Fault>> + Send>> + Send + Sync;

impl std::fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Plan {
    next: HashMap<Verb, VecDeque<Fault>>,
    bad: HashSet<JobId>,
    bad_once: HashSet<JobId>,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done: [`StoreError::Unavailable`].
    Before,
    /// The work is done, then the response is lost: [`StoreError::Ambiguous`].
    After,
    /// The work is done, and the response never arrives: the caller eventually drops the future.
    NoAnswer,
}

impl Fault {
    /// Every way to fail.
    pub const ALL: [Fault; 3] = [Fault::Before, Fault::After, Fault::NoAnswer];

    /// Returns whether the call did its work.
    pub const fn is_done(self) -> bool {
        match self {
            Fault::Before => false,
            Fault::After | Fault::NoAnswer => true,
        }
    }
}

/// A method of one of the store traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each has the name of its method")]
pub enum Verb {
    Insert,
    Reserve,
    Lanes,
    LaneHeads,
    UnreportedChanges,
    Claim,
    ClaimLimited,
    Start,
    Checkpoint,
    Settle,
    GiveBack,
    Extend,
    Held,
    Join,
    Renew,
    Leave,
    Holders,
    WatchedHolders,
    Holder,
    ExpireHolder,
    Sweep,
    PutKinds,
    Kinds,
    KindsSince,
    ChangeKind,
    EditKind,
    Grant,
    PutToken,
    Tokens,
    RevokeToken,
    Change,
    Deadlines,
    ReleaseGroups,
    Unannounced,
    Announce,
    Prune,
    Now,
    Get,
    Find,
    Live,
    List,
    Count,
    Failures,
    Attempts,
    Result,
    Ended,
    Audit,
    Tally,
    StuckGroups,
    LimitWaits,
    Books,
    SampleNow,
    Sample,
    TakeSample,
    ReportHistory,
    History,
    FoldHistory,
}

impl FaultyStore {
    /// Forwards everything to `inner`, until told otherwise.
    pub fn new(inner: Arc<dyn Store>) -> FaultyStore {
        FaultyStore {
            inner,
            plan: Mutex::default(),
            withheld: AtomicU64::new(0),
            unheard: AtomicU64::new(0),
            weather: None,
            is_silent: false,
        }
    }

    /// Passes every call through a function first, which may delay it or make it fail.
    pub fn with_faults(
        inner: Arc<dyn Store>,
        weather: impl Fn(Verb) -> Pin<Box<dyn Future<Output = Option<Fault>> + Send>>
        + Send
        + Sync
        + 'static,
    ) -> FaultyStore {
        FaultyStore { weather: Some(Box::new(weather)), ..FaultyStore::new(inner) }
    }

    /// Disables notifications of changes, as behind a pooler: changes are found by polling.
    #[must_use]
    pub fn silent(mut self) -> FaultyStore {
        self.is_silent = true;
        self
    }

    /// Makes the next call of a verb fail. Several calls of this method make several calls fail.
    pub fn fail_next(&self, verb: Verb, fault: Fault) {
        self.plan.lock().unwrap().next.entry(verb).or_default().push_back(fault);
    }

    /// Rejects every batch that contains this job, like a store that cannot write one of its rows:
    /// [`StoreError::Rejected`], and nothing is done.
    pub fn fail_batches_with(&self, job: JobId) {
        self.plan.lock().unwrap().bad.insert(job);
    }

    /// Rejects only the next batch that contains this job.
    pub fn refuse_next(&self, job: JobId) {
        self.plan.lock().unwrap().bad_once.insert(job);
    }

    /// Waits for a call as a caller with a timeout does: returns `None` and drops the call once it
    /// is known that its response never arrives.
    pub async fn patiently<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        let before = self.withheld.load(Ordering::SeqCst);
        let mut call = pin!(call);
        poll_fn(|cx| match call.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if self.withheld.load(Ordering::SeqCst) > before => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Makes a call, or lets it fail.
    async fn through<T>(
        &self,
        verb: Verb,
        call: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let told = self.plan.lock().unwrap().next.get_mut(&verb).and_then(VecDeque::pop_front);
        let fault = match (told, &self.weather) {
            (None, Some(weather)) => weather(verb).await,
            (told, _) => told,
        };
        match fault {
            None => call.await,
            Some(Fault::Before) => {
                Err(StoreError::Unavailable(format!("{verb:?} was to fail before").into()))
            }
            Some(Fault::After) => {
                call.await?;
                Err(StoreError::Ambiguous(format!("{verb:?} was to fail after").into()))
            }
            Some(Fault::NoAnswer) => {
                call.await?;
                self.withheld.fetch_add(1, Ordering::SeqCst);
                pending().await
            }
        }
    }

    /// Rejects a batch with a bad job.
    fn check(&self, mut jobs: impl Iterator<Item = JobId>) -> StoreResult<()> {
        let mut plan = self.plan.lock().unwrap();
        match jobs.find(|job| plan.bad.contains(job) || plan.bad_once.remove(job)) {
            None => Ok(()),
            Some(job) => Err(StoreError::Rejected(format!("{job} cannot be written").into())),
        }
    }
}
