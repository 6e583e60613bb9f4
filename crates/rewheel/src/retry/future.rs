//! Retries without blocking.

use super::call::marker::{Async, Invoke};
use super::options::Options;
use super::progress::{Next, Outcome, Progress};
use super::{Call, Hooks, Judge};
use crate::cancel::Cancelled;
use crate::classify::{Category, Class, Verdict};
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
    pub struct RetryFuture<F, A, Fut, E, J, H, O> {
        operation: F,
        #[pin]
        state: State<Fut>,
        progress: Progress<E, O>,
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
        // Most attempts end before their time: only one that is not ready at once gets a timer.
        Timed { #[pin] attempt: Fut, ends: Moment, #[pin] timer: Option<Sleep> },
        Waiting { #[pin] timer: Sleep },
        // Between two attempts without a wait.
        Between,
        Over,
    }
}

impl<F, A, Fut, E, J, H, O: Options> RetryFuture<F, A, Fut, E, J, H, O> {
    #[inline]
    pub(super) fn new<T>(call: Call<F, Async<A, Fut, T, E>, J, H, O>) -> Self {
        RetryFuture {
            operation: call.operation,
            state: State::New,
            progress: Progress::new(call.setup),
            judge: call.judge,
            hooks: call.hooks,
            arguments: PhantomData,
        }
    }
}

impl<F, A, Fut, T, E, J, H, O> Future for RetryFuture<F, A, Fut, E, J, H, O>
where
    F: Invoke<A, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
{
    type Output = Result<T, Error<E>>;

    /// Short, to become a part of whoever awaits it: a first attempt that succeeds at once.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        if !matches!(this.state.project(), StateProjection::New) {
            return self.go_on(None, cx);
        }
        let inside = this.progress.begin();
        if this.progress.is_cancelled() {
            drop(inside);
            return Poll::Ready(Err(self.give_up(Why::Cancelled)));
        }
        this.progress.deposit();
        self.as_mut().start_attempt();
        let polled = self.as_mut().poll_attempt(cx);
        drop(inside);
        match polled {
            Some(Poll::Ready(Ok(value))) => {
                let this = self.as_mut().project();
                let result = Ok(value);
                let class = this.judge.judge(&result);
                match (class.verdict, result) {
                    (Verdict::Done, Ok(value)) => {
                        let mut this = self.project();
                        this.state.set(State::Over);
                        this.progress.succeeded(&value, this.hooks);
                        Poll::Ready(Ok(value))
                    }
                    (_, result) => self.go_on(Some((Outcome::Finished(result), class)), cx),
                }
            }
            Some(Poll::Ready(result)) => {
                let class = self.as_mut().project().judge.judge(&result);
                self.go_on(Some((Outcome::Finished(result), class)), cx)
            }
            Some(Poll::Pending) | None => self.pend(cx),
        }
    }
}

/// What ends an attempt before it is done.
enum Interruption {
    Timeout,
    GiveUp(Why),
}

impl<F, A, Fut, T, E, J, H, O> RetryFuture<F, A, Fut, E, J, H, O>
where
    F: Invoke<A, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
{
    /// Polls the running attempt, if there is one. The thread is marked by whoever asks.
    #[inline]
    fn poll_attempt(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Option<Poll<Result<T, E>>> {
        match self.project().state.project() {
            StateProjection::Running { attempt } | StateProjection::Timed { attempt, .. } => {
                Some(attempt.poll(cx))
            }
            StateProjection::New
            | StateProjection::Waiting { .. }
            | StateProjection::Between
            | StateProjection::Over => None,
        }
    }

    /// After the running attempt was not ready.
    fn pend(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Error<E>>> {
        match self.as_mut().poll_interruption(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Interruption::Timeout) => {
                let class = Class::retry(Category::Timeout);
                self.go_on(Some((Outcome::TimedOut, class)), cx)
            }
            Poll::Ready(Interruption::GiveUp(why)) => Poll::Ready(Err(self.give_up(why))),
        }
    }

    /// Everything that is not a first attempt which succeeds at once.
    #[cold]
    fn go_on(
        mut self: Pin<&mut Self>,
        mut ended: Option<(Outcome<T, E>, Class)>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Error<E>>> {
        loop {
            if let Some((outcome, class)) = ended.take() {
                let mut this = self.as_mut().project();
                // The attempt ends before anybody hears that it did.
                this.state.set(State::Over);
                match this.progress.after(&class, outcome, this.hooks) {
                    Next::Return(result) => return Poll::Ready(result),
                    Next::Wait(delay) if delay.is_zero() => {
                        // No timer is so fast; a turn for others is all it takes.
                        this.state.set(State::Between);
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Next::Wait(delay) => {
                        let timer = this.progress.setup.clock().sleep(delay);
                        this.state.set(State::Waiting { timer });
                    }
                }
            }
            let polled = {
                let _inside = self.progress.mark();
                self.as_mut().poll_attempt(cx)
            };
            match polled {
                Some(Poll::Ready(result)) => {
                    let class = self.as_mut().project().judge.judge(&result);
                    ended = Some((Outcome::Finished(result), class));
                    continue;
                }
                Some(Poll::Pending) => return self.pend(cx),
                None => assert!(
                    !matches!(self.state, State::Over),
                    "a retry that is over was polled again"
                ),
            }
            let this = self.as_mut().project();
            if is_cancelled(this.progress.setup.cancelled(), cx) {
                return Poll::Ready(Err(self.give_up(Why::Cancelled)));
            }
            if let StateProjection::Waiting { timer } = this.state.project()
                && timer.poll(cx).is_pending()
            {
                return Poll::Pending;
            }
            if self.as_mut().project().progress.is_over() {
                // The wait took longer than it was meant to.
                return Poll::Ready(Err(self.give_up(Why::Deadline)));
            }
            let _inside = self.progress.mark();
            self.as_mut().start_attempt();
        }
    }

    /// Starts the next attempt. The thread is marked by whoever asks.
    #[inline]
    fn start_attempt(self: Pin<&mut Self>) {
        let mut this = self.project();
        let attempt = this.progress.attempt();
        let ends = this.progress.attempt_ends();
        let attempt = this.operation.invoke(attempt.with_time_left(ends.map(|(_, left)| left)));
        this.state.set(match ends {
            None => State::Running { attempt },
            Some((ends, _)) => State::Timed { attempt, ends, timer: None },
        });
    }

    /// Asks whether the attempt that is still running must end.
    fn poll_interruption(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Interruption> {
        let this = self.project();
        this.progress.note_start();
        if is_cancelled(this.progress.setup.cancelled(), cx) {
            return Poll::Ready(Interruption::GiveUp(Why::Cancelled));
        }
        let StateProjection::Timed { ends, mut timer, .. } = this.state.project() else {
            return Poll::Pending;
        };
        if timer.is_none() {
            let clock = this.progress.setup.clock();
            timer.set(Some(clock.sleep(ends.since(clock.now()))));
        }
        if timer.as_mut().as_pin_mut().is_none_or(|timer| timer.poll(cx).is_pending()) {
            return Poll::Pending;
        }
        if this.progress.is_over() {
            this.progress.report_failure(&Class::retry(Category::Timeout));
            return Poll::Ready(Interruption::GiveUp(Why::Deadline));
        }
        Poll::Ready(Interruption::Timeout)
    }

    fn give_up(self: Pin<&mut Self>, why: Why) -> Error<E> {
        let mut this = self.project();
        let number = this.progress.attempt().number();
        let attempts = match this.state.as_mut().project() {
            StateProjection::Running { .. } | StateProjection::Timed { .. } => number,
            StateProjection::New
            | StateProjection::Waiting { .. }
            | StateProjection::Between
            | StateProjection::Over => number - 1,
        };
        // The attempt ends before anybody hears that it did.
        this.state.set(State::Over);
        this.progress.give_up(why, attempts, this.hooks)
    }
}

fn is_cancelled(cancelled: Option<&mut Cancelled>, cx: &mut Context<'_>) -> bool {
    cancelled.is_some_and(|cancelled| Pin::new(cancelled).poll(cx).is_ready())
}

impl<F, A, Fut, E, J, H, O: Options> std::fmt::Debug for RetryFuture<F, A, Fut, E, J, H, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RetryFuture")
            .field("attempt", &self.progress.attempt())
            .finish_non_exhaustive()
    }
}
