//! Pipeline: composes policies around a call.

mod keyed;
mod guard;
mod call;
mod machine;
mod run;
mod blocking;
mod explain;
mod checked;

pub use self::call::{InPipeline, PipelineCall};
pub use self::explain::{Explanation, Warning};
#[cfg(feature = "tower")]
pub use self::keyed::OwnedKey;
pub use self::keyed::{NoKey, Policies, WithKey};
pub use self::run::Run;

use self::guard::Guard;
use self::keyed::{Keyed, KeyedStep};
use crate::breaker::CircuitBreaker;
use crate::budget::{KeyedRetryBudget, RetryBudget};
use crate::bulkhead::Bulkhead;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::observer::Observer;
use crate::random::Random;
use crate::retry::Retry;
use crate::statistics::Statistics;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Policies around a call, in the order in which they are written: the first is the outermost.
///
/// A pipeline has the same type for all combinations of policies, so you can store it in a struct
/// field. Clones are cheap and share the state of breakers, limiters, bulkheads and budgets. Running it does not allocate.
///
/// ```
/// use rewheel::{CircuitBreaker, Pipeline, Retry, seconds};
/// # use std::io;
/// # async fn fetch_page(number: u32) -> io::Result<String> { Ok(number.to_string()) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rewheel::Error<io::Error>> {
/// let breaker = CircuitBreaker::consecutive(10).named("pages").build();
/// let fetch = Pipeline::new()
///     .timeout(seconds(10))
///     .retry(Retry::EXTERNAL_API)
///     .circuit_breaker(&breaker)
///     .attempt_timeout(seconds(2));
///
/// let page = fetch.run(|_| fetch_page(7)).await?;
/// println!("{}", fetch.explain());
/// # assert_eq!(page, "7");
/// # Ok(())
/// # }
/// ```
///
/// `K` is the type of the keys, if the pipeline has steps for each key; see [`Pipeline::keyed`].
pub struct Pipeline<K = NoKey> {
    plan: Arc<Plan>,
    /// The keyed steps of the plan; `None` if there are none.
    keyed: Option<Arc<Vec<KeyedStep<K>>>>,
    keyed_budget: Option<Arc<KeyedRetryBudget<K>>>,
}

/// The steps of a [`Pipeline`] and what they have in common, without what depends on a key.
#[derive(Clone, Debug, Default)]
struct Plan {
    name: Cow<'static, str>,
    steps: Vec<Step>,
    budget: Option<RetryBudget>,
    /// The description of the budgets of keys, if each key has its own.
    keyed_budget: Option<String>,
    statistics: Option<Statistics>,
    clock: Clock,
    random: Random,
    observer: Option<Arc<dyn Observer>>,
    /// Whether anything but the call itself happens when a call succeeds at once. Every call asks.
    does_anything: bool,
    /// Whether it may make more than one attempt.
    repeats: bool,
    /// Whether a retry inside of this pipeline leaves the repeating to it. Every poll asks.
    suppresses: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Timeout(Duration),
    Retry(Retry),
    RateLimiter(RateLimiter),
    CircuitBreaker(CircuitBreaker),
    Bulkhead(Bulkhead),
    AttemptTimeout(Duration),
    Keyed(Keyed),
    Guard(Guard),
}

/// The most steps a pipeline can have.
const STEPS_MAX: usize = 8;

impl Pipeline {
    /// Maximum number of steps of a pipeline. The future of a run contains the data of all
    /// steps, and a pipeline with more steps is hard to understand.
    pub const STEPS_MAX: usize = STEPS_MAX;

    /// [`explain`](Pipeline::explain) warns about retries that make more attempts than this.
    pub const ATTEMPTS_WARN: u32 = 10;

    /// Creates a pipeline without policies.
    pub fn new() -> Pipeline {
        Pipeline::default()
    }
}

impl<K> Pipeline<K> {
    /// Limits the time of everything inside.
    ///
    /// # Panics
    /// Panics if the limit is zero, and, like every policy, if there are [`Pipeline::STEPS_MAX`]
    /// steps already.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Pipeline<K> {
        assert!(!limit.is_zero(), "the timeout must be longer than zero");
        self.step(Step::Timeout(limit))
    }

    /// Limits the time of one attempt: place it inside the retry. An attempt that takes longer
    /// counts as failed, also for the circuit breakers inside.
    ///
    /// # Panics
    /// Panics if the limit is zero.
    #[must_use]
    pub fn attempt_timeout(self, limit: Duration) -> Pipeline<K> {
        assert!(!limit.is_zero(), "the attempt timeout must be longer than zero");
        self.step(Step::AttemptTimeout(limit))
    }

    /// Retries the inner steps and the call. The policy's own deadline and attempt timeout apply as
    /// well.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Pipeline<K> {
        self.step(Step::Retry(retry))
    }

    /// Refuses calls while the breaker is open. A refusal is not retried.
    #[must_use]
    pub fn circuit_breaker(self, breaker: &CircuitBreaker) -> Pipeline<K> {
        self.step(Step::CircuitBreaker(breaker.clone()))
    }

    /// Waits until the limiter admits the call, as long as its
    /// [`wait_max`](crate::RateLimiterBuilder::wait_max) allows. A refusal inside a retry is
    /// retried, after the time that the limiter returns.
    #[must_use]
    pub fn rate_limiter(self, limiter: &RateLimiter) -> Pipeline<K> {
        self.step(Step::RateLimiter(limiter.clone()))
    }

    /// Waits for a slot, if its [`queue_max`](crate::BulkheadBuilder::queue_max) and
    /// [`wait_max`](crate::BulkheadBuilder::wait_max) allow.
    #[must_use]
    pub fn bulkhead(self, bulkhead: &Bulkhead) -> Pipeline<K> {
        self.step(Step::Bulkhead(bulkhead.clone()))
    }

    /// Limits retries by a budget.
    #[must_use]
    pub fn retry_budget(self, budget: &RetryBudget) -> Pipeline<K> {
        self.set(|plan| plan.budget = Some(budget.clone()))
    }

    /// Counts the calls in these statistics, together with other calls to the same dependency.
    #[must_use]
    pub fn statistics(self, statistics: &Statistics) -> Pipeline<K> {
        self.set(|plan| plan.statistics = Some(statistics.clone()))
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Pipeline<K> {
        self.set(|plan| plan.name = name.into())
    }

    /// Uses another clock for timeouts and waits. Breakers, limiters and bulkheads have their own
    /// clocks: in a test, pass the same [`ManualClock`](crate::ManualClock) to all of them.
    #[must_use]
    pub fn clock(self, clock: impl Into<Clock>) -> Pipeline<K> {
        self.set(|plan| plan.clock = clock.into())
    }

    /// Uses this random source for jitter.
    #[must_use]
    pub fn random(self, random: &Random) -> Pipeline<K> {
        self.set(|plan| plan.random = random.clone())
    }

    /// Reports events to an observer.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Pipeline<K> {
        self.set(|plan| plan.observer = Some(observer))
    }

    /// Returns the same policies, with at most this time for a call. A pipeline without a free step keeps its own limit.
    #[cfg(any(feature = "reqwest", feature = "http"))]
    pub(crate) fn within(&self, limit: Duration) -> Pipeline<K> {
        let limit = limit.max(Duration::from_nanos(1));
        self.clone().set(|plan| {
            if let Some(Step::Timeout(own)) = plan.steps.first_mut() {
                *own = limit.min(*own);
            } else if plan.steps.len() < STEPS_MAX {
                plan.steps.insert(0, Step::Timeout(limit));
            }
        })
    }

    /// Returns the same policies with one attempt.
    #[cfg(any(feature = "reqwest", feature = "http"))]
    pub(crate) fn without_retry(&self) -> Pipeline<K> {
        self.clone().set(|plan| {
            for step in &mut plan.steps {
                // Its time limits still apply.
                if let Step::Retry(retry) = step {
                    *retry = retry.attempts_max(1);
                }
            }
        })
    }

    /// Returns whether a call may be repeated.
    #[cfg(any(feature = "reqwest", feature = "http"))]
    pub(crate) fn may_repeat(&self) -> bool {
        self.plan.repeats()
    }

    /// Returns whether the retry budget, if there is one, allows a retry now.
    #[cfg(any(feature = "reqwest", feature = "http"))]
    pub(crate) fn has_budget(&self) -> bool {
        self.plan.budget.as_ref().is_none_or(RetryBudget::may_withdraw)
    }

    /// Describes this pipeline: its steps, the longest time of a call, the largest number of
    /// calls that one call can cause, and warnings about the order of the steps.
    pub fn explain(&self) -> Explanation {
        Explanation::of(&self.plan)
    }

    /// Returns its name, the maximum number of attempts of all its retries together, and its
    /// observer.
    #[cfg(feature = "otel")]
    pub(crate) fn for_trace(&self) -> (&str, u32, Option<Arc<dyn Observer>>) {
        let retries = self.plan.steps.iter().filter_map(|step| match step {
            Step::Retry(retry) => Some(retry.attempts()),
            Step::Timeout(_)
            | Step::RateLimiter(_)
            | Step::CircuitBreaker(_)
            | Step::Bulkhead(_)
            | Step::AttemptTimeout(_)
            | Step::Keyed(_)
            | Step::Guard(_) => None,
        });
        let attempts_max = retries.fold(1, u32::saturating_mul);
        (&self.plan.name, attempts_max, self.plan.observer.clone())
    }

    fn step(self, step: Step) -> Pipeline<K> {
        assert!(self.plan.steps.len() < STEPS_MAX, "a pipeline has at most 8 steps");
        self.set(|plan| plan.steps.push(step))
    }

    fn set(mut self, change: impl FnOnce(&mut Plan)) -> Pipeline<K> {
        let plan = Arc::make_mut(&mut self.plan);
        change(plan);
        plan.does_anything = !plan.steps.is_empty()
            || plan.budget.is_some()
            || plan.keyed_budget.is_some()
            || plan.statistics.is_some()
            || plan.observer.is_some()
            || plan.clock.is_manual();
        plan.repeats =
            plan.steps.iter().any(|s| matches!(s, Step::Retry(retry) if retry.repeats()));
        plan.suppresses =
            plan.steps.iter().any(|s| matches!(s, Step::Retry(retry) if retry.suppresses()));
        self
    }
}

impl Plan {
    /// Returns whether the limit of this step applies to one attempt, not to a series of attempts.
    fn is_limit_of_attempt(&self, index: usize) -> bool {
        match &self.steps[index] {
            // For a retry, this is its attempt timeout; the caller handles its deadline separately.
            Step::AttemptTimeout(_) | Step::Timeout(_) | Step::Retry(_) => {
                !self.steps[index + 1..].iter().any(|step| matches!(step, Step::Retry(_)))
            }
            Step::RateLimiter(_)
            | Step::CircuitBreaker(_)
            | Step::Bulkhead(_)
            | Step::Keyed(_)
            | Step::Guard(_) => false,
        }
    }

    const fn repeats(&self) -> bool {
        self.repeats
    }

    #[inline]
    const fn suppresses(&self) -> bool {
        self.suppresses
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
