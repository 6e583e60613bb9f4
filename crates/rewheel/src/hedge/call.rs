//! What a hedge makes again: an operation, or a call under a pipeline.

use super::race::{Hedging, Judged, Tries, Which};
use super::{Hedge, SafeToRepeat};
use crate::budget::RetryBudget;
use crate::classify::{Category, Class, Verdict};
use crate::error::Error;
use crate::pipeline::{InPipeline, Policies, Run};
use crate::retry::marker::Async;
use crate::retry::{Attempt, Call, HasHooks, Hooks, Judge, NoteGiveUp};
use crate::sealed::Sealed;
use std::fmt;
use std::future::Future;

/// The attempts of an operation. You do not need to name this type.
pub struct Plain<F, J> {
    operation: F,
    judge: J,
}

impl<F, J> Plain<F, J> {
    #[inline]
    pub(super) const fn new(operation: F, judge: J) -> Plain<F, J> {
        Plain { operation, judge }
    }
}

impl<F, J> Sealed for Plain<F, J> {}

impl<F, J, H, P> Sealed for OfPipeline<F, J, H, P> {}

impl<F, Fut, T, E, J> Tries for Plain<F, J>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
{
    type Output = Result<T, E>;
    type Try = Fut;

    #[inline]
    fn start(&mut self, _: Which) -> Fut {
        (self.operation)()
    }

    #[inline]
    fn judge(&mut self, _: &Fut, result: &Result<T, E>) -> Judged {
        let class = self.judge.judge(result);
        match (class.verdict, result) {
            (Verdict::Done, Ok(_)) => Judged::Final,
            _ => of_failure(&class),
        }
    }
}

fn of_failure(class: &Class) -> Judged {
    if matches!(class.category, Category::Rejected | Category::Cancelled) {
        Judged::Final
    } else if class.is_refusal() {
        Judged::Refused
    } else {
        Judged::Failed
    }
}

/// The attempts of a call under a pipeline. You do not need to name this type.
pub struct OfPipeline<F, J, H, P> {
    operation: F,
    judge: J,
    hooks: H,
    setup: InPipeline<P>,
}

impl<F, Fut, T, E, J, H, P> Tries for OfPipeline<F, J, H, P>
where
    F: FnMut(Attempt) -> Fut + Clone,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E> + Clone,
    H: Hooks<T, E> + Clone,
    P: Policies + Clone,
{
    type Output = Result<T, Error<E>>;
    type Try = Run<P, F, Fut, E, J, NoteGiveUp<H>>;

    fn start(&mut self, which: Which) -> Self::Try {
        let hooks = NoteGiveUp::new(self.hooks.clone());
        let run = Run::new(self.setup.again(), self.operation.clone(), self.judge.clone(), hooks);
        match which {
            Which::First => run,
            Which::Extra => run.of_counted_call(),
        }
    }

    fn judge(&mut self, run: &Self::Try, result: &Result<T, Error<E>>) -> Judged {
        match result {
            // A value that the judge of the call has found bad.
            Ok(_) if run.hooks().failed().is_some() => Judged::Failed,
            Ok(_) => Judged::Final,
            Err(error) if error.is_conclusive() => Judged::Final,
            Err(error) if error.attempts() == 0 => Judged::Refused,
            Err(_) => Judged::Failed,
        }
    }

    fn deposits_into(&self, budget: &RetryBudget) -> bool {
        self.setup.counts_in(budget)
    }
}

impl<F, Fut, T, E, J, H, P> Call<F, Async<Attempt, Fut, T, E>, J, H, InPipeline<P>>
where
    F: FnMut(Attempt) -> Fut + Clone,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E> + Clone,
    H: Hooks<T, E> + Clone,
    P: Policies + Clone,
{
    /// Makes the call again, under all policies of its pipeline, while the first one is slow: see [`Hedge`]. Each attempt of
    /// the hedge has its own permits, slots, retries and timeouts. Set this option last.
    ///
    /// The operation and the closures of other options are cloned, so they cannot change what they capture.
    ///
    /// ```
    /// use rewheel::{CircuitBreaker, Hedge, Pipeline, SafeToRepeat, millis, seconds};
    /// # use std::io;
    /// # async fn fetch_page(number: u32) -> io::Result<u32> { Ok(number) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), rewheel::Error<io::Error>> {
    /// let breaker = CircuitBreaker::consecutive(5).build();
    /// let fetch = Pipeline::new().timeout(seconds(2)).circuit_breaker(&breaker);
    /// let hedge = Hedge::percentile(0.95).build();
    ///
    /// let page = fetch.run(|_| fetch_page(7)).hedge(&hedge, SafeToRepeat).await?;
    /// # assert_eq!(page, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn hedge(self, hedge: &Hedge, _: SafeToRepeat) -> Hedging<'_, OfPipeline<F, J, H, P>> {
        let Call { operation, judge, hooks, setup, .. } = self;
        Hedging::new(hedge, OfPipeline { operation, judge, hooks, setup })
    }
}

impl<F, J> fmt::Debug for Plain<F, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").finish_non_exhaustive()
    }
}

impl<F, J, H, P> fmt::Debug for OfPipeline<F, J, H, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfPipeline").finish_non_exhaustive()
    }
}
