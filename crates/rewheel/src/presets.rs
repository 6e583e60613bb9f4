//! Ready-made retry policies for common cases.

use crate::backoff::{Backoff, Jitter};
use crate::breaker::{CircuitBreaker, CircuitBreakerBuilder};
use crate::duration::{millis, seconds};
use crate::limiter::{RateLimiter, RateLimiterBuilder};
use crate::pipeline::Pipeline;
use crate::retry::Retry;
use crate::timeout::Timeout;
use std::time::Duration;

/// Without jitter, fixed delays make all clients retry at the same time.
const AROUND: Jitter = Jitter::proportional(0.3);

impl Default for Retry {
    /// Returns [`Retry::DEFAULT`].
    fn default() -> Retry {
        Retry::DEFAULT
    }
}

impl Retry {
    /// For a call without known properties: 3 attempts within 10 s, with doubling delays from 100 ms and full jitter.
    ///
    /// - *3 attempts*: most temporary failures are over at the second or third attempt. More
    ///   attempts multiply the load on a dependency that is down.
    /// - *Doubling delays with full jitter*: clients that fail together do not retry together.
    /// - *10 s in total*: most callers do not wait longer. If a delay does not fit into the
    ///   remaining time, such as a long `Retry-After`, the call gives up at once.
    ///
    /// There is no attempt timeout, because a good value depends on the call. If a call can hang, add
    /// [`attempt_timeout`](Retry::attempt_timeout); otherwise one attempt can use the whole 10 s.
    ///
    /// ```
    /// use rewheel::{Retry, seconds};
    ///
    /// let retry = Retry::default();
    /// assert_eq!((retry.attempts(), retry.time_max()), (3, Some(seconds(10))));
    /// assert_eq!(retry, Retry::DEFAULT);
    /// ```
    pub const DEFAULT: Retry = Retry::exponential(millis(100)).deadline(seconds(10));

    /// For the API of another organisation over the internet: 5 attempts within 30 s.
    pub const EXTERNAL_API: Retry =
        Retry::new(Backoff::exponential(millis(100)).max(seconds(10)).jitter(AROUND))
            .attempts_max(5)
            .deadline(seconds(30));

    /// For an internal service: 3 attempts within 15 s.
    pub const INTERNAL_SERVICE: Retry =
        Retry::new(Backoff::exponential(millis(50)).max(seconds(5)))
            .attempts_max(3)
            .deadline(seconds(15));

    /// For a database query: one retry within 5 s.
    pub const DATABASE: Retry =
        Retry::new(Backoff::fixed(millis(100)).jitter(AROUND)).attempts_max(2).deadline(seconds(5));

    /// For a non-critical call: one retry within 2 s.
    pub const NON_CRITICAL: Retry =
        Retry::new(Backoff::fixed(millis(50)).jitter(AROUND)).attempts_max(2).deadline(seconds(2));

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

/// A class of dependencies by importance: it sets breaker, timeout, retries and rate together.
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
    /// Number of failures within the time `within` that open the breaker.
    pub failures: u32,
    /// Period in which the breaker counts the `failures`.
    pub within: Duration,
    /// Timeout of one attempt.
    pub timeout: Duration,
    /// Attempts beyond the first.
    pub retries: u32,
    /// Calls per second.
    pub rate: u32,
}

impl ServiceClass {
    /// For dependencies that the business cannot work without.
    pub const CRITICAL: ServiceClass = ServiceClass {
        name: "critical",
        failures: 3,
        within: seconds(30),
        timeout: seconds(30),
        retries: 3,
        rate: 1_000,
    };

    /// For most dependencies.
    pub const STANDARD: ServiceClass = ServiceClass {
        name: "standard",
        failures: 5,
        within: seconds(30),
        timeout: seconds(10),
        retries: 2,
        rate: 500,
    };

    /// For batch work, such as jobs that run at night.
    pub const BATCH: ServiceClass = ServiceClass {
        name: "batch",
        failures: 10,
        within: seconds(60),
        timeout: seconds(60),
        retries: 5,
        rate: 100,
    };

    /// Every class.
    pub const ALL: [ServiceClass; 3] =
        [ServiceClass::CRITICAL, ServiceClass::STANDARD, ServiceClass::BATCH];

    /// Returns the class of this name: `critical`, `standard` or `batch`.
    pub fn preset(name: &str) -> Option<ServiceClass> {
        ServiceClass::ALL.into_iter().find(|class| class.name == name)
    }

    /// Returns its retry policy.
    pub const fn retry(&self) -> Retry {
        Retry::exponential(millis(100)).attempts_max(self.retries + 1)
    }

    /// Returns the builder of its circuit breaker.
    pub const fn circuit_breaker(&self) -> CircuitBreakerBuilder {
        CircuitBreaker::time_window(self.within).failures(self.failures)
    }

    /// Returns the builder of its rate limiter.
    pub const fn rate_limiter(&self) -> RateLimiterBuilder {
        RateLimiter::per_second(self.rate)
    }

    /// Returns its timeout for one attempt.
    pub const fn attempt_timeout(&self) -> Timeout {
        Timeout::new(self.timeout)
    }

    /// Creates a pipeline with all these policies, for the dependency with this name.
    pub fn pipeline(&self, name: &'static str) -> Pipeline {
        Pipeline::new()
            .named(name)
            .retry(self.retry())
            .rate_limiter(&self.rate_limiter().wait_max(self.timeout).named(name).build())
            .circuit_breaker(&self.circuit_breaker().named(name).build())
            .attempt_timeout(self.timeout)
    }
}
