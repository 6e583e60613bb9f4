//! The call that is made under a pipeline, with its options.

use super::Pipeline;
use super::keyed::{NoKey, Policies, WithKey};
use super::run::Run;
use crate::budget::RetryBudget;
use crate::cancel::{CancelToken, Cancelled};
use crate::error::Error;
use crate::observer::Observer;
use crate::retry::marker::{Async, Blocking};
use crate::retry::{Attempt, ByClassify, Call, Hooks, Judge};
use std::future::{Future, IntoFuture};
use std::sync::Arc;

/// The pipeline of a [`Call`], with the options of the call. You do not need to name this type.
#[derive(Debug)]
pub struct InPipeline<P> {
    pub(super) policies: P,
    pub(super) cancel: Option<Cancelled>,
}

impl<P> InPipeline<P> {
    #[inline]
    pub(crate) const fn new(policies: P) -> InPipeline<P> {
        InPipeline { policies, cancel: None }
    }
}

impl<P: Policies> InPipeline<P> {
    /// Returns the same for one more call.
    pub(crate) fn again(&self) -> InPipeline<P>
    where
        P: Clone,
    {
        let cancel = self.cancel.as_ref().map(|cancel| cancel.token().cancelled());
        InPipeline { policies: self.policies.clone(), cancel }
    }

    /// Returns its observer, with the name of the pipeline.
    pub(crate) fn observed_by(&self) -> Option<(&str, &Arc<dyn Observer>)> {
        let plan = self.policies.plan().0;
        plan.observer.as_ref().map(|observer| (&*plan.name, observer))
    }

    /// Returns whether its calls are counted in this budget.
    pub(crate) fn counts_in(&self, budget: &RetryBudget) -> bool {
        self.policies.plan().0.budget.as_ref().is_some_and(|own| own.is_same(budget))
    }
}

/// A [`Call`] under a pipeline, without options.
pub type PipelineCall<'a, F, M, K = NoKey> =
    Call<F, M, ByClassify, (), InPipeline<&'a Pipeline<K>>>;

impl<K> Pipeline<K> {
    /// Makes a call under these policies: `.await` the result. The operation runs once per attempt.
    ///
    /// The call takes the options that [`.retry()`](crate::Retryable::retry) takes: `when`,
    /// `when_matches`, `judge`, `when_ok`, the hooks and `cancel`.
    ///
    /// ```
    /// use rewheel::{Pipeline, Retry, millis, seconds};
    /// # #[derive(Debug)]
    /// # struct SdkError { busy: bool }
    /// # async fn sdk_get(attempt: u32) -> Result<u32, SdkError> {
    /// #     if attempt < 2 { Err(SdkError { busy: true }) } else { Ok(attempt) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let fetch = Pipeline::new().retry(Retry::exponential(millis(1))).attempt_timeout(seconds(2));
    /// let mut retries = 0;
    ///
    /// let page = fetch
    ///     .run(|attempt| sdk_get(attempt.number()))
    ///     .when(|error| error.busy)
    ///     .on_retry(|_| retries += 1)
    ///     .await;
    ///
    /// assert_eq!((page.unwrap(), retries), (2, 1));
    /// # }
    /// ```
    ///
    /// Cancel safe: dropping the call drops the running attempt, gives back permits and slots, and leaves every queue.
    #[inline]
    pub fn run<F, Fut, T, E>(
        &self,
        operation: F,
    ) -> PipelineCall<'_, F, Async<Attempt, Fut, T, E>, K>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        Call::new(operation, InPipeline::new(self))
    }

    /// As [`run`](Pipeline::run), for an operation that blocks: use `.call()` on the result.
    ///
    /// A timeout cannot interrupt the operation: a result that comes too late still counts.
    /// A timeout ends the waits between attempts, and no attempt starts after the timeout.
    ///
    /// ```
    /// use rewheel::{Category, Class, Pipeline, Retry, millis};
    /// # fn poll_status(attempt: u32) -> Result<&'static str, String> {
    /// #     Ok(if attempt < 3 { "pending" } else { "done" })
    /// # }
    ///
    /// let poll = Pipeline::new().retry(Retry::exponential(millis(1)));
    /// let status = poll
    ///     .run_blocking(|attempt| poll_status(attempt.number()))
    ///     .judge(|result| match result {
    ///         Ok("pending") => Class::retry(Category::Transient),
    ///         Ok(_) => Class::DONE,
    ///         Err(_) => Class::stop(Category::Unknown),
    ///     })
    ///     .call();
    /// assert_eq!(status.unwrap(), "done");
    /// ```
    #[inline]
    pub fn run_blocking<F, T, E>(
        &self,
        operation: F,
    ) -> PipelineCall<'_, F, Blocking<Attempt, T, E>, K>
    where
        F: FnMut(Attempt) -> Result<T, E>,
    {
        Call::new(operation, InPipeline::new(self))
    }
}

impl<F, M, J, H, P> Call<F, M, J, H, InPipeline<P>> {
    /// Gives up as soon as the token is cancelled: during an attempt, between two attempts, and in
    /// the queue of a limiter or a bulkhead. A blocking attempt is not interrupted, but the wait after it is interrupted.
    ///
    /// Breakers count a cancelled attempt neither as a success nor as a failure.
    pub fn cancel(mut self, token: &CancelToken) -> Call<F, M, J, H, InPipeline<P>> {
        self.setup.cancel = Some(token.cancelled());
        self
    }
}

impl<'a, F, M, J, H, K> Call<F, M, J, H, InPipeline<&'a Pipeline<K>>> {
    /// Sets the key of the call, for the keyed steps of its pipeline; see
    /// [`Pipeline::keyed`](crate::Pipeline::keyed).
    pub fn key<'k, Q: ?Sized>(self, key: &'k Q) -> Call<F, M, J, H, InPipeline<WithKey<'k, K, Q>>>
    where
        'a: 'k,
        K: std::borrow::Borrow<Q>,
    {
        let Call { operation, mode, judge, hooks, setup } = self;
        let policies = WithKey { pipeline: setup.policies, key };
        Call { operation, mode, judge, hooks, setup: InPipeline { policies, cancel: setup.cancel } }
    }
}

impl<F, Fut, T, E, J, H, P> IntoFuture for Call<F, Async<Attempt, Fut, T, E>, J, H, InPipeline<P>>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    P: Policies,
{
    type Output = Result<T, Error<E>>;
    type IntoFuture = Run<P, F, Fut, E, J, H>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        Run::new(self.setup, self.operation, self.judge, self.hooks)
    }
}
