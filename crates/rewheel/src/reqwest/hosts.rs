//! The policies of each host.

use crate::breaker::{CircuitBreaker, CircuitBreakerBuilder};
use crate::budget::RetryBudgetBuilder;
use crate::bulkhead::BulkheadBuilder;
use crate::clock::Clock;
use crate::keyed::Keyed;
use crate::limiter::RateLimiterBuilder;
use crate::observer::Observer;
use crate::pipeline::Pipeline;
use crate::presets::ServiceClass;
use crate::random::Random;
use crate::retry::Retry;
use std::sync::Arc;
use std::time::Duration;

/// Whether requests contain the headers of [`CallContext`](crate::CallContext) and, with the feature `otel`, of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Announce {
    /// Every request contains them. The default.
    #[default]
    Always,
    /// No request contains them.
    Never,
}

/// From what the policies of a host are built.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pub(super) retry: Retry,
    pub(super) total_timeout: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) budget: Option<RetryBudgetBuilder>,
    pub(super) breaker: Option<CircuitBreakerBuilder>,
    pub(super) limiter: Option<RateLimiterBuilder>,
    pub(super) bulkhead: Option<BulkheadBuilder>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) clock: Clock,
    pub(super) random: Random,
}

impl Template {
    pub(super) fn of_class(class: &ServiceClass) -> Template {
        Template {
            // The time limits are steps of their own.
            retry: class.retry().attempt_timeout(Duration::MAX).deadline(Duration::MAX),
            total_timeout: class.total_timeout,
            attempt_timeout: class.attempt_timeout,
            budget: Some(class.retry_budget()),
            breaker: Some(class.circuit_breaker()),
            limiter: Some(class.rate_limiter()),
            bulkhead: None,
            observer: None,
            clock: Clock::system(),
            random: Random::thread(),
        }
    }

    fn build(&self, host: &str) -> Policies {
        let name = || host.to_owned();
        let mut pipeline = Pipeline::new()
            .named(name())
            .clock(self.clock.clone())
            .random(&self.random)
            .timeout(self.total_timeout);
        if let Some(observer) = &self.observer {
            pipeline = pipeline.observer(Arc::clone(observer));
        }
        pipeline = pipeline.retry(self.retry);
        // A policy of the caller's own may have an observer of its own.
        let clock = || self.clock.clone();
        let observer = self.observer.as_ref();
        if let Some(limiter) = self.limiter.clone() {
            let limiter = limiter.observer_if_none(observer).clock(clock()).named(name());
            pipeline = pipeline.rate_limiter(&limiter.build());
        }
        if let Some(bulkhead) = self.bulkhead.clone() {
            let bulkhead = bulkhead.observer_if_none(observer).clock(clock()).named(name());
            pipeline = pipeline.bulkhead(&bulkhead.build());
        }
        let breaker = self.breaker.clone().map(|breaker| {
            let breaker = breaker.observer_if_none(observer).clock(clock()).named(name());
            breaker.random(&self.random).build_unreported()
        });
        if let Some(breaker) = &breaker {
            pipeline = pipeline.circuit_breaker(breaker);
        }
        pipeline = pipeline.attempt_timeout(self.attempt_timeout);
        if let Some(budget) = self.budget.clone() {
            let budget = budget.observer_if_none(observer).clock(clock()).named(name());
            pipeline = pipeline.retry_budget(&budget.build());
        }
        Policies { once: pipeline.without_retry(), repeating: pipeline, breaker }
    }
}

/// The policies of one host.
#[derive(Clone, Debug)]
pub(super) struct Policies {
    pub(super) repeating: Pipeline,
    /// With one attempt, for requests that must not be sent again.
    pub(super) once: Pipeline,
    breaker: Option<CircuitBreaker>,
}

/// The policies of all hosts; those of a host that was not called for the longest time make room for a new one.
#[derive(Debug)]
pub(super) struct Hosts {
    known: Keyed<String, Arc<Policies>>,
    template: Template,
}

impl Hosts {
    pub(super) fn new(template: Template, hosts_max: usize) -> Hosts {
        Hosts { known: Keyed::new(hosts_max), template }
    }

    pub(super) fn policies(&self, host: &str) -> Arc<Policies> {
        let mut built = false;
        let make = || {
            built = true;
            Arc::new(self.template.build(host))
        };
        let policies = self.known.with(host, make, |_| false, |policies| Arc::clone(policies));
        // An observer may use the client, so it is told after the lock is released.
        if let Some(breaker) = policies.breaker.as_ref().filter(|_| built) {
            breaker.machine().report_built();
        }
        policies
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
