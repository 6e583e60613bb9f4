//! Ready-made retry policies for common cases.

use crate::backoff::{Backoff, Jitter};
use crate::breaker::{CircuitBreaker, CircuitBreakerBuilder};
use crate::budget::{RetryBudget, RetryBudgetBuilder};
use crate::clock::Clock;
use crate::duration::{millis, seconds};
use crate::limiter::{RateLimiter, RateLimiterBuilder};
use crate::pipeline::Pipeline;
use crate::random::Random;
use crate::retry::Retry;
use crate::timeout::Timeout;
use std::time::Duration;

/// Without jitter, fixed delays make all clients retry at the same time.
const AROUND: Jitter = Jitter::proportional(0.3);

/// Rejects, at compile time, a preset in which an attempt that hangs leaves no time for the others.
const fn leaves_time(retry: Retry) -> Retry {
    let own_delays = retry.retry_after_max(Duration::ZERO);
    let attempts = match own_delays.deadline(Duration::MAX).time_max() {
        Some(attempts) => attempts.as_nanos(),
        None => panic!("a preset has no attempt timeout"),
    };
    let total = match retry.deadline_limit() {
        Some(total) => total.as_nanos(),
        None => panic!("a preset has no deadline"),
    };
    assert!(attempts <= total, "the attempts of a preset do not fit into its deadline");
    retry
}

impl Default for Retry {
    /// Returns [`Retry::DEFAULT`].
    fn default() -> Retry {
        Retry::DEFAULT
    }
}

impl Retry {
    /// For a call without known properties: 3 attempts of at most 3 s, within 10 s.
    ///
    /// - *3 attempts*: most temporary failures are over at the second or third attempt. More
    ///   attempts multiply the load on a dependency that is down.
    /// - *3 s for each attempt*: a call that hangs fails early enough to be repeated. A circuit breaker
    ///   inside the retry counts it if both are steps of a [`Pipeline`](crate::Pipeline). A breaker whose
    ///   [`call`](crate::CircuitBreaker::call) is the retried operation sees a dropped call, which it counts only with
    ///   [`count_dropped_calls`](crate::CircuitBreakerBuilder::count_dropped_calls). If your call takes longer, set
    ///   [`attempt_timeout`](Retry::attempt_timeout) and [`deadline`](Retry::deadline).
    /// - *Doubling delays from 100 ms with full jitter*: clients that fail together do not retry
    ///   together.
    /// - *10 s in total*: most callers do not wait longer. If a delay does not fit into the
    ///   remaining time, such as a long `Retry-After`, the call gives up at once.
    ///
    /// The time limits of all presets interrupt async calls. A blocking attempt cannot be
    /// interrupted, so give it a timeout of its own. A policy has no state, so a preset has no retry
    /// budget: add one with [`retry_budget`](crate::Call::retry_budget) if many calls share a
    /// dependency.
    ///
    /// ```
    /// use rewheel::{Retry, seconds};
    ///
    /// let retry = Retry::default();
    /// assert_eq!((retry.attempts(), retry.time_max()), (3, Some(seconds(10))));
    /// assert_eq!(retry, Retry::DEFAULT);
    /// ```
    pub const DEFAULT: Retry = leaves_time(
        Retry::exponential(millis(100)).attempt_timeout(seconds(3)).deadline(seconds(10)),
    );

    /// For the API of another organisation over the internet: 5 attempts of at most 5 s, within 30 s.
    pub const EXTERNAL_API: Retry = leaves_time(
        Retry::new(Backoff::exponential(millis(100)).max(seconds(10)).jitter(AROUND))
            .attempts_max(5)
            .attempt_timeout(seconds(5))
            .deadline(seconds(30)),
    );

    /// For an internal service: 3 attempts of at most 4 s, within 15 s.
    pub const INTERNAL_SERVICE: Retry = leaves_time(
        Retry::new(Backoff::exponential(millis(50)).max(seconds(5)))
            .attempts_max(3)
            .attempt_timeout(seconds(4))
            .deadline(seconds(15)),
    );

    /// For a database query: 2 attempts of at most 2 s, within 5 s.
    pub const DATABASE: Retry = leaves_time(
        Retry::new(Backoff::fixed(millis(100)).jitter(AROUND))
            .attempts_max(2)
            .attempt_timeout(seconds(2))
            .deadline(seconds(5)),
    );

    /// For a non-critical call: 2 attempts of at most 900 ms, within 2 s.
    pub const NON_CRITICAL: Retry = leaves_time(
        Retry::new(Backoff::fixed(millis(50)).jitter(AROUND))
            .attempts_max(2)
            .attempt_timeout(millis(900))
            .deadline(seconds(2)),
    );

    /// Returns the preset of this name: `external_api`, `internal_service`, `database` or
    /// `non_critical`.
    pub fn preset(name: &str) -> Option<Retry> {
        RETRIES.iter().find(|(known, _)| *known == name).map(|(_, retry)| *retry)
    }
}

/// The presets by name.
pub(crate) const RETRIES: [(&str, Retry); 4] = [
    ("external_api", Retry::EXTERNAL_API),
    ("internal_service", Retry::INTERNAL_SERVICE),
    ("database", Retry::DATABASE),
    ("non_critical", Retry::NON_CRITICAL),
];

/// A class of dependencies by importance: it sets all policies of a pipeline together.
///
/// | | `critical` | `standard` | `batch` |
/// | --- | --- | --- | --- |
/// | attempts, timeout of each | 4 of 5 s | 3 of 3 s | 6 of 30 s |
/// | total time | 25 s | 12 s | 5 min |
/// | retry budget: share of the calls | 20 % | 10 % | 20 % |
/// | always allowed retries per second | 10 | 5 | 1 |
/// | breaker opens at | 50 % of 20 or more calls in 30 s | 50 % of 20 or more calls in 30 s | 50 % of 20 or more calls in 60 s |
/// | breaker stays open for about | 10 s | 30 s | 60 s |
/// | calls per second | 1,000 | 500 | 100 |
///
/// The delays between attempts double from 100 ms, with full jitter. The breaker judges a share of at
/// least 20 calls, so that the attempts of one bad request cannot open it.
///
/// ```
/// use rewheel::ServiceClass;
///
/// let pay = ServiceClass::CRITICAL.pipeline("payments");
/// assert_eq!((pay.explain().amplification_max, pay.explain().warnings.len()), (4, 0));
/// assert_eq!(ServiceClass::preset("batch"), Some(ServiceClass::BATCH));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceClass {
    /// Its name in text.
    pub name: &'static str,
    /// Timeout of one attempt.
    pub attempt_timeout: Duration,
    /// Attempts beyond the first.
    pub retries: u32,
    /// Time limit of a call with all its attempts and delays.
    pub total_timeout: Duration,
    /// Retries that the budget allows, in percent of the calls.
    pub budget_percent: u32,
    /// Retries per second that the budget always allows.
    pub budget_floor: u32,
    /// Share of failed calls that opens the breaker, in percent.
    pub failure_percent: u32,
    /// Number of calls from which the breaker applies this share.
    pub calls_min: u32,
    /// Period in which the breaker counts calls.
    pub window: Duration,
    /// How long the breaker stays open before it lets a probe pass, plus or minus a tenth.
    pub open_for: Duration,
    /// Calls per second.
    pub rate: u32,
}

impl ServiceClass {
    /// For dependencies that the business cannot work without.
    pub const CRITICAL: ServiceClass = ServiceClass {
        name: "critical",
        attempt_timeout: seconds(5),
        retries: 3,
        total_timeout: seconds(25),
        budget_percent: 20,
        budget_floor: 10,
        failure_percent: 50,
        calls_min: 20,
        window: seconds(30),
        open_for: seconds(10),
        rate: 1_000,
    };

    /// For most dependencies.
    pub const STANDARD: ServiceClass = ServiceClass {
        name: "standard",
        attempt_timeout: seconds(3),
        retries: 2,
        total_timeout: seconds(12),
        budget_percent: 10,
        budget_floor: 5,
        failure_percent: 50,
        calls_min: 20,
        window: seconds(30),
        open_for: seconds(30),
        rate: 500,
    };

    /// For batch work, such as jobs that run at night.
    pub const BATCH: ServiceClass = ServiceClass {
        name: "batch",
        attempt_timeout: seconds(30),
        retries: 5,
        total_timeout: seconds(300),
        budget_percent: 20,
        budget_floor: 1,
        failure_percent: 50,
        calls_min: 20,
        window: seconds(60),
        open_for: seconds(60),
        rate: 100,
    };

    /// The instances of a service see an outage at the same time. Their breakers should not all let calls pass again at the same time.
    const OPEN_JITTER: Jitter = Jitter::proportional(0.1);

    /// Every class.
    pub const ALL: &'static [ServiceClass] =
        &[ServiceClass::CRITICAL, ServiceClass::STANDARD, ServiceClass::BATCH];

    /// Returns the class of this name: `critical`, `standard` or `batch`.
    pub fn preset(name: &str) -> Option<ServiceClass> {
        ServiceClass::ALL.iter().find(|class| class.name == name).cloned()
    }

    /// Returns the names of all classes, for error messages and help texts.
    fn names() -> String {
        let names = ServiceClass::ALL.iter().map(|class| format!("`{}`", class.name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns its retry policy, with the timeout of an attempt and the total time limit.
    pub const fn retry(&self) -> Retry {
        leaves_time(
            Retry::exponential(millis(100))
                .attempts_max(self.retries + 1)
                .attempt_timeout(self.attempt_timeout)
                .deadline(self.total_timeout),
        )
    }

    /// Returns the builder of its retry budget.
    pub const fn retry_budget(&self) -> RetryBudgetBuilder {
        RetryBudget::ratio(self.budget_percent as f64 / 100.0).floor_per_second(self.budget_floor)
    }

    /// Returns the builder of its circuit breaker. A probe may take twice as long as an attempt:
    /// so the attempt timeout ends a probe that hangs, and the breaker opens again.
    pub const fn circuit_breaker(&self) -> CircuitBreakerBuilder {
        CircuitBreaker::time_window(self.window)
            .failure_ratio(self.failure_percent as f64 / 100.0)
            .calls_min(self.calls_min)
            .open_backoff(Backoff::fixed(self.open_for).jitter(ServiceClass::OPEN_JITTER))
            .probe_timeout(self.attempt_timeout.saturating_mul(2))
    }

    /// Returns the builder of its rate limiter. A call waits at most as long as an attempt may take.
    pub const fn rate_limiter(&self) -> RateLimiterBuilder {
        RateLimiter::per_second(self.rate).wait_max(self.attempt_timeout)
    }

    /// Returns its timeout for one attempt.
    pub const fn attempt_timeout(&self) -> Timeout {
        Timeout::new(self.attempt_timeout)
    }

    /// Creates a pipeline with all these policies, for the dependency with this name.
    ///
    /// Create it once and keep it: its clones share the breaker, the limiter and the budget.
    pub fn pipeline(&self, name: &'static str) -> Pipeline {
        self.pipeline_on(name, &Clock::system(), &Random::thread())
    }

    fn pipeline_on(&self, name: &'static str, clock: &Clock, random: &Random) -> Pipeline {
        let limiter = self.rate_limiter().clock(clock.clone()).named(name).build();
        let breaker =
            self.circuit_breaker().clock(clock.clone()).random(random).named(name).build();
        let budget = self.retry_budget().clock(clock.clone()).named(name).build();
        // The time limits are steps, so that waiting for the limiter does not shorten an attempt.
        let retry = Retry::exponential(millis(100)).attempts_max(self.retries + 1);
        Pipeline::new()
            .named(name)
            .clock(clock.clone())
            .random(random)
            .timeout(self.total_timeout)
            .retry(retry)
            .retry_budget(&budget)
            .rate_limiter(&limiter)
            .circuit_breaker(&breaker)
            .attempt_timeout(self.attempt_timeout)
    }
}

/// Error: the text does not name a service class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a service class: use one of {}", ServiceClass::names())]
pub struct ServiceClassError {
    text: String,
}

impl std::str::FromStr for ServiceClass {
    type Err = ServiceClassError;

    /// Parses the name of a class.
    ///
    /// ```
    /// use rewheel::ServiceClass;
    ///
    /// assert_eq!("critical".parse(), Ok(ServiceClass::CRITICAL));
    /// let error = "Critical".parse::<ServiceClass>().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "`Critical` is not a service class: use one of `critical`, `standard`, `batch`"
    /// );
    /// ```
    fn from_str(text: &str) -> Result<ServiceClass, ServiceClassError> {
        let class = ServiceClass::preset(text.trim());
        class.ok_or_else(|| ServiceClassError { text: text.to_owned() })
    }
}

/// A class reads as its name. It is not written, because its numbers may have been changed.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for ServiceClass {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<ServiceClass, D::Error> {
        crate::text::deserialize(from, str::parse)
    }
}

// Every class is checked when this crate is compiled.
const _: () = {
    let mut index = 0;
    while index < ServiceClass::ALL.len() {
        ServiceClass::ALL[index].retry();
        index += 1;
    }
};

#[cfg(all(test, not(loom)))]
mod tests;
