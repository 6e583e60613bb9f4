//! Parks a kind while its dependency is down, and resumes it step by step.
//!
//! For each kind with breaker settings, each holder has a breaker that counts its own attempts. While this breaker is open, the
//! holder does not run jobs of the kind, and reports this to the store. If two holders report this (or the only holder), the kind
//! is parked for all holders. Time alone never ends parking: one holder at a time may run one job as a probe. If the probe
//! succeeds, all holders resume the kind, each with one attempt at first and one more for each success.
//!
//! A kind with `hold = "kind"` is parked as soon as the called service asks to wait, and no holder probes it before that time.

mod hold;
mod target;

pub(crate) use self::hold::asked_to_wait;
pub(crate) use self::target::{Target, Targets, left_alone};

use crate::admission::{Fact, Probed, ToldToWait};
use crate::kinds::KindEntry;
use crate::notify::Notice;
use crate::settings::Hold;
use crate::shared::Shared;
use rewheel::{BreakerState, CancelToken, Category, Moment, millis};
use rewheel_core::store::StoreError;
use rewheel_core::{Actor, Failure, Kind, KindChange, KindChanged, KindName, Parked, Report};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often to check whether a parked kind is still parked, or may be probed.
const LOOK_EVERY: Duration = millis(500);

/// How long a right to probe may stay without a result. Its one job may have been given back unstarted, or lost with the response
/// of its claim: then the right must be taken again.
const RIGHT_IDLE_MAX: Duration = rewheel::seconds(60);

/// Returns what a report says about the dependency: that it works, that it does not, or nothing. A cancelled attempt says
/// nothing.
pub(crate) fn speaks(report: &Report) -> Option<Result<(), Failure>> {
    match report {
        Report::Done => Some(Ok(())),
        Report::AttemptFailed { failure, .. } if failure.category().blames_dependency() => {
            Some(Err(failure.clone()))
        }
        // Who refuses a job has answered.
        Report::AttemptFailed { failure, .. } if failure.category() == Category::Rejected => {
            Some(Ok(()))
        }
        Report::AttemptFailed { .. }
        | Report::FailJob(_)
        | Report::Dead(_)
        | Report::Pause
        | Report::Cancel
        | Report::Snooze(_) => None,
    }
}

/// The loop that reports what this holder observes, probes parked kinds, and reads when they are unparked.
pub(crate) struct Parking {
    shared: Arc<Shared>,
    by: Actor,
    /// When to probe a parked kind, and at which generation.
    probes: BTreeMap<KindName, (u64, Moment)>,
    /// Since when a right of this holder has no result, and at which generation.
    idle: BTreeMap<KindName, (u64, Moment)>,
}

impl Parking {
    pub(crate) fn new(shared: Arc<Shared>) -> Parking {
        let by = Actor::of_holder(&shared.settings.name);
        Parking { shared, by, probes: BTreeMap::new(), idle: BTreeMap::new() }
    }

    pub(crate) async fn run(mut self, stop: CancelToken) {
        while !stop.is_cancelled() {
            let told = self.tick().await;
            if let Err(error) = &told {
                tracing::debug!(%error, "failed to read or update which kinds are parked (have an open circuit breaker): retrying");
            }
            let is_busy =
                told.is_err() || self.shared.admission.has_suspected() || self.shared.has_parked();
            let rest = if is_busy { LOOK_EVERY } else { Duration::MAX };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.shared.admission.parking.notified() => {}
                () = self.shared.clock.sleep(rest) => {}
            }
        }
    }

    async fn tick(&mut self) -> Result<(), StoreError> {
        while let Some(probed) = self.shared.admission.first_probed() {
            // Kept until it is stored: no other holder has this result.
            self.end_probe(&probed).await?;
            self.shared.admission.forget_first_probed();
        }
        while let Some(told) = self.shared.admission.first_told() {
            self.hold(&told).await?;
            self.shared.admission.forget_told(&told);
        }
        if self.shared.has_parked() {
            self.shared.read_kinds().await?;
        }
        for (name, kind) in self.shared.kinds() {
            if kind.runner.is_none() && !kind.is_for_workers() {
                continue;
            }
            if kind.settings.breaker.is_none()
                && kind.parked.is_some()
                && !kind.forced
                && !kind.is_held()
            {
                self.unpark(&name, &kind).await?;
                continue;
            }
            self.say(&name, &kind).await?;
            self.probe(&name, &kind).await?;
        }
        Ok(())
    }

    /// Parks a kind for all nodes, because the called service asked to wait.
    async fn hold(&self, told: &ToldToWait) -> Result<(), StoreError> {
        let lasts = told.until.since(self.shared.clock.now());
        if lasts.is_zero() {
            return Ok(());
        }
        self.change(&told.kind, KindChange::Hold { lasts, reason: told.why.clone() }).await
    }

    /// Unparks a kind whose breaker was removed, or whose hold has ended: no evidence parks it any more.
    async fn unpark(&self, name: &KindName, kind: &KindEntry) -> Result<(), StoreError> {
        self.change(name, KindChange::Unpark { generation: kind.generation }).await
    }

    /// Reports in the store what this holder observes, if that has changed.
    async fn say(&self, name: &KindName, kind: &KindEntry) -> Result<(), StoreError> {
        let admission = &self.shared.admission;
        let Some((state, reason)) = admission.suspicion(name) else {
            // A suspicion from before an operator's decision no longer counts, and may be reported again.
            admission.trusts(name);
            return Ok(());
        };
        let holder = self.shared.holder();
        let is_down = state != BreakerState::Closed;
        if state == BreakerState::HalfOpen && kind.parked.is_none() {
            self.shared.signals.look.notify_one();
        }
        // Recorded only once it is stored.
        if is_down && kind.parked.is_none() && !admission.suspects(holder, name) {
            self.change(name, KindChange::Suspect { holder, reason: reason.clone() }).await?;
            tracing::warn!(kind = %name, reason, "breaker opened: this node starts no attempts of the kind until a probe succeeds");
            admission.suspected(holder, name);
        } else if !is_down && admission.is_suspected(name) {
            if kind.parked.is_none() {
                self.change(name, KindChange::Trust { holder }).await?;
                tracing::info!(kind = %name, "breaker closed: this node can start attempts of the kind");
                kind.meters.unparked(self.shared.clock.now());
            }
            admission.trusts(name);
        }
        Ok(())
    }

    /// Takes the right to probe a parked kind, once its open time has passed.
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
            let is_idle = !is_mine || self.shared.admission.is_clear(name);
            let since = known.map(|(_, since)| *since).filter(|_| is_idle).unwrap_or(now);
            self.idle.insert(name.clone(), (generation, since));
            // Another prober may be alive but no longer able to run the kind: the duration of its attempt is not visible here.
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
            // A right that another holder has taken since may end with its death.
            *seen == generation || parked.prober.is_some()
        });
        let Some((_, at)) = known else {
            let open_for = kind.settings.breaker.unwrap_or_default().open_for;
            // A random delay, so that not all holders try at once.
            let extra = open_for.mul_f64(self.shared.random.next() as f64 / u64::MAX as f64 / 10.0);
            let wait = match parked.until {
                Some(until) => until.since(self.shared.store.now().await?),
                None => open_for,
            };
            self.probes.insert(name.clone(), (generation, now.plus(wait + extra)));
            return Ok(());
        };
        if now >= *at && kind.is_for_workers() {
            // The next worker that claims its jobs makes the probe.
            self.shared.admission.apply(Fact::ProbeDue { kind: name.clone(), generation });
        } else if now >= *at {
            self.change(name, KindChange::Probe { generation, holder }).await?;
            self.shared.signals.look.notify_one();
        }
        Ok(())
    }

    async fn end_probe(&mut self, probed: &Probed) -> Result<(), StoreError> {
        let (name, generation) = (&probed.kind, probed.generation);
        let change = if probed.is_back {
            KindChange::Unpark { generation }
        } else {
            let why = &probed.why;
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

    /// Counts a kind that this node parked, and notifies operators.
    fn tell_parked(&self, kind: &Kind, parked: &Parked) {
        self.shared.reports.meters.kind(&kind.name).parked();
        self.shared.notify(|| Notice::kind_parked(&kind.name, parked.since, &parked.reason));
    }

    /// Notifies operators if this change parks or unparks a kind.
    fn tell(&self, change: &KindChange, kind: &Kind) {
        match (change, &kind.parked) {
            (KindChange::Suspect { .. }, Some(parked)) => {
                tracing::warn!(kind = %kind.name, reason = parked.reason, "kind parked (its circuit breaker is open): no node starts its jobs until a probe succeeds");
                self.tell_parked(kind, parked);
            }
            (KindChange::Hold { .. }, Some(parked)) => {
                // A hold that is extended is no news.
                let was_parked =
                    self.shared.kind(&kind.name).is_some_and(|known| known.parked.is_some());
                if !was_parked {
                    tracing::warn!(kind = %kind.name, reason = parked.reason, "kind held: the called service asked to wait, so no node starts jobs of this kind until the wait is over");
                    self.tell_parked(kind, parked);
                }
            }
            (KindChange::Unpark { .. }, None) => {
                let known = self.shared.kind(&kind.name);
                let settings = known.as_ref().map(|known| &known.settings);
                let reason = match settings.filter(|settings| settings.breaker.is_none()) {
                    Some(settings) if settings.hold == Hold::Kind => {
                        "the time that the called service asked to wait is over"
                    }
                    Some(_) => "its breaker was removed from the settings",
                    None => "a probe succeeded",
                };
                tracing::info!(kind = %kind.name, reason, "kind no longer parked: its jobs can start");
                let at = self.shared.node_time();
                self.shared.notify(|| Notice::kind_unparked(&kind.name, at, reason));
            }
            _ => {}
        }
    }
}
