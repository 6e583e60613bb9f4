//! Cancels calls.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Cancels all calls that have a clone of this token: async or blocking calls, during an attempt or between two attempts.
///
/// An async call can also be cancelled by dropping it.
///
/// ```
/// use rewheel::{CancelToken, Retry, Retryable, GiveUpReason, seconds};
/// use std::io;
///
/// let cancel = CancelToken::new();
/// cancel.cancel();
/// let error = (|| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)))
///     .retry(Retry::fixed(seconds(10)))
///     .cancel(&cancel)
///     .call()
///     .unwrap_err();
/// assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Cancelled, 0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    count: u64,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels permanently. A second call has no effect.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut self.waiters().wakers);
        wakers.into_values().for_each(Waker::wake);
    }

    /// Returns whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    /// Waits until it is cancelled. Cancel safe.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), registration: None }
    }

    /// Wakes `waker` at cancellation, until the registration is dropped. A caller that finds the
    /// token not cancelled *after* registering will be woken.
    pub(crate) fn register(&self, waker: Waker) -> Registration {
        let mut waiters = self.waiters();
        waiters.count += 1;
        let id = waiters.count;
        waiters.wakers.insert(id, waker);
        drop(waiters);
        Registration { token: self.clone(), id }
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.shared.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Registration {
    token: CancelToken,
    id: u64,
}

impl Registration {
    /// Replaces the waker, if it is a different one.
    fn update(&self, waker: &Waker) {
        let mut waiters = self.token.waiters();
        let registered = waiters.wakers.get_mut(&self.id);
        if registered.is_none_or(|registered| registered.will_wake(waker)) {
            return;
        }
        drop(waiters);
        // Cloning and dropping a waker runs foreign code, which may use this token: not under the lock.
        let waker = waker.clone();
        let mut waiters = self.token.waiters();
        let before = match waiters.wakers.get_mut(&self.id) {
            Some(registered) => std::mem::replace(registered, waker),
            // Cancelled meanwhile: the caller checks for that next.
            None => waker,
        };
        drop(waiters);
        drop(before);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let waker = self.token.waiters().wakers.remove(&self.id);
        drop(waker);
    }
}

/// The future of [`CancelToken::cancelled`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct Cancelled {
    token: CancelToken,
    registration: Option<Registration>,
}

impl Cancelled {
    pub(crate) const fn token(&self) -> &CancelToken {
        &self.token
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.token.is_cancelled() {
            match &self.registration {
                Some(registration) => registration.update(cx.waker()),
                None => self.registration = Some(self.token.register(cx.waker().clone())),
            }
            if !self.token.is_cancelled() {
                return Poll::Pending;
            }
        }
        self.registration = None;
        Poll::Ready(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::CancelToken;

    #[tokio::test]
    async fn wakes_everyone_who_waits() {
        let token = CancelToken::new();
        let (first, second) = (token.cancelled(), token.cancelled());
        let canceller = async {
            tokio::task::yield_now().await;
            token.cancel();
        };
        tokio::join!(first, second, canceller);
        assert!(token.is_cancelled());
    }

    #[tokio::test]
    async fn forgets_those_who_stopped_waiting() {
        let token = CancelToken::new();
        let waiting = async {
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                () = std::future::ready(()) => {}
            }
        };
        waiting.await;
        assert!(token.waiters().wakers.is_empty(), "a dropped waiter left its waker behind");
    }
}
