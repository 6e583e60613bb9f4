//! Compares admission with a reference that only counts, over random sequences of events.
//!
//! Safety: no limit is exceeded, and nothing runs that is paused or parked. Liveness: after any history, once the dependency
//! works, a due job is admitted within [`ROUNDS_MAX`] seconds, also while old attempts hang.

use super::world::{ME, OTHER, World};
use crate::admission::{Admit, Ask, Fact, HeldReason, InHand, Slot, Suspect, Ticket};
use crate::settings::{BreakerSettings, KindSettings};
use crate::tenant_settings::TenantSettings;
use crate::{BudgetSettings, Rate};
use proptest::collection::vec;
use proptest::prelude::*;
use rewheel::{BreakerState, Category, millis, seconds};
use rewheel_core::{Failure, HolderId, KindName, Tenant};
use std::time::Duration;

/// Number of seconds that a due job may wait once the dependency works: an open breaker, the share of a rate in a fleet of four,
/// the next grant.
const ROUNDS_MAX: usize = 30;

/// A rate that four engines share.
const RATE: Rate = Rate::new(4, Duration::from_secs(1));

const SLOTS: usize = 5;

#[derive(Clone, Debug)]
enum Step {
    Pass(Duration),
    Fleet(usize),
    Pause(usize, bool),
    Park(usize, Option<bool>),
    Unpark(usize),
    Close(usize),
    Limit(usize, Option<usize>),
    Grant(usize, u32),
    /// A job becomes due here, without a claim.
    Come(usize, usize),
    /// A job is claimed.
    Claim(usize, usize),
    /// A waiting job asks to run.
    Ask(prop::sample::Index, bool, u8),
    /// An attempt ends.
    End(prop::sample::Index, End),
    /// A result is durable.
    Settle(prop::sample::Index),
    /// A waiting job leaves.
    Leave(prop::sample::Index),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Well,
    Badly,
    /// It says nothing about the dependency.
    Silent,
    Unused,
    Panic,
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let end =
        prop::sample::select(vec![End::Well, End::Badly, End::Silent, End::Unused, End::Panic]);
    prop_oneof![
        4 => (0..3_000_u64).prop_map(|time| Step::Pass(millis(time))),
        1 => (1..5_usize).prop_map(Step::Fleet),
        1 => (0..3_usize, any::<bool>()).prop_map(|(kind, paused)| Step::Pause(kind, paused)),
        2 => (0..3_usize, any::<Option<bool>>()).prop_map(|(kind, prober)| Step::Park(kind, prober)),
        2 => (0..3_usize).prop_map(Step::Unpark),
        1 => (0..3_usize).prop_map(Step::Close),
        1 => (0..3_usize, any::<Option<bool>>())
            .prop_map(|(kind, most)| Step::Limit(kind, most.map(|two| 1 + usize::from(two)))),
        1 => (0..3_usize, 0..3_u32).prop_map(|(kind, retries)| Step::Grant(kind, retries)),
        4 => (0..3_usize, 0..3_usize).prop_map(|(kind, tenant)| Step::Come(kind, tenant)),
        4 => (0..3_usize, 0..3_usize).prop_map(|(kind, tenant)| Step::Claim(kind, tenant)),
        12 => (index(), any::<bool>(), 0..3_u8)
            .prop_map(|(job, is_retry, suspect)| Step::Ask(job, is_retry, suspect)),
        6 => (index(), end).prop_map(|(attempt, end)| Step::End(attempt, end)),
        6 => index().prop_map(Step::Settle),
        1 => index().prop_map(Step::Leave),
    ]
}

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
    tenants: [Option<Tenant>; 3],
    most: [Option<usize>; 3],
    waiting: Vec<(InHand, usize, usize)>,
    attempts: Vec<Attempt>,
    living: usize,
    /// Whether the breaker of a kind was open after the previous step.
    was_open: [bool; 3],
    /// For the kind with a rate: what it could have started, and what it started.
    could: f64,
    started: f64,
}

/// Maximum number of running attempts of the tenant `a`.
const TENANT_MAX: usize = 2;

impl Model {
    fn new() -> Model {
        let limited =
            TenantSettings { concurrency_max: Some(TENANT_MAX), ..TenantSettings::default() };
        let mut world = World::new(SLOTS, &[("a", limited)]);
        let breaker = BreakerSettings { window: 4, failure_ratio: 0.5, open_for: seconds(5) };
        let plain = KindSettings::default();
        world.put("guarded", KindSettings { breaker: Some(breaker), ..plain.clone() });
        world.put("rated", KindSettings { rate: Some(RATE), ..plain.clone() });
        let budget = Some(BudgetSettings::default());
        world.put("thrifty", KindSettings { retry_budget: budget, ..plain });
        let names = ["guarded", "rated", "thrifty"].map(|name| KindName::parse(name).unwrap());
        let tenants = [None, Tenant::parse("a").ok(), Tenant::parse("b").ok()];
        Model {
            world,
            names: names.into(),
            tenants,
            most: [None; 3],
            waiting: Vec::new(),
            attempts: Vec::new(),
            living: 1,
            was_open: [false; 3],
            could: 0.0,
            started: 0.0,
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
                self.world.change(&self.names[*kind], |kind| kind.paused = *paused);
            }
            Step::Park(kind, prober) => {
                let prober = prober.map(|mine| if mine { ME } else { OTHER });
                let was_parked = self.world.kinds[&self.names[*kind]].0.parked.is_some();
                self.world.park(&self.names[*kind], prober);
                if !was_parked {
                    self.set_aside(*kind);
                }
            }
            Step::Unpark(kind) => self.world.change(&self.names[*kind], |kind| kind.parked = None),
            Step::Close(kind) => {
                self.world.change(&self.names[*kind], |kind| {
                    (kind.forced, kind.parked) = (!kind.forced, None);
                });
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
            Step::Ask(..) | Step::End(..) | Step::Settle(_) | Step::Leave(_) => {}
        }
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
    }

    fn pass(&mut self, time: Duration) {
        self.could += time.as_secs_f64() * 4.0 / self.living as f64;
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
                self.started += if kind == 1 { 1.0 } else { 0.0 };
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
        assert!(self.attempts.len() < SLOTS || only_old, "more than slots");
        let of_tenant = self.count(|one| one.tenant == tenant);
        assert!(tenant != 1 || of_tenant < TENANT_MAX || is_probe, "a tenant's limit");
        let suspects = self.count(|one| one.suspect != Suspect::No);
        let alone = self.count(|one| one.suspect == Suspect::Alone);
        assert!(suspect == Suspect::No || alone == 0, "beside one that must be alone");
        assert!(suspect != Suspect::Alone || suspects == 0, "not alone");
        if kind == 1 {
            assert!(self.started + 1.0 <= self.could + 1e-6, "{} of {}", self.started, self.could);
        }
    }

    fn end(&mut self, nth: usize, end: End) {
        let Some(mut ticket) = self.attempts[nth].ticket.take() else { return };
        let failure = Failure::new(Category::Io, None, "down");
        let is_rated = self.attempts[nth].kind == 1;
        let slot = match end {
            End::Unused => {
                ticket.unused();
                self.started -= if is_rated { 1.0 } else { 0.0 };
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
            self.world.change(&name, |kind| (kind.paused, kind.forced) = (false, false));
        } else if prober.is_some_and(|prober| prober != Some(HolderId::from_bytes(ME))) {
            self.world.park(&name, Some(ME));
        }
        for ask in self.world.admission.retry_asks() {
            self.world.admission.apply(Fact::Granted { kind: ask.kind, retries: ask.wanted });
        }
    }

    /// Liveness: a due job of the kind is claimed and admitted.
    fn must_run(&mut self, kind: usize, is_retry: bool) {
        let name = self.names[kind].clone();
        for _ in 0..ROUNDS_MAX {
            self.heal(kind);
            let Some(held) = self.world.claim(&name, None) else { continue };
            self.waiting.push((held, kind, 0));
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
        panic!("a due job of `{name}` was not admitted within {ROUNDS_MAX} s");
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
        // Attempts from before an outage keep hanging; all others have ended.
        model.attempts.retain(|attempt| attempt.is_old);
        for kind in 0..3 {
            // If hanging attempts hold all slots, they belong to at least one kind, and the others have no free slot.
            let has_slot = model.attempts.len() < SLOTS
                || model.count(|attempt| attempt.kind == kind) > 0;
            if has_slot {
                model.must_run(kind, is_retry);
                model.must_run(kind, is_retry);
            }
        }
        model.attempts.clear();
        let machine = model.world.admission.machine();
        prop_assert!(machine.is_idle(), "{machine:?}");
    }
}
