//! Runs a pipeline by blocking the thread.

use super::machine::{Machine, Need};
use super::{Pipeline, Plan};
use crate::classify::Classify;
use crate::clock::{Moment, ThreadWaker};
use crate::error::Error;
use crate::nesting::Inside;
use crate::retry::{Attempt, ByClassify, Judge};
use std::thread;

/// Releases everything that the run holds, also if the operation panics.
struct Running<'a> {
    plan: &'a Plan,
    machine: Machine,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.machine.release(self.plan, 0);
    }
}

impl Pipeline {
    /// Like [`run`](Pipeline::run), for a blocking operation.
    ///
    /// A timeout cannot interrupt the operation: a late result is still returned. Timeouts limit
    /// the waits, and no attempt starts after them.
    ///
    /// # Errors
    /// Fails with the reason for giving up, and the last error.
    pub fn run_blocking<T, E: Classify>(
        &self,
        mut operation: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<T, Error<E>> {
        let plan = &*self.plan;
        let waker = ThreadWaker::current();
        let mut running = Running { plan, machine: Machine::new() };
        let machine = &mut running.machine;
        machine.note_start(plan);
        let mut last = None;
        let mut need = machine.begin(plan, &waker);
        loop {
            need = match need {
                Need::Finish(refused, category) => {
                    return Err(machine.give_up(plan, refused, category, last));
                }
                Need::Wait(at) => {
                    wait(plan, at);
                    machine.resume(plan, &waker)
                }
                Need::Call(attempt) => {
                    let result = {
                        let _inside = Inside::enter_if(plan.repeats());
                        operation(attempt)
                    };
                    let class = ByClassify.judge(&result);
                    match (machine.returned(plan, &class, &result), result) {
                        (Need::Finish(..), Ok(value)) => return Ok(value),
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

/// Waits until `at`, or until this thread is unparked.
fn wait(plan: &Plan, at: Moment) {
    let rest = at.since(plan.clock.now());
    if at == Moment::NEVER {
        thread::park();
    } else if plan.clock.is_manual() {
        plan.clock.wait_blocking(rest, None);
    } else {
        thread::park_timeout(rest);
    }
}
