//! State that the loops of one engine share.

use crate::admission::{Admission, Fact, InHand, Setup, Slot, Ticket};
use crate::calls::Calls;
use crate::caps::Caps;
use crate::events::Log;
use crate::gather::Gather;
use crate::job_counts::JobCountsCache;
use crate::kinds::Kinds;
use crate::leases::Leases;
use crate::meters::{Meters, StoreMeters};
use crate::notify::Desk;
use crate::runner::Runner;
use crate::settings::{EngineSettings, KindSettings};
use crate::shards::{ShardRouter, Shards};
use crate::signals::Signals;
use crate::submit::IdTime;
use crate::supervise::Loops;
use crate::tenant_settings::TenantBook;
use crate::workers::Workers;
use rewheel::{Clock, Moment, Random};
use rewheel_core::store::Store;
use rewheel_core::{HolderId, Job, JobId, Keep, KindName, Lease, Timestamp, Wanted};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Asked for kinds that have no handler.
pub(crate) type RunnerSource =
    dyn Fn(&KindName, &KindSettings) -> Option<Arc<dyn Runner>> + Send + Sync;

/// One engine, seen from its loops: a handle for each part, which has one owner.
pub(crate) struct Shared {
    /// Answers within the statement timeout, see [`GuardedStore`](crate::guard::GuardedStore).
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: EngineSettings,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    /// The kinds, and what runs them.
    pub(crate) kinds: Kinds,
    /// Decides what may run.
    pub(crate) admission: Arc<Admission>,
    /// Who this engine is, and which jobs it has.
    pub(crate) leases: Leases,
    /// How jobs come in.
    pub(crate) intake: Intake,
    /// Remote workers, as this engine serves them.
    pub(crate) workers: Workers,
    /// How the loops wake each other.
    pub(crate) signals: Signals,
    /// Whether the loops run.
    pub(crate) loops: Loops,
    /// What people and other programs hear.
    pub(crate) reports: Reports,
}

/// How jobs come in.
pub(crate) struct Intake {
    /// Live jobs that tenants may have.
    pub(crate) caps: Caps,
    /// Single jobs on their way in.
    pub(crate) gather: Gather,
    pub(crate) shards: Shards,
    id_time: IdTime,
}

/// What people and other programs hear.
pub(crate) struct Reports {
    /// Job counts that requests share.
    pub(crate) job_counts: JobCountsCache,
    /// What was counted.
    pub(crate) meters: Meters,
    /// What happened, for those who listen.
    pub(crate) events: Arc<Log>,
    /// Not there without notifiers.
    pub(crate) desk: Option<Arc<Desk>>,
}

/// A job that waits in this engine.
#[derive(Debug)]
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
    /// Counts it while it is due and waits for a slot.
    pub(crate) in_hand: Option<InHand>,
    /// Whether the claim that leased it kept the limits over the fleet.
    pub(crate) is_within_fleet: bool,
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
    /// A job was leased by its own insert, and may run.
    Direct(Box<Waiting>, Box<Ticket>),
    /// A person wants something of a job.
    Wanted(Lease, Wanted),
    /// The holder is dead: nothing is this engine's any more.
    Drop,
    /// A slot is free, or something else changed that may let a job run.
    Place,
    /// Give back what has not started.
    Stop,
}

/// An attempt that is over, to be settled.
pub(crate) struct Finished {
    pub(crate) waiting: Waiting,
    pub(crate) settlement: rewheel_core::store::Settlement,
    /// None where nothing was started.
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
        let clock = Clock::system();
        let admission = Admission::new(Setup {
            slots: parts.settings.places,
            holder,
            tenants: parts.tenants.clone(),
            clock: clock.clone(),
            random: parts.random.clone(),
            beat: parts.settings.lease_ttl / 3,
        });
        let is_remote = parts.store.capabilities().remote;
        Shared {
            admission,
            kinds: Kinds::new(parts.handlers, parts.source),
            leases: Leases::new(holder, Calls::new(parts.unsure), parts.self_audit, clock.now()),
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
                meters: Meters::new(parts.store_meters),
                events: parts.events,
                desk: parts.desk,
            },
            store: parts.store,
            settings: parts.settings,
            clock,
            random: parts.random,
        }
    }

    pub(crate) fn new_id(&self) -> JobId {
        JobId::new(self.intake.id_time.now(), &self.random)
    }

    /// Returns the time as this node has it, to be told and never to be compared.
    pub(crate) fn node_time(&self) -> Timestamp {
        self.intake.id_time.now()
    }

    /// Makes the id of a holder, fresh at each life.
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

    /// How long ended jobs and their keys are kept, where the kind does not say.
    pub(crate) fn keep_ended(&self) -> Keep {
        Keep { job: self.settings.keep_ended, key: self.settings.keep_keys }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.signals.are_stopping()
    }

    pub(crate) fn is_doubtful(&self) -> bool {
        // An engine that failed starts nothing more, whatever its lease says.
        self.leases.are_doubtful() || self.loops.failure().is_some()
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
