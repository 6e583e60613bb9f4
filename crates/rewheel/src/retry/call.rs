//! A call to retry, with its options.

use super::future::RetryFuture;
use super::hooks::{OnGiveUp, OnRetry, OnSuccess, Retrying};
use super::judge::{ByClassify, ByJudge, ByMatcher, ByWhen, Judge, OrWhenOk};
use super::options::{Extras, Options, Plain, Setup};
use super::{Attempt, Hooks, Retry};
use crate::budget::RetryBudget;
use crate::cancel::CancelToken;
use crate::classify::{Class, Matcher};
use crate::clock::Clock;
use crate::error::Error;
use crate::observer::Observer;
use crate::random::Random;
use crate::statistics::Statistics;
use std::future::{Future, IntoFuture};
use std::sync::Arc;

use self::marker::{Async, Blocking, Mode};

/// Adds [`retry`](Retryable::retry) to closures: async or blocking, with or without an
/// [`Attempt`] argument.
///
/// ```
/// use rewheel::{Attempt, Retry, Retryable, millis};
/// use std::io;
///
/// # async fn get(attempt: u32) -> io::Result<u32> {
/// #     if attempt < 2 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(attempt) }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let policy = Retry::exponential(millis(1));
/// let page = (|attempt: Attempt| get(attempt.number())).retry(policy).await.unwrap();
/// let file = (|| std::fs::read_to_string("Cargo.toml")).retry(policy).call().unwrap();
/// # assert_eq!(page, 2);
/// # assert!(file.contains("rewheel"));
/// # }
/// ```
pub trait Retryable<M>: Sized {
    /// Retries this operation by a policy: `.await` the result, or `.call()` it if the operation
    /// blocks.
    #[inline]
    fn retry(self, policy: Retry) -> Call<Self, M> {
        Call::new(self, Setup::new(policy))
    }
}

impl<F, Fut, T, E> Retryable<Async<(), Fut, T, E>> for F
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
}

impl<F, Fut, T, E> Retryable<Async<Attempt, Fut, T, E>> for F
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
}

impl<F: FnMut() -> Result<T, E>, T, E> Retryable<Blocking<(), T, E>> for F {}

impl<F: FnMut(Attempt) -> Result<T, E>, T, E> Retryable<Blocking<Attempt, T, E>> for F {}

/// Distinguishes the types of closures that can be retried. You need not name these types.
pub mod marker {
    use crate::retry::Attempt;
    use std::marker::PhantomData;

    /// A closure that takes `A` and returns a future `Fut` of `Result<T, E>`.
    #[derive(Debug)]
    pub struct Async<A, Fut, T, E> {
        operation: PhantomData<fn(A) -> Fut>,
        result: PhantomData<fn() -> (T, E)>,
    }

    /// A closure that takes `A` and returns a `Result<T, E>` directly.
    #[derive(Debug)]
    pub struct Blocking<A, T, E>(PhantomData<fn(A) -> (T, E)>);

    /// The result types of a closure.
    pub trait Mode {
        /// Its success type.
        type Ok;
        /// Its error type.
        type Err;
    }

    impl<A, Fut, T, E> Mode for Async<A, Fut, T, E> {
        type Ok = T;
        type Err = E;
    }

    impl<A, T, E> Mode for Blocking<A, T, E> {
        type Ok = T;
        type Err = E;
    }

    /// Calls a closure, with or without the attempt as its argument.
    pub trait Invoke<A, R> {
        /// Calls it.
        fn invoke(&mut self, attempt: Attempt) -> R;
    }

    impl<F: FnMut() -> R, R> Invoke<(), R> for F {
        #[inline]
        fn invoke(&mut self, _: Attempt) -> R {
            self()
        }
    }

    impl<F: FnMut(Attempt) -> R, R> Invoke<Attempt, R> for F {
        #[inline]
        fn invoke(&mut self, attempt: Attempt) -> R {
            self(attempt)
        }
    }
}

/// A call that is made under policies: a retry policy, by [`Retryable::retry`], or all those of a
/// [`Pipeline`](crate::Pipeline), by [`Pipeline::run`](crate::Pipeline::run).
///
/// Nothing happens until it is awaited or, for blocking operations, [called](Call::call). Dropping
/// it at any time cancels the running attempt or the delay.
#[must_use = "the call does not start until you await it, or until `.call()` if it is blocking"]
#[derive(Debug)]
pub struct Call<F, M, J = ByClassify, H = (), S = Setup<Plain>> {
    pub(crate) operation: F,
    pub(crate) mode: std::marker::PhantomData<fn() -> M>,
    pub(crate) judge: J,
    pub(crate) hooks: H,
    pub(crate) setup: S,
}

impl<F, M, S> Call<F, M, ByClassify, (), S> {
    #[inline]
    pub(crate) const fn new(operation: F, setup: S) -> Call<F, M, ByClassify, (), S> {
        Call { operation, mode: std::marker::PhantomData, judge: ByClassify, hooks: (), setup }
    }
}

impl<F, M: Mode, H, S> Call<F, M, ByClassify, H, S> {
    /// Retries the errors for which `when` returns true. Use it for errors that do not implement
    /// [`Classify`](crate::Classify).
    pub fn when<W: FnMut(&M::Err) -> bool>(self, when: W) -> Call<F, M, ByWhen<W>, H, S> {
        self.judged_by(ByWhen(when))
    }

    /// Retries the errors that a matcher matches.
    pub fn when_matches(self, matcher: &Matcher) -> Call<F, M, ByMatcher, H, S> {
        self.judged_by(ByMatcher(matcher.clone()))
    }

    /// Classifies every result, success or failure, by a closure.
    ///
    /// ```
    /// use rewheel::{Class, Retry, Retryable, millis};
    /// use std::time::SystemTime;
    ///
    /// struct Response { status: u16, retry_after: Option<&'static str> }
    /// # fn get() -> Result<Response, Class> { Ok(Response { status: 200, retry_after: None }) }
    ///
    /// let response = (|| get())
    ///     .retry(Retry::exponential(millis(100)))
    ///     .judge(|result| match result {
    ///         Ok(r) => Class::of_response(r.status, r.retry_after, SystemTime::now()),
    ///         Err(class) => class.clone(),
    ///     })
    ///     .call();
    /// # assert_eq!(response.unwrap().status, 200);
    /// ```
    pub fn judge<N>(self, judge: N) -> Call<F, M, ByJudge<N>, H, S>
    where
        N: FnMut(&Result<M::Ok, M::Err>) -> Class,
    {
        self.judged_by(ByJudge(judge))
    }

    fn judged_by<N>(self, judge: N) -> Call<F, M, N, H, S> {
        let Call { operation, mode, hooks, setup, .. } = self;
        Call { operation, mode, judge, hooks, setup }
    }
}

impl<F, M: Mode, J, H, S> Call<F, M, J, H, S> {
    /// Also retries successful results for which `when` returns true. If the last attempt has such
    /// a result, the call returns it.
    ///
    /// If you also use `when`, `when_matches` or `judge`, call `when_ok` after it.
    pub fn when_ok<W: FnMut(&M::Ok) -> bool>(self, when: W) -> Call<F, M, OrWhenOk<J, W>, H, S> {
        let Call { operation, mode, judge, hooks, setup } = self;
        Call { operation, mode, judge: OrWhenOk { judge, when }, hooks, setup }
    }

    /// Calls `hook` before each wait.
    pub fn on_retry<N>(self, hook: N) -> Call<F, M, J, OnRetry<H, N>, S>
    where
        N: FnMut(&Retrying<'_, M::Err>),
        H: Hooks<M::Ok, M::Err>,
    {
        let Call { operation, mode, judge, hooks, setup } = self;
        Call { operation, mode, judge, hooks: OnRetry { hooks, hook }, setup }
    }

    /// Calls `hook` with the result and the number of attempts when the call succeeds.
    pub fn on_success<N: FnMut(&M::Ok, u32)>(self, hook: N) -> Call<F, M, J, OnSuccess<H, N>, S>
    where
        H: Hooks<M::Ok, M::Err>,
    {
        let Call { operation, mode, judge, hooks, setup } = self;
        Call { operation, mode, judge, hooks: OnSuccess { hooks, hook }, setup }
    }

    /// Calls `hook` when the call is given up.
    pub fn on_give_up<N: FnMut(&Error<M::Err>)>(self, hook: N) -> Call<F, M, J, OnGiveUp<H, N>, S>
    where
        H: Hooks<M::Ok, M::Err>,
    {
        let Call { operation, mode, judge, hooks, setup } = self;
        Call { operation, mode, judge, hooks: OnGiveUp { hooks, hook }, setup }
    }
}

impl<F, M, J, H, O: Options> Call<F, M, J, H, Setup<O>> {
    fn with(self, change: impl FnOnce(&mut Extras)) -> Call<F, M, J, H, Setup<Extras>> {
        let Call { operation, mode, judge, hooks, setup } = self;
        let mut options = setup.options.into_extras();
        change(&mut options);
        Call { operation, mode, judge, hooks, setup: Setup { policy: setup.policy, options } }
    }

    /// Continues with a later attempt, where an earlier process stopped.
    pub fn starting_at(self, attempt: u32) -> Call<F, M, J, H, Setup<Extras>> {
        self.with(|extras| extras.first_attempt = attempt)
    }

    /// Uses another clock.
    pub fn clock(self, clock: impl Into<Clock>) -> Call<F, M, J, H, Setup<Extras>> {
        self.with(|extras| extras.clock = clock.into())
    }

    /// Uses this random source for jitter.
    pub fn random(self, random: &Random) -> Call<F, M, J, H, Setup<Extras>> {
        self.with(|extras| extras.random = random.clone())
    }

    /// Limits the retries by a budget that other calls share.
    pub fn retry_budget(self, budget: &RetryBudget) -> Call<F, M, J, H, Setup<Extras>> {
        self.with(|extras| extras.budget = Some(budget.clone()))
    }

    /// Counts this call in these statistics, together with other calls to the same dependency.
    pub fn statistics(self, statistics: &Statistics) -> Call<F, M, J, H, Setup<Extras>> {
        self.with(|extras| extras.statistics = Some(statistics.clone()))
    }

    /// Gives up as soon as the token is cancelled. A blocking attempt is not interrupted, but the
    /// delay after it is interrupted.
    pub fn cancel(self, token: &CancelToken) -> Call<F, M, J, H, Setup<Extras>> {
        self.with(|extras| extras.cancel = Some(token.cancelled()))
    }

    /// Reports events to an observer, under a name.
    pub fn observer(
        self,
        name: &'static str,
        observer: Arc<dyn Observer>,
    ) -> Call<F, M, J, H, Setup<Extras>> {
        self.with(|extras| extras.observer = Some((name, observer)))
    }
}

#[cfg(feature = "otel")]
impl<F, M, J, H, O: Options> Call<F, M, J, H, Setup<O>> {
    pub(crate) const fn policy(&self) -> Retry {
        self.setup.policy
    }

    /// Returns its observer, with the name.
    pub(crate) fn observed(&self) -> Option<(&'static str, Arc<dyn Observer>)> {
        self.setup.observer().cloned()
    }

    /// Puts something around the operation.
    pub(crate) fn around<N, G>(self, wrap: impl FnOnce(F) -> N) -> Call<N, G, J, H, Setup<O>> {
        let Call { operation, judge, hooks, setup, .. } = self;
        Call { operation: wrap(operation), mode: std::marker::PhantomData, judge, hooks, setup }
    }
}

impl<F, A, Fut, T, E, J, H, O> IntoFuture for Call<F, Async<A, Fut, T, E>, J, H, Setup<O>>
where
    F: marker::Invoke<A, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
{
    type Output = Result<T, Error<E>>;
    type IntoFuture = RetryFuture<F, A, Fut, E, J, H, O>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        RetryFuture::new(self.operation, self.setup, self.judge, self.hooks)
    }
}
