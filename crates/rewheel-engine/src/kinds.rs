//! What one engine knows of the kinds.

use crate::budget::Budget;
use crate::ceilings::Ceilings;
use crate::meters::KindMeters;
use crate::park::{Evidence, Health, Load, Targets};
use crate::rate::Gate;
use crate::runner::Runner;
use crate::settings::{KindSettings, RunnerKind};
use crate::shared::{Command, Shared};
use rewheel::{BreakerState, Moment};
use rewheel_core::store::Answer;
use rewheel_core::{HolderId, Job, Kind, KindName, Parked, Policy};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// A kind that this engine knows.
pub(crate) struct KindEntry {
    pub(crate) settings: KindSettings,
    pub(crate) ceilings: Ceilings,
    pub(crate) runner: Option<Arc<dyn Runner>>,
    /// Whether a person paused it, as far as this engine has heard.
    paused: bool,
    pub(crate) parked: Option<Parked>,
    /// Whether a person decided that it is parked, or that it is not.
    pub(crate) forced: bool,
    pub(crate) generation: u64,
    /// When this engine heard of this generation.
    heard: Moment,
    /// Places of this kind alone.
    pub(crate) places: Option<Arc<Semaphore>>,
    /// What this engine's own attempts say, where it has a breaker. Most ask [`judged`](KindEntry::judged).
    pub(crate) health: Option<Arc<Health>>,
    /// The same for each target, where its jobs have different ones.
    pub(crate) targets: Arc<Targets>,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) budget: Option<Arc<Budget>>,
    pub(crate) load: Arc<Load>,
    pub(crate) meters: Arc<KindMeters>,
}

impl KindEntry {
    /// Returns whether this is what the store has.
    fn is(&self, kind: &Kind, settings: &KindSettings) -> bool {
        self.settings == *settings
            && (self.paused, &self.parked, self.forced, self.generation)
                == (kind.paused, &kind.parked, kind.forced, kind.generation)
    }

    /// Returns whether what the store was asked for at a moment is older than this. An answer that was asked for before this
    /// was heard may be. One that was asked for later is true, also where its generation is smaller: the store was restored
    /// from a backup, or failed over to a server that lagged behind.
    fn is_newer(&self, kind: &Kind, asked: Moment) -> bool {
        self.generation > kind.generation && asked < self.heard
    }

    /// Returns what this engine's own attempts say, unless a person has decided.
    pub(crate) fn judged(&self) -> Option<&Health> {
        self.health.as_deref().filter(|_| !self.forced)
    }

    /// Returns whether it is parked since before workers ran it.
    pub(crate) fn is_parked_for_workers(&self) -> bool {
        self.settings.runner == RunnerKind::Worker && self.parked.is_some() && !self.forced
    }

    /// Returns whether claiming it now would be for nothing, as far as this engine knows.
    pub(crate) fn is_closed(&self) -> bool {
        self.paused
            || self.parked.is_some()
            || self.places.as_ref().is_some_and(|places| places.available_permits() == 0)
    }

    /// Returns whether a job of it may go directly to a place. Not while what is already there waits for that place, or the
    /// store would not lease it: an insert on its way has the place, the probe or the pass that another needs.
    pub(crate) fn takes_direct(&self) -> bool {
        let is_well = self.judged().is_none_or(|health| health.state() == BreakerState::Closed);
        let is_held_up = self.gate.is_some() || self.load.is_ramping();
        self.runner.is_some()
            && !self.is_closed()
            && is_well
            && !(is_held_up && self.load.has_queued())
    }

    /// Returns whether it is parked, and a holder may try it.
    pub(crate) fn is_probed_by(&self, holder: HolderId) -> bool {
        self.parked.as_ref().is_some_and(|parked| parked.prober == Some(holder))
    }

    /// Returns whether a holder should leave it to others, or everybody should.
    pub(crate) fn is_down(&self, holder: HolderId) -> bool {
        match (&self.parked, self.judged()) {
            (Some(parked), _) => parked.prober != Some(holder),
            (None, Some(health)) => health.state() == BreakerState::Open,
            (None, None) => false,
        }
    }

    /// Returns how many more jobs of it a holder should claim, where up to `most` may run.
    pub(crate) fn room(&self, holder: HolderId, most: usize, living: usize) -> usize {
        let ahead = self.gate.as_ref().map_or(usize::MAX, |gate| gate.ahead(living));
        let room = self.load.room(most).min(ahead.saturating_sub(self.load.in_hand()));
        let free = self.places.as_ref().map_or(usize::MAX, |places| places.available_permits());
        match (&self.parked, self.judged()) {
            (Some(parked), _) if parked.prober != Some(holder) => {
                self.load.set_aside();
                0
            }
            // One job finds out.
            (Some(_), _) => usize::from(self.load.is_clear()),
            (None, Some(health)) => match health.state() {
                BreakerState::Open => {
                    self.load.set_aside();
                    0
                }
                BreakerState::HalfOpen => usize::from(self.load.is_clear()),
                BreakerState::Closed => room.min(free),
            },
            (None, None) => room.min(free),
        }
    }

    /// Begins an attempt, unless what is known of its dependency is against it. Of a kind that is parked only a probe.
    pub(crate) fn evidence(&self, holder: HolderId) -> Option<Option<Evidence>> {
        match (&self.parked, self.judged()) {
            (Some(parked), _) => {
                (parked.prober == Some(holder)).then_some(Some(Evidence::Probe(self.generation)))
            }
            (None, Some(health)) => Some(Some(Evidence::Own(health.begin()?))),
            (None, None) => Some(None),
        }
    }

    /// Returns how a job is retried: by its own settings, and the kind's where it has none.
    pub(crate) fn policy(&self, job: &Job) -> Policy {
        let kind = self.settings.policy();
        let attempts_max = job.attempts_max.unwrap_or(kind.attempts_max);
        Policy {
            attempts_max: self.ceilings.clamp_attempts(attempts_max),
            backoff: job.backoff.unwrap_or(kind.backoff),
            ..kind
        }
    }

    /// Returns how long one attempt of a job may take.
    pub(crate) fn attempt_timeout(&self, job: &Job) -> Duration {
        let own = job.attempt_timeout.map(|own| self.ceilings.clamp_timeout(own));
        own.unwrap_or(self.settings.attempt_timeout)
    }
}

impl Shared {
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

    /// Reads the kinds from the store.
    pub(crate) async fn read_kinds(&self) -> Answer<()> {
        let asked = self.clock.now();
        if let Some(kinds) = self.kinds_read.refresh(&*self.store).await? {
            self.learn(&kinds, asked);
        }
        Ok(())
    }

    /// Takes the kinds as the store has them, asked at a moment. Settings that this version cannot read leave the kind
    /// without a runner here: another version may know better.
    fn learn(&self, kinds: &[Kind], asked: Moment) {
        let mut known = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = BTreeMap::new();
        for kind in kinds {
            let settings = match read_settings(kind) {
                Ok(settings) => settings,
                Err(error) => {
                    tracing::warn!(kind = %kind.name, %error, "settings of a kind cannot be read");
                    continue;
                }
            };
            let before = known.remove(&kind.name);
            let newer = before.as_ref().filter(|known| known.is_newer(kind, asked));
            let entry = match newer {
                Some(newer) => Arc::clone(newer),
                None => self.entry(kind, settings, before),
            };
            fresh.insert(kind.name.clone(), entry);
        }
        // What the engine runs for people, now and then, is not one of those that share the places.
        let is_shared = |(name, kind): &(&KindName, &Arc<KindEntry>)| {
            kind.runner.is_some() && !name.is_reserved()
        };
        let runnable = fresh.iter().filter(is_shared).count();
        self.runnable_count.store(runnable, Ordering::Relaxed);
        let has_rates = fresh.values().any(|kind| kind.gate.is_some());
        self.has_rates.store(has_rates, Ordering::Relaxed);
        *known = fresh;
    }

    /// Takes one kind as the store has it, asked at a moment.
    pub(crate) fn learn_one(&self, kind: &Kind, asked: Moment) {
        let Ok(settings) = read_settings(kind) else { return };
        let mut known = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.remove(&kind.name);
        if let Some(newer) = before.as_ref().filter(|known| known.is_newer(kind, asked)) {
            known.insert(kind.name.clone(), Arc::clone(newer));
            return;
        }
        let entry = self.entry(kind, settings, before);
        known.insert(kind.name.clone(), entry);
    }

    fn entry(
        &self,
        kind: &Kind,
        settings: KindSettings,
        known: Option<Arc<KindEntry>>,
    ) -> Arc<KindEntry> {
        if let Some(known) = known.as_ref().filter(|known| known.is(kind, &settings)) {
            return Arc::clone(known);
        }
        let name = &kind.name;
        let handler = self.handlers.get(name).cloned();
        let runner = handler.or_else(|| self.source.as_ref()?(name, &settings));
        let known = known.as_deref();
        // Attempts that run have their places in the old one: a new one would let in as many again.
        let same = known.filter(|known| known.settings.concurrency_max == settings.concurrency_max);
        let places = match same {
            Some(known) => known.places.clone(),
            None => settings.concurrency_max.map(|most| Arc::new(Semaphore::new(most))),
        };
        let same = known.filter(|known| known.settings.breaker == settings.breaker);
        let health = match same {
            Some(known) => known.health.clone(),
            None => settings
                .breaker
                .map(|breaker| Arc::new(Health::new(name, breaker, &self.clock, &self.random))),
        };
        let targets = match same {
            Some(known) => Arc::clone(&known.targets),
            None => {
                let breaker = settings.breaker.unwrap_or_default();
                Arc::new(Targets::new(name, breaker, &self.clock, &self.random))
            }
        };
        let same = known.filter(|known| known.settings.rate == settings.rate);
        let gate = match same {
            Some(known) => known.gate.clone(),
            None => settings.rate.map(|rate| Arc::new(Gate::new(rate, &self.clock))),
        };
        let same = known.filter(|known| known.settings.retry_budget == settings.retry_budget);
        let budget = match same {
            Some(known) => known.budget.clone(),
            None => settings.retry_budget.map(|budget| {
                let beat = self.settings.lease_ttl / 3;
                Arc::new(Budget::new(budget, self.clock.now(), beat))
            }),
        };
        let load = known.map(|known| Arc::clone(&known.load)).unwrap_or_default();
        let meters = self.meters.kind(name);
        let was_parked = known.is_some_and(|known| known.parked.is_some());
        let is_back = was_parked && kind.parked.is_none();
        if is_back || known.is_some_and(|known| known.forced != kind.forced) {
            // What was seen before does not count.
            health.iter().for_each(|health| health.reset());
        }
        if is_back {
            meters.unparked(self.clock.now());
        }
        self.parking_changed(&load, was_parked, kind.parked.is_some());
        // What waits here may have to go, or may start.
        let _ = self.to_dispatch.send(Command::Place);
        Arc::new(KindEntry {
            ceilings: settings.ceilings(),
            settings,
            runner,
            paused: kind.paused,
            parked: kind.parked.clone(),
            forced: kind.forced,
            generation: kind.generation,
            heard: self.clock.now(),
            places,
            health,
            targets,
            gate,
            budget,
            load,
            meters,
        })
    }

    /// Lets attempts of a kind that was parked come back slowly, and sets aside those of one that is parked now.
    fn parking_changed(&self, load: &Load, was_parked: bool, is_parked: bool) {
        match (was_parked, is_parked) {
            (true, false) => {
                load.ramp_up();
                self.look.notify_one();
            }
            (false, true) => load.set_aside(),
            (true, true) | (false, false) => {}
        }
        if is_parked {
            self.park.notify_one();
        }
    }

    /// Returns every kind.
    pub(crate) fn kinds(&self) -> Vec<(KindName, Arc<KindEntry>)> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.iter().map(|(name, kind)| (name.clone(), Arc::clone(kind))).collect()
    }

    /// Returns how many holders live, as far as this engine has heard.
    pub(crate) fn living(&self) -> usize {
        self.living.load(Ordering::Relaxed)
    }

    pub(crate) fn set_living(&self, living: Vec<HolderId>) {
        self.living.store(living.len().max(1), Ordering::Relaxed);
        self.shards.heard(self.holder(), living);
    }

    /// Forgets when attempts may pass that rates held up.
    pub(crate) fn forget_passes(&self) {
        self.tenants.forget_passes();
        if !self.has_rates.load(Ordering::Relaxed) {
            return;
        }
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.values().filter_map(|kind| kind.gate.as_ref()).for_each(|gate| gate.forget());
    }

    /// Returns when the next attempt may pass that a rate held up.
    pub(crate) fn next_pass(&self) -> Option<Moment> {
        let of_tenants = self.tenants.next_pass();
        if !self.has_rates.load(Ordering::Relaxed) {
            return of_tenants;
        }
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.values().filter_map(|kind| kind.gate.as_ref()?.next()).chain(of_tenants).min()
    }

    /// Returns whether a kind that this engine runs is parked.
    pub(crate) fn has_parked(&self) -> bool {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        let concerns = |kind: &Arc<KindEntry>| {
            (kind.parked.is_some() && kind.runner.is_some()) || kind.is_parked_for_workers()
        };
        kinds.values().any(concerns)
    }
}

fn read_settings(kind: &Kind) -> Result<KindSettings, serde_json::Error> {
    let mut settings = serde_json::from_str::<KindSettings>(&kind.settings)?;
    settings.clamp_durations();
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use crate::engine::Engine;
    use rewheel::{Moment, millis};
    use rewheel_core::store::KindStore;
    use rewheel_core::{Kind, KindName, Report};
    use rewheel_stores::MemoryStore;
    use std::sync::Arc;

    /// An engine that knows a kind at generation 7, with moments before and after it heard of that.
    async fn engine() -> (Engine, Kind, [Moment; 2]) {
        let store = MemoryStore::new();
        let builder = Engine::builder(Arc::new(store.clone()));
        let builder = builder.raw_handler("work", |_| async { Report::Done });
        let engine = builder.start().await.unwrap();
        let kind = store.kinds().await.unwrap().remove(0);
        let kind = Kind { generation: 7, paused: true, ..kind };
        let before = engine.shared().clock.now();
        tokio::time::sleep(millis(5)).await;
        engine.shared().learn_one(&kind, before);
        tokio::time::sleep(millis(5)).await;
        let after = engine.shared().clock.now();
        (engine, kind, [before, after])
    }

    fn is_paused(engine: &Engine) -> bool {
        engine.shared().kind(&KindName::parse("work").unwrap()).unwrap().paused
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_was_overtaken_is_not_news() {
        let (engine, kind, [before, _]) = engine().await;
        let late = Kind { generation: 6, paused: false, ..kind };
        engine.shared().learn_one(&late, before);
        engine.shared().learn(std::slice::from_ref(&late), before);
        assert!(is_paused(&engine));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_was_restored_is_believed() {
        let (engine, kind, [_, after]) = engine().await;
        let restored = Kind { generation: 2, paused: false, ..kind };
        engine.shared().learn(std::slice::from_ref(&restored), after);
        assert!(!is_paused(&engine), "the store knows what it knows, whatever the number");
    }
}
