//! Admission state of one kind.

use super::answer::{Held, HeldReason, Refused};
use super::bucket::{self, Bucket};
use super::budget::Budget;
use super::health::Health;
use super::load::Load;
use super::remote::Recovery;
use crate::rate::Rate;
use crate::settings::{Hold, KindSettings};
use rewheel::{BreakerState, Clock, Moment, Random};
use rewheel_core::{HolderId, Kind, KindName};
use std::time::Duration;

/// How much one attempt changes the failure ratio of its kind.
const RATIO_STEP: f64 = 0.05;

/// A kind as passed to admission.
#[derive(Debug)]
pub(crate) struct KindFact<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) settings: &'a KindSettings,
    /// Whether this engine can run it.
    pub(crate) runs: bool,
    /// The host that all its attempts call, if there is only one.
    pub(crate) host: Option<String>,
}

/// What changed after a [`KindFact`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindNews {
    /// It was parked and no longer is.
    pub(crate) is_back: bool,
    /// It is parked.
    pub(crate) is_parked: bool,
    /// An operator reset it: holds end.
    pub(crate) is_released: bool,
}

/// One kind.
#[derive(Debug)]
pub(super) struct KindState {
    pub(super) name: KindName,
    pub(super) runs: bool,
    paused: bool,
    /// While it is parked: the holder that may probe, if there is one.
    parked: Option<Option<HolderId>>,
    forced: bool,
    /// Whether it was read from the store.
    is_known: bool,
    generation: u64,
    concurrency_max: Option<usize>,
    pub(super) fleet: FleetRule,
    pub(super) load: Load,
    /// Number of its attempts that have ended.
    pub(super) ended: u64,
    pub(super) bucket: Option<Bucket>,
    pub(super) budget: Option<Budget>,
    pub(super) health: Option<Health>,
    /// The recent failure ratio of its attempts.
    failure_ratio: f64,
    /// Set after jobs were returned because no slot was free: until then, or until a slot is free, none is claimed.
    pub(super) full: Option<Full>,
    /// The host that all its attempts call, if there is only one.
    pub(super) host: Option<String>,
    /// What waits if a host asks to wait.
    scope: Hold,
    /// Until when its attempts wait, because the called service asked for it.
    held_until: Option<Moment>,
    /// Whether a worker may take the right to probe.
    pub(super) is_probe_due: bool,
    /// Attempts of workers while it recovers.
    pub(super) recovery: Recovery,
}

/// When a kind was full, so that its jobs were returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    /// Number of slots that had been freed by then.
    pub(super) freed: u64,
    pub(super) until: Moment,
}

/// Fleet-wide limits of a kind or a tenant, enforced by the claim itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FleetRule {
    pub(crate) concurrency_max: Option<u32>,
    /// The minimum time between two starts, for a slow rate.
    pub(crate) interval: Option<Duration>,
}

impl FleetRule {
    pub(super) fn new(concurrency_max: Option<u32>, rate: Option<Rate>) -> FleetRule {
        FleetRule { concurrency_max, interval: rate.and_then(Rate::interval) }
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.concurrency_max.is_none() && self.interval.is_none()
    }

    /// Returns whether each start is taken from the store.
    pub(super) const fn is_slow(&self) -> bool {
        self.interval.is_some()
    }

    /// Returns how many slots to set aside for jobs under this limit that are being claimed or wait here.
    pub(super) const fn slots_for(&self, load: &Load) -> usize {
        if self.is_slow() { load.waiting() } else { 0 }
    }

    /// Returns why a job waits that this limit holds back.
    pub(super) const fn reason(&self) -> HeldReason {
        match self.interval {
            Some(_) => HeldReason::RateLimit,
            None => HeldReason::Concurrency,
        }
    }
}

/// What may run of a kind now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Everything that its limits allow.
    Well,
    /// One attempt at a time, which tests whether the dependency is back.
    Probing,
    /// Nothing.
    Closed(HeldReason, Option<Duration>),
}

/// What an attempt tells about the dependency, and to whom.
#[derive(Debug)]
pub(super) enum Evidence {
    /// Its result counts for this engine's breaker.
    Own(rewheel::OwnedPermit),
    /// Its result tells the whole fleet whether a parked kind is back, for this generation.
    Probe(u64),
}

impl KindState {
    pub(super) fn new(name: &KindName) -> KindState {
        KindState {
            name: name.clone(),
            runs: false,
            paused: false,
            parked: None,
            forced: false,
            is_known: false,
            generation: 0,
            concurrency_max: None,
            fleet: FleetRule::default(),
            load: Load::default(),
            ended: 0,
            bucket: None,
            budget: None,
            health: None,
            failure_ratio: 0.0,
            full: None,
            host: None,
            scope: Hold::Host,
            held_until: None,
            is_probe_due: false,
            recovery: Recovery::default(),
        }
    }

    /// Takes over the kind as stored. Running attempts keep their slots, and changed limits keep their level.
    pub(super) fn learn(
        &mut self,
        fact: &KindFact<'_>,
        (clock, random, beat): (&Clock, &Random, Duration),
        living: Option<usize>,
    ) -> KindNews {
        let (kind, settings, now) = (fact.kind, fact.settings, clock.now());
        (self.runs, self.concurrency_max) = (fact.runs, settings.concurrency_max);
        self.fleet = FleetRule::new(settings.fleet_concurrency_max, settings.rate);
        let rate = settings.rate.filter(|rate| rate.interval().is_none());
        set_rate(&mut self.bucket, rate, living, now);
        if self.budget.as_ref().map(Budget::settings) != settings.retry_budget {
            self.budget = settings.retry_budget.map(|budget| Budget::new(budget, now, beat));
        }
        if self.health.as_ref().map(Health::settings) != settings.breaker {
            let health = |breaker| Health::new(&self.name, breaker, clock, random);
            self.health = settings.breaker.map(health);
        }
        let was_parked = self.parked.is_some();
        let is_parked = kind.parked.is_some();
        let is_same_host = self.host == fact.host && self.scope == settings.hold;
        (self.host, self.scope) = (fact.host.clone(), settings.hold);
        // Only an operator's reset changes the generation of a kind that is not parked, and has not been.
        let is_new = self.is_known && self.generation != kind.generation;
        let is_released = is_new && !was_parked && !is_parked;
        self.is_known = true;
        if is_released {
            self.release();
        } else if is_parked || was_parked || !is_same_host {
            // The store knows the hold, or it is for another host.
            self.held_until = None;
        }
        let is_back = was_parked && !is_parked;
        if is_back || self.forced != kind.forced {
            // Earlier results do not count.
            self.health.iter().for_each(Health::reset);
        }
        match (was_parked, is_parked) {
            (true, false) => self.load.ramp_up(),
            (false, true) => self.load.set_aside(),
            (true, true) | (false, false) => {}
        }
        (self.paused, self.forced, self.generation) = (kind.paused, kind.forced, kind.generation);
        if self.forced {
            self.release();
        }
        self.parked = kind.parked.as_ref().map(|parked| parked.prober);
        (self.full, self.is_probe_due) = (None, false);
        KindNews { is_back, is_parked, is_released }
    }

    /// The kind was deleted. Running attempts end normally.
    pub(super) fn forget(&mut self) {
        self.runs = false;
        (self.bucket, self.budget, self.health) = (None, None, None);
    }

    /// Returns the health judged by this engine's own attempts, unless an operator has decided.
    pub(super) fn judged(&self) -> Option<&Health> {
        self.health.as_ref().filter(|_| !self.forced)
    }

    /// Returns what a holder may run of the kind.
    pub(super) fn condition(&self, holder: HolderId, now: Moment) -> Condition {
        if self.paused {
            return Condition::Closed(HeldReason::Paused, None);
        }
        match (self.parked, self.judged()) {
            (Some(prober), _) if prober == Some(holder) => Condition::Probing,
            (Some(_), _) => Condition::Closed(HeldReason::Parked, None),
            (None, _) if let Some(left) = self.held_for(now) => {
                Condition::Closed(HeldReason::Hold, Some(left))
            }
            (None, Some(health)) => match health.state() {
                (BreakerState::Open, left) => Condition::Closed(HeldReason::Parked, left),
                (BreakerState::HalfOpen, _) => Condition::Probing,
                (BreakerState::Closed, _) => Condition::Well,
            },
            (None, None) => Condition::Well,
        }
    }

    /// Holds its attempts. A longer hold stays.
    pub(super) fn hold(&mut self, until: Moment) {
        self.held_until = self.held_until.into_iter().chain([until]).max();
    }

    /// Ends the hold early, with a ramp.
    pub(super) fn release(&mut self) {
        if self.held_until.take().is_some() {
            self.load.ramp_up();
        }
    }

    /// Ends a hold whose time has passed, with a ramp: jobs that waited must not all start at once.
    pub(super) fn wake(&mut self, now: Moment) {
        if self.held_until.is_some_and(|until| until <= now) {
            self.release();
        }
    }

    fn held_for(&self, now: Moment) -> Option<Duration> {
        self.held_until.filter(|until| *until > now).map(|until| until.since(now))
    }

    /// Returns whether all its attempts call this host, and wait if the host asks to.
    pub(super) fn calls_only(&self, host: &str) -> bool {
        self.heeds_hosts() && self.host.as_deref() == Some(host)
    }

    /// Returns whether its attempts wait if a host asks to. Not if an operator decided that they run.
    pub(super) fn heeds_hosts(&self) -> bool {
        self.scope == Hold::Host && !self.forced
    }

    pub(super) const fn is_forced(&self) -> bool {
        self.forced
    }

    pub(super) fn is_probed_by(&self, holder: HolderId) -> bool {
        self.parked == Some(Some(holder)) && !self.paused
    }

    pub(super) const fn is_parked(&self) -> bool {
        self.parked.is_some()
    }

    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns how many attempts of it may run here, where one kind may have `share` slots.
    fn most(&self, share: usize) -> usize {
        share.min(self.concurrency_max.unwrap_or(usize::MAX))
    }

    /// Returns how many more jobs of it to claim.
    pub(super) fn room(
        &mut self,
        holder: HolderId,
        (share, mine): (usize, usize),
        freed: u64,
        now: Moment,
    ) -> usize {
        self.wake(now);
        match self.condition(holder, now) {
            Condition::Closed(..) => return 0,
            Condition::Probing => return usize::from(self.load.fresh() == 0),
            Condition::Well => {}
        }
        if self.full.is_some_and(|full| full.freed == freed && now < full.until) {
            return 0;
        }
        self.full = None;
        let ahead = match self.bucket.as_mut().map(|bucket| (bucket.wait(now), bucket.ahead())) {
            Some((wait, _)) if bucket::is_far(wait) => return 0,
            Some((_, ahead)) => ahead,
            None => usize::MAX,
        };
        // A kind with its own limit claims no more than may run: jobs that wait here could run elsewhere.
        let own = self.concurrency_max.unwrap_or(usize::MAX);
        // A fleet slot is a lease: a job that waits here for a slot of the engine takes a slot from other engines.
        let own = if self.fleet.is_none() { own } else { own.min(share) };
        let all = self.load.all();
        let room = self.load.room(share, mine).min(ahead.min(own).saturating_sub(all));
        if self.load.only_old_runs() { room.max(usize::from(self.load.fresh() == 0)) } else { room }
    }

    /// Returns whether a claim must count what a worker has: the kind has a limit for each worker.
    pub(super) const fn counts_workers(&self) -> bool {
        self.concurrency_max.is_some()
    }

    /// Returns how many jobs of it a worker may claim that has so many. The ramp holds for all workers of this engine together.
    pub(super) fn worker_room(&mut self, has: usize, now: Moment) -> usize {
        let own = self.concurrency_max.unwrap_or(usize::MAX).saturating_sub(has);
        own.min(self.load.ramp().map_or(usize::MAX, |ramp| self.recovery.room(ramp, now)))
    }

    /// Returns whether its breaker is half open, or its dependency was down a moment ago.
    pub(super) fn is_recovering(&self) -> bool {
        self.load.is_ramping() || self.is_suspected() == Some(BreakerState::HalfOpen)
    }

    /// Returns why an attempt may not begin, as far as only the kind is concerned.
    pub(super) fn refuses(
        &mut self,
        (holder, share): (HolderId, usize),
        (is_retry, is_within_fleet): (bool, bool),
        now: Moment,
    ) -> Option<Refused> {
        if !self.runs {
            return Some(Refused::Return(Held::by(HeldReason::NoRunner)));
        }
        self.wake(now);
        let condition = self.condition(holder, now);
        match condition {
            Condition::Closed(because, left) => {
                let until = left.map(|left| now.plus(left));
                return Some(Refused::Return(Held { because, until }));
            }
            Condition::Probing if self.load.running_since() > 0 => {
                return Some(Refused::Wait(Held::by(HeldReason::Parked)));
            }
            Condition::Probing | Condition::Well => {}
        }
        if !self.fleet.is_none() && !is_within_fleet {
            return Some(Refused::Return(Held::by(self.fleet.reason())));
        }
        // One attempt tests whether the dependency is back: without it, the kind would never resume.
        let is_spent = self.budget.as_ref().is_some_and(Budget::is_spent);
        if is_retry && is_spent && condition == Condition::Well {
            return Some(Refused::PutOff(Held::by(HeldReason::Budget)));
        }
        if self.load.running() >= self.most(share) && !self.load.only_old_runs() {
            return Some(Refused::Wait(Held::by(HeldReason::Concurrency)));
        }
        if !self.load.ramp_allows() {
            return Some(Refused::Wait(Held::by(HeldReason::Parked)));
        }
        let wait = self.bucket.as_mut()?.wait(now);
        refused_by_rate(HeldReason::RateLimit, wait, now)
    }

    /// Begins an attempt that nothing refuses. Returns `None` if the breaker refuses it after all.
    pub(super) fn begin(&mut self, holder: HolderId) -> Option<Option<Evidence>> {
        let evidence = match (self.parked, self.judged()) {
            (Some(prober), _) if prober == Some(holder) => Some(Evidence::Probe(self.generation)),
            (Some(_), _) => return None,
            (None, Some(health)) => Some(Evidence::Own(health.begin()?)),
            (None, None) => None,
        };
        self.bucket.iter_mut().for_each(Bucket::take);
        Some(evidence)
    }

    /// Records the result of an attempt, with the reason of a failure.
    pub(super) fn went(&mut self, failure: Option<&str>, slots: usize) {
        match failure {
            None => self.load.succeeded(slots),
            Some(_) => self.load.failed(),
        }
        if let (Some(health), Some(failure)) = (&mut self.health, failure) {
            health.note(failure);
        }
        let step = if failure.is_some() { 1.0 } else { 0.0 };
        self.failure_ratio += (step - self.failure_ratio) * RATIO_STEP;
    }

    pub(super) const fn failure_ratio(&self) -> f64 {
        self.failure_ratio
    }

    /// Returns the state of its breaker if it is open or half open.
    pub(super) fn is_suspected(&self) -> Option<BreakerState> {
        self.judged().map(|health| health.state().0)
    }
}

/// Updates a bucket to its setting.
pub(super) fn set_rate(
    bucket: &mut Option<Bucket>,
    rate: Option<Rate>,
    living: Option<usize>,
    now: Moment,
) {
    match (rate, bucket.as_mut()) {
        (Some(rate), Some(bucket)) => bucket.change(rate, now),
        (Some(rate), None) => *bucket = Some(Bucket::new(rate, now)),
        (None, _) => *bucket = None,
    }
    if let (Some(bucket), Some(living)) = (bucket, living) {
        bucket.share(living, now);
    }
}

/// Returns what happens to a job that a rate holds back.
pub(super) fn refused_by_rate(because: HeldReason, wait: Duration, now: Moment) -> Option<Refused> {
    let held = Held::for_a_while(because, now, wait);
    match wait {
        Duration::ZERO => None,
        wait if bucket::is_far(wait) => Some(Refused::Return(held)),
        _ => Some(Refused::Wait(held)),
    }
}
