//! What a breaker goes by.

use super::machine::Machine;
use super::{Breakers, CircuitBreaker, KeyedCircuitBreaker, checked};
use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::keyed::Keyed;
use crate::observer::Observer;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::setting::valid;
use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// When a breaker opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trip {
    Consecutive { failures: u32 },
    Count { size: u32, when: When },
    Time { length: Duration, when: When },
}

/// What in a window opens a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When {
    pub(super) failures: Threshold,
    pub(super) slow: Option<Slow>,
    /// Below so many calls a ratio says nothing.
    pub(super) calls_min: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threshold {
    Ratio(Ratio),
    Number(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) over: Duration,
    pub(super) ratio: Ratio,
}

impl When {
    /// Half of at least ten calls. One failure at night, when it is the only call, is no outage.
    pub(super) const DEFAULT: When = When {
        failures: Threshold::Ratio(Ratio::from_millionths(500_000)),
        slow: None,
        calls_min: 10,
    };
}

impl Trip {
    pub(super) const fn slow(&self) -> Option<Slow> {
        match self {
            Trip::Count { when, .. } | Trip::Time { when, .. } => when.slow,
            Trip::Consecutive { .. } => None,
        }
    }
}

/// Sets up a [`CircuitBreaker`].
///
/// Unless set: opens for 30 s, then one probe at a time, of which the first to succeed closes it
/// and which is given up on after 60 s.
#[derive(Clone, Debug)]
pub struct CircuitBreakerBuilder {
    pub(super) trip: Trip,
    pub(super) open: Backoff,
    pub(super) probes_max: u32,
    pub(super) successes_to_close: u32,
    pub(super) probe_timeout: Duration,
    pub(super) counts_calls: bool,
    pub(super) name: Cow<'static, str>,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl CircuitBreakerBuilder {
    pub(super) const fn new(trip: Trip) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder {
            trip,
            open: Backoff::fixed(Duration::from_secs(30)),
            probes_max: 1,
            successes_to_close: 1,
            probe_timeout: Duration::from_secs(60),
            counts_calls: false,
            name: Cow::Borrowed(""),
            clock: Clock::system(),
            random: Random::thread(),
            observer: None,
        }
    }

    /// Opens when this share of the calls in the window failed, above 0 to 1. Half unless set.
    ///
    /// # Panics
    /// Panics on other ratios, and without a window; in a constant that is a compile error. So do
    /// its siblings below.
    #[must_use]
    #[track_caller]
    pub const fn failure_ratio(mut self, ratio: f64) -> CircuitBreakerBuilder {
        self.trip = valid(self.trip.failure_ratio(ratio));
        self
    }

    /// Opens when so many calls in the window failed, whatever their share.
    #[must_use]
    #[track_caller]
    pub const fn failures(mut self, failures: u32) -> CircuitBreakerBuilder {
        self.trip = valid(self.trip.failures(failures));
        self
    }

    /// Goes by ratios only once the window has so many calls. Ten unless set.
    #[must_use]
    #[track_caller]
    pub const fn calls_min(mut self, calls: u32) -> CircuitBreakerBuilder {
        self.trip = valid(self.trip.calls_min(calls));
        self
    }

    /// Also opens when this share of the calls in the window took longer than `over`: what answers
    /// too late has failed, too.
    #[must_use]
    #[track_caller]
    pub const fn slow_calls(mut self, over: Duration, ratio: f64) -> CircuitBreakerBuilder {
        self.trip = valid(self.trip.slow_calls(over, ratio));
        self
    }

    /// Stays open so long before it lets a probe pass.
    #[must_use]
    pub const fn open_for(self, time: Duration) -> CircuitBreakerBuilder {
        self.open_backoff(Backoff::fixed(time))
    }

    /// Stays open longer each time that a probe fails, and starts over once it has been closed. Not
    /// for a custom backoff: nobody's code runs under the breaker's lock.
    #[must_use]
    #[track_caller]
    pub const fn open_backoff(mut self, backoff: Backoff) -> CircuitBreakerBuilder {
        self.open = valid(checked::open_backoff(backoff));
        self
    }

    /// Lets so many probes pass at the same time while it is half open, up to a thousand.
    #[must_use]
    #[track_caller]
    pub const fn probes_max(mut self, probes: u32) -> CircuitBreakerBuilder {
        self.probes_max = valid(checked::probes_max(probes));
        self
    }

    /// Closes once so many probes have succeeded. One that fails, or is slow where slow calls count,
    /// opens it again.
    #[must_use]
    #[track_caller]
    pub const fn successes_to_close(mut self, successes: u32) -> CircuitBreakerBuilder {
        self.successes_to_close = valid(checked::successes_to_close(successes));
        self
    }

    /// Gives a probe's place to another call if it has not come back for so long. It counts as
    /// neither success nor failure, and what it reports later is ignored.
    #[must_use]
    #[track_caller]
    pub const fn probe_timeout(mut self, timeout: Duration) -> CircuitBreakerBuilder {
        self.probe_timeout = valid(checked::probe_timeout(timeout));
        self
    }

    /// Names it, for people and for telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> CircuitBreakerBuilder {
        self.name = name.into();
        self
    }

    /// Goes by another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> CircuitBreakerBuilder {
        self.clock = clock.into();
        self
    }

    /// Draws the jitter of [`open_backoff`](CircuitBreakerBuilder::open_backoff) from a seed.
    #[must_use]
    pub fn random(mut self, random: &Random) -> CircuitBreakerBuilder {
        self.random = random.clone();
        self
    }

    /// Reports that it was built, its changes and its refusals.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> CircuitBreakerBuilder {
        self.observer = Some(observer);
        self
    }

    /// Counts every call, so that [`BreakerTotals::calls`] is known. Off unless set: a success on a
    /// healthy breaker otherwise writes nothing that other threads read.
    ///
    /// [`BreakerTotals::calls`]: super::BreakerTotals::calls
    #[must_use]
    pub const fn count_calls(mut self) -> CircuitBreakerBuilder {
        self.counts_calls = true;
        self
    }

    /// Makes the breaker, closed.
    pub fn build(self) -> CircuitBreaker {
        let breaker = self.build_unreported();
        breaker.machine.report_built();
        breaker
    }

    /// Makes a breaker that the observer hears of at its first change.
    pub(super) fn build_unreported(self) -> CircuitBreaker {
        CircuitBreaker { machine: Arc::new(Machine::new(self)) }
    }

    /// Makes a breaker for each key, for at most so many keys.
    ///
    /// # Panics
    /// Panics if that is none.
    pub fn keyed<K: Hash + Eq + Clone>(self, keys_max: usize) -> KeyedCircuitBreaker<K> {
        let breakers = Breakers { by_key: Keyed::new(keys_max), template: self };
        KeyedCircuitBreaker { shared: Arc::new(breakers) }
    }
}

impl std::fmt::Display for CircuitBreakerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::duration::text;
        match self.trip {
            Trip::Consecutive { failures } => write!(f, "opens at {failures} failures in a row")?,
            Trip::Count { size, when } => write!(f, "opens at {when} of the last {size} calls")?,
            Trip::Time { length, when } => write!(f, "opens at {when} within {}", text(length))?,
        }
        if let Some(slow) = self.trip.slow() {
            write!(f, ", or at {} over {}", slow.ratio, text(slow.over))?;
        }
        match self.open.as_exactly() {
            Some(time) => write!(f, ", for {}", text(time)),
            None => write!(f, ", for {}", self.open),
        }
    }
}

impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.failures {
            Threshold::Ratio(ratio) => write!(f, "{ratio} failures"),
            Threshold::Number(failures) => write!(f, "{failures} failures"),
        }
    }
}
