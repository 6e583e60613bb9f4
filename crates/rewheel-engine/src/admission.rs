//! Decides whether a job may run now. Claims, dispatch, direct submits and remote workers all ask here.
//!
//! [`Machine`](machine::Machine) is a state machine without I/O. The state machine owns the admission state of kinds and
//! tenants, the slots of the engine, rates, retry budgets, breakers, parking, ramps and probes. It receives facts and answers
//! three questions:
//!
//! - [`plan`](Admission::plan): how many jobs of which lanes to claim. Reserves capacity, so that two claims never use the same
//!   capacity.
//! - [`admit`](Admission::admit): may this job run now? The answer is: run with a [`Ticket`], wait, go back to the store, or be delayed, each with a reason.
//! - [`why`](Admission::why): the same answer, for a user who asks why a job waits. It takes no
//!   slot and no token.
//!
//! All limits are checked before a slot or a token is taken, so a refusal has nothing to undo. A ticket can end in two
//! ways, see [`Ticket`].

mod answer;
mod bucket;
mod budget;
mod health;
mod hosts;
mod kind;
mod load;
mod machine;
mod plan;
mod remote;
mod tenant;
mod ticket;

pub use self::answer::HeldReason;
pub(crate) use self::answer::{Admit, Ask, Held, Suspect};
pub(crate) use self::health::breaker;
pub(crate) use self::kind::{FleetRule, KindFact, KindNews};
pub(crate) use self::machine::{Probed, ToldToWait};
pub(crate) use self::plan::Reservation;
pub(crate) use self::remote::{Paid, WorkerHas};
pub(crate) use self::ticket::{InHand, Slot, Ticket};

use self::answer::Refused;
use self::kind::Condition;
use self::machine::Machine;
use self::plan::Room;
use crate::kind_health::KindHealth;
use crate::tenant_settings::TenantBook;
use rewheel::{BreakerState, Clock, Moment, Random};
use rewheel_core::{HolderId, KindName, Lane, RetryAsk, Tenant};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The admission of one engine.
#[derive(Debug)]
pub(crate) struct Admission {
    machine: Mutex<Machine>,
    clock: Clock,
    /// Wakes the parking loop: an attempt reported something that the fleet should know.
    pub(crate) parking: Notify,
    /// Kinds that this engine reported as down in the store, with the holder id it had then. Kept here, so that a restarted
    /// parking loop can withdraw the reports of the previous one.
    said: Mutex<BTreeSet<(HolderId, KindName)>>,
}

/// The initial settings of admission.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Maximum number of concurrent attempts.
    pub(crate) slots: usize,
    pub(crate) holder: HolderId,
    pub(crate) tenants: TenantBook,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    /// The time between two heartbeats, with which budgets are granted.
    pub(crate) beat: Duration,
}

/// An event that changes what may run.
#[derive(Debug)]
pub(crate) enum Fact {
    /// The engine has this holder id now.
    Holder(HolderId),
    /// Number of live engines.
    Fleet { living: usize },
    /// Whether jobs of more than one tenant are due.
    TenantsDue { are_several: bool },
    /// A kind was deleted.
    KindGone { kind: KindName },
    /// A kind that workers run has been parked for long enough: the next worker that claims may probe it.
    ProbeDue { kind: KindName, generation: u64 },
    /// Jobs of a kind waited too long for a slot and were returned.
    ReturnedLate { kind: KindName, until: Moment },
    /// A host refused a call of a kind, and asked to wait.
    HostHeld { host: String, kind: KindName, until: Moment },
    /// The service of a kind asked to wait, and the whole fleet has to.
    KindHeld { kind: KindName, until: Moment, why: String },
    /// The store granted retries.
    Granted { kind: KindName, retries: u32 },
}

/// Suspect jobs that were refused in one round of [`Admission::admit`]: later suspects of the round wait behind them.
#[derive(Debug, Default)]
pub(crate) struct Round {
    suspects_wait: bool,
}

impl Admission {
    pub(crate) fn new(setup: Setup) -> Arc<Admission> {
        let clock = setup.clock.clone();
        let machine = Mutex::new(Machine::new(setup));
        Arc::new(Admission { machine, clock, parking: Notify::new(), said: Mutex::default() })
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        // A panic under this lock leaves counters that are wrong by at most one attempt.
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Records an event.
    pub(crate) fn apply(&self, fact: Fact) {
        let now = self.now();
        self.machine().apply(fact, now);
    }

    /// Takes over a kind as stored.
    pub(crate) fn learn(&self, fact: &KindFact<'_>) -> KindNews {
        self.machine().learn(fact)
    }

    /// Returns for each lane whether it is worth a visit.
    pub(crate) fn rooms(&self, lanes: &[&Lane]) -> Vec<Room> {
        let now = self.now();
        self.machine().rooms(lanes, now)
    }

    /// Starts to reserve capacity for the jobs that a claim will return.
    pub(crate) fn plan(self: &Arc<Admission>) -> Reservation {
        Reservation::new(Arc::clone(self))
    }

    /// Lets a job that has become due wait here for a slot. Returns `None` if so many wait that the job should go back to the
    /// store: many jobs may become due at once, and must not take the capacity to claim others.
    pub(crate) fn hold(
        self: &Arc<Admission>,
        kind: &KindName,
        tenant: Option<&Tenant>,
    ) -> Option<InHand> {
        let now = self.now();
        let mut machine = self.machine();
        if machine.has_enough(kind, tenant, now) {
            return None;
        }
        let id = machine.queue(kind, tenant, now);
        drop(machine);
        Some(InHand::new(self, id, tenant))
    }

    /// Decides whether a job may run now.
    pub(crate) fn admit(self: &Arc<Admission>, ask: &Ask<'_>, round: &mut Round) -> Admit {
        if round.suspects_wait && ask.suspect != Suspect::No {
            return Admit::Wait(Held::by(HeldReason::Concurrency));
        }
        let now = self.now();
        let admitted = self.machine().admit(ask, now);
        match admitted {
            Ok(admitted) => {
                Admit::Run(Box::new(Ticket::new(self, admitted, ask.tenant, ask.suspect)))
            }
            Err(Refused::WaitAlone) => {
                round.suspects_wait = true;
                Admit::Wait(Held::by(HeldReason::Concurrency))
            }
            Err(Refused::Wait(held)) => Admit::Wait(held),
            Err(Refused::Return(held)) => Admit::Return(held),
            Err(Refused::PutOff(held)) => Admit::PutOff(held),
        }
    }

    /// Returns a ticket for a new job that is leased by its own insert, if it may run at once.
    pub(crate) fn admit_direct(
        self: &Arc<Admission>,
        kind: &KindName,
        tenant: Option<&Tenant>,
    ) -> Option<Ticket> {
        let (now, suspect) = (self.now(), Suspect::No);
        let ask = Ask { kind, tenant, is_retry: false, suspect, is_within_fleet: false };
        let mut machine = self.machine();
        if !machine.takes_direct(kind, tenant, now) {
            return None;
        }
        let admitted = machine.admit(&ask, now).ok();
        drop(machine);
        Some(Ticket::new(self, admitted?, tenant, suspect))
    }

    /// Returns why a due job would not run here now, and until when. Takes nothing.
    pub(crate) fn why(&self, ask: &Ask<'_>) -> Option<Held> {
        let now = self.now();
        self.machine().refuses(ask, now).map(|refused| refused.held())
    }

    /// Returns the number of attempts with a slot.
    pub(crate) fn running(&self) -> usize {
        self.machine().running()
    }

    /// Returns whether any job could start now.
    pub(crate) fn may_start(&self) -> bool {
        self.machine().may_start()
    }

    /// Returns the number of attempts of a kind that have ended here.
    pub(crate) fn ended(&self, kind: &KindName) -> u64 {
        self.machine().find(kind).map_or(0, |kind| kind.ended)
    }

    /// Returns the number of attempts of a tenant that have ended here.
    pub(crate) fn ended_of(&self, tenant: &Tenant) -> u64 {
        self.machine().tenants.known(Some(tenant)).map_or(0, |tenant| tenant.ended)
    }

    /// Returns the number of free slots.
    pub(crate) fn free(&self) -> usize {
        let machine = self.machine();
        machine.slots().saturating_sub(machine.running())
    }

    /// Returns the number of live engines, as far as this engine knows.
    pub(crate) fn living(&self) -> usize {
        self.machine().living()
    }

    /// Returns whether this engine, or every engine, should not run a kind.
    pub(crate) fn is_down(&self, kind: &KindName) -> bool {
        let now = self.now();
        let machine = self.machine();
        let me = machine.me();
        let condition = machine.find(kind).map(|kind| kind.condition(me, now));
        let is_down = |reason| matches!(reason, HeldReason::Parked | HeldReason::Hold);
        condition.is_none_or(|seen| matches!(seen, Condition::Closed(reason, _) if is_down(reason)))
    }

    /// Returns what this engine knows about the dependency of a kind.
    pub(crate) fn health(&self, kind: &KindName) -> KindHealth {
        let machine = self.machine();
        let me = machine.me();
        machine.find(kind).map_or_else(KindHealth::default, |kind| KindHealth {
            breaker: kind.is_suspected(),
            parked: kind.is_parked(),
            probing: kind.is_probed_by(me),
        })
    }

    /// Returns the state of a kind's breaker, and the reason; `None` if an operator has decided or the kind has no breaker.
    pub(crate) fn suspicion(&self, kind: &KindName) -> Option<(BreakerState, String)> {
        let machine = self.machine();
        let health = machine.find(kind)?.judged()?;
        Some((health.state().0, health.why()))
    }

    /// Returns whether all running and waiting attempts of a kind are from before an outage.
    pub(crate) fn is_clear(&self, kind: &KindName) -> bool {
        self.machine().find(kind).is_none_or(|kind| kind.load.fresh() == 0)
    }

    /// Returns the fleet-wide limits of a lane: of its kind and of its tenant.
    pub(crate) fn fleet_rules(&self, lane: &Lane) -> [FleetRule; 2] {
        let now = self.now();
        let mut machine = self.machine();
        let of_kind = machine.find(&lane.kind).map(|kind| kind.fleet).unwrap_or_default();
        [of_kind, machine.tenants.of(lane.tenant.as_ref(), now).fleet]
    }

    /// Returns the recent failure ratio of a kind's attempts.
    pub(crate) fn failure_ratio(&self, kind: &KindName) -> f64 {
        self.machine().find(kind).map_or(0.0, |kind| kind.failure_ratio())
    }

    fn said(&self) -> MutexGuard<'_, BTreeSet<(HolderId, KindName)>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the store knows that a holder suspects a kind.
    pub(crate) fn suspected(&self, holder: HolderId, kind: &KindName) {
        self.said().insert((holder, kind.clone()));
    }

    /// Returns whether the store knows that a holder suspects a kind.
    pub(crate) fn suspects(&self, holder: HolderId, kind: &KindName) -> bool {
        self.said().contains(&(holder, kind.clone()))
    }

    /// Returns whether any of this engine's holder ids suspects a kind.
    pub(crate) fn is_suspected(&self, kind: &KindName) -> bool {
        self.said().iter().any(|(_, suspected)| suspected == kind)
    }

    pub(crate) fn has_suspected(&self) -> bool {
        !self.said().is_empty()
    }

    /// Removes the suspicion of a kind.
    pub(crate) fn trusts(&self, kind: &KindName) {
        self.said().retain(|(_, suspected)| suspected != kind);
    }

    /// Returns which targets of a job may be called now, or how long to wait for the first of them.
    pub(crate) fn open_targets(
        &self,
        kind: &KindName,
        targets: &[String],
        chance: impl FnOnce() -> u64,
    ) -> Result<Vec<usize>, Duration> {
        let now = self.now();
        self.machine().open_targets(kind, targets, now, chance)
    }

    /// Returns until when all targets of a job are held.
    pub(crate) fn targets_held(&self, kind: &KindName, targets: &[String]) -> Option<Moment> {
        let now = self.now();
        let wait = self.machine().open_targets(kind, targets, now, || 0).err()?;
        Some(now.plus(wait))
    }

    /// Returns the first hold of a kind that the store does not know yet.
    pub(crate) fn first_told(&self) -> Option<ToldToWait> {
        self.machine().first_told()
    }

    /// Removes a hold after it was stored. A longer one that came meanwhile stays.
    pub(crate) fn forget_told(&self, told: &ToldToWait) {
        self.machine().forget_told(told);
    }

    /// Returns the first probe result that is not stored yet.
    pub(crate) fn first_probed(&self) -> Option<Probed> {
        self.machine().first_probed()
    }

    /// Removes that result after it was stored.
    pub(crate) fn forget_first_probed(&self) {
        self.machine().forget_first_probed();
    }

    /// Returns for each kind with a budget what it has earned, and what it wants until the next heartbeat.
    pub(crate) fn retry_asks(&self) -> Vec<RetryAsk> {
        let now = self.now();
        let mut machine = self.machine();
        let living = machine.living();
        let with_budget = machine.kinds_mut().filter_map(|kind| {
            let name = kind.name.clone();
            kind.budget.as_mut().map(|budget| budget.ask(&name, now, living))
        });
        with_budget.collect()
    }

    /// Restores reports that certainly did not reach the store, so that they are repeated.
    pub(crate) fn unsay(&self, asks: &[RetryAsk]) {
        let mut machine = self.machine();
        for ask in asks {
            if let Some(budget) = machine.find_mut(&ask.kind).and_then(|kind| kind.budget.as_mut())
            {
                budget.unsay(ask);
            }
        }
    }

    /// Returns how long a retry without a grant waits, at least `after`; `None` if it has a grant or needs none.
    pub(crate) fn put_off(
        &self,
        kind: &KindName,
        after: Duration,
        deadline: Option<Duration>,
        chance: u64,
    ) -> Option<Duration> {
        let now = self.now();
        let mut machine = self.machine();
        let budget = machine.find_mut(kind)?.budget.as_mut().filter(|budget| budget.is_spent())?;
        Some(budget.put_off(now, after, deadline, chance))
    }
}

#[cfg(test)]
mod tests;
