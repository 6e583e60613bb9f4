//! Stops asking a dependency that is down, then comes back to it with care.
//!
//! Each holder has a breaker for each kind that has one, fed by its own attempts. While it is open,
//! this holder leaves the kind's jobs to others and says so in the store, where two such holders (or
//! the only one) park the kind for everybody. Time never unparks it: one holder at a time may try one
//! job. When that goes well all come back, each with one attempt at first and one more for each
//! that succeeds.

mod load;
mod target;

pub(crate) use self::load::{Load, Queued, Running};
pub(crate) use self::target::{Target, Targets, left_alone};

use crate::kinds::KindEntry;
use crate::notify::Notice;
use crate::settings::BreakerSettings;
use crate::shared::Shared;
use rewheel::{
    BreakerState, CancelToken, Category, CircuitBreaker, CircuitBreakerBuilder, Clock, Moment,
    OwnedPermit, Random, millis,
};
use rewheel_core::store::StoreError;
use rewheel_core::{Actor, Failure, HolderId, Kind, KindChange, KindChanged, KindName, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often to look whether a parked kind is still parked, or may be probed.
const LOOK_EVERY: Duration = millis(500);

/// How long a right to probe may bring nothing. Its one job may have been given back unstarted, or lost with the answer to its
/// claim, which nobody sees: then the right must be won again.
const RIGHT_IDLE_MAX: Duration = rewheel::seconds(60);

/// What this holder's own attempts say about the dependency of a kind.
#[derive(Debug)]
pub(crate) struct Health {
    settings: BreakerSettings,
    breaker: CircuitBreaker,
    /// What the latest failure said.
    why: Mutex<String>,
}

impl Health {
    pub(crate) fn new(
        kind: &KindName,
        settings: BreakerSettings,
        clock: &Clock,
        random: &Random,
    ) -> Health {
        let breaker = breaker(kind, settings, clock, random).build();
        Health { settings, breaker, why: Mutex::default() }
    }

    /// What may happen now. A breaker that has been open for long enough lets one attempt find out, but it only notices when it is
    /// asked for one: whoever asks for none while it is open would never learn that it is over.
    pub(crate) fn state(&self) -> BreakerState {
        let seen = self.breaker.snapshot();
        match (seen.state, seen.retry_in) {
            (BreakerState::Open, Some(Duration::ZERO)) => BreakerState::HalfOpen,
            (state, _) => state,
        }
    }

    /// Begins an attempt, unless the breaker is against it.
    pub(crate) fn begin(&self) -> Option<OwnedPermit> {
        self.breaker.acquire_owned().ok()
    }

    /// Forgets what it has seen.
    pub(crate) fn reset(&self) {
        self.breaker.reset();
    }

    fn note(&self, failure: &Failure) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = failure.to_string();
    }

    fn why(&self) -> String {
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let percent = (self.settings.failure_ratio * 100.0).round();
        let window = self.settings.window;
        format!("at least {percent}% of the last {window} attempts failed; the latest: {why}")
    }
}

fn breaker(
    kind: &KindName,
    settings: BreakerSettings,
    clock: &Clock,
    random: &Random,
) -> CircuitBreakerBuilder {
    CircuitBreaker::count_window(settings.window)
        .failure_ratio(settings.failure_ratio)
        .open_for(settings.open_for)
        .probes_max(1)
        // An attempt ends by its own timeout, which may be an hour: until then it is the one that finds out.
        .probe_timeout(Duration::MAX)
        .named(kind.to_string())
        .clock(clock)
        .random(random)
}

/// What an attempt is evidence of.
#[derive(Debug)]
pub(crate) enum Evidence {
    /// Of what this holder sees.
    Own(OwnedPermit),
    /// Of whether a parked kind is back, for everybody, as of this generation.
    Probe(u64),
}

/// What a probe found.
#[derive(Clone, Debug)]
pub(crate) struct Probed {
    pub(crate) kind: KindName,
    /// That of the right: whoever decided something since has the last word.
    generation: u64,
    is_back: bool,
}

/// What a report says about the dependency: that it works, that it does not, or nothing. What was told to stop says nothing.
pub(crate) fn speaks(report: &Report) -> Option<Result<(), Failure>> {
    match report {
        Report::Done => Some(Ok(())),
        Report::Failed { failure, .. } if failure.category().blames_dependency() => {
            Some(Err(failure.clone()))
        }
        // Who refuses a job has answered.
        Report::Failed { failure, .. } if failure.category() == Category::Rejected => Some(Ok(())),
        Report::Failed { .. }
        | Report::Fail(_)
        | Report::Dead(_)
        | Report::Pause
        | Report::Cancel
        | Report::Snooze(_) => None,
    }
}

/// Takes note of what an attempt says.
pub(crate) fn note(
    shared: &Shared,
    name: &KindName,
    kind: &KindEntry,
    evidence: Option<Evidence>,
    spoke: Option<Result<(), Failure>>,
) {
    match &spoke {
        Some(Ok(())) => kind.load.succeeded(shared.settings.places),
        Some(Err(_)) => kind.load.failed(),
        None => {}
    }
    if let (Some(health), Some(Err(failure))) = (&kind.health, &spoke) {
        health.note(failure);
    }
    match (evidence, spoke) {
        (Some(Evidence::Own(permit)), Some(Ok(()))) => permit.success(),
        (Some(Evidence::Own(permit)), Some(Err(_))) => {
            permit.failure();
            if kind.judged().is_some_and(|health| health.state() == BreakerState::Open) {
                // What still runs is from before, and may hang.
                kind.load.set_aside();
                shared.park.notify_one();
            }
        }
        // One that says nothing leaves the right to somebody else.
        (Some(Evidence::Probe(generation)), spoke) => {
            let is_back = matches!(spoke, Some(Ok(())));
            shared.probed(Probed { kind: name.clone(), generation, is_back });
        }
        (Some(Evidence::Own(_)) | None, _) => {}
    }
}

/// The loop that says what this holder sees, probes what is parked, and hears when it is not.
pub(crate) struct Parking {
    shared: Arc<Shared>,
    by: Actor,
    /// Kinds that were said to be down, by which of the holders that this engine was.
    suspected: BTreeSet<(HolderId, KindName)>,
    /// When to try a parked kind, as of which generation.
    probes: BTreeMap<KindName, (u64, Moment)>,
    /// Since when a right of this holder brings nothing, as of which generation.
    idle: BTreeMap<KindName, (u64, Moment)>,
}

impl Parking {
    pub(crate) fn new(shared: Arc<Shared>) -> Parking {
        let by = Actor::of_holder(&shared.settings.name);
        Parking {
            shared,
            by,
            suspected: BTreeSet::new(),
            probes: BTreeMap::new(),
            idle: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(mut self, stop: CancelToken) {
        while !stop.is_cancelled() {
            let told = self.tick().await;
            if let Err(error) = &told {
                tracing::debug!(%error, "what is parked is not known");
            }
            let is_busy = told.is_err() || !self.suspected.is_empty() || self.shared.has_parked();
            let rest = if is_busy { LOOK_EVERY } else { Duration::MAX };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.shared.park.notified() => {}
                () = self.shared.clock.sleep(rest) => {}
            }
        }
    }

    async fn tick(&mut self) -> Result<(), StoreError> {
        while let Some(probed) = self.shared.first_probed() {
            // Kept until the store has heard: nobody else can say it.
            self.end_probe(&probed).await?;
            self.shared.forget_first_probed();
        }
        if self.shared.has_parked() {
            self.shared.read_kinds().await?;
        }
        for (name, kind) in self.shared.kinds() {
            if kind.runner.is_none() {
                self.leave_to_workers(&name, &kind).await?;
                continue;
            }
            self.say(&name, &kind).await?;
            self.probe(&name, &kind).await?;
        }
        Ok(())
    }

    /// Unparks a kind that workers run now: what was wrong was wrong with how it ran before, and no worker ever probes.
    async fn leave_to_workers(&self, name: &KindName, kind: &KindEntry) -> Result<(), StoreError> {
        if !kind.is_parked_for_workers() {
            return Ok(());
        }
        let change = KindChange::Unpark { generation: kind.generation };
        let asked = self.shared.clock.now();
        let changed = self.shared.store.change_kind(name, &change, &self.by).await?;
        if let KindChanged::Applied(_) = &changed {
            tracing::info!(kind = %name, "workers run the kind now: it is not parked any more");
        }
        if let KindChanged::Applied(kind) | KindChanged::Refused(kind) = changed {
            self.shared.learn_one(&kind, asked);
        }
        Ok(())
    }

    /// Says in the store what this holder sees, if that is news.
    async fn say(&mut self, name: &KindName, kind: &KindEntry) -> Result<(), StoreError> {
        let Some(health) = kind.judged() else {
            // What was suspected before a person decided is not news any more, and may be again.
            self.suspected.retain(|(_, suspected)| suspected != name);
            return Ok(());
        };
        let holder = self.shared.holder();
        let state = health.state();
        let is_down = state != BreakerState::Closed;
        if state == BreakerState::HalfOpen && kind.parked.is_none() {
            self.shared.look.notify_one();
        }
        // Noted only once the store has heard it.
        if is_down && kind.parked.is_none() && !self.suspected.contains(&(holder, name.clone())) {
            let reason = health.why();
            self.change(name, KindChange::Suspect { holder, reason: reason.clone() }).await?;
            tracing::warn!(kind = %name, reason, "this node leaves the kind alone");
            self.suspected.insert((holder, name.clone()));
        } else if !is_down && self.suspected.iter().any(|(_, suspected)| suspected == name) {
            if kind.parked.is_none() {
                self.change(name, KindChange::Trust { holder }).await?;
                tracing::info!(kind = %name, "this node takes the kind up again");
                kind.load.ramp_up();
                kind.meters.unparked(self.shared.clock.now());
            }
            self.suspected.retain(|(_, suspected)| suspected != name);
        }
        Ok(())
    }

    /// Takes the right to try a parked kind, once it has been left alone for long enough.
    async fn probe(&mut self, name: &KindName, kind: &KindEntry) -> Result<(), StoreError> {
        let Some(parked) = kind.parked.as_ref().filter(|_| !kind.forced) else {
            self.probes.remove(name);
            return Ok(());
        };
        let (now, holder) = (self.shared.clock.now(), self.shared.holder());
        let generation = kind.generation;
        let is_mine = parked.prober == Some(holder);
        if parked.prober.is_some() {
            let known = self.idle.get(name).filter(|(seen, _)| *seen == generation);
            let is_idle = !is_mine || kind.load.is_clear();
            let since = known.map(|(_, since)| *since).filter(|_| is_idle).unwrap_or(now);
            self.idle.insert(name.clone(), (generation, since));
            // Another may live, and not be able to run the kind any more: how long its attempt takes is not seen from here.
            let most = match is_mine {
                true => RIGHT_IDLE_MAX,
                false => kind.settings.attempt_timeout.saturating_add(2 * RIGHT_IDLE_MAX),
            };
            if now.since(since) >= most {
                let reason = parked.reason.clone();
                self.change(name, KindChange::Park { generation, reason }).await?;
                return Ok(());
            }
        } else {
            self.idle.remove(name);
        }
        if is_mine {
            return Ok(());
        }
        let known = self.probes.get(name).filter(|(seen, _)| {
            // A right that another has taken since may lapse with its life.
            *seen == generation || parked.prober.is_some()
        });
        let Some((_, at)) = known else {
            let open_for = kind.settings.breaker.unwrap_or_default().open_for;
            // Not all at once.
            let extra = open_for.mul_f64(self.shared.random.next() as f64 / u64::MAX as f64 / 10.0);
            self.probes.insert(name.clone(), (generation, now.plus(open_for + extra)));
            return Ok(());
        };
        if now >= *at {
            self.change(name, KindChange::Probe { generation, holder }).await?;
            self.shared.look.notify_one();
        }
        Ok(())
    }

    async fn end_probe(&mut self, probed: &Probed) -> Result<(), StoreError> {
        let (name, generation) = (&probed.kind, probed.generation);
        let change = if probed.is_back {
            KindChange::Unpark { generation }
        } else {
            let kind = self.shared.kind(name);
            let health = kind.as_ref().and_then(|kind| kind.health.as_ref());
            let why = health.map(|health| health.why()).unwrap_or_default();
            KindChange::Park { generation, reason: format!("a probe failed: {why}") }
        };
        self.change(name, change).await
    }

    async fn change(&self, name: &KindName, change: KindChange) -> Result<(), StoreError> {
        let asked = self.shared.clock.now();
        let changed = self.shared.store.change_kind(name, &change, &self.by).await?;
        if let KindChanged::Applied(kind) = &changed {
            self.tell(&change, kind);
        }
        if let KindChanged::Applied(kind) | KindChanged::Refused(kind) = changed {
            self.shared.learn_one(&kind, asked);
        }
        Ok(())
    }

    /// Tells people, if a kind is parked by this change, or is not any more.
    fn tell(&self, change: &KindChange, kind: &Kind) {
        match (change, &kind.parked) {
            (KindChange::Suspect { .. }, Some(parked)) => {
                tracing::warn!(kind = %kind.name, reason = parked.reason, "kind is parked");
                self.shared
                    .notify(|| Notice::kind_parked(&kind.name, parked.since, &parked.reason));
            }
            (KindChange::Unpark { .. }, None) => {
                tracing::info!(kind = %kind.name, "kind is claimed again");
                let at = self.shared.node_time();
                self.shared.notify(|| Notice::kind_unparked(&kind.name, at, "a probe succeeded"));
            }
            _ => {}
        }
    }
}
