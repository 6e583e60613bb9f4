//! Steps of a pipeline that are different for each key.

use super::{Pipeline, Plan, Step};
use crate::breaker::{KeyedCircuitBreaker, Needs, OwnedPermit};
use crate::budget::{KeyedRetryBudget, RetryBudget};
use crate::bulkhead::{Bulkhead, KeyedBulkhead};
use crate::error::Refused;
use crate::limiter::{KeyedRateLimiter, RateLimiter};
use crate::throttle::{ClientThrottle, Counted, KeyedClientThrottle};
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// The key type of a [`Pipeline`] that has no keyed steps. This type has no values.
#[derive(Clone, Copy, Debug)]
pub enum NoKey {}

/// A step that is different for each key.
#[derive(Clone, Debug)]
pub(super) enum KeyedStep<K> {
    CircuitBreaker(KeyedCircuitBreaker<K>),
    RateLimiter(KeyedRateLimiter<K>),
    WaitingRateLimiter(KeyedRateLimiter<K>),
    Bulkhead(KeyedBulkhead<K>),
    ClientThrottle(KeyedClientThrottle<K>),
}

/// What a call got from the policy of its key.
#[derive(Debug)]
pub(super) enum Entered {
    Nothing,
    Permit(OwnedPermit),
    Throttle(ClientThrottle, Counted),
    /// A slot must be taken, in whose queue the call may wait.
    Bulkhead(Bulkhead),
    /// A token must be taken, in whose queue the call may wait.
    Line(RateLimiter),
}

/// Hides [`Entered`], which only this crate uses.
#[derive(Debug)]
pub struct KeyedEntry(pub(super) Entered);

/// Stands in a plan for a [`KeyedStep`].
#[derive(Clone, Debug)]
pub(super) struct Keyed {
    /// Where the pipeline has it.
    pub(super) index: usize,
    pub(super) kind: KeyedKind,
    /// Of a breaker.
    pub(super) needs: Option<Needs>,
    /// The maximum wait of a call, if it is limited.
    pub(super) wait_max: Option<Duration>,
    name: String,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyedKind {
    CircuitBreaker,
    RateLimiter,
    Bulkhead,
    ClientThrottle,
}

impl fmt::Display for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            KeyedKind::CircuitBreaker => "circuit breaker",
            KeyedKind::RateLimiter => "rate limiter",
            KeyedKind::Bulkhead => "bulkhead",
            KeyedKind::ClientThrottle => "client throttle",
        })?;
        if !self.name.is_empty() {
            write!(f, " {:?}", self.name)?;
        }
        write!(f, " for each key: {}", self.text)
    }
}

impl Pipeline {
    /// Creates a pipeline without policies, for calls that have a key: a host, a tenant, an
    /// account. Keyed steps then use the breaker or the limiter of that key. All keyed steps have the same key type.
    ///
    /// Every call must set its key with [`key`](crate::Call::key); otherwise it does not compile.
    ///
    /// ```
    /// use rewheel::{CircuitBreaker, Pipeline, RateLimiter, Retry, GiveUpReason, millis};
    /// use std::io;
    /// # async fn get(host: &str) -> io::Result<u32> {
    /// #     if host == "down" { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(7) }
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let breakers = CircuitBreaker::consecutive(2).keyed::<String>(1_000);
    /// let limits = RateLimiter::per_second(100).keyed::<String>(1_000);
    /// let fetch = Pipeline::keyed()
    ///     .retry(Retry::exponential(millis(1)).attempts_max(2))
    ///     .rate_limiter_keyed(&limits)
    ///     .circuit_breaker_keyed(&breakers);
    ///
    /// let down = fetch.run(|_| get("down")).key("down").await.unwrap_err();
    /// let refused = fetch.run(|_| get("down")).key("down").await.unwrap_err();
    /// let page = fetch.run(|_| get("up")).key("up").await;
    ///
    /// assert_eq!((down.reason(), refused.reason()), (GiveUpReason::AttemptsExhausted, GiveUpReason::CircuitOpen));
    /// assert_eq!(page.unwrap(), 7);
    /// # }
    /// ```
    /// ```compile_fail
    /// # async fn forgets_the_key(fetch: rewheel::Pipeline<String>) {
    /// let page = fetch.run(|_| async { Ok::<_, std::io::Error>(7) }).await;
    /// # }
    /// ```
    pub fn keyed<K>() -> Pipeline<K> {
        Pipeline { plan: Arc::default(), keyed: None, keyed_budget: None }
    }
}

impl<K: Hash + Eq + Clone> Pipeline<K> {
    /// Refuses a call while the breaker of its key is open. A refusal is not retried.
    #[must_use]
    pub fn circuit_breaker_keyed(self, breakers: &KeyedCircuitBreaker<K>) -> Pipeline<K> {
        let (kind, name) = (KeyedKind::CircuitBreaker, breakers.name().to_owned());
        let step = KeyedStep::CircuitBreaker(breakers.clone());
        let needs = Some(breakers.needs());
        self.step_keyed(step, kind, (name, breakers.describe()), needs, Some(Duration::ZERO))
    }

    /// Refuses a call if the limit of its key is reached. This step does not wait, but a retry
    /// around it repeats the refused call after the time that the limiter returns.
    #[must_use]
    pub fn rate_limiter_keyed(self, limiters: &KeyedRateLimiter<K>) -> Pipeline<K> {
        let (kind, name) = (KeyedKind::RateLimiter, limiters.name().to_owned());
        let step = KeyedStep::RateLimiter(limiters.clone());
        let of_it = (name, limiters.describe());
        self.step_keyed(step, kind, of_it, None, Some(Duration::ZERO))
    }

    /// Waits until the limiter of its key admits the call, as long as its
    /// [`wait_max`](crate::RateLimiterBuilder::wait_max) allows.
    ///
    /// ```
    /// use rewheel::{ManualClock, Pipeline, RateLimiter, millis};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let clock = ManualClock::new();
    /// let limits = RateLimiter::per_second(10).burst(1).clock(&clock).keyed::<String>(1_000);
    /// let send = Pipeline::keyed().rate_limiter_keyed_waiting(&limits).clock(&clock);
    /// for _ in 0..3 {
    ///     let call = send.run(|_| async { Ok::<_, std::io::Error>(()) }).key("tenant");
    ///     clock.drive(call).await.unwrap();
    /// }
    /// assert_eq!(clock.elapsed(), millis(200));
    /// # }
    /// ```
    #[must_use]
    pub fn rate_limiter_keyed_waiting(self, limiters: &KeyedRateLimiter<K>) -> Pipeline<K> {
        let of_it = (limiters.name().to_owned(), limiters.describe());
        let step = KeyedStep::WaitingRateLimiter(limiters.clone());
        self.step_keyed(step, KeyedKind::RateLimiter, of_it, None, limiters.wait_max())
    }

    /// Waits for a slot of its key, if its [`queue_max`](crate::BulkheadBuilder::queue_max) and
    /// [`wait_max`](crate::BulkheadBuilder::wait_max) allow.
    #[must_use]
    pub fn bulkhead_keyed(self, bulkheads: &KeyedBulkhead<K>) -> Pipeline<K> {
        let of_it = (bulkheads.name().to_owned(), bulkheads.describe());
        let step = KeyedStep::Bulkhead(bulkheads.clone());
        self.step_keyed(step, KeyedKind::Bulkhead, of_it, None, bulkheads.wait_max())
    }

    /// Rejects calls locally while the dependency accepts too few calls of their key. A rejection is not retried.
    #[must_use]
    pub fn client_throttle_keyed(self, throttles: &KeyedClientThrottle<K>) -> Pipeline<K> {
        let of_it = (throttles.name().to_owned(), throttles.describe());
        let step = KeyedStep::ClientThrottle(throttles.clone());
        self.step_keyed(step, KeyedKind::ClientThrottle, of_it, None, Some(Duration::ZERO))
    }

    /// Limits retries by a budget of each key, instead of one for all calls.
    #[must_use]
    pub fn retry_budget_keyed(mut self, budgets: &KeyedRetryBudget<K>) -> Pipeline<K> {
        let text = budgets.describe();
        self.keyed_budget = Some(Arc::new(budgets.clone()));
        self.set(|plan| plan.keyed_budget = Some(text))
    }

    fn step_keyed(
        mut self,
        step: KeyedStep<K>,
        kind: KeyedKind,
        (name, text): (String, String),
        needs: Option<Needs>,
        wait_max: Option<Duration>,
    ) -> Pipeline<K> {
        let steps = Arc::make_mut(self.keyed.get_or_insert_default());
        let index = steps.len();
        steps.push(step);
        self.step(Step::Keyed(Keyed { index, kind, needs, wait_max, name, text }))
    }
}

/// The policies of one call, with its key if they need one. There is no need to name it.
#[diagnostic::on_unimplemented(
    message = "this call needs a key",
    note = "the pipeline has steps for each key: add `.key(&key)` to the call"
)]
pub trait Policies: sealed::Sealed {
    #[doc(hidden)]
    fn plan(&self) -> PlanRef<'_>;
    /// Asks a keyed step to let a call pass.
    #[doc(hidden)]
    fn enter(&self, index: usize) -> Result<KeyedEntry, Refused>;
    /// Returns the retry budget of the key, if each key has its own.
    #[doc(hidden)]
    fn budget(&self) -> Option<RetryBudget>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Pipeline {}
    impl Sealed for &super::Pipeline {}
    impl<K, Q: ?Sized> Sealed for super::WithKey<'_, K, Q> {}
    #[cfg(feature = "tower")]
    impl<K> Sealed for super::OwnedKey<K> {}
}

/// Gives [`Policies`] access to the private plan of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct PlanRef<'a>(pub(super) &'a Plan);

impl Policies for Pipeline {
    #[inline]
    fn plan(&self) -> PlanRef<'_> {
        PlanRef(&self.plan)
    }
    fn enter(&self, _: usize) -> Result<KeyedEntry, Refused> {
        Ok(KeyedEntry(Entered::Nothing))
    }
    fn budget(&self) -> Option<RetryBudget> {
        None
    }
}

impl Policies for &Pipeline {
    #[inline]
    fn plan(&self) -> PlanRef<'_> {
        PlanRef(&self.plan)
    }
    fn enter(&self, _: usize) -> Result<KeyedEntry, Refused> {
        Ok(KeyedEntry(Entered::Nothing))
    }
    fn budget(&self) -> Option<RetryBudget> {
        None
    }
}

/// A pipeline with the key of one call. You do not need to name this type.
pub struct WithKey<'a, K, Q: ?Sized> {
    pub(super) pipeline: &'a Pipeline<K>,
    pub(super) key: &'a Q,
}

impl<K, Q: ?Sized> Clone for WithKey<'_, K, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, Q: ?Sized> Copy for WithKey<'_, K, Q> {}

impl<K, Q> Policies for WithKey<'_, K, Q>
where
    K: Hash + Eq + Clone + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    #[inline]
    fn plan(&self) -> PlanRef<'_> {
        PlanRef(&self.pipeline.plan)
    }

    fn enter(&self, index: usize) -> Result<KeyedEntry, Refused> {
        self.pipeline.enter_keyed(index, self.key)
    }

    fn budget(&self) -> Option<RetryBudget> {
        self.pipeline.keyed_budget.as_ref().map(|budgets| budgets.get(self.key))
    }
}

/// A pipeline with the key of one request, for futures that own all their data. You do not need to name this type.
#[cfg(feature = "tower")]
pub struct OwnedKey<K> {
    pub(crate) pipeline: Pipeline<K>,
    pub(crate) key: K,
}

#[cfg(feature = "tower")]
impl<K: Hash + Eq + Clone> Policies for OwnedKey<K> {
    #[inline]
    fn plan(&self) -> PlanRef<'_> {
        PlanRef(&self.pipeline.plan)
    }

    fn enter(&self, index: usize) -> Result<KeyedEntry, Refused> {
        self.pipeline.enter_keyed(index, &self.key)
    }

    fn budget(&self) -> Option<RetryBudget> {
        self.pipeline.keyed_budget.as_ref().map(|budgets| budgets.get(&self.key))
    }
}

impl<K> Pipeline<K> {
    fn enter_keyed<Q>(&self, index: usize, key: &Q) -> Result<KeyedEntry, Refused>
    where
        K: Hash + Eq + Clone + Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let entered = match self.keyed.as_deref().and_then(|steps| steps.get(index)) {
            Some(KeyedStep::CircuitBreaker(breakers)) => Entered::Permit(breakers.acquire(key)?),
            Some(KeyedStep::RateLimiter(limiters)) => {
                limiters.check(key)?;
                Entered::Nothing
            }
            Some(KeyedStep::WaitingRateLimiter(limiters)) => {
                limiters.take_or_line(key, 1).map_or(Entered::Nothing, Entered::Line)
            }
            Some(KeyedStep::Bulkhead(bulkheads)) => Entered::Bulkhead(bulkheads.get(key)),
            Some(KeyedStep::ClientThrottle(throttles)) => {
                let throttle = throttles.get(key);
                let counted = throttle.enter()?;
                Entered::Throttle(throttle, counted)
            }
            None => Entered::Nothing,
        };
        Ok(KeyedEntry(entered))
    }
}

// Not derived: none of these needs anything of `K`.

impl<K> Clone for Pipeline<K> {
    fn clone(&self) -> Pipeline<K> {
        let keyed_budget = self.keyed_budget.clone();
        Pipeline { plan: Arc::clone(&self.plan), keyed: self.keyed.clone(), keyed_budget }
    }
}

impl Default for Pipeline {
    fn default() -> Pipeline {
        Pipeline::keyed()
    }
}

impl<K> fmt::Debug for Pipeline<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("plan", &self.plan).finish_non_exhaustive()
    }
}

#[cfg(feature = "tower")]
impl<K: fmt::Debug> fmt::Debug for OwnedKey<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("OwnedKey");
        debug.field("pipeline", &self.pipeline).field("key", &self.key).finish()
    }
}

impl<K, Q: fmt::Debug + ?Sized> fmt::Debug for WithKey<'_, K, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("WithKey");
        debug.field("pipeline", &self.pipeline).field("key", &self.key).finish()
    }
}
