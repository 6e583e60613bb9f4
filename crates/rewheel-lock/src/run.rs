//! Runs work while holding a lock.

use crate::error::{LockError, RunError};
use crate::guard::{Grant, HeldLock, Hold, release};
use crate::keeper;
use crate::request::LockRequest;
use futures_util::FutureExt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::task::Poll;

impl LockRequest {
    /// Waits for the lock, runs the work, and releases the lock: also if the work returns an error or panics.
    ///
    /// If the lock is lost, the work is dropped at its next `.await` and does not continue. `Ok` means that the lock was held until the work
    /// ended. The work gets the [`HeldLock`]: send its [token](HeldLock::token) with every write.
    ///
    /// A request for the same name inside the work is refused with [`LockError::Reentrant`]. Other branches of the same task and spawned
    /// tasks wait as usual.
    ///
    /// Dropping the future drops the work and releases the lock in the background.
    ///
    /// # Errors
    /// - [`RunError::Work`]: the error of the work. The lock was released.
    /// - [`RunError::Lock`] with [`LockError::Lost`]: the lock was lost before the work ended. The work may have had effects.
    /// - [`RunError::Lock`] with any error of [`acquire`](LockRequest::acquire): the work did not start.
    ///
    /// # Panics
    /// Continues a panic of the work, after the release. Panics outside a tokio runtime.
    pub async fn run<T, E, W>(self, work: impl FnOnce(HeldLock) -> W) -> Result<T, RunError<E>>
    where
        W: Future<Output = Result<T, E>>,
    {
        let plan = self.plan()?;
        let Grant { hold, end } = keeper::start(plan).await?;
        let held = HeldLock { hold: std::sync::Arc::clone(&hold) };
        // The closure itself may panic, too. In a box, because each function that a future passes through would store it again.
        let work = Box::pin(AssertUnwindSafe(async move { work(held).await }).catch_unwind());
        let ended = while_held(&hold, self.locks.guards.inside(&hold.name, work)).await;
        let released = release(&hold, Some(end)).await;
        match (ended, released) {
            (Some(Err(panic)), _) => resume_unwind(panic),
            (None, _) => Err(RunError::Lock(hold.lost())),
            (Some(Ok(Err(error))), _) => Err(RunError::Work(error)),
            (Some(Ok(Ok(_))), Err(LockError::Lost { name, token })) => {
                Err(RunError::Lock(LockError::Lost { name, token }))
            }
            // The release is repeated in the background.
            (Some(Ok(Ok(value))), Ok(()) | Err(_)) => Ok(value),
        }
    }
}

/// Runs work as long as the lock is held; `None` if it was lost before the work ended.
///
/// The lease is checked at each step: after a pause of the process, the work must not continue only because it is polled before the
/// task that notices the loss.
async fn while_held<W: Future>(hold: &Hold, work: W) -> Option<W::Output> {
    let (mut work, mut ended) = (pin!(work), pin!(hold.until_lost()));
    poll_fn(|context| {
        if ended.as_mut().poll(context).is_ready() || hold.is_lost() {
            return Poll::Ready(None);
        }
        match work.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            // It may have run past the end of its lease without a pause.
            Poll::Ready(_) if hold.is_lost() => Poll::Ready(None),
            Poll::Ready(output) => Poll::Ready(Some(output)),
        }
    })
    .await
}
