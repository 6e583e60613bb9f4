//! Runs a pipeline without blocking.

use super::Plan;
use super::machine::{Machine, Need};
use crate::clock::{Moment, Sleep};
use crate::error::Error;
use crate::nesting::Inside;
use crate::retry::marker::Invoke;
use crate::retry::{Attempt, Judge};
use pin_project_lite::pin_project;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The future of [`Pipeline::run`](super::Pipeline::run).
    #[must_use = "a future does nothing until it is awaited"]
    pub struct Run<P: Deref<Target = Plan>, F, Fut, E, J> {
        plan: P,
        operation: F,
        judge: J,
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

    impl<P: Deref<Target = Plan>, F, Fut, E, J> PinnedDrop for Run<P, F, Fut, E, J> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // The attempt is dropped before its slot and permit are released, and they are released
            // also if its drop panics.
            let _release = Release { machine: this.machine, plan: this.plan };
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
        self.machine.release(self.plan, 0);
    }
}

impl<P: Deref<Target = Plan>, F, Fut, E, J> Run<P, F, Fut, E, J> {
    #[inline]
    pub(crate) fn new(plan: P, operation: F, judge: J) -> Run<P, F, Fut, E, J> {
        Run {
            plan,
            operation,
            judge,
            call: None,
            timer: None,
            timer_at: Moment::NEVER,
            machine: Machine::new(),
            is_begun: false,
            last: None,
        }
    }
}

impl<P, F, Fut, T, E, J> Future for Run<P, F, Fut, E, J>
where
    P: Deref<Target = Plan>,
    F: Invoke<Attempt, Fut>,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E>,
{
    type Output = Result<T, Error<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        let plan: &Plan = this.plan;
        let machine = this.machine;
        let mut need = if this.call.is_some() {
            None
        } else if *this.is_begun {
            Some(machine.resume(plan, cx.waker()))
        } else {
            *this.is_begun = true;
            Some(machine.begin(plan, cx.waker()))
        };
        loop {
            match need.take() {
                Some(Need::Call(attempt)) => {
                    let _inside = Inside::enter_if(plan.repeats());
                    this.call.set(Some(this.operation.invoke(attempt)));
                }
                Some(Need::Finish(refused, category)) => {
                    let error = machine.give_up(plan, refused, category, this.last.take());
                    return Poll::Ready(Err(error));
                }
                Some(Need::Wait(at)) => {
                    if poll_until(at, plan, this.timer.as_mut(), this.timer_at, cx).is_pending() {
                        return Poll::Pending;
                    }
                    need = Some(machine.resume(plan, cx.waker()));
                    continue;
                }
                None => {}
            }
            let Some(call) = this.call.as_mut().as_pin_mut() else { continue };
            let polled = {
                let _inside = Inside::enter_if(plan.repeats());
                call.poll(cx)
            };
            let Poll::Ready(result) = polled else {
                machine.note_start(plan);
                let end = machine.earliest_end();
                if poll_until(end, plan, this.timer.as_mut(), this.timer_at, cx).is_pending() {
                    return Poll::Pending;
                }
                if machine.is_over(plan) {
                    // First of all: cutting gives its slot to another call.
                    this.call.set(None);
                    need = machine.cut_if_over(plan);
                }
                continue;
            };
            this.call.set(None);
            let class = this.judge.judge(&result);
            match (machine.returned(plan, &class, &result), result) {
                // Good, or the best result available.
                (Need::Finish(..), Ok(value)) => return Poll::Ready(Ok(value)),
                (next, result) => {
                    *this.last = result.err().or(this.last.take());
                    need = Some(next);
                }
            }
        }
    }
}

/// Waits until `at`; forever if that is never.
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

impl<P: Deref<Target = Plan>, F, Fut, E, J> std::fmt::Debug for Run<P, F, Fut, E, J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("attempts", &self.machine.attempts).finish_non_exhaustive()
    }
}
