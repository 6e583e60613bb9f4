//! What the loops of one engine share.

use crate::budget::Paid;
use crate::calls::Calls;
use crate::caps::Caps;
use crate::events::Log;
use crate::gather::Gather;
use crate::job_counts::JobCountsCache;
use crate::kinds::KindEntry;
use crate::kinds_read::KindsRead;
use crate::meters::{Meters, StoreMeters};
use crate::notify::Desk;
use crate::park::{Evidence, Probed, Queued, Running};
use crate::runner::Runner;
use crate::settings::{EngineSettings, KindSettings};
use crate::shards::{ShardRouter, Shards};
use crate::submit::IdTime;
use crate::supervise::Loops;
use crate::tenant_settings::TenantBook;
use crate::tenants::Tenants;
use crate::workers::{LaneTurns, Owners};
use rewheel::{CancelToken, Clock, Moment, Random};
use rewheel_core::store::{Settled, Store};
use rewheel_core::{Fence, HolderId, Job, JobId, Keep, KindName, Lease, Tenant, Timestamp, Wanted};
use std::collections::{BTreeMap, VecDeque};
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
    pub(crate) tenants: Tenants,
    pub(crate) caps: Caps,
    pub(crate) owners: Owners,
    pub(crate) lane_turns: LaneTurns,
    pub(crate) loops: Loops,
    /// Single jobs on their way in.
    pub(crate) gather: Gather,
    pub(crate) living: AtomicUsize,
    pub(crate) shards: Shards,
    pub(crate) has_rates: AtomicBool,
    /// How many kinds this engine runs.
    pub(crate) runnable_count: AtomicUsize,
    pub(crate) kinds_read: KindsRead,
    /// Job counts that requests share.
    pub(crate) job_counts: JobCountsCache,
    /// Wakes the loop that parks: something was seen.
    pub(crate) park: Notify,
    probed: Mutex<VecDeque<Probed>>,
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
    /// What was counted.
    pub(crate) meters: Meters,
    /// What happened, for whoever listens.
    pub(crate) events: Arc<Log>,
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
    /// When the last renewal was sent that succeeded.
    renewed: Mutex<Moment>,
}

/// The right to run one attempt.
pub(crate) struct Places {
    _any: OwnedSemaphorePermit,
    _kind: Option<OwnedSemaphorePermit>,
    _suspect: Option<OwnedSemaphorePermit>,
    _running: Running,
    _tenant: Running,
    /// What the attempt is evidence of, until it has spoken.
    pub(crate) evidence: Option<Evidence>,
    /// What a retry was paid with, until it has succeeded.
    pub(crate) paid: Option<Paid>,
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
    /// How long it had been due when it came here.
    pub(crate) overdue: Duration,
    /// When nobody wants it any more, by the engine's own clock.
    pub(crate) deadline: Option<Moment>,
    /// The wait before it, for backoffs that build on it.
    pub(crate) previous: Option<Duration>,
    /// Counts it while it waits for a place.
    pub(crate) queued: Option<Arc<[Queued; 2]>>,
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
    /// None where nothing was started.
    pub(crate) places: Option<Places>,
}

pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) unsure: Arc<Notify>,
    pub(crate) store_meters: Arc<StoreMeters>,
    pub(crate) settings: EngineSettings,
    pub(crate) random: Random,
    pub(crate) id_time: IdTime,
    pub(crate) self_audit: bool,
    pub(crate) handlers: BTreeMap<KindName, Arc<dyn Runner>>,
    pub(crate) source: Option<Box<RunnerSource>>,
    pub(crate) tenants: TenantBook,
    pub(crate) router: Option<Box<dyn ShardRouter>>,
    pub(crate) desk: Option<Arc<Desk>>,
    pub(crate) events: Arc<Log>,
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
            shards: Shards::new(parts.router, parts.store.capabilities().remote),
            store: parts.store,
            settings: parts.settings,
            clock: Clock::system(),
            random: parts.random,
            id_time: parts.id_time,
            self_audit: parts.self_audit,
            handlers: parts.handlers,
            source: parts.source,
            kinds: RwLock::default(),
            tenants: Tenants::new(parts.tenants, &Clock::system()),
            caps: Caps::default(),
            owners: Owners::default(),
            lane_turns: LaneTurns::default(),
            loops: Loops::default(),
            gather: Gather::default(),
            living: AtomicUsize::new(1),
            has_rates: AtomicBool::new(false),
            runnable_count: AtomicUsize::new(0),
            kinds_read: KindsRead::default(),
            job_counts: JobCountsCache::default(),
            park: Notify::new(),
            probed: Mutex::default(),
            to_dispatch,
            to_settle,
            look: Notify::new(),
            sweep: Notify::new(),
            calls: Calls::new(parts.unsure),
            meters: Meters::new(parts.store_meters),
            events: parts.events,
            desk: parts.desk,
            holder: Mutex::new(holder),
            held: Mutex::default(),
            ready: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            given_back: AtomicUsize::new(0),
            ticks: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
            renewed: Mutex::new(Clock::system().now()),
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

    /// Takes a place for an attempt of a kind, if there is one.
    pub(crate) fn try_place(&self, kind: &KindEntry, tenant: Option<&Tenant>) -> Option<Places> {
        let any = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let running = kind.load.begin(self.places_of_one())?;
        let most = self.tenants.places_of_one(self.settings.places);
        let tenant = self.tenants.of(tenant);
        let of_tenant = tenant.begin(most)?;
        let own = match &kind.places {
            Some(places) => Some(Arc::clone(places).try_acquire_owned().ok()?),
            None => None,
        };
        let evidence = kind.evidence(self.holder())?;
        if kind.gate.as_ref().is_some_and(|gate| !gate.pass(self.living())) {
            return None;
        }
        if !self.tenants.pass(&tenant, self.living()) {
            kind.gate.iter().for_each(|gate| gate.give_back());
            return None;
        }
        Some(Places {
            _any: any,
            _kind: own,
            _suspect: None,
            _running: running,
            _tenant: of_tenant,
            evidence,
            paid: None,
        })
    }

    /// Takes back what rates let pass for an attempt that was not made.
    pub(crate) fn give_passes_back(&self, kind: &KindEntry, tenant: Option<&Tenant>) {
        kind.gate.iter().for_each(|gate| gate.give_back());
        self.tenants.of(tenant).give_pass_back();
    }

    /// Returns how many places one kind may have. The last fifth is for the others, where there are any: whatever one kind waits
    /// for, they find a place.
    pub(crate) fn places_of_one(&self) -> usize {
        let places = self.settings.places;
        if self.runnable_count.load(Ordering::Relaxed) > 1 { places - places / 5 } else { places }
    }

    /// Notes what a probe found.
    pub(crate) fn probed(&self, probed: Probed) {
        lock(&self.probed).push_back(probed);
        self.park.notify_one();
    }

    /// Returns what the first probe found that the store has not heard of.
    pub(crate) fn first_probed(&self) -> Option<Probed> {
        lock(&self.probed).front().cloned()
    }

    /// The store has heard of it.
    pub(crate) fn forget_first_probed(&self) {
        lock(&self.probed).pop_front();
    }

    /// Takes a place for a job that was taken over before. If one more takeover makes it a dead
    /// letter, it runs without another suspect beside it, so that it is charged for no other's crash.
    pub(crate) fn try_place_of_suspect(&self, kind: &KindEntry, job: &Job) -> Option<Places> {
        let is_last = job.takeovers_counted + 1 >= kind.settings.takeovers_max;
        let share = if is_last { SUSPECTS_MAX } else { 1 };
        let suspect = Arc::clone(&self.suspects).try_acquire_many_owned(share).ok()?;
        let places = self.try_place(kind, job.lane.tenant.as_ref())?;
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
        // An engine that failed starts nothing more, whatever its lease says.
        self.doubtful.load(Ordering::Acquire) || self.loops.failure().is_some()
    }

    /// Returns when the last renewal of the lease was sent that succeeded; when the engine started, if none was yet.
    pub(crate) fn renewed(&self) -> Moment {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_renewed(&self, renewed: Moment) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
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
        let is_due = due_in.is_zero();
        Waiting {
            overdue: if is_due { self.meters.overdue(job.due, now) } else { Duration::ZERO },
            job: Arc::new(job),
            holder,
            due: self.moment_in(due_in),
            deadline: deadline_in.map(|left| now.plus(left)),
            previous: None,
            queued: None,
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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic happens under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
