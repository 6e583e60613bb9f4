//! State that the loops of one engine share.

use crate::admission::{Admission, Fact, InHand, Setup, Slot, Ticket};
use crate::caps::Caps;
use crate::events::Log;
use crate::job_counts::JobCountsCache;
use crate::kind_history::HistoryBook;
use crate::kinds::Kinds;
use crate::leases::Leases;
use crate::meters::{Build, Meters, StoreMeters};
use crate::notify::Inbox;
use crate::pending_calls::PendingCalls;
use crate::runner::Runner;
use crate::settings::{EngineSettings, KindSettings};
use crate::shards::{ShardRouter, Shards};
use crate::signals::Signals;
use crate::submit::IdTime;
use crate::submit_batching::Gather;
use crate::supervise::Loops;
use crate::tenant_settings::TenantBook;
use crate::waiters::Waiters;
use crate::workers::Workers;
use rewheel::{Backoffs, Clock, Moment, Random};
use rewheel_core::store::Store;
use rewheel_core::{HolderId, Job, JobId, KindName, Lease, Retain, Timestamp, Wanted};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Returns runners of kinds without a handler.
pub(crate) type RunnerSource =
    dyn Fn(&KindName, &KindSettings) -> Option<Arc<dyn Runner>> + Send + Sync;

/// One engine, as its loops see it: a handle for each part, which has one owner.
pub(crate) struct Shared {
    /// Returns within the statement timeout, see [`GuardedStore`](crate::guard::GuardedStore).
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: EngineSettings,
    /// What the metric `rewheel_build_info` shows.
    pub(crate) build: Build,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    /// The kinds with their runners.
    pub(crate) kinds: Kinds,
    /// Decides what may run.
    pub(crate) admission: Arc<Admission>,
    /// This engine's lease and its jobs.
    pub(crate) leases: Leases,
    /// Submission of jobs.
    pub(crate) intake: Intake,
    /// Remote workers that this engine serves.
    pub(crate) workers: Workers,
    /// Wake-ups between the loops.
    pub(crate) signals: Signals,
    /// State of the loops.
    pub(crate) loops: Loops,
    /// Statistics, events and notifications.
    pub(crate) reports: Reports,
}

/// Submission of jobs.
pub(crate) struct Intake {
    /// Caps on live jobs of tenants.
    pub(crate) caps: Caps,
    /// Single jobs that wait for a flush.
    pub(crate) gather: Gather,
    pub(crate) shards: Shards,
    id_time: IdTime,
}

/// Statistics, events and notifications.
pub(crate) struct Reports {
    /// Job counts shared by requests.
    pub(crate) job_counts: JobCountsCache,
    /// What this node reports per kind and minute.
    pub(crate) history: HistoryBook,
    /// The metrics.
    pub(crate) meters: Meters,
    /// Callers that wait for the end of jobs.
    pub(crate) waiters: Arc<Waiters>,
    /// Job events for listeners.
    pub(crate) events: Arc<Log>,
    /// `None` without notifiers.
    pub(crate) desk: Option<Arc<Inbox>>,
}

/// A job that waits in this engine.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) job: Arc<Job>,
    pub(crate) holder: HolderId,
    /// When it may run, by the engine's own clock.
    pub(crate) due: Moment,
    /// How long it had been due when it arrived here.
    pub(crate) overdue: Duration,
    /// The deadline, by the engine's own clock.
    pub(crate) deadline: Option<Moment>,
    /// The previous delay, for backoffs that depend on it.
    pub(crate) previous: Option<Duration>,
    /// Counts it while it is due and waits for a slot.
    pub(crate) in_hand: Option<InHand>,
    /// Whether the claim that leased it enforced the fleet-wide limits.
    pub(crate) is_within_fleet: bool,
}

impl Waiting {
    pub(crate) fn lease(&self) -> Lease {
        Lease { job: self.job.id, fence: self.job.fence }
    }
}

/// A message to the dispatch loop.
pub(crate) enum Command {
    /// Jobs were leased.
    Leased(Vec<Waiting>),
    /// A job was leased by its own insert, and may run.
    Direct(Box<Waiting>, Box<Ticket>),
    /// A user requested something for a job.
    Wanted(Lease, Wanted),
    /// The holder is dead: this engine has no jobs any more.
    Drop,
    /// A slot is free, or another change may let a job run.
    Place,
    /// Give back jobs that have not started.
    Stop,
}

/// An attempt that has ended, to be settled.
pub(crate) struct Finished {
    pub(crate) waiting: Waiting,
    pub(crate) settlement: rewheel_core::store::Settlement,
    /// `None` if nothing was started.
    pub(crate) slot: Option<Slot>,
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
    pub(crate) backoffs: Backoffs,
    pub(crate) tenants: TenantBook,
    pub(crate) router: Option<Box<dyn ShardRouter>>,
    pub(crate) desk: Option<Arc<Inbox>>,
    pub(crate) events: Arc<Log>,
    pub(crate) build: Build,
}

impl Shared {
    pub(crate) fn new(
        parts: Parts,
        to_dispatch: mpsc::UnboundedSender<Command>,
        to_settle: mpsc::UnboundedSender<Finished>,
    ) -> Shared {
        let holder = HolderId::new(parts.id_time.now(), &parts.random);
        let clock = Clock::system();
        let admission = Admission::new(Setup {
            slots: parts.settings.concurrency,
            holder,
            tenants: parts.tenants.clone(),
            clock: clock.clone(),
            random: parts.random.clone(),
            beat: parts.settings.lease_ttl / 3,
        });
        let is_remote = parts.store.capabilities().remote;
        Shared {
            admission,
            kinds: Kinds::new(parts.handlers, parts.source, parts.backoffs),
            leases: Leases::new(
                holder,
                PendingCalls::new(parts.unsure),
                parts.self_audit,
                clock.now(),
            ),
            intake: Intake {
                caps: Caps::new(parts.tenants),
                gather: Gather::default(),
                shards: Shards::new(parts.router, is_remote),
                id_time: parts.id_time,
            },
            workers: Workers::default(),
            signals: Signals::new(to_dispatch, to_settle),
            loops: Loops::default(),
            reports: Reports {
                job_counts: JobCountsCache::default(),
                history: HistoryBook::new(holder),
                meters: Meters::new(parts.store_meters),
                waiters: Arc::clone(&parts.events.waiters),
                events: parts.events,
                desk: parts.desk,
            },
            store: parts.store,
            settings: parts.settings,
            build: parts.build,
            clock,
            random: parts.random,
        }
    }

    pub(crate) fn new_id(&self) -> JobId {
        JobId::new(self.intake.id_time.now(), &self.random)
    }

    /// Returns this node's time, for information only; never compare it.
    pub(crate) fn node_time(&self) -> Timestamp {
        self.intake.id_time.now()
    }

    /// Creates a new holder id.
    pub(crate) fn new_holder_id(&self) -> HolderId {
        HolderId::new(self.intake.id_time.now(), &self.random)
    }

    pub(crate) fn holder(&self) -> HolderId {
        self.leases.holder()
    }

    pub(crate) fn set_holder(&self, holder: HolderId) {
        self.leases.set_holder(holder);
        self.admission.apply(Fact::Holder(holder));
    }

    /// Returns the default retention of ended jobs and their keys.
    pub(crate) fn retain_ended(&self) -> Retain {
        Retain { job: self.settings.retention_ended, key: self.settings.retention_keys }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.signals.are_stopping()
    }

    pub(crate) fn is_lease_expired(&self) -> bool {
        // An engine that failed starts nothing more, even if its lease is valid.
        self.leases.are_doubtful() || self.loops.failure().is_some()
    }

    /// Converts the times left by the store's clock into moments of the engine's clock.
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
            overdue: if is_due {
                self.reports.meters.overdue(job.due, now)
            } else {
                Duration::ZERO
            },
            job: Arc::new(job),
            holder,
            due: self.moment_in(due_in),
            deadline: deadline_in.map(|left| now.plus(left)),
            previous: None,
            in_hand: None,
            is_within_fleet: false,
        }
    }

    /// Returns when this time has certainly passed. The store counts whole milliseconds, and its
    /// time may be at the end of one: without one more millisecond a job could run early.
    pub(crate) fn moment_in(&self, due_in: Duration) -> Moment {
        let now = self.clock.now();
        if due_in.is_zero() { now } else { now.plus(due_in + Duration::from_millis(1)) }
    }

    /// Returns the time left until `until`, where the store's clock shows `now`.
    pub(crate) fn left(until: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
        until.map(|until| until.since(now))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
