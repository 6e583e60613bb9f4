//! Retries by blocking the thread.

use super::call::marker::{Blocking, Invoke};
use super::options::{Options, Setup};
use super::progress::{Next, Outcome, Past, Progress};
use super::spill::Blocks;
use super::{Call, Hooks, Judge};
use crate::clock::Waited;
use crate::error::{Error, GiveUpReason};
use crate::nesting::InsideBlocking;

impl<F, A, T, E, J, H, O> Call<F, Blocking<A, T, E>, J, H, Setup<O>>
where
    F: Invoke<A, Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
{
    /// Makes the call, blocking this thread for the attempts and for the delays between them.
    ///
    /// # Errors
    /// Fails with the reason for giving up, and the last error.
    pub fn call(mut self) -> Result<T, Error<E>> {
        let setup = &self.setup;
        let mut past = Past::new(setup);
        let mut progress = Progress::new(setup, &mut past);
        drop(progress.begin());
        // A blocking attempt takes so long that reading the clock does not matter.
        progress.note_start();
        if setup.is_cancelled() {
            let attempts = progress.attempt().number() - 1;
            return Err(progress.give_up::<T, H>(
                GiveUpReason::Cancelled,
                attempts,
                &mut self.hooks,
            ));
        }
        setup.deposit();
        loop {
            let time_left = progress.attempt_ends().map(|(_, left)| left);
            let attempt = progress.attempt().with_time_left(time_left);
            let result = {
                let _inside = InsideBlocking::enter_if(setup.policy.suppresses());
                self.operation.invoke(attempt)
            };
            let class = self.judge.judge(&result);
            match progress.after(&class, Outcome::Finished(result), &mut self.hooks) {
                Next::Return(result) => return result,
                Next::Wait(delay) => {
                    let cancel = setup.cancel().cloned();
                    let waited = setup.clock().wait_blocking(delay, cancel.as_ref());
                    let why = match waited {
                        Waited::Cancelled => GiveUpReason::Cancelled,
                        // The wait took longer than planned.
                        Waited::Fully if progress.is_over() => GiveUpReason::Deadline,
                        Waited::Fully => continue,
                    };
                    return Err(progress.give_up::<T, H>(why, attempt.number(), &mut self.hooks));
                }
            }
        }
    }
}

impl<F, A, T, E, J, H, O> Blocks<T, E> for Call<F, Blocking<A, T, E>, J, H, Setup<O>>
where
    F: Invoke<A, Result<T, E>>,
    J: Judge<T, E>,
    H: Hooks<T, E>,
    O: Options,
{
    fn make_call(self) -> Result<T, Error<E>> {
        self.call()
    }
}
