//! Runs a pipeline without blocking.

use super::Plan;
use super::call::InPipeline;
use super::keyed::Policies;
use super::machine::{Machine, Need};
use crate::cancel::Cancelled;
use crate::classify::Verdict;
use crate::clock::{Moment, Sleep};
use crate::error::Error;
use crate::nesting::Inside;
use crate::retry::marker::Invoke;
use crate::retry::{Attempt, HasHooks, Hooks, Judge};
use crate::sealed::Sealed;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The future of [`Pipeline::run`](super::Pipeline::run).
    ///
    /// Cancel safe: dropping the future drops the running attempt, gives back permits and slots, and leaves every queue.
    #[must_use = "a future does nothing until it is awaited"]
    pub struct Run<P: Policies, F, Fut, E, J, H = ()> {
        policies: P,
        cancel: Option<Cancelled>,
        operation: F,
        judge: J,
        hooks: H,
        #[pin]
        call: Option<Fut>,
        // For the earliest event: the end of a wait or of a timeout.
        #[pin]
        timer: Option<Sleep>,
        timer_at: Moment,
        machine: Machine,
        is_begun: bool,
        last: Option<E>,
    }

    impl<P: Policies, F, Fut, E, J, H> PinnedDrop for Run<P, F, Fut, E, J, H> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // The attempt ends before its place and its permit are free for another; and they are
            // free also if it panics on its way out.
            let _release = Release { machine: this.machine, plan: this.policies.plan().0 };
            this.call.set(None);
        }
    }
}

/// Releases everything that a run holds when it is dropped.
struct Release<'a> {
    machine: &'a mut Machine,
    plan: &'a Plan,
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.machine.release_dropped(self.plan);
    }
}

impl<P: Policies, F, Fut, E, J, H> Run<P, F, Fut, E, J, H> {
    #[inline]
    pub(crate) fn new(setup: InPipeline<P>, operation: F, judge: J, hooks: H) -> Self {
        Run {
            policies: setup.policies,
            cancel: setup.cancel,
            operation,
            judge,
            hooks,
            call: None,
            timer: None,
            timer_at: Moment::NEVER,
            machine: Machine::new(),
            is_begun: false,
            last: None,
        }
    }

    /// One more run of a call that was counted in the budget already.
    pub(crate) fn of_counted_call(mut self) -> Self {
        self.machine.skip_deposit();
        self
    }
}

impl<P: Policies, F, Fut, E, J, H> Sealed for Run<P, F, Fut, E, J, H> {}

impl<P: Policies, F, Fut, E, J, H> HasHooks<H> for Run<P, F, Fut, E, J, H> {
    fn hooks(&self) -> &H {
        &self.hooks
    }
}

impl<P, F, Fut, T, E, J, H> Future for Run<P, F, Fut, E, J, H>
where
    P: Policies,
    F: Invoke<Attempt, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
{
    type Output = Result<T, Error<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut need = self.as_mut().first_need(cx);
        loop {
            match need.take() {
                Some(Need::Call(attempt)) => self.as_mut().start_call(attempt),
                Some(Need::Retry(retry)) => {
                    self.as_mut().project().hooks.retrying(&retry.with(None));
                    need = Some(Need::Wait(retry.at));
                    continue;
                }
                Some(Need::Wait(at)) => match self.as_mut().poll_wait(at, cx) {
                    Poll::Ready(next) => {
                        need = Some(next);
                        continue;
                    }
                    Poll::Pending => return Poll::Pending,
                },
                Some(Need::Finish(refused, category)) => {
                    let this = self.project();
                    let error = this.machine.give_up(
                        this.policies.plan().0,
                        refused,
                        category,
                        this.last.take(),
                    );
                    this.hooks.gave_up(&error);
                    return Poll::Ready(Err(error));
                }
                None => {}
            }
            match self.as_mut().poll_call(cx) {
                Poll::Ready(result) => match self.as_mut().after_call(result) {
                    Ok(value) => return Poll::Ready(Ok(value)),
                    Err(next) => need = Some(next),
                },
                Poll::Pending => match self.as_mut().poll_interruption(cx) {
                    Poll::Ready(next) => need = next,
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }
}

impl<P, F, Fut, T, E, J, H> Run<P, F, Fut, E, J, H>
where
    P: Policies,
    F: Invoke<Attempt, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
{
    /// Returns what to do first when it is polled; nothing while a call is running.
    #[inline]
    fn first_need(self: Pin<&mut Self>, cx: &Context<'_>) -> Option<Need> {
        let this = self.project();
        if this.call.is_some() {
            None
        } else if this.cancel.as_ref().is_some_and(|cancel| cancel.token().is_cancelled()) {
            Some(this.machine.cancel(this.policies.plan().0))
        } else if *this.is_begun {
            Some(this.machine.resume(this.policies.plan().0, &*this.policies, cx.waker()))
        } else {
            *this.is_begun = true;
            if !this.policies.plan().0.does_anything {
                return Some(this.machine.begin_plain());
            }
            Some(this.machine.begin(this.policies.plan().0, &*this.policies, cx.waker()))
        }
    }

    #[inline]
    fn start_call(self: Pin<&mut Self>, attempt: Attempt) {
        let mut this = self.project();
        let _inside = Inside::enter_if(this.policies.plan().0.suppresses());
        this.call.set(Some(this.operation.invoke(attempt)));
    }

    #[inline]
    fn poll_call(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let this = self.project();
        let _inside = Inside::enter_if(this.policies.plan().0.suppresses());
        this.call.as_pin_mut().map_or(Poll::Pending, |call| call.poll(cx))
    }

    /// Waits between two attempts or in a line; returns what to do then.
    fn poll_wait(self: Pin<&mut Self>, at: Moment, cx: &mut Context<'_>) -> Poll<Need> {
        let this = self.project();
        if poll_cancelled(this.cancel, cx) {
            return Poll::Ready(this.machine.cancel(this.policies.plan().0));
        }
        if poll_until(at, this.policies.plan().0, this.timer, this.timer_at, cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(this.machine.resume(this.policies.plan().0, &*this.policies, cx.waker()))
    }

    /// Asks whether the call that is still running must end.
    fn poll_interruption(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Need>> {
        let mut this = self.project();
        let (plan, machine) = (this.policies.plan().0, this.machine);
        machine.note_start(plan);
        if poll_cancelled(this.cancel, cx) {
            this.call.set(None);
            return Poll::Ready(Some(machine.cancel(plan)));
        }
        let end = machine.earliest_end();
        if poll_until(end, plan, this.timer, this.timer_at, cx).is_pending() {
            return Poll::Pending;
        }
        if !machine.is_over(plan) {
            return Poll::Ready(None);
        }
        // First of all: cutting gives its place to another.
        this.call.set(None);
        Poll::Ready(machine.cut_if_over(plan))
    }

    /// Returns the value, a good one or the best there is, or what to do next.
    #[inline]
    fn after_call(self: Pin<&mut Self>, result: Result<T, E>) -> Result<T, Need> {
        let mut this = self.project();
        let (plan, machine) = (this.policies.plan().0, this.machine);
        this.call.set(None);
        let class = this.judge.judge(&result);
        let result = match result {
            Ok(value) if class.verdict == Verdict::Done && !plan.does_anything => {
                this.hooks.succeeded(&value, machine.attempts);
                return Ok(value);
            }
            result => result,
        };
        match (machine.returned(plan, &class, &result), result) {
            (Need::Finish(refused, category), Ok(value)) => {
                let end = (class.verdict, refused, category);
                machine.tell_end(plan, &value, end, this.last.take(), this.hooks);
                Ok(value)
            }
            (Need::Retry(retry), Err(error)) => {
                this.hooks.retrying(&retry.with(Some(&error)));
                *this.last = Some(error);
                Err(Need::Wait(retry.at))
            }
            (next, result) => {
                *this.last = result.err().or(this.last.take());
                Err(next)
            }
        }
    }
}

fn poll_cancelled(cancel: &mut Option<Cancelled>, cx: &mut Context<'_>) -> bool {
    cancel.as_mut().is_some_and(|cancelled| Pin::new(cancelled).poll(cx).is_ready())
}

/// Waits until `at`; for ever if that is never.
fn poll_until(
    at: Moment,
    plan: &Plan,
    mut timer: Pin<&mut Option<Sleep>>,
    timer_at: &mut Moment,
    cx: &mut Context<'_>,
) -> Poll<()> {
    if at <= plan.clock.now() {
        timer.set(None);
        return Poll::Ready(());
    }
    if at == Moment::NEVER {
        // A timer left from a wait that ended early would cause a spurious wake-up.
        timer.set(None);
        return Poll::Pending;
    }
    if *timer_at != at || timer.is_none() {
        timer.set(Some(plan.clock.sleep(at.since(plan.clock.now()))));
        *timer_at = at;
    }
    let polled = timer.as_mut().as_pin_mut().map_or(Poll::Pending, |timer| timer.poll(cx));
    if polled.is_ready() {
        timer.set(None);
    }
    polled
}

impl<P: Policies, F, Fut, E, J, H> std::fmt::Debug for Run<P, F, Fut, E, J, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("attempts", &self.machine.attempts).finish_non_exhaustive()
    }
}
