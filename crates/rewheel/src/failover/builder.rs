//! Builds a failover.

use super::{Failover, Order, Shared, Target};
use crate::breaker::{CircuitBreaker, CircuitBreakerBuilder};
use crate::budget::RetryBudget;
use crate::clock::Clock;
use crate::ejection::{Ejections, OutlierEjection};
use crate::observer::Observer;
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use crate::sync::AtomicUsize;
use std::borrow::Cow;
use std::sync::Arc;

/// Builder of a [`Failover`].
///
/// Defaults: targets in the order of the list, each call tries all of them if necessary, a breaker for each that opens after
/// five failures in a row, and no ejection.
#[derive(Clone, Debug)]
pub struct FailoverBuilder<T> {
    targets: Vec<T>,
    breaker: CircuitBreakerBuilder,
    order: Order,
    tries_max: usize,
    ejection: Option<OutlierEjection>,
    budget: Option<RetryBudget>,
    clock: Clock,
    name: Cow<'static, str>,
    observer: Option<Arc<dyn Observer>>,
}

const NO_TARGET: NotAllowed = not_allowed!("targets", "use 1 to 64 targets");

const fn checked_count(targets: usize) -> Result<usize, NotAllowed> {
    // The associated constant of any failover.
    if 0 < targets && targets <= Failover::<()>::TARGETS_MAX { Ok(targets) } else { Err(NO_TARGET) }
}

impl<T> Failover<T> {
    /// Uses these targets, the best first. An empty list does not compile, nor does one with more than
    /// [`TARGETS_MAX`](Failover::TARGETS_MAX) targets.
    pub fn over<const N: usize>(targets: [T; N]) -> FailoverBuilder<T> {
        const { assert!(N > 0, "a failover needs a target") };
        const { assert!(N <= Failover::<()>::TARGETS_MAX, "a failover has at most 64 targets") };
        FailoverBuilder::new(targets.into())
    }

    /// As [`over`](Failover::over), for a list that is known at run time.
    ///
    /// ```
    /// use rewheel::Failover;
    ///
    /// let error = Failover::try_over(Vec::<String>::new()).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid targets `0`: use 1 to 64 targets");
    /// ```
    ///
    /// # Errors
    /// Rejects an empty list, and one with more than [`TARGETS_MAX`](Failover::TARGETS_MAX) targets.
    pub fn try_over(
        targets: impl IntoIterator<Item = T>,
    ) -> Result<FailoverBuilder<T>, SettingError> {
        let targets: Vec<T> = targets.into_iter().take(Failover::<T>::TARGETS_MAX + 1).collect();
        checked_count(targets.len()).map_err(|rule| rule.with(targets.len()))?;
        Ok(FailoverBuilder::new(targets))
    }
}

impl<T> FailoverBuilder<T> {
    fn new(targets: Vec<T>) -> FailoverBuilder<T> {
        FailoverBuilder {
            tries_max: targets.len(),
            targets,
            breaker: CircuitBreaker::consecutive(5),
            order: Order::AsListed,
            ejection: None,
            budget: None,
            clock: Clock::system(),
            name: Cow::Borrowed(""),
            observer: None,
        }
    }

    /// Sets the circuit breaker that each target gets.
    ///
    /// With [`open_for_retry_after`](CircuitBreakerBuilder::open_for_retry_after) it hears what a target asks for in answer to a
    /// [`call`](super::Failover::call), or to a [`run`](super::Failover::run) of a policy without a retry. A pipeline inside
    /// `run` has heard it already: put a breaker into that pipeline.
    #[must_use]
    pub fn circuit_breaker(mut self, breaker: CircuitBreakerBuilder) -> FailoverBuilder<T> {
        self.breaker = breaker;
        self
    }

    /// Starts each call at the next target, so that all targets get the same load while they work.
    #[must_use]
    pub const fn round_robin(mut self) -> FailoverBuilder<T> {
        self.order = Order::RoundRobin;
        self
    }

    /// Sets how many targets one call may try. More than there are is the same as all.
    ///
    /// # Panics
    /// Panics if the number is zero.
    #[must_use]
    #[track_caller]
    pub fn tries_max(mut self, targets: usize) -> FailoverBuilder<T> {
        self.tries_max = valid(checked_tries(targets)).min(self.targets.len());
        self
    }

    /// As [`tries_max`](FailoverBuilder::tries_max), without the panic.
    ///
    /// # Errors
    /// Rejects zero.
    pub fn try_tries_max(mut self, targets: usize) -> Result<FailoverBuilder<T>, SettingError> {
        let tries_max = checked_tries(targets).map_err(|rule| rule.with(targets))?;
        self.tries_max = tries_max.min(self.targets.len());
        Ok(self)
    }

    /// Leaves out targets that fail more than the others. If no other target may be called, because all breakers are open,
    /// they are called nevertheless.
    #[must_use]
    pub const fn ejection(mut self, rules: OutlierEjection) -> FailoverBuilder<T> {
        self.ejection = Some(rules);
        self
    }

    /// Pays all calls of other targets from this budget. The first call is free.
    #[must_use]
    pub fn retry_budget(mut self, budget: &RetryBudget) -> FailoverBuilder<T> {
        self.budget = Some(budget.clone());
        self
    }

    /// Uses another clock. The breakers have the clock of their builder.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> FailoverBuilder<T> {
        self.clock = clock.into();
        self
    }

    /// Sets the name, for logs and telemetry. The breakers of the targets have it with their number: `regions/0`.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> FailoverBuilder<T> {
        self.name = name.into();
        self
    }

    /// Reports events to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> FailoverBuilder<T> {
        self.observer = Some(observer);
        self
    }

    /// Creates the failover.
    pub fn build(self) -> Failover<T> {
        let FailoverBuilder { targets, breaker, order, tries_max, ejection, .. } = self;
        let count = targets.len();
        let target = |(index, value)| {
            let breaker = breaker.clone();
            let breaker = if self.name.is_empty() {
                breaker
            } else {
                breaker.named(format!("{}/{index}", self.name))
            };
            Target { value, breaker: breaker.build() }
        };
        Failover {
            shared: Arc::new(Shared {
                targets: targets.into_iter().enumerate().map(target).collect(),
                order,
                next: AtomicUsize::new(0),
                tries_max,
                ejections: ejection.map(|rules| (rules, Ejections::new(rules, count))),
                budget: self.budget,
                clock: self.clock,
                name: self.name,
                observer: self.observer,
            }),
        }
    }
}

const fn checked_tries(targets: usize) -> Result<usize, NotAllowed> {
    if targets > 0 { Ok(targets) } else { Err(not_allowed!("tries_max", "use 1 or more")) }
}
