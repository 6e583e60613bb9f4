//! Health of a kind's dependency, judged by this engine's own attempts.

use crate::settings::BreakerSettings;
use rewheel::{BreakerState, CircuitBreaker, CircuitBreakerBuilder, Clock, OwnedPermit, Random};
use rewheel_core::KindName;
use std::time::Duration;

/// The breaker of a kind in this engine.
#[derive(Debug)]
pub(super) struct Health {
    settings: BreakerSettings,
    breaker: CircuitBreaker,
    /// The message of the latest failure.
    why: String,
}

impl Health {
    pub(super) fn new(
        kind: &KindName,
        settings: BreakerSettings,
        clock: &Clock,
        random: &Random,
    ) -> Health {
        let breaker = breaker(kind, settings, clock, random).build();
        Health { settings, breaker, why: String::new() }
    }

    pub(super) const fn settings(&self) -> BreakerSettings {
        self.settings
    }

    /// Returns the state, and how long until it changes by itself. A breaker that has been open for long enough allows one probe,
    /// but it notices this only when it is asked for a permit.
    pub(super) fn state(&self) -> (BreakerState, Option<Duration>) {
        let seen = self.breaker.snapshot();
        match (seen.state, seen.retry_in) {
            (BreakerState::Open, Some(Duration::ZERO)) => (BreakerState::HalfOpen, None),
            (state, retry_in) => (state, retry_in),
        }
    }

    /// Begins an attempt, unless the breaker refuses it.
    pub(super) fn begin(&self) -> Option<OwnedPermit> {
        self.breaker.acquire_owned().ok()
    }

    /// Clears the breaker.
    pub(super) fn reset(&self) {
        self.breaker.reset();
    }

    pub(super) fn note(&mut self, failure: &str) {
        failure.clone_into(&mut self.why);
    }

    /// Returns the reason shown to users.
    pub(super) fn why(&self) -> String {
        let percent = (self.settings.failure_ratio * 100.0).round();
        let (window, why) = (self.settings.window, &self.why);
        format!("at least {percent}% of the last {window} attempts failed; latest failure: {why}")
    }
}

/// Builds the breaker of a kind, or of one target of it, in each engine.
pub(crate) fn breaker(
    kind: &KindName,
    settings: BreakerSettings,
    clock: &Clock,
    random: &Random,
) -> CircuitBreakerBuilder {
    CircuitBreaker::count_window(settings.window)
        .failure_ratio(settings.failure_ratio)
        .open_for(settings.open_for)
        .probes_max(1)
        // An attempt ends by its own timeout, which may be an hour: until then it is the probe.
        .probe_timeout(Duration::MAX)
        .named(kind.to_string())
        .clock(clock)
        .random(random)
}
