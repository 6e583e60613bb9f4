//! What the loops of one engine share.

use crate::calls::Calls;
use crate::notify::Desk;
use crate::runner::Runner;
use crate::settings::{EngineSettings, KindSettings};
use crate::submit::IdTime;
use rewheel::{CancelToken, Clock, Moment, Random};
use rewheel_core::store::{Settled, Store};
use rewheel_core::{
    Fence, HolderId, Job, JobId, Keep, Kind, KindName, Lease, Policy, Timestamp, Wanted,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

/// Suspects that run at the same time. One that must run alone takes the room of all.
const SUSPECTS_MAX: u32 = 1_000;

/// Asked for kinds that have no handler.
pub(crate) type RunnerSource =
    dyn Fn(&KindName, &KindSettings) -> Option<Arc<dyn Runner>> + Send + Sync;

/// One engine, seen from its loops.
pub(crate) struct Shared {
    /// Answers within the statement timeout, see [`GuardedStore`](crate::guard::GuardedStore).
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: EngineSettings,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    id_time: IdTime,
    self_audit: bool,
    /// Handlers of this program; they outlast every change of settings.
    pub(crate) handlers: BTreeMap<KindName, Arc<dyn Runner>>,
    pub(crate) source: Option<Box<RunnerSource>>,
    pub(crate) kinds: RwLock<BTreeMap<KindName, Arc<KindEntry>>>,
    pub(crate) places: Arc<Semaphore>,
    /// Suspects run together, or one alone.
    suspects: Arc<Semaphore>,
    pub(crate) to_dispatch: mpsc::UnboundedSender<Command>,
    pub(crate) to_settle: mpsc::UnboundedSender<Finished>,
    /// Wakes the claim loop: there is room, or there may be work.
    pub(crate) look: Notify,
    /// Wakes the housekeeping: somebody died.
    pub(crate) sweep: Notify,
    pub(crate) calls: Calls,
    /// Not there without notifiers.
    pub(crate) desk: Option<Arc<Desk>>,
    holder: Mutex<HolderId>,
    held: Mutex<BTreeMap<JobId, Held>>,
    /// Jobs that are due and wait for a place.
    pub(crate) ready: AtomicUsize,
    /// Jobs that wait in the wheel.
    pub(crate) waiting: AtomicUsize,
    given_back: AtomicUsize,
    ticks: AtomicU64,
    stopping: AtomicBool,
    doubtful: AtomicBool,
}

/// A kind that this engine knows.
pub(crate) struct KindEntry {
    pub(crate) settings: KindSettings,
    pub(crate) runner: Option<Arc<dyn Runner>>,
    /// Whether nobody may claim it, as far as this engine has heard.
    closed: bool,
    /// Places of this kind alone.
    pub(crate) places: Option<Arc<Semaphore>>,
}

impl KindEntry {
    /// Returns whether claiming it now would be for nothing, as far as this engine knows.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed || self.places.as_ref().is_some_and(|places| places.available_permits() == 0)
    }

    /// Returns how a job is retried: by its own settings, and the kind's where it has none.
    pub(crate) fn policy(&self, job: &Job) -> Policy {
        Policy {
            attempts_max: job.attempts_max.unwrap_or(self.settings.attempts_max),
            backoff: job.backoff.unwrap_or(self.settings.backoff),
            retry_after_max: self.settings.retry_after_max,
            sticky_max: self.settings.sticky_max,
            on_give_up: self.settings.on_give_up,
        }
    }
}

/// The right to run one attempt.
pub(crate) struct Places {
    _any: OwnedSemaphorePermit,
    _kind: Option<OwnedSemaphorePermit>,
    _suspect: Option<OwnedSemaphorePermit>,
}

/// A job in this engine's hands.
struct Held {
    fence: Fence,
    /// Set once it runs: what only waits is not told to stop.
    cancel: Option<CancelToken>,
}

/// A job that waits in this engine.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) job: Arc<Job>,
    pub(crate) holder: HolderId,
    /// When it may run, by the engine's own clock.
    pub(crate) due: Moment,
    /// When nobody wants it any more, by the engine's own clock.
    pub(crate) deadline: Option<Moment>,
    /// The wait before it, for backoffs that build on it.
    pub(crate) previous: Option<Duration>,
}

impl Waiting {
    pub(crate) fn lease(&self) -> Lease {
        Lease { job: self.job.id, fence: self.job.fence }
    }
}

/// What the dispatch loop is told.
pub(crate) enum Command {
    /// Jobs were leased.
    Leased(Vec<Waiting>),
    /// A job was leased by its own insert, and has a place.
    Direct(Box<Waiting>, Places),
    /// A person wants something of a job.
    Wanted(Lease, Wanted),
    /// The holder is dead: nothing is this engine's any more.
    Drop,
    /// A place is free.
    Place,
    /// Give back what has not started.
    Stop,
}

/// An attempt that is over, to be settled.
pub(crate) struct Finished {
    pub(crate) waiting: Waiting,
    pub(crate) settlement: rewheel_core::store::Settlement,
    pub(crate) places: Places,
}

pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) unsure: Arc<Notify>,
    pub(crate) settings: EngineSettings,
    pub(crate) random: Random,
    pub(crate) id_time: IdTime,
    pub(crate) self_audit: bool,
    pub(crate) handlers: BTreeMap<KindName, Arc<dyn Runner>>,
    pub(crate) source: Option<Box<RunnerSource>>,
    pub(crate) desk: Option<Arc<Desk>>,
}

impl Shared {
    pub(crate) fn new(
        parts: Parts,
        to_dispatch: mpsc::UnboundedSender<Command>,
        to_settle: mpsc::UnboundedSender<Finished>,
    ) -> Shared {
        let holder = HolderId::new(parts.id_time.now(), &parts.random);
        Shared {
            places: Arc::new(Semaphore::new(parts.settings.places)),
            suspects: Arc::new(Semaphore::new(SUSPECTS_MAX as usize)),
            store: parts.store,
            settings: parts.settings,
            clock: Clock::system(),
            random: parts.random,
            id_time: parts.id_time,
            self_audit: parts.self_audit,
            handlers: parts.handlers,
            source: parts.source,
            kinds: RwLock::default(),
            to_dispatch,
            to_settle,
            look: Notify::new(),
            sweep: Notify::new(),
            calls: Calls::new(parts.unsure),
            desk: parts.desk,
            holder: Mutex::new(holder),
            held: Mutex::default(),
            ready: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            given_back: AtomicUsize::new(0),
            ticks: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
        }
    }

    pub(crate) fn new_id(&self) -> JobId {
        JobId::new(self.id_time.now(), &self.random)
    }

    /// Returns the time as this node has it, to be told and never to be compared.
    pub(crate) fn node_time(&self) -> Timestamp {
        self.id_time.now()
    }

    /// Makes the id of a holder, fresh at each life.
    pub(crate) fn new_holder_id(&self) -> HolderId {
        HolderId::new(self.id_time.now(), &self.random)
    }

    /// Whether to look for jobs that were leased without an answer.
    pub(crate) fn audits_itself(&self) -> bool {
        self.self_audit
    }

    pub(crate) fn holder(&self) -> HolderId {
        *lock(&self.holder)
    }

    pub(crate) fn set_holder(&self, holder: HolderId) {
        *lock(&self.holder) = holder;
    }

    pub(crate) fn kind(&self, name: &KindName) -> Option<Arc<KindEntry>> {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Returns the kinds that this engine can run.
    pub(crate) fn runnable(&self) -> Vec<KindName> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds
            .iter()
            .filter(|(_, kind)| kind.runner.is_some())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Takes the kinds as the store has them. Settings that this version cannot read leave the kind
    /// without a runner here: another version may know better.
    pub(crate) fn learn(&self, kinds: &[Kind]) {
        let mut known = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = BTreeMap::new();
        for kind in kinds {
            let settings = match serde_json::from_str::<KindSettings>(&kind.settings) {
                Ok(settings) => settings,
                Err(error) => {
                    tracing::warn!(kind = %kind.name, %error, "settings of a kind cannot be read");
                    continue;
                }
            };
            let closed = kind.paused || kind.parked.is_some();
            let entry = match known.remove(&kind.name) {
                Some(entry) if entry.settings == settings && entry.closed == closed => entry,
                known => Arc::new(KindEntry {
                    closed,
                    ..self.entry(&kind.name, settings, known.as_deref())
                }),
            };
            fresh.insert(kind.name.clone(), entry);
        }
        *known = fresh;
    }

    fn entry(
        &self,
        name: &KindName,
        settings: KindSettings,
        known: Option<&KindEntry>,
    ) -> KindEntry {
        let handler = self.handlers.get(name).cloned();
        let runner = handler.or_else(|| self.source.as_ref()?(name, &settings));
        // Attempts that run have their places in the old one: a new one would let in as many again.
        let same = known.filter(|known| known.settings.concurrency_max == settings.concurrency_max);
        let places = match same {
            Some(known) => known.places.clone(),
            None => settings.concurrency_max.map(|most| Arc::new(Semaphore::new(most))),
        };
        KindEntry { settings, runner, closed: false, places }
    }

    /// Takes a place for an attempt of a kind, if there is one.
    pub(crate) fn try_place(&self, kind: &KindEntry) -> Option<Places> {
        let any = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let kind = match &kind.places {
            Some(places) => Some(Arc::clone(places).try_acquire_owned().ok()?),
            None => None,
        };
        Some(Places { _any: any, _kind: kind, _suspect: None })
    }

    /// Takes a place for a job that was taken over before. If one more takeover makes it a dead
    /// letter, it runs without another suspect beside it, so that it is charged for no other's crash.
    pub(crate) fn try_place_of_suspect(&self, kind: &KindEntry, job: &Job) -> Option<Places> {
        let is_last = job.takeovers_counted + 1 >= kind.settings.takeovers_max;
        let share = if is_last { SUSPECTS_MAX } else { 1 };
        let suspect = Arc::clone(&self.suspects).try_acquire_many_owned(share).ok()?;
        let places = self.try_place(kind)?;
        Some(Places { _suspect: Some(suspect), ..places })
    }

    /// How long ended jobs and their keys are kept, where the kind does not say.
    pub(crate) fn keep_ended(&self) -> Keep {
        Keep { job: self.settings.keep_ended, key: self.settings.keep_keys }
    }

    /// Notes that a job is in this engine's hands.
    pub(crate) fn hold(&self, lease: Lease) {
        let held = Held { fence: lease.fence, cancel: None };
        lock(&self.held).insert(lease.job, held);
    }

    /// Notes that it no longer is; a newer lease of it stays.
    pub(crate) fn forget(&self, lease: Lease) {
        let mut held = lock(&self.held);
        if held.get(&lease.job).is_some_and(|held| held.fence <= lease.fence) {
            held.remove(&lease.job);
        }
    }

    pub(crate) fn holds(&self, lease: Lease) -> bool {
        lock(&self.held).get(&lease.job).is_some_and(|held| held.fence == lease.fence)
    }

    /// Notes that a job in this engine's hands starts. Returns what tells its handler to stop;
    /// nothing if the job is not in its hands any more, or by a newer lease.
    pub(crate) fn begin(&self, lease: Lease) -> Option<CancelToken> {
        let mut held = lock(&self.held);
        let held = held.get_mut(&lease.job).filter(|held| held.fence == lease.fence)?;
        Some(held.cancel.insert(CancelToken::new()).clone())
    }

    /// Tells a handler to stop.
    pub(crate) fn cancel(&self, lease: Lease) {
        if let Some(held) = lock(&self.held).get(&lease.job).filter(|h| h.fence == lease.fence)
            && let Some(cancel) = &held.cancel
        {
            cancel.cancel();
        }
    }

    /// Tells every handler to stop.
    pub(crate) fn cancel_all(&self) {
        for cancel in lock(&self.held).values().filter_map(|held| held.cancel.as_ref()) {
            cancel.cancel();
        }
    }

    /// Returns how many jobs are in this engine's hands.
    pub(crate) fn held_count(&self) -> usize {
        lock(&self.held).len()
    }

    /// Counts what the store took back.
    pub(crate) fn note_given_back(&self, answers: &[Settled]) {
        let applied = answers.iter().filter(|answer| matches!(answer, Settled::Applied(_)));
        self.given_back.fetch_add(applied.count(), Ordering::Relaxed);
    }

    /// Returns how many jobs were given back so far.
    pub(crate) fn given_back(&self) -> usize {
        self.given_back.load(Ordering::Relaxed)
    }

    /// Returns how many attempts have a place.
    pub(crate) fn running(&self) -> usize {
        self.settings.places.saturating_sub(self.places.available_permits())
    }

    /// Returns how many jobs wait here for their time or for a place.
    pub(crate) fn waiting_count(&self) -> usize {
        self.ready.load(Ordering::Relaxed) + self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.look.notify_one();
    }

    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    /// Returns whether that is news.
    pub(crate) fn set_doubtful(&self, doubtful: bool) -> bool {
        self.doubtful.swap(doubtful, Ordering::AcqRel) != doubtful
    }

    /// Translates what a store says is left until an instant of its clock.
    pub(crate) fn waiting(
        &self,
        job: Job,
        holder: HolderId,
        due_in: Duration,
        deadline_in: Option<Duration>,
    ) -> Waiting {
        let now = self.clock.now();
        Waiting {
            job: Arc::new(job),
            holder,
            due: self.moment_in(due_in),
            deadline: deadline_in.map(|left| now.plus(left)),
            previous: None,
        }
    }

    /// Returns when so much time has certainly passed. The store counts whole milliseconds, and an
    /// instant of it may be at the end of one: without that one a job could run early.
    pub(crate) fn moment_in(&self, due_in: Duration) -> Moment {
        let now = self.clock.now();
        if due_in.is_zero() { now } else { now.plus(due_in + Duration::from_millis(1)) }
    }

    /// Returns what is left until an instant of the store's clock, as it was said to be `now`.
    pub(crate) fn left(until: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
        until.map(|until| until.since(now))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic happens under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
