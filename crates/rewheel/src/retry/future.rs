//! The future of an async retry.

use super::call::marker::Invoke;
use super::options::{Options, Setup};
use super::progress::{Next, Outcome, Past, Progress};
use super::{Attempt, HasHooks, Hooks, Judge};
use crate::cancel::Cancelled;
use crate::classify::{Category, Class, Verdict};
use crate::clock::{Moment, Sleep};
use crate::error::{Error, GiveUpReason};
use crate::sealed::Sealed;
use pin_project_lite::pin_project;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The future of a retried [`Call`](super::Call). Allocates nothing of its own.
    ///
    /// Cancel safe: dropping it drops the running attempt or ends the delay.
    #[must_use = "a future does nothing until it is awaited"]
    pub struct RetryFuture<F, A, Fut, E, J, H, O> {
        operation: F,
        setup: Setup<O>,
        #[pin]
        state: State<Fut, E>,
        judge: J,
        hooks: H,
        arguments: PhantomData<fn(A)>,
    }
}

pin_project! {
    // The variant that most calls need comes first and is all that they write: no history, and its
    // own tag, because a tag hidden in a timer takes longer to read.
    #[project = StateProjection]
    #[repr(u8)]
    enum State<Fut, E> {
        New,
        // The first attempt of a plain call. `started` is `NEVER` unless it was not ready at once.
        First { #[pin] attempt: Fut, started: Moment },
        // Every other unfinished call.
        Later { #[pin] phase: Phase<Fut>, past: Past<E> },
        Over,
    }
}

pin_project! {
    #[project = PhaseProjection]
    enum Phase<Fut> {
        // Between two attempts without a delay.
        Between,
        Running { #[pin] attempt: Fut },
        // Most attempts end before their timeout: only an attempt that is not ready at once gets a
        // timer.
        Timed { #[pin] attempt: Fut, ends: Moment, #[pin] timer: Option<Sleep> },
        Waiting { #[pin] timer: Sleep },
    }
}

impl<F, A, Fut, E, J, H, O: Options> RetryFuture<F, A, Fut, E, J, H, O> {
    #[inline]
    pub(super) fn new(operation: F, setup: Setup<O>, judge: J, hooks: H) -> Self {
        let state = State::New;
        RetryFuture { operation, setup, state, judge, hooks, arguments: PhantomData }
    }
}

impl<F, A, Fut, E, J, H, O> Sealed for RetryFuture<F, A, Fut, E, J, H, O> {}

impl<F, A, Fut, E, J, H, O> HasHooks<H> for RetryFuture<F, A, Fut, E, J, H, O> {
    fn hooks(&self) -> &H {
        &self.hooks
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

    /// Short, to be inlined into the caller: a first attempt that succeeds at once.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        if !matches!(this.state.as_mut().project(), StateProjection::New) {
            return self.go_on(None, cx);
        }
        let Some(outermost) = this.setup.begin_plain() else {
            return self.start(cx);
        };
        let attempt = this.operation.invoke(Attempt::first(&this.setup.policy));
        this.state.set(State::First { attempt, started: Moment::NEVER });
        let polled = match this.state.as_mut().project() {
            StateProjection::First { attempt, .. } => attempt.poll(cx),
            StateProjection::New | StateProjection::Later { .. } | StateProjection::Over => {
                Poll::Pending
            }
        };
        if polled.is_ready() {
            // While the thread is still marked: the drop of an attempt belongs to the attempt.
            this.state.set(State::Over);
        }
        drop(outermost);
        match polled {
            Poll::Ready(Ok(value)) => {
                let result = Ok(value);
                let class = this.judge.judge(&result);
                match (class.verdict, result) {
                    (Verdict::Done, Ok(value)) => {
                        this.hooks.succeeded(&value, 1);
                        Poll::Ready(Ok(value))
                    }
                    (_, result) => self.go_on(Some((Outcome::Finished(result), class)), cx),
                }
            }
            Poll::Ready(Err(_)) | Poll::Pending => self.after_poll(Some(polled), cx),
        }
    }
}

/// What interrupts an attempt.
enum Interruption {
    Timeout,
    GiveUp(GiveUpReason),
}

impl<F, A, Fut, T, E, J, H, O> RetryFuture<F, A, Fut, E, J, H, O>
where
    F: Invoke<A, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
{
    /// Polls the running attempt, if there is one. The caller has marked the thread.
    #[inline]
    fn poll_attempt(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Option<Poll<Result<T, E>>> {
        match self.project().state.project() {
            StateProjection::First { attempt, .. } => Some(attempt.poll(cx)),
            StateProjection::Later { phase, .. } => match phase.project() {
                PhaseProjection::Running { attempt } | PhaseProjection::Timed { attempt, .. } => {
                    Some(attempt.poll(cx))
                }
                PhaseProjection::Between | PhaseProjection::Waiting { .. } => None,
            },
            StateProjection::New | StateProjection::Over => None,
        }
    }

    /// Starts a call that needs more than the fast path of `poll`.
    #[inline(never)]
    fn start(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Error<E>>> {
        let mut this = self.as_mut().project();
        this.state.set(State::Later { phase: Phase::Between, past: Past::new(this.setup) });
        let StateProjection::Later { past, .. } = this.state.as_mut().project() else {
            return Poll::Pending;
        };
        let inside = Progress::new(this.setup, past).begin();
        let started = past.started();
        if this.setup.is_cancelled() {
            drop(inside);
            return Poll::Ready(Err(self.give_up(GiveUpReason::Cancelled)));
        }
        this.setup.deposit();
        self.as_mut().start_attempt();
        let polled = self.as_mut().poll_attempt(cx);
        drop(inside);
        match polled {
            Some(Poll::Ready(Ok(value))) => {
                let result = Ok(value);
                let class = self.as_mut().project().judge.judge(&result);
                match (class.verdict, result) {
                    (Verdict::Done, Ok(value)) => {
                        let mut this = self.project();
                        this.state.set(State::Over);
                        let attempts = this.setup.first_attempt();
                        this.setup.succeeded(&value, attempts, started, this.hooks);
                        Poll::Ready(Ok(value))
                    }
                    (_, result) => self.go_on(Some((Outcome::Finished(result), class)), cx),
                }
            }
            Some(Poll::Ready(Err(_)) | Poll::Pending) | None => self.after_poll(polled, cx),
        }
    }

    /// Continues after an attempt that did not succeed at once.
    #[cold]
    fn after_poll(
        mut self: Pin<&mut Self>,
        polled: Option<Poll<Result<T, E>>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Error<E>>> {
        match polled {
            Some(Poll::Ready(result)) => {
                let class = self.as_mut().project().judge.judge(&result);
                self.go_on(Some((Outcome::Finished(result), class)), cx)
            }
            Some(Poll::Pending) | None => self.pend(cx),
        }
    }

    /// Continues after the running attempt was not ready.
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

    /// Handles everything except a first attempt that succeeds at once.
    #[inline(never)]
    fn go_on(
        mut self: Pin<&mut Self>,
        mut ended: Option<(Outcome<T, E>, Class)>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Error<E>>> {
        loop {
            if let Some((outcome, class)) = ended.take() {
                let mut past = self.as_mut().end_attempt();
                let mut this = self.as_mut().project();
                let mut progress = Progress::new(this.setup, &mut past);
                let phase = match progress.after(&class, outcome, this.hooks) {
                    Next::Return(result) => return Poll::Ready(result),
                    // No timer is this precise, so it only yields to other tasks.
                    Next::Wait(delay) if delay.is_zero() => Phase::Between,
                    Next::Wait(delay) => Phase::Waiting { timer: this.setup.clock().sleep(delay) },
                };
                let yields = matches!(phase, Phase::Between);
                this.state.set(State::Later { phase, past });
                if yields {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            let polled = {
                let _inside = self.setup.mark();
                self.as_mut().poll_attempt(cx)
            };
            match polled {
                Some(Poll::Ready(result)) => {
                    let class = self.as_mut().project().judge.judge(&result);
                    ended = Some((Outcome::Finished(result), class));
                    continue;
                }
                Some(Poll::Pending) => return self.pend(cx),
                None => {}
            }
            let this = self.as_mut().project();
            let StateProjection::Later { phase, past } = this.state.project() else {
                panic!("a retry that is over was polled again");
            };
            if is_cancelled(this.setup.cancelled(), cx) {
                return Poll::Ready(Err(self.give_up(GiveUpReason::Cancelled)));
            }
            if let PhaseProjection::Waiting { timer } = phase.project()
                && timer.poll(cx).is_pending()
            {
                return Poll::Pending;
            }
            if Progress::new(this.setup, past).is_over() {
                // The wait took longer than planned.
                return Poll::Ready(Err(self.give_up(GiveUpReason::Deadline)));
            }
            let _inside = self.setup.mark();
            self.as_mut().start_attempt();
        }
    }

    /// Starts the next attempt. The caller has marked the thread.
    #[inline]
    fn start_attempt(self: Pin<&mut Self>) {
        let this = self.project();
        let StateProjection::Later { mut phase, past } = this.state.project() else { return };
        let mut progress = Progress::new(this.setup, past);
        let attempt = progress.attempt();
        let ends = progress.attempt_ends();
        let attempt = this.operation.invoke(attempt.with_time_left(ends.map(|(_, left)| left)));
        phase.set(match ends {
            None => Phase::Running { attempt },
            Some((ends, _)) => Phase::Timed { attempt, ends, timer: None },
        });
    }

    /// Drops the attempt before its end is reported, and returns the history.
    fn end_attempt(self: Pin<&mut Self>) -> Past<E> {
        let mut this = self.project();
        let first = Past::new(this.setup);
        let past = match this.state.as_mut().project() {
            StateProjection::Later { past, .. } => std::mem::replace(past, first),
            StateProjection::First { started, .. } => first.started_at(*started),
            StateProjection::New | StateProjection::Over => first,
        };
        this.state.set(State::Over);
        past
    }

    /// Checks whether the running attempt must be interrupted.
    fn poll_interruption(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Interruption> {
        let this = self.project();
        let (phase, past) = match this.state.project() {
            StateProjection::Later { phase, past } => (phase, past),
            StateProjection::First { started, .. } => {
                if *started == Moment::NEVER {
                    *started = this.setup.clock().now();
                }
                return Poll::Pending;
            }
            StateProjection::New | StateProjection::Over => return Poll::Pending,
        };
        Progress::new(this.setup, past).note_start();
        if is_cancelled(this.setup.cancelled(), cx) {
            return Poll::Ready(Interruption::GiveUp(GiveUpReason::Cancelled));
        }
        let PhaseProjection::Timed { ends, mut timer, .. } = phase.project() else {
            return Poll::Pending;
        };
        if timer.is_none() {
            let clock = this.setup.clock();
            timer.set(Some(clock.sleep(ends.since(clock.now()))));
        }
        if timer.as_mut().as_pin_mut().is_none_or(|timer| timer.poll(cx).is_pending()) {
            return Poll::Pending;
        }
        let mut progress = Progress::new(this.setup, past);
        if progress.is_over() {
            progress.report_failure(&Class::retry(Category::Timeout));
            return Poll::Ready(Interruption::GiveUp(GiveUpReason::Deadline));
        }
        Poll::Ready(Interruption::Timeout)
    }

    fn give_up(mut self: Pin<&mut Self>, why: GiveUpReason) -> Error<E> {
        let is_running = self.state.is_running();
        let mut past = self.as_mut().end_attempt();
        let this = self.project();
        let mut progress = Progress::new(this.setup, &mut past);
        let number = progress.attempt().number();
        let attempts = if is_running { number } else { number - 1 };
        progress.give_up(why, attempts, this.hooks)
    }
}

impl<Fut, E> State<Fut, E> {
    const fn is_running(&self) -> bool {
        match self {
            State::First { .. } => true,
            State::Later { phase, .. } => {
                matches!(phase, Phase::Running { .. } | Phase::Timed { .. })
            }
            State::New | State::Over => false,
        }
    }
}

fn is_cancelled(cancelled: Option<&mut Cancelled>, cx: &mut Context<'_>) -> bool {
    cancelled.is_some_and(|cancelled| Pin::new(cancelled).poll(cx).is_ready())
}

impl<F, A, Fut, E, J, H, O: Options> std::fmt::Debug for RetryFuture<F, A, Fut, E, J, H, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let attempt = match &self.state {
            State::Later { past, .. } => past.attempt(&self.setup),
            State::New | State::First { .. } | State::Over => {
                Past::<E>::new(&self.setup).attempt(&self.setup)
            }
        };
        f.debug_struct("RetryFuture")
            .field("policy", &self.setup.policy)
            .field("attempt", &attempt)
            .finish_non_exhaustive()
    }
}
