//! The kinds that an engine knows, with their settings and runners.

use crate::admission::{Fact, KindFact};
use crate::ceilings::Ceilings;
use crate::kinds_read::KindsRead;
use crate::meters::KindMeters;
use crate::park::Targets;
use crate::runner::Runner;
use crate::settings::{Hold, KindSettings, RunnerKind, SettingError};
use crate::shared::{Command, RunnerSource, Shared};
use rewheel::{Backoff, Backoffs, Moment};
use rewheel_core::store::{StoreError, StoreResult};
use rewheel_core::{HolderId, Job, Kind, KindName, NewKind, Parked, Policy};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The kinds with their runners.
pub(crate) struct Kinds {
    /// Handlers of this program; they stay when settings change.
    pub(crate) handlers: BTreeMap<KindName, Arc<dyn Runner>>,
    /// Returns runners of kinds without a handler.
    source: Option<Box<RunnerSource>>,
    known: RwLock<BTreeMap<KindName, Arc<KindEntry>>>,
    /// Custom backoffs by name.
    pub(crate) backoffs: Arc<Backoffs>,
    /// The kinds as last read from the store.
    read: KindsRead,
}

impl Kinds {
    pub(crate) fn new(
        handlers: BTreeMap<KindName, Arc<dyn Runner>>,
        source: Option<Box<RunnerSource>>,
        backoffs: Backoffs,
    ) -> Kinds {
        let (known, read) = (RwLock::default(), KindsRead::default());
        Kinds { handlers, source, known, backoffs: Arc::new(backoffs), read }
    }
}

/// A kind that this engine knows. State that changes with each attempt is in [`admission`](crate::admission).
pub(crate) struct KindEntry {
    pub(crate) settings: KindSettings,
    pub(crate) ceilings: Ceilings,
    backoffs: Arc<Backoffs>,
    pub(crate) runner: Option<Arc<dyn Runner>>,
    /// Whether an operator paused it, as far as this engine knows.
    paused: bool,
    pub(crate) parked: Option<Parked>,
    /// Whether an operator decided that it is parked or not parked.
    pub(crate) forced: bool,
    pub(crate) generation: u64,
    /// When this engine received this generation.
    heard: Moment,
    /// The breakers of its targets, if its jobs have different ones.
    pub(crate) targets: Arc<Targets>,
    pub(crate) meters: Arc<KindMeters>,
}

impl KindEntry {
    /// Returns whether this equals the stored kind.
    fn is(&self, kind: &Kind, settings: &KindSettings) -> bool {
        self.settings == *settings
            && (self.paused, &self.parked, self.forced, self.generation)
                == (kind.paused, &kind.parked, kind.forced, kind.generation)
    }

    /// Returns whether a read of the store that began at a moment is older than this entry. A read that began before this entry
    /// was received may be. A later read is correct, even if its generation is smaller: the store was restored from a backup, or
    /// failed over to a server that lagged behind.
    fn is_newer(&self, kind: &Kind, asked: Moment) -> bool {
        self.generation > kind.generation && asked < self.heard
    }

    /// Returns whether an operator paused it.
    pub(crate) const fn is_paused(&self) -> bool {
        self.paused
    }

    /// Returns whether it is parked because the called service asked to wait.
    pub(crate) fn is_held(&self) -> bool {
        let until = self.parked.as_ref().and_then(|parked| parked.until);
        until.is_some() && self.settings.hold == Hold::Kind
    }

    /// Returns whether remote workers run it.
    pub(crate) fn is_for_workers(&self) -> bool {
        self.settings.runner == RunnerKind::Worker
    }

    /// Returns how a job is retried: its own settings, or the kind's as a fallback.
    pub(crate) fn policy(&self, job: &Job) -> Policy {
        let kind = self.settings.policy();
        let (backoff, _) = self.backoff(job);
        Policy { attempts_max: self.settings.attempts_max_of(job), backoff, ..kind }
    }

    /// Returns the backoff of a job, and whether this node knows it. If not, the backoff of the kind replaces it, or the default
    /// that of the kind.
    pub(crate) fn backoff(&self, job: &Job) -> (Backoff, bool) {
        let wanted = job.backoff.unwrap_or(self.settings.backoff);
        let candidates = [wanted, self.settings.backoff, Policy::default().backoff];
        let mut known = candidates
            .into_iter()
            .enumerate()
            .filter_map(|(nth, backoff)| Some((self.backoffs.resolve(backoff)?, nth == 0)));
        known.next().unwrap_or((wanted, true))
    }

    /// Returns the timeout of one attempt of a job.
    pub(crate) fn attempt_timeout(&self, job: &Job) -> Duration {
        self.settings.attempt_timeout_of(job)
    }
}

impl Shared {
    pub(crate) fn kind(&self, name: &KindName) -> Option<Arc<KindEntry>> {
        self.kinds.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Returns the kinds that remote workers run.
    pub(crate) fn kinds_for_workers(&self) -> Vec<KindName> {
        let kinds = self.kinds.known.read().unwrap_or_else(PoisonError::into_inner);
        let is_theirs = |(_, kind): &(&KindName, &Arc<KindEntry>)| kind.is_for_workers();
        kinds.iter().filter(is_theirs).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the kinds that this engine can run.
    pub(crate) fn runnable(&self) -> Vec<KindName> {
        let kinds = self.kinds.known.read().unwrap_or_else(PoisonError::into_inner);
        kinds
            .iter()
            .filter(|(_, kind)| kind.runner.is_some())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Reads the kinds from the store.
    pub(crate) async fn read_kinds(&self) -> StoreResult<()> {
        let learn = |kinds: &[Kind], asked| self.learn(kinds, asked);
        self.kinds.read.refresh(&*self.store, &self.clock, learn).await
    }

    /// Takes over the kinds from a read that began at a moment. A kind whose settings this version cannot read has no runner
    /// here: another version may be able to run it.
    fn learn(&self, kinds: &[Kind], asked: Moment) {
        let mut known = self.kinds.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = BTreeMap::new();
        for kind in kinds {
            let settings = match read_settings(kind) {
                Ok(settings) => settings,
                Err(error) => {
                    tracing::warn!(kind = %kind.name, %error, "failed to read the settings of a kind: this node does not run jobs of this kind; if a newer version of Rewheel wrote the settings, upgrade this node");
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
        for kind in std::mem::take(&mut *known).into_keys() {
            self.admission.apply(Fact::KindGone { kind });
        }
        *known = fresh;
    }

    /// Takes over one kind from a read that began at a moment.
    pub(crate) fn learn_one(&self, kind: &Kind, asked: Moment) {
        let Ok(settings) = read_settings(kind) else { return };
        let mut known = self.kinds.known.write().unwrap_or_else(PoisonError::into_inner);
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
        let handler = self.kinds.handlers.get(name).cloned();
        let runner = handler.or_else(|| self.kinds.source.as_ref()?(name, &settings));
        let known = known.as_deref();
        let same = known.filter(|known| known.settings.breaker == settings.breaker);
        let targets = match same {
            Some(known) => Arc::clone(&known.targets),
            None => {
                let breaker = settings.breaker.unwrap_or_default();
                Arc::new(Targets::new(name, breaker, &self.clock, &self.random))
            }
        };
        let meters = self.reports.meters.kind(name);
        let runs = runner.is_some();
        let host = runner.as_ref().and_then(|runner| runner.host());
        let news = self.admission.learn(&KindFact { kind, settings: &settings, runs, host });
        if news.is_back {
            meters.unparked(self.clock.now());
            self.signals.look.notify_one();
        }
        if news.is_parked {
            self.admission.parking.notify_one();
        }
        // Waiting jobs may have to be returned, or may start.
        let _ = self.signals.to_dispatch.send(Command::Place);
        Arc::new(KindEntry {
            ceilings: settings.ceilings(),
            backoffs: Arc::clone(&self.kinds.backoffs),
            settings,
            runner,
            paused: kind.paused,
            parked: kind.parked.clone(),
            forced: kind.forced,
            generation: kind.generation,
            heard: self.clock.now(),
            targets,
            meters,
        })
    }

    /// Returns every kind.
    pub(crate) fn kinds(&self) -> Vec<(KindName, Arc<KindEntry>)> {
        let kinds = self.kinds.known.read().unwrap_or_else(PoisonError::into_inner);
        kinds.iter().map(|(name, kind)| (name.clone(), Arc::clone(kind))).collect()
    }

    /// Sets the live engines.
    pub(crate) fn set_living(&self, living: Vec<HolderId>) {
        self.admission.apply(Fact::Fleet { living: living.len() });
        self.intake.shards.heard(self.holder(), living);
    }

    /// Returns whether a kind that this engine or its workers run is parked.
    pub(crate) fn has_parked(&self) -> bool {
        let kinds = self.kinds.known.read().unwrap_or_else(PoisonError::into_inner);
        let concerns = |kind: &Arc<KindEntry>| {
            kind.parked.is_some() && (kind.runner.is_some() || kind.is_for_workers())
        };
        kinds.values().any(concerns)
    }
}

/// Returns what the store keeps of a kind.
pub(crate) fn new_kind(name: &KindName, settings: &KindSettings) -> NewKind {
    NewKind {
        name: name.clone(),
        settings: serde_json::to_string(settings).unwrap_or_else(|_| "{}".to_owned()),
        takeovers_max: settings.takeovers_max,
        on_dead: settings.on_dead,
    }
}

/// Rejects a custom backoff that is not registered: no node could run it.
pub(crate) fn check_backoff(
    backoffs: &Backoffs,
    settings: &KindSettings,
) -> Result<(), SettingError> {
    match settings.backoff.custom_name().filter(|name| backoffs.get(name).is_none()) {
        Some(name) => {
            let why =
                format!("`{name}` is not registered: register it with EngineBuilder::backoffs");
            Err(SettingError { name: "backoff", why: why.into() })
        }
        None => Ok(()),
    }
}

fn read_settings(kind: &Kind) -> Result<KindSettings, serde_json::Error> {
    let mut settings = serde_json::from_str::<KindSettings>(&kind.settings)?;
    settings.clamp_durations();
    Ok(settings)
}

/// Returns a kind with settings that were checked.
pub(crate) fn checked_kind(
    shared: &Shared,
    name: &KindName,
    settings: &KindSettings,
) -> StoreResult<NewKind> {
    let checked = settings.check().and_then(|()| check_backoff(&shared.kinds.backoffs, settings));
    checked.map_err(|why| StoreError::Rejected(why.into()))?;
    Ok(new_kind(name, settings))
}

#[cfg(test)]
mod tests {
    use crate::engine::Engine;
    use rewheel::{Moment, millis};
    use rewheel_core::store::KindStore;
    use rewheel_core::{Kind, KindName, Report};
    use rewheel_stores::MemoryStore;
    use std::sync::Arc;

    /// An engine that knows a kind at generation 7, with moments before and after it received that.
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
