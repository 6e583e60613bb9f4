//! Runs a pipeline by blocking the thread.

use super::Plan;
use super::call::InPipeline;
use super::keyed::Policies;
use super::machine::{Machine, Need};
use crate::cancel::{CancelToken, Cancelled};
use crate::clock::{BlockingWaits, ThreadWaker};
use crate::error::Error;
use crate::nesting::InsideBlocking;
use crate::retry::marker::Blocking;
use crate::retry::{Attempt, Blocks, Call, Hooks, Judge};
use std::task::Waker;

/// Releases everything that the run holds, also if the operation panics.
struct Running<'a> {
    plan: &'a Plan,
    machine: Machine,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.machine.release_dropped(self.plan);
    }
}

impl<F, T, E, J, H, P> Call<F, Blocking<Attempt, T, E>, J, H, InPipeline<P>>
where
    F: FnMut(Attempt) -> Result<T, E>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    P: Policies,
{
    /// Makes the call, blocking this thread for the attempts and for all waits.
    ///
    /// # Errors
    /// Returns why the call was given up, with the last error.
    pub fn call(mut self) -> Result<T, Error<E>> {
        let policies = &self.setup.policies;
        let plan = policies.plan().0;
        let cancel = self.setup.cancel.as_ref().map(Cancelled::token);
        let is_cancelled = || cancel.is_some_and(CancelToken::is_cancelled);
        let waits = plan.does_anything || cancel.is_some();
        let waker = if waits { ThreadWaker::current() } else { Waker::noop().clone() };
        // Unparks this thread from any wait, of a retry or in a line.
        let _registration = cancel.map(|cancel| cancel.register(waker.clone()));
        let mut running = Running { plan, machine: Machine::new() };
        let machine = &mut running.machine;
        machine.note_start(plan);
        let (mut last, mut waits) = (None, BlockingWaits::default());
        let mut need = if is_cancelled() {
            machine.cancel(plan)
        } else {
            machine.begin(plan, policies, &waker)
        };
        loop {
            need = match need {
                Need::Finish(refused, category) => {
                    let error = machine.give_up(plan, refused, category, last);
                    self.hooks.gave_up(&error);
                    return Err(error);
                }
                Need::Retry(retry) => {
                    self.hooks.retrying(&retry.with(None));
                    Need::Wait(retry.at)
                }
                Need::Wait(_) if is_cancelled() => machine.cancel(plan),
                Need::Wait(at) => {
                    waits.until(at, &plan.clock);
                    let is_cancelled = is_cancelled();
                    if is_cancelled {
                        machine.cancel(plan)
                    } else {
                        machine.resume(plan, policies, &waker)
                    }
                }
                Need::Call(attempt) => {
                    let result = {
                        let _inside = InsideBlocking::enter_if(plan.suppresses());
                        (self.operation)(attempt)
                    };
                    let class = self.judge.judge(&result);
                    match (machine.returned(plan, &class, &result), result) {
                        (Need::Finish(refused, category), Ok(value)) => {
                            let end = (class.verdict, refused, category);
                            machine.tell_end(plan, &value, end, last, &mut self.hooks);
                            return Ok(value);
                        }
                        (Need::Retry(retry), Err(error)) => {
                            self.hooks.retrying(&retry.with(Some(&error)));
                            last = Some(error);
                            Need::Wait(retry.at)
                        }
                        (next, result) => {
                            last = result.err().or(last);
                            next
                        }
                    }
                }
            };
        }
    }
}

impl<F, T, E, J, H, P> Blocks<T, E> for Call<F, Blocking<Attempt, T, E>, J, H, InPipeline<P>>
where
    F: FnMut(Attempt) -> Result<T, E>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    P: Policies,
{
    fn make_call(self) -> Result<T, Error<E>> {
        self.call()
    }
}
