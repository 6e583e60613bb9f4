//! Compares admission with a reference that only counts, over random sequences of events.
//!
//! Safety: no limit is exceeded, and nothing runs that is paused or parked. Liveness: after any history, once the dependency
//! works, a due job is admitted within [`ROUNDS_MAX`] seconds, also while old attempts hang.

mod steps;

use self::steps::{End, Step, step};
use super::world::{ME, OTHER, World, lane};
use crate::admission::{Admit, Ask, Fact, HeldReason, InHand, Slot, Suspect, Ticket, WorkerHas};
use crate::settings::{BreakerSettings, KindSettings};
use crate::tenant_settings::TenantSettings;
use crate::{BudgetSettings, Rate};
use proptest::collection::vec;
use proptest::prelude::*;
use rewheel::{BreakerState, Category, Moment, seconds};
use rewheel_core::{Failure, HolderId, Kind, KindName, Tenant};
use std::time::Duration;

/// Number of seconds that a due job may wait once the dependency works: an open breaker, the share of a rate in a fleet of four,
/// the next grant.
const ROUNDS_MAX: usize = 30;

/// A rate of a kind that four engines share.
const RATE: Rate = Rate::new(4, Duration::from_secs(1));

/// A rate of a tenant that four engines share.
const TENANT_RATE: Rate = Rate::new(3, Duration::from_secs(1));

/// A worker that claims through this engine.
const WORKER: HolderId = HolderId::from_bytes([3; 16]);

/// The kind with [`RATE`], the kind whose rate is so slow that each start is taken in the store, and the tenant with
/// [`TENANT_RATE`].
const RATED: usize = 1;
const SLOW: usize = 3;
const RATED_TENANT: usize = 3;

const SLOTS: usize = 5;

/// The kinds that call [`HOST`], and only that.
const CALLERS: [usize; 2] = [0, 2];
const HOST: &str = "bank";

/// An attempt in the reference.
struct Attempt {
    ticket: Option<Box<Ticket>>,
    slot: Option<Slot>,
    kind: usize,
    tenant: usize,
    suspect: Suspect,
    /// Whether its kind went down since it began.
    is_old: bool,
}

struct Model {
    world: World,
    names: Vec<KindName>,
    tenants: [Option<Tenant>; 4],
    most: [Option<usize>; 4],
    waiting: Vec<(InHand, usize, usize)>,
    attempts: Vec<Attempt>,
    /// Kind and tenant of each attempt of the worker.
    remote: Vec<(usize, usize)>,
    living: usize,
    /// Until when the host asked to wait.
    held_until: Option<Moment>,
    /// Whether the breaker of a kind was open after the previous step.
    was_open: [bool; 3],
    /// For the kind and the tenant with a rate: what they could have started, and what they started.
    could: [f64; 2],
    started: [f64; 2],
}

/// Maximum number of running attempts of the tenant `a`.
const TENANT_MAX: usize = 2;

impl Model {
    fn new() -> Model {
        let limited =
            TenantSettings { concurrency_max: Some(TENANT_MAX), ..TenantSettings::default() };
        let rated = TenantSettings { rate: Some(TENANT_RATE), ..TenantSettings::default() };
        let mut world = World::new(SLOTS, &[("a", limited), ("c", rated)]);
        for name in ["guarded", "thrifty"] {
            world.hosts.insert(KindName::parse(name).unwrap(), HOST.to_owned());
        }
        let breaker = BreakerSettings { window: 4, failure_ratio: 0.5, open_for: seconds(5) };
        let plain = KindSettings::default();
        world.put("guarded", KindSettings { breaker: Some(breaker), ..plain.clone() });
        world.put("rated", KindSettings { rate: Some(RATE), ..plain.clone() });
        let budget = Some(BudgetSettings::default());
        world.put("thrifty", KindSettings { retry_budget: budget, ..plain.clone() });
        world.put("slow", KindSettings { rate: "1/h".parse().ok(), ..plain });
        let names = ["guarded", "rated", "thrifty", "slow"];
        let names = names.map(|name| KindName::parse(name).unwrap());
        let tenant = |name: &str| Tenant::parse(name).ok();
        let tenants = [None, tenant("a"), tenant("b"), tenant("c")];
        Model {
            world,
            names: names.into(),
            tenants,
            most: [None; 4],
            waiting: Vec::new(),
            attempts: Vec::new(),
            remote: Vec::new(),
            living: 1,
            held_until: None,
            was_open: [false; 3],
            could: [0.0; 2],
            started: [0.0; 2],
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Pass(time) => self.pass(*time),
            Step::Fleet(living) => {
                self.living = *living;
                self.world.admission.apply(Fact::Fleet { living: *living });
            }
            Step::Pause(kind, paused) => {
                self.world.set(&self.names[*kind], |kind| kind.paused = *paused);
            }
            Step::Park(kind, prober) => {
                let prober = prober.map(|mine| if mine { ME } else { OTHER });
                let was_parked = self.world.kinds[&self.names[*kind]].0.parked.is_some();
                self.world.park(&self.names[*kind], prober);
                if !was_parked {
                    self.set_aside(*kind);
                }
            }
            Step::Unpark(kind) => self.change(*kind, |kind| kind.parked = None),
            Step::Close(kind) => {
                self.change(*kind, |kind| (kind.forced, kind.parked) = (!kind.forced, None));
            }
            Step::Hold(lasts) => {
                let until = self.world.hold(HOST, &self.names[CALLERS[0]], *lasts);
                self.held_until = self.held_until.into_iter().chain([until]).max();
            }
            Step::Limit(kind, most) => self.limit(*kind, *most),
            Step::Grant(kind, retries) => {
                let kind = self.names[*kind].clone();
                self.world.admission.apply(Fact::Granted { kind, retries: *retries });
            }
            Step::Come(kind, tenant) => {
                let (name, whose) = (&self.names[*kind], self.tenants[*tenant].as_ref());
                let held = self.world.admission.hold(name, whose);
                self.waiting.extend(held.map(|held| (held, *kind, *tenant)));
            }
            Step::Claim(kind, tenant) => {
                let (name, whose) = (&self.names[*kind], self.tenants[*tenant].as_ref());
                let held = self.world.claim(name, whose);
                self.waiting.extend(held.map(|held| (held, *kind, *tenant)));
            }
            Step::Ask(job, is_retry, suspect) if !self.waiting.is_empty() => {
                let nth = job.index(self.waiting.len());
                self.ask(nth, *is_retry, *suspect);
            }
            Step::End(attempt, end) if !self.attempts.is_empty() => {
                let nth = attempt.index(self.attempts.len());
                self.end(nth, *end);
            }
            Step::Settle(attempt) if !self.attempts.is_empty() => {
                let nth = attempt.index(self.attempts.len());
                if self.attempts[nth].ticket.is_none() {
                    self.attempts.remove(nth);
                }
            }
            Step::Leave(job) if !self.waiting.is_empty() => {
                self.waiting.remove(job.index(self.waiting.len()));
            }
            Step::Direct(kind, tenant) => self.direct(*kind, *tenant),
            Step::Worker(kind, tenant, jobs) => self.worker_claims(*kind, *tenant, *jobs),
            Step::WorkerEnd(attempt, end) if !self.remote.is_empty() => {
                let (kind, tenant) = self.remote.remove(attempt.index(self.remote.len()));
                self.worker_ends(kind, tenant, *end);
            }
            Step::Ask(..)
            | Step::End(..)
            | Step::Settle(_)
            | Step::Leave(_)
            | Step::WorkerEnd(..) => {}
        }
        self.check_step();
    }

    fn check_step(&mut self) {
        for kind in 0..3 {
            let seen = self.world.admission.suspicion(&self.names[kind]);
            let is_open = seen.is_some_and(|(state, _)| state == BreakerState::Open);
            let is_parked = self.world.kinds[&self.names[kind]].0.parked.is_some();
            if is_open && !self.was_open[kind] && !is_parked {
                self.set_aside(kind);
            }
            self.was_open[kind] = is_open;
        }
        assert_eq!(self.world.admission.running(), self.attempts.len());
        // A start that was taken in the store has a slot. While old attempts hang, tests of a dependency may have taken it.
        let has_old = self.count(|one| one.is_old) > 0;
        assert!(
            has_old || self.attempts.len() + self.promised() <= SLOTS,
            "a start without a slot"
        );
    }

    /// Changes a kind as an operator or a holder does. A change of a kind that is not parked ends the hold of its host.
    fn change(&mut self, kind: usize, change: impl FnOnce(&mut Kind)) {
        let name = self.names[kind].clone();
        let was_parked = self.world.kinds[&name].0.parked.is_some();
        self.world.change(&name, change);
        let is_parked = self.world.kinds[&name].0.parked.is_some();
        if CALLERS.contains(&kind) && !was_parked && !is_parked {
            self.held_until = None;
        }
    }

    /// Returns whether the attempts of a kind wait because its host asked for it.
    fn is_held(&self, kind: usize) -> bool {
        let forced = self.world.kinds[&self.names[kind]].0.forced;
        let is_held = self.held_until.is_some_and(|until| self.world.now() < until);
        is_held && CALLERS.contains(&kind) && !forced
    }

    /// Returns how many jobs wait here whose start was taken in the store.
    fn promised(&self) -> usize {
        self.waiting.iter().filter(|(_, kind, _)| *kind == SLOW).count()
    }

    /// Counts starts, which are negative if they were not used.
    fn starts(&mut self, kind: usize, tenant: usize, count: f64) {
        self.started[0] += if kind == RATED { count } else { 0.0 };
        self.started[1] += if tenant == RATED_TENANT { count } else { 0.0 };
        let [kind, tenant] = [0, 1].map(|which| self.started[which] <= self.could[which] + 1e-6);
        assert!(kind && tenant, "{:?} of {:?} starts", self.started, self.could);
    }

    fn pass(&mut self, time: Duration) {
        for (could, rate) in self.could.iter_mut().zip([4.0, 3.0]) {
            *could += time.as_secs_f64() * rate / self.living as f64;
        }
        self.world.clock.advance(time);
    }

    fn limit(&mut self, kind: usize, most: Option<usize>) {
        let name = self.names[kind].clone();
        let settings = self.world.kinds[&name].1.clone();
        self.most[kind] = most;
        self.world.put(name.as_str(), KindSettings { concurrency_max: most, ..settings });
    }

    fn set_aside(&mut self, kind: usize) {
        let running = self.attempts.iter_mut().filter(|attempt| attempt.kind == kind);
        running.for_each(|attempt| attempt.is_old = true);
    }

    fn count(&self, of: impl Fn(&Attempt) -> bool) -> usize {
        self.attempts.iter().filter(|attempt| of(attempt)).count()
    }

    fn ask(&mut self, nth: usize, is_retry: bool, suspect: u8) {
        let (_, kind, tenant) = &self.waiting[nth];
        let (kind, tenant) = (*kind, *tenant);
        let suspect = [Suspect::No, Suspect::Together, Suspect::Alone][usize::from(suspect)];
        let (name, whose) = (self.names[kind].clone(), self.tenants[tenant].clone());
        let ask =
            Ask { kind: &name, tenant: whose.as_ref(), is_retry, suspect, is_within_fleet: true };
        let breaker = self.world.admission.suspicion(&name).map(|(state, _)| state);
        match self.world.ask(&ask) {
            Admit::Run(ticket) => {
                self.check(kind, tenant, suspect, breaker);
                self.waiting.remove(nth);
                self.starts(kind, tenant, 1.0);
                let (ticket, slot) = (Some(ticket), None);
                self.attempts.push(Attempt { ticket, slot, kind, tenant, suspect, is_old: false });
            }
            Admit::Wait(_) => {}
            Admit::Return(held) | Admit::PutOff(held) => {
                assert!(is_retry || held.because != HeldReason::Budget);
                self.waiting.remove(nth);
            }
        }
    }

    /// Safety: checks that the admitted job may run.
    fn check(&self, kind: usize, tenant: usize, suspect: Suspect, breaker: Option<BreakerState>) {
        let (stored, _) = &self.world.kinds[&self.names[kind]];
        assert!(!stored.paused, "a paused kind");
        let prober = stored.parked.as_ref().map(|parked| parked.prober);
        let is_mine = prober == Some(Some(HolderId::from_bytes(ME)));
        assert!(prober.is_none() || is_mine, "a kind that is parked");
        assert!(is_mine || !self.is_held(kind), "a kind whose host asked to wait");
        // The fleet's right to probe a parked kind overrides earlier results of this engine's own attempts.
        assert!(is_mine || breaker != Some(BreakerState::Open), "a kind whose breaker is open");
        let is_probe = is_mine || breaker == Some(BreakerState::HalfOpen);
        let fresh = self.count(|one| one.kind == kind && !one.is_old);
        assert!(!is_probe || fresh == 0, "two probes");
        let running = self.count(|one| one.kind == kind);
        let only_old = fresh == 0 && running > 0;
        let share = SLOTS - SLOTS / 5;
        let most = self.most[kind].unwrap_or(share).min(share);
        assert!(running < most || only_old, "{running} run, {most} may");
        let promised = if kind == SLOW { 0 } else { self.promised() };
        assert!(self.attempts.len() + promised < SLOTS || only_old, "more than slots");
        let of_tenant = self.count(|one| one.tenant == tenant);
        assert!(tenant != 1 || of_tenant < TENANT_MAX || is_probe, "a tenant's limit");
        let suspects = self.count(|one| one.suspect != Suspect::No);
        let alone = self.count(|one| one.suspect == Suspect::Alone);
        assert!(suspect == Suspect::No || alone == 0, "beside one that must be alone");
        assert!(suspect != Suspect::Alone || suspects == 0, "not alone");
    }

    /// A new job is leased by its own insert, if it may run at once. It overtakes no job that waits here for a rate.
    fn direct(&mut self, kind: usize, tenant: usize) {
        let (name, whose) = (self.names[kind].clone(), self.tenants[tenant].clone());
        let breaker = self.world.admission.suspicion(&name).map(|(state, _)| state);
        let Some(ticket) = self.world.admission.admit_direct(&name, whose.as_ref()) else { return };
        assert_ne!(kind, SLOW, "only a claim takes a start in the store");
        assert!(matches!(breaker, None | Some(BreakerState::Closed)), "it is not a probe");
        assert!(self.world.kinds[&name].0.parked.is_none(), "it is not a probe");
        self.check(kind, tenant, Suspect::No, breaker);
        let waits = |of: &dyn Fn(usize, usize) -> bool| {
            self.waiting.iter().any(|(_, kind, tenant)| of(*kind, *tenant))
        };
        assert!(kind != RATED || !waits(&|kind, _| kind == RATED), "it overtakes");
        let is_rated = tenant == RATED_TENANT;
        assert!(!is_rated || !waits(&|_, tenant| tenant == RATED_TENANT), "it overtakes");
        self.starts(kind, tenant, 1.0);
        let (ticket, suspect) = (Some(Box::new(ticket)), Suspect::No);
        let attempt = Attempt { ticket, slot: None, kind, tenant, suspect, is_old: false };
        self.attempts.push(attempt);
    }

    /// Returns how many jobs a worker gets that has the given number.
    fn worker_takes(&self, kind: usize, tenant: usize, wanted: usize, has: WorkerHas) -> usize {
        let lane = lane(&self.names[kind], self.tenants[tenant].as_ref());
        self.world.admission.worker_takes(WORKER, &lane, wanted, has).jobs
    }

    fn worker_claims(&mut self, kind: usize, tenant: usize, wanted: usize) {
        let count =
            |of: &dyn Fn(&(usize, usize)) -> bool| self.remote.iter().filter(|one| of(one)).count();
        let of_kind = count(&|one| one.0 == kind);
        let of_tenant = count(&|one| one.1 == tenant);
        let name = self.names[kind].clone();
        let breaker = self.world.admission.suspicion(&name).map(|(state, _)| state);
        let jobs = self.worker_takes(kind, tenant, wanted, WorkerHas { of_kind, of_tenant });
        self.starts(kind, tenant, jobs as f64);
        self.remote.extend(std::iter::repeat_n((kind, tenant), jobs));
        if jobs == 0 {
            return;
        }
        let (stored, _) = &self.world.kinds[&name];
        assert!(!stored.paused && stored.parked.is_none(), "a kind that is paused or parked");
        assert!(!self.is_held(kind), "a kind whose host asked to wait");
        assert!(breaker != Some(BreakerState::Open), "a kind whose breaker is open");
        assert!(jobs <= wanted && (jobs == 1 || breaker != Some(BreakerState::HalfOpen)));
        let is_probe = breaker == Some(BreakerState::HalfOpen);
        let most = self.most[kind].unwrap_or(usize::MAX);
        assert!(of_kind + jobs <= most || is_probe, "the limit of a worker");
        assert!(tenant != 1 || of_tenant + jobs <= TENANT_MAX, "a tenant's limit");
    }

    fn worker_ends(&mut self, kind: usize, tenant: usize, end: End) {
        let (name, admission) = (self.names[kind].clone(), &self.world.admission);
        let failure = Failure::new(Category::Io, None, "down");
        match end {
            End::Well => admission.worker_spoke(WORKER, &name, Some(&Ok(()))),
            End::Badly => admission.worker_spoke(WORKER, &name, Some(&Err(failure))),
            End::Silent => admission.worker_spoke(WORKER, &name, None),
            End::Unused => {
                admission.worker_returns(&lane(&name, self.tenants[tenant].as_ref()), 1);
                self.starts(kind, tenant, -1.0);
            }
            // The worker died with it.
            End::Panic => {}
        }
    }

    fn end(&mut self, nth: usize, end: End) {
        let Some(mut ticket) = self.attempts[nth].ticket.take() else { return };
        let failure = Failure::new(Category::Io, None, "down");
        let (kind, tenant) = (self.attempts[nth].kind, self.attempts[nth].tenant);
        let slot = match end {
            End::Unused => {
                ticket.unused();
                self.starts(kind, tenant, -1.0);
                None
            }
            End::Panic => None,
            End::Well | End::Badly | End::Silent => {
                let spoke = match end {
                    End::Well => Some(Ok(())),
                    End::Badly => Some(Err(failure)),
                    End::Silent | End::Unused | End::Panic => None,
                };
                ticket.begins(true);
                ticket.speaks(spoke.as_ref(), false);
                Some(ticket.ran(spoke.is_some_and(|spoke| spoke.is_ok())))
            }
        };
        match slot {
            Some(slot) => self.attempts[nth].slot = Some(slot),
            None => drop(self.attempts.remove(nth)),
        }
    }

    /// Does what the other loops of an engine do in a second, once the dependency works and no operator interferes.
    fn heal(&mut self, kind: usize) {
        self.pass(seconds(1));
        let name = self.names[kind].clone();
        while let Some(probed) = self.world.admission.first_probed() {
            self.world.admission.forget_first_probed();
            let (stored, _) = &self.world.kinds[&probed.kind];
            if stored.generation == probed.generation && probed.is_back {
                self.world.change(&probed.kind, |kind| kind.parked = None);
            } else if stored.generation == probed.generation {
                self.world.park(&probed.kind, None);
            }
        }
        let (stored, _) = &self.world.kinds[&name];
        let prober = stored.parked.as_ref().map(|parked| parked.prober);
        if stored.paused || stored.forced {
            self.change(kind, |kind| (kind.paused, kind.forced) = (false, false));
        } else if prober.is_some_and(|prober| prober != Some(HolderId::from_bytes(ME))) {
            self.world.park(&name, Some(ME));
        }
        for ask in self.world.admission.retry_asks() {
            self.world.admission.apply(Fact::Granted { kind: ask.kind, retries: ask.wanted });
        }
    }

    /// Liveness: a due job of the kind is claimed and admitted.
    fn must_run(&mut self, kind: usize, tenant: usize, is_retry: bool) {
        let (name, whose) = (self.names[kind].clone(), self.tenants[tenant].clone());
        for _ in 0..ROUNDS_MAX {
            self.heal(kind);
            let Some(held) = self.world.claim(&name, whose.as_ref()) else { continue };
            self.waiting.push((held, kind, tenant));
            let (nth, before) = (self.waiting.len() - 1, self.attempts.len());
            self.ask(nth, is_retry, 0);
            if self.attempts.len() > before {
                self.end(before, End::Well);
                self.attempts.remove(before);
                // Twice: the first may have been a probe.
                return;
            }
            self.waiting.truncate(nth);
        }
        panic!("a due job of `{name}` and {whose:?} was not admitted within {ROUNDS_MAX} s");
    }

    /// Liveness: a worker gets a due job of the kind.
    fn worker_must_run(&mut self, kind: usize) {
        for _ in 0..ROUNDS_MAX {
            self.heal(kind);
            if self.worker_takes(kind, 0, 1, WorkerHas::default()) == 1 {
                self.starts(kind, 0, 1.0);
                return self.worker_ends(kind, 0, End::Well);
            }
        }
        panic!("a worker got no job of `{}` within {ROUNDS_MAX} s", self.names[kind]);
    }
}

/// Number of random walks: `PROPTEST_CASES` if it is set.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_exceeded_and_nothing_gets_stuck(
        steps in vec(step(), 0..150),
        is_retry in any::<bool>(),
    ) {
        let mut model = Model::new();
        steps.iter().for_each(|step| model.step(step));
        model.waiting.clear();
        // The worker died with its attempts.
        model.remote.clear();
        // Attempts from before an outage keep hanging; all others have ended.
        model.attempts.retain(|attempt| attempt.is_old);
        for kind in 0..4 {
            // If hanging attempts hold all slots, they belong to at least one kind, and the others have no free slot.
            let has_slot = model.attempts.len() < SLOTS
                || model.count(|attempt| attempt.kind == kind) > 0;
            if has_slot {
                model.must_run(kind, 0, is_retry);
                model.must_run(kind, 0, is_retry);
                model.must_run(kind, RATED_TENANT, is_retry);
                model.worker_must_run(kind);
            }
        }
        model.attempts.clear();
        let machine = model.world.admission.machine();
        prop_assert!(machine.is_idle(), "{machine:?}");
    }
}
