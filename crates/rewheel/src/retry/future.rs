//! Retries without blocking.

use super::call::marker::{Async, Invoke};
use super::progress::{Next, Outcome, Progress};
use super::{Call, Hooks, Judge};
use crate::cancel::Cancelled;
use crate::classify::{Category, Class};
use crate::clock::{Moment, Sleep};
use crate::error::{Error, Why};
use pin_project_lite::pin_project;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The future of a retried [`Call`]. Allocates nothing of its own.
    ///
    /// Cancel safe: dropping it drops the running attempt and forgets the wait.
    #[must_use = "a future does nothing until it is awaited"]
    pub struct RetryFuture<F, A, Fut, E, J, H> {
        operation: F,
        #[pin]
        state: State<Fut>,
        // Cuts a running attempt, or ends a wait: never both at once, so one is enough.
        #[pin]
        timer: Option<Sleep>,
        attempt_ends: Moment,
        cancelled: Option<Cancelled>,
        progress: Progress<E>,
        judge: J,
        hooks: H,
        arguments: PhantomData<fn(A)>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<Fut> {
        New,
        Running { #[pin] attempt: Fut },
        Waiting,
    }
}

impl<F, A, Fut, E, J, H> RetryFuture<F, A, Fut, E, J, H> {
    #[inline]
    pub(super) fn new<T>(call: Call<F, Async<A, Fut, T, E>, J, H>) -> Self {
        let cancelled = call.setup.cancel.as_ref().map(crate::cancel::CancelToken::cancelled);
        RetryFuture {
            operation: call.operation,
            state: State::New,
            timer: None,
            attempt_ends: Moment::NEVER,
            cancelled,
            progress: Progress::new(call.setup),
            judge: call.judge,
            hooks: call.hooks,
            arguments: PhantomData,
        }
    }
}

impl<F, A, Fut, T, E, J, H> Future for RetryFuture<F, A, Fut, E, J, H>
where
    F: Invoke<A, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
{
    type Output = Result<T, Error<E>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut this = self.as_mut().project();
            match this.state.as_mut().project() {
                StateProjection::Running { attempt } => {
                    let polled = {
                        let _inside = this.progress.mark();
                        attempt.poll(cx)
                    };
                    let outcome = match polled {
                        Poll::Ready(result) => Outcome::Finished(result),
                        Poll::Pending => match self.as_mut().poll_interruption(cx) {
                            Poll::Pending => return Poll::Pending,
                            Poll::Ready(Interruption::Timeout) => {
                                // It ends before anybody hears that it did.
                                self.as_mut().project().state.set(State::Waiting);
                                Outcome::TimedOut
                            }
                            Poll::Ready(Interruption::GiveUp(why)) => {
                                return Poll::Ready(Err(self.give_up(why)));
                            }
                        },
                    };
                    let mut this = self.as_mut().project();
                    match this.progress.after(outcome, this.judge, this.hooks) {
                        Next::Return(result) => return Poll::Ready(result),
                        Next::Wait(delay) => {
                            this.state.set(State::Waiting);
                            if delay.is_zero() {
                                // No timer is so fast; a turn for others is all it takes.
                                cx.waker().wake_by_ref();
                                return Poll::Pending;
                            }
                            this.timer.set(Some(this.progress.setup.clock.sleep(delay)));
                        }
                    }
                }
                StateProjection::New => {
                    this.progress.begin();
                    if this.progress.is_cancelled() {
                        return Poll::Ready(Err(self.give_up(Why::Cancelled)));
                    }
                    self.as_mut().start_attempt();
                }
                StateProjection::Waiting => {
                    if is_cancelled(this.cancelled.as_mut(), cx) {
                        return Poll::Ready(Err(self.give_up(Why::Cancelled)));
                    }
                    if let Some(timer) = this.timer.as_mut().as_pin_mut()
                        && timer.poll(cx).is_pending()
                    {
                        return Poll::Pending;
                    }
                    this.timer.set(None);
                    if this.progress.is_over() {
                        // The wait took longer than it was meant to.
                        return Poll::Ready(Err(self.give_up(Why::Deadline)));
                    }
                    self.as_mut().start_attempt();
                }
            }
        }
    }
}

/// What ends an attempt before it is done.
enum Interruption {
    Timeout,
    GiveUp(Why),
}

impl<F, A, Fut, T, E, J, H> RetryFuture<F, A, Fut, E, J, H>
where
    F: Invoke<A, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
{
    #[inline]
    fn start_attempt(self: Pin<&mut Self>) {
        let mut this = self.project();
        let mut attempt = this.progress.series.attempt();
        if let Some((ends, left)) = this.progress.attempt_ends() {
            attempt = attempt.with_time_left(Some(left));
            *this.attempt_ends = ends;
        }
        let attempt = {
            let _inside = this.progress.mark();
            this.operation.invoke(attempt)
        };
        this.state.set(State::Running { attempt });
    }

    /// Asks whether the attempt that is still running must end.
    fn poll_interruption(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Interruption> {
        let mut this = self.project();
        this.progress.note_start();
        if is_cancelled(this.cancelled.as_mut(), cx) {
            return Poll::Ready(Interruption::GiveUp(Why::Cancelled));
        }
        if *this.attempt_ends == Moment::NEVER {
            return Poll::Pending;
        }
        if this.timer.is_none() {
            // Most attempts end before their time: only one that is not ready at once gets a timer.
            let clock = &this.progress.setup.clock;
            this.timer.set(Some(clock.sleep(this.attempt_ends.since(clock.now()))));
        }
        if this.timer.as_mut().as_pin_mut().is_none_or(|timer| timer.poll(cx).is_pending()) {
            return Poll::Pending;
        }
        this.timer.set(None);
        if this.progress.is_over() {
            this.progress.report_failure(&Class::retry(Category::Timeout));
            return Poll::Ready(Interruption::GiveUp(Why::Deadline));
        }
        Poll::Ready(Interruption::Timeout)
    }

    fn give_up(self: Pin<&mut Self>, why: Why) -> Error<E> {
        let mut this = self.project();
        let number = this.progress.series.attempt().number();
        let attempts = match this.state.as_mut().project() {
            StateProjection::Running { .. } => number,
            StateProjection::New | StateProjection::Waiting => number - 1,
        };
        // The attempt ends before anybody hears that it did.
        this.state.set(State::Waiting);
        this.progress.give_up(why, attempts, this.hooks)
    }
}

fn is_cancelled(cancelled: Option<&mut Cancelled>, cx: &mut Context<'_>) -> bool {
    cancelled.is_some_and(|cancelled| Pin::new(cancelled).poll(cx).is_ready())
}

impl<F, A, Fut, E, J, H> std::fmt::Debug for RetryFuture<F, A, Fut, E, J, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RetryFuture")
            .field("attempt", &self.progress.series.attempt())
            .finish_non_exhaustive()
    }
}
