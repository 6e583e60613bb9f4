//! Settings of a circuit breaker.

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

/// The condition of a window that opens a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When {
    pub(super) failures: Threshold,
    pub(super) slow: Option<Slow>,
    /// With fewer calls a ratio is not meaningful.
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
    /// Returns the smallest number of failures that can open the breaker.
    const fn failures_min(&self) -> u64 {
        match self {
            Trip::Consecutive { failures } => *failures as u64,
            Trip::Count { when, .. } | Trip::Time { when, .. } => match when.failures {
                Threshold::Number(failures) => failures as u64,
                Threshold::Ratio(ratio) => {
                    let share = ratio.share_of(when.calls_min as u64);
                    let reaches = ratio.is_reached_by(share, when.calls_min as u64);
                    if reaches && share > 0 { share } else { share + 1 }
                }
            },
        }
    }

    pub(super) const fn slow(&self) -> Option<Slow> {
        match self {
            Trip::Count { when, .. } | Trip::Time { when, .. } => when.slow,
            Trip::Consecutive { .. } => None,
        }
    }
}

/// The settings of a breaker that must fit the retries and timeouts around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// The smallest number of failures that can open the breaker.
    pub(crate) failures_min: u64,
    /// When a probe loses its slot.
    pub(crate) probe_timeout: Duration,
}

/// Builder of a [`CircuitBreaker`].
///
/// Defaults: open for 30 s, then one probe at a time; the first successful probe closes the breaker; a probe times out after 60 s.
#[derive(Clone, Debug)]
pub struct CircuitBreakerBuilder {
    pub(super) trip: Trip,
    pub(super) open: Backoff,
    pub(super) probes_max: u32,
    pub(super) successes_to_close: u32,
    pub(super) probe_timeout: Duration,
    pub(super) counts_calls: bool,
    pub(super) counts_dropped: bool,
    /// Zero: what the service asks for does not matter.
    pub(super) retry_after_max: Duration,
    pub(super) name: Cow<'static, str>,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// Whether it is the breaker of a key.
    pub(super) keyed: bool,
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
            counts_dropped: false,
            retry_after_max: Duration::ZERO,
            name: Cow::Borrowed(""),
            clock: Clock::system(),
            random: Random::thread(),
            observer: None,
            keyed: false,
        }
    }

    /// Opens when this share of the calls in the window failed, above 0 to 1. The default is one half.
    ///
    /// # Panics
    /// Panics for other ratios, and without a window; in a constant that is a compile error. The same applies to the methods
    /// below.
    #[must_use]
    #[track_caller]
    pub const fn failure_ratio(mut self, ratio: f64) -> CircuitBreakerBuilder {
        self.trip = valid(self.trip.failure_ratio(ratio));
        self
    }

    /// Opens when this many calls in the window failed, even if their share is small.
    #[must_use]
    #[track_caller]
    pub const fn failures(mut self, failures: u32) -> CircuitBreakerBuilder {
        self.trip = valid(self.trip.failures(failures));
        self
    }

    /// Applies ratios only if the window has at least this many calls. The default is ten.
    #[must_use]
    #[track_caller]
    pub const fn calls_min(mut self, calls: u32) -> CircuitBreakerBuilder {
        self.trip = valid(self.trip.calls_min(calls));
        self
    }

    /// Also opens when this share of the calls in the window took longer than `over`: a response that is too late counts as a
    /// failure.
    #[must_use]
    #[track_caller]
    pub const fn slow_calls(mut self, over: Duration, ratio: f64) -> CircuitBreakerBuilder {
        self.trip = valid(self.trip.slow_calls(over, ratio));
        self
    }

    /// Sets how long it stays open before it lets a probe pass: exactly this time.
    ///
    /// If many instances of a service have this breaker, all of them probe at the same time after an outage, and close at the same
    /// time. To spread them, as the [presets](crate::ServiceClass) do, use
    /// `open_backoff(Backoff::fixed(time).jitter(Jitter::proportional(0.1)))`.
    #[must_use]
    pub const fn open_for(self, time: Duration) -> CircuitBreakerBuilder {
        self.open_backoff(Backoff::fixed(time))
    }

    /// Stays open longer after each failed probe. The times start again from the first when the breaker has been closed.
    /// Custom backoffs are not allowed, because no code of the user may run under the breaker's lock.
    #[must_use]
    #[track_caller]
    pub const fn open_backoff(mut self, backoff: Backoff) -> CircuitBreakerBuilder {
        self.open = valid(checked::open_backoff(backoff));
        self
    }

    /// Stays open as long as the called service asks, at most this long: the time of a `Retry-After` header or of a gRPC
    /// push-back, in any failure that the breaker counted. It only makes the open time longer, never shorter. Off by default.
    ///
    /// ```
    /// use rewheel::{Category, CircuitBreaker, Class, Classify, ManualClock, minutes, seconds};
    ///
    /// struct Overloaded;
    /// impl Classify for Overloaded {
    ///     fn classify(&self) -> Class {
    ///         Class::retry_after(Category::Throttled, seconds(90))
    ///     }
    /// }
    ///
    /// let clock = ManualClock::new();
    /// let breaker = CircuitBreaker::consecutive(1).open_for(seconds(10)).open_for_retry_after(minutes(5));
    /// let breaker = breaker.clock(&clock).build();
    /// breaker.acquire()?.record(&Err::<(), _>(Overloaded));
    /// assert_eq!(breaker.snapshot().retry_in, Some(seconds(90)));
    /// # Ok::<_, rewheel::Refused>(())
    /// ```
    ///
    /// # Panics
    /// Panics if the time is zero or above a day: a wrong header must not switch a dependency off for longer. In a constant that
    /// is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn open_for_retry_after(mut self, time_max: Duration) -> CircuitBreakerBuilder {
        self.retry_after_max = valid(checked::retry_after_max(time_max));
        self
    }

    /// Sets the number of concurrent probes in the half-open state, up to a thousand.
    #[must_use]
    #[track_caller]
    pub const fn probes_max(mut self, probes: u32) -> CircuitBreakerBuilder {
        self.probes_max = valid(checked::probes_max(probes));
        self
    }

    /// Closes after this many successful probes. A probe that fails opens the breaker again. If slow calls count, a slow probe also opens it again.
    #[must_use]
    #[track_caller]
    pub const fn successes_to_close(mut self, successes: u32) -> CircuitBreakerBuilder {
        self.successes_to_close = valid(checked::successes_to_close(successes));
        self
    }

    /// Frees the slot of a probe that has not returned after this time. A probe that timed out counts as neither success nor
    /// failure, and its late result is ignored.
    #[must_use]
    #[track_caller]
    pub const fn probe_timeout(mut self, timeout: Duration) -> CircuitBreakerBuilder {
        self.probe_timeout = valid(checked::probe_timeout(timeout));
        self
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> CircuitBreakerBuilder {
        self.name = name.into();
        self
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> CircuitBreakerBuilder {
        self.clock = clock.into();
        self
    }

    /// Uses this random source for the jitter of [`open_backoff`](CircuitBreakerBuilder::open_backoff).
    #[must_use]
    pub fn random(mut self, random: &Random) -> CircuitBreakerBuilder {
        self.random = random.clone();
        self
    }

    /// Reports to an observer: that the breaker was built, its state changes and its refusals.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> CircuitBreakerBuilder {
        self.observer = Some(observer);
        self
    }

    /// Reports to this observer unless another one was set.
    #[cfg(feature = "reqwest")]
    pub(crate) fn observer_if_none(
        mut self,
        observer: Option<&Arc<dyn Observer>>,
    ) -> CircuitBreakerBuilder {
        self.observer = self.observer.or_else(|| observer.cloned());
        self
    }

    /// Counts every call, so that [`BreakerTotals::calls`] is known. Off by default, because
    /// without this count a success on a healthy breaker writes no shared memory.
    ///
    /// [`BreakerTotals::calls`]: super::BreakerTotals::calls
    #[must_use]
    pub const fn count_calls(mut self) -> CircuitBreakerBuilder {
        self.counts_calls = true;
        self
    }

    /// Counts a call that is dropped before it has a result as a failure. Off by default, because a caller may drop a call for any
    /// reason. Use it if callers put a timeout of their own around calls, such as `tokio::time::timeout`: without it, the breaker
    /// never sees a dependency that hangs.
    ///
    /// ```
    /// use rewheel::CircuitBreaker;
    ///
    /// let breaker = CircuitBreaker::consecutive(1).count_dropped_calls().build();
    /// drop(breaker.acquire()?);
    /// assert!(breaker.acquire().is_err());
    /// # Ok::<_, rewheel::Refused>(())
    /// ```
    #[must_use]
    pub const fn count_dropped_calls(mut self) -> CircuitBreakerBuilder {
        self.counts_dropped = true;
        self
    }

    /// Creates the breaker in the closed state.
    pub fn build(self) -> CircuitBreaker {
        let breaker = self.build_unreported();
        breaker.machine.report_built();
        breaker
    }

    pub(crate) const fn needs(&self) -> Needs {
        Needs { failures_min: self.trip.failures_min(), probe_timeout: self.probe_timeout }
    }

    /// Makes a breaker that the observer hears of at its first change.
    pub(crate) fn build_unreported(self) -> CircuitBreaker {
        CircuitBreaker { machine: Arc::new(Machine::new(self)) }
    }

    /// Creates one breaker per key, for at most this many keys.
    ///
    /// # Panics
    /// Panics if the number is zero.
    pub fn keyed<K: Hash + Eq + Clone>(self, keys_max: usize) -> KeyedCircuitBreaker<K> {
        let template = CircuitBreakerBuilder { keyed: true, ..self };
        let breakers = Breakers { by_key: Keyed::new(keys_max), template };
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
            Some(time) => write!(f, ", for {}", text(time))?,
            None => write!(f, ", for {}", self.open)?,
        }
        if !self.retry_after_max.is_zero() {
            write!(f, ", or as Retry-After says up to {}", text(self.retry_after_max))?;
        }
        Ok(())
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
