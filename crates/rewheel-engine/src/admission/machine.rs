//! State machine of admission, without I/O; the caller passes the time.

mod results;
mod slow_rates;

use super::answer::{Ask, Held, HeldReason, Refused, Suspect};
use super::budget::Budget;
use super::hosts::Hosts;
use super::kind::{Condition, Evidence, FleetRule, Full, KindFact, KindNews, KindState};
use super::load::Load;
use super::plan::{Grant, Room};
use super::tenant::Tenants;
use super::{Fact, Setup};
use rewheel::{Clock, Moment, Random};
use rewheel_core::{HolderId, KindName, Lane, Tenant};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Index of a kind, valid as long as the engine lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KindId(usize);

/// The result of probing a parked kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probed {
    pub(crate) kind: KindName,
    /// The generation of the right to probe: a later decision overrides the result.
    pub(crate) generation: u64,
    pub(crate) is_back: bool,
    /// The reason shown to users if it is not back.
    pub(crate) why: String,
}

/// The service of a kind asked the whole fleet to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToldToWait {
    pub(crate) kind: KindName,
    pub(crate) until: Moment,
    /// The reason shown to users.
    pub(crate) why: String,
}

/// An attempt that was admitted.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) kind: KindId,
    pub(super) outages: u64,
    pub(super) evidence: Option<Evidence>,
    pub(super) is_paid: bool,
}

/// The complete admission state.
#[derive(Debug)]
pub(super) struct Machine {
    slots: usize,
    running: usize,
    /// Number of them that are from before an outage of their kind.
    old: usize,
    /// Number of times that a slot was freed.
    freed: u64,
    suspects: usize,
    is_alone: bool,
    /// Number of slots promised to jobs of slow rates that are being claimed or wait here.
    promised: usize,
    /// Until when one more is: a claim found no free slot.
    kept_until: Option<Moment>,
    me: HolderId,
    living: Option<usize>,
    kinds: Vec<KindState>,
    by_name: HashMap<KindName, KindId>,
    /// Number of kinds that share the slots.
    sharing: usize,
    pub(super) tenants: Tenants,
    /// Whether jobs of several tenants are due.
    are_several: bool,
    probed: VecDeque<Probed>,
    hosts: Hosts,
    /// At most one for each kind.
    told: VecDeque<ToldToWait>,
    clock: Clock,
    random: Random,
    beat: Duration,
}

impl Machine {
    pub(super) fn new(setup: Setup) -> Machine {
        Machine {
            slots: setup.slots,
            running: 0,
            old: 0,
            freed: 0,
            suspects: 0,
            is_alone: false,
            promised: 0,
            kept_until: None,
            me: setup.holder,
            living: None,
            kinds: Vec::new(),
            by_name: HashMap::new(),
            sharing: 0,
            tenants: Tenants::new(setup.tenants),
            are_several: false,
            probed: VecDeque::new(),
            hosts: Hosts::default(),
            told: VecDeque::new(),
            clock: setup.clock,
            random: setup.random,
            beat: setup.beat,
        }
    }

    /// Records an event.
    pub(super) fn apply(&mut self, fact: Fact, now: Moment) {
        match fact {
            Fact::Holder(me) => self.me = me,
            Fact::Fleet { living } => {
                let living = living.max(1);
                self.living = Some(living);
                let buckets = self.kinds.iter_mut().filter_map(|kind| kind.bucket.as_mut());
                buckets.for_each(|bucket| bucket.share(living, now));
                self.tenants.share(living, now);
            }
            Fact::TenantsDue { are_several } => self.are_several = are_several,
            Fact::KindGone { kind } => {
                let was_sharing = self.find(&kind).is_some_and(is_sharing);
                self.find_mut(&kind).into_iter().for_each(KindState::forget);
                self.sharing -= usize::from(was_sharing);
            }
            Fact::ProbeDue { kind, generation } => {
                let kind = self.find_mut(&kind).filter(|kind| kind.generation() == generation);
                kind.into_iter().for_each(|kind| kind.is_probe_due = true);
            }
            Fact::ReturnedLate { kind, until } => {
                let freed = self.freed;
                if let Some(kind) = self.find_mut(&kind) {
                    kind.full = Some(Full { freed, until });
                }
            }
            Fact::HostHeld { host, kind, until } => {
                if self.hosts.hold(&host, &kind, until, now) {
                    let calls_it = |kind: &&mut KindState| kind.calls_only(&host);
                    self.kinds.iter_mut().filter(calls_it).for_each(|kind| kind.hold(until));
                }
            }
            Fact::KindHeld { kind: name, until, why } => {
                let Some(kind) = self.find_mut(&name).filter(|kind| !kind.is_forced()) else {
                    return;
                };
                kind.hold(until);
                self.told.retain(|told| told.kind != name);
                self.told.push_back(ToldToWait { kind: name, until, why });
            }
            Fact::Granted { kind, retries } => {
                if let Some(budget) = self.find_mut(&kind).and_then(|kind| kind.budget.as_mut()) {
                    budget.receive(retries);
                }
            }
        }
    }

    /// Takes over a kind as stored.
    pub(super) fn learn(&mut self, fact: &KindFact<'_>) -> KindNews {
        let id = self.id(&fact.kind.name);
        let living = self.living;
        let parts = (&self.clock, &self.random, self.beat);
        let Some(kind) = self.kinds.get_mut(id.0) else { return KindNews::default() };
        let (was_sharing, old) = (is_sharing(kind), kind.load.old());
        let needed = kind.fleet.slots_for(&kind.load);
        let news = kind.learn(fact, parts, living);
        let (name, host) = (kind.name.clone(), kind.host.clone());
        if news.is_released {
            self.hosts.release(host.as_deref(), &name);
            let same =
                |other: &&mut KindState| host.as_ref().is_some_and(|it| other.calls_only(it));
            self.kinds.iter_mut().filter(same).for_each(KindState::release);
            self.told.retain(|told| told.kind != name);
        } else if let Some(until) =
            host.as_deref().and_then(|host| self.hosts.until(host, self.clock.now()))
            && kind.heeds_hosts()
        {
            kind.hold(until);
        }
        let Some(kind) = self.kinds.get_mut(id.0) else { return news };
        self.promised = self.promised + kind.fleet.slots_for(&kind.load) - needed;
        self.old = self.old + kind.load.old() - old;
        match (was_sharing, is_sharing(kind)) {
            (false, true) => self.sharing += 1,
            (true, false) => self.sharing -= 1,
            (true, true) | (false, false) => {}
        }
        news
    }

    fn id(&mut self, name: &KindName) -> KindId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = KindId(self.kinds.len());
        self.kinds.push(KindState::new(name));
        self.by_name.insert(name.clone(), id);
        id
    }

    pub(super) fn find(&self, name: &KindName) -> Option<&KindState> {
        self.by_name.get(name).and_then(|id| self.kinds.get(id.0))
    }

    pub(super) fn find_mut(&mut self, name: &KindName) -> Option<&mut KindState> {
        let id = self.by_name.get(name)?;
        self.kinds.get_mut(id.0)
    }

    pub(super) fn kind(&mut self, id: KindId) -> Option<&mut KindState> {
        self.kinds.get_mut(id.0)
    }

    pub(super) fn id_of(&self, name: &KindName) -> Option<KindId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn kinds_mut(&mut self) -> impl Iterator<Item = &mut KindState> {
        self.kinds.iter_mut()
    }

    pub(super) const fn me(&self) -> HolderId {
        self.me
    }

    pub(super) const fn slots(&self) -> usize {
        self.slots
    }

    pub(super) const fn running(&self) -> usize {
        self.running
    }

    pub(super) fn living(&self) -> usize {
        self.living.unwrap_or(1)
    }

    /// Returns how many slots one kind may have. The last fifth is reserved for other kinds, if there are any, so that a hanging
    /// kind does not block them.
    fn kind_share(&self) -> usize {
        if self.sharing > 1 { self.slots - self.slots / 5 } else { self.slots }
    }

    /// Returns how many slots one tenant may have. The last fifth is reserved for other tenants, while they have due jobs.
    fn tenant_share(&self) -> usize {
        if self.are_several { self.slots - self.slots / 5 } else { self.slots }
    }

    /// Returns whether any job could start: there is a free slot, or the slots of a kind are held by hanging old attempts.
    pub(super) fn may_start(&self) -> bool {
        let has_only_old = |kind: &KindState| kind.load.only_old_runs();
        self.running < self.slots || (self.old > 0 && self.kinds.iter().any(has_only_old))
    }

    /// Returns whether no job runs, waits or is being claimed.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        (self.running, self.old, self.suspects, self.is_alone) == (0, 0, 0, false)
            && self.promised == 0
            && self.kinds.iter().all(|kind| kind.load.is_idle())
            && self.tenants.are_idle()
    }

    /// Returns for each lane whether it is worth a visit.
    pub(super) fn rooms(&mut self, lanes: &[&Lane], now: Moment) -> Vec<Room> {
        let (me, share, freed) = (self.me, self.kind_share(), self.freed);
        let of_tenants = self.tenant_share();
        let mut rooms = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let weight = self.tenants.weight(lane.tenant.as_ref());
            let kind = self.find_mut(&lane.kind);
            let (of_kind, is_limited) = kind.map_or((0, false), |kind| {
                (kind.room(me, (share, 0), freed, now), !kind.fleet.is_none())
            });
            let tenant = self.tenants.of(lane.tenant.as_ref(), now);
            let is_open = of_kind > 0 && tenant.room((of_tenants, 0), now) > 0;
            let is_limited = !tenant.fleet.is_none() || is_limited;
            rooms.push(Room { is_open, is_limited, weight });
        }
        rooms
    }

    /// Reserves capacity for jobs of a lane, at most `wanted`, for a claim that has already reserved this many of its kind and of
    /// its tenant.
    pub(super) fn reserve(
        &mut self,
        lane: &Lane,
        wanted: usize,
        [of_kind_mine, of_tenant_mine]: [usize; 2],
        now: Moment,
    ) -> Grant {
        let (me, share, freed) = (self.me, self.kind_share(), self.freed);
        let of_tenants = self.tenant_share();
        let Some(kind) = self.find_mut(&lane.kind) else { return Grant::default() };
        let of_kind = kind.room(me, (share, of_kind_mine), freed, now);
        let is_probe = kind.is_probed_by(me);
        let (fleet_of_kind, wait_of_kind) = (kind.fleet, kind.load.waiting());
        let free = self.slots.saturating_sub(self.running);
        let tenant = self.tenants.of(lane.tenant.as_ref(), now);
        let of_tenant = tenant.room((of_tenants, of_tenant_mine), now);
        let fleet_of_tenant = tenant.fleet;
        let mut jobs = match is_probe {
            true => of_kind.min(1),
            false => wanted.min(of_kind).min(of_tenant),
        };
        // A job that waits here holds a slot of the fleet that another engine could use: beyond the free slots at most one waits.
        let limits = [(fleet_of_kind, wait_of_kind), (fleet_of_tenant, tenant.load.waiting())];
        for (_, waiting) in limits.iter().filter(|(rule, _)| !rule.is_none() && !is_probe) {
            jobs = jobs.min(free.max(1).saturating_sub(*waiting));
        }
        let is_slow = [fleet_of_kind, fleet_of_tenant].iter().any(FleetRule::is_slow);
        if is_slow && !is_probe {
            jobs = self.promise(jobs, now);
        }
        let id = self.id_of(&lane.kind);
        self.change_loads(id, lane.tenant.as_ref(), |load| load.ask(jobs));
        Grant { jobs, is_probe, fleet: [fleet_of_kind, fleet_of_tenant] }
    }

    /// Ends a reservation.
    pub(super) fn unreserve(&mut self, lane: &Lane, jobs: usize) {
        let id = self.id_of(&lane.kind);
        self.change_loads(id, lane.tenant.as_ref(), |load| load.unask(jobs));
    }

    /// Lets a due job wait here for a slot.
    pub(super) fn queue(
        &mut self,
        kind: &KindName,
        tenant: Option<&Tenant>,
        now: Moment,
    ) -> KindId {
        let id = self.id(kind);
        // So that the tenant is known.
        self.tenants.of(tenant, now);
        self.change_loads(Some(id), tenant, Load::queue);
        id
    }

    /// Returns whether so many similar jobs wait here that one more would take the capacity to claim others.
    pub(super) fn has_enough(
        &mut self,
        kind: &KindName,
        tenant: Option<&Tenant>,
        now: Moment,
    ) -> bool {
        let (slots, share, of_tenants) = (self.slots, self.kind_share(), self.tenant_share());
        let is_full = |load: usize| share < slots && load >= 2 * share;
        if self.find(kind).is_some_and(|kind| is_full(kind.load.all())) {
            return true;
        }
        let most = if of_tenants < slots { of_tenants } else { usize::MAX };
        self.tenants.of(tenant, now).has_enough(most)
    }

    pub(super) fn unqueue(&mut self, kind: KindId, tenant: Option<&Tenant>) {
        self.change_loads(Some(kind), tenant, Load::unqueue);
    }

    /// Returns why a job may not run now, or `None` if it may. Takes nothing.
    pub(super) fn refuses(&mut self, ask: &Ask<'_>, now: Moment) -> Option<Refused> {
        let (me, share, of_tenants) = (self.me, self.kind_share(), self.tenant_share());
        let (running, slots) = (self.running, self.slots);
        let not_for_others = self.promised_to_others(ask, now);
        let Some(kind) = self.find_mut(ask.kind) else {
            return Some(Refused::Return(Held::by(HeldReason::NoRunner)));
        };
        let of_kind = kind.refuses((me, share), (ask.is_retry, ask.is_within_fleet), now);
        if of_kind.is_some() {
            return of_kind;
        }
        let is_probe = kind.condition(me, now) == Condition::Probing;
        // Hanging attempts do not count against the probe that tests whether the dependency is back.
        let has_hung = is_probe && kind.load.only_old_runs();
        let of_tenants = if kind.load.only_old_runs() { usize::MAX } else { of_tenants };
        if running + not_for_others >= slots && !kind.load.only_old_runs() {
            return Some(Refused::Wait(Held::by(HeldReason::Concurrency)));
        }
        let fleet = is_probe || ask.is_within_fleet;
        let tenant = self.tenants.of(ask.tenant, now);
        if let Some(refused) = tenant.refuses(of_tenants, (has_hung, fleet), now) {
            return Some(refused);
        }
        let must_wait = match ask.suspect {
            Suspect::No => false,
            Suspect::Together => self.is_alone,
            Suspect::Alone => self.is_alone || self.suspects > 0,
        };
        must_wait.then_some(Refused::WaitAlone)
    }

    /// Begins an attempt, or returns why not. A refused attempt has taken nothing, so there is nothing to undo.
    pub(super) fn admit(&mut self, ask: &Ask<'_>, now: Moment) -> Result<Admitted, Refused> {
        if let Some(refused) = self.refuses(ask, now) {
            if let (Refused::PutOff(_), Some(kind)) = (refused, self.find_mut(ask.kind)) {
                // It was due, but had no grant.
                kind.budget.as_mut().map(Budget::pay);
            }
            return Err(refused);
        }
        let (me, refused) = (self.me, Refused::Wait(Held::by(HeldReason::Parked)));
        let id = self.id_of(ask.kind).ok_or(refused)?;
        let kind = self.kind(id).ok_or(refused)?;
        let evidence = kind.begin(me).ok_or(refused)?;
        let outages = kind.load.begin();
        let is_paid = ask.is_retry && kind.budget.as_mut().is_some_and(Budget::pay);
        let tenant = self.tenants.of(ask.tenant, now);
        tenant.take_pass();
        tenant.load.begin();
        self.running += 1;
        self.suspects += usize::from(ask.suspect != Suspect::No);
        self.is_alone |= ask.suspect == Suspect::Alone;
        Ok(Admitted { kind: id, outages, evidence, is_paid })
    }

    /// Returns whether a new job may go directly to a slot. Not while jobs that are already here wait for it, or if the store
    /// would not lease it: an insert in progress holds the slot, the probe or the rate token that another job needs.
    pub(super) fn takes_direct(
        &mut self,
        name: &KindName,
        tenant: Option<&Tenant>,
        now: Moment,
    ) -> bool {
        let me = self.me;
        let Some(kind) = self.find(name) else { return false };
        let is_held_up =
            (kind.bucket.is_some() || kind.load.is_ramping()) && kind.load.queued() > 0;
        let is_well = kind.runs && kind.condition(me, now) == Condition::Well;
        let is_limited = !kind.fleet.is_none();
        let tenant = self.tenants.of(tenant, now);
        is_well && !is_held_up && !is_limited && tenant.fleet.is_none() && !tenant.is_held_up()
    }
}

/// Returns whether a kind is one of those that share the slots. The engine's own kinds, which run rarely, are not.
fn is_sharing(kind: &KindState) -> bool {
    kind.runs && !kind.name.is_reserved()
}
