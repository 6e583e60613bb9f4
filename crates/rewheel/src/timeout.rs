//! Timeout: limits the time of one call.

use crate::classify::{Class, Classify};
use crate::clock::{Clock, Moment, Sleep};
use crate::duration::text;
use crate::error::{Error, GiveUpReason, Refused};
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// A limit on the time of one call.
///
/// The future of a call that takes longer is dropped. Work that it passed to another task or thread
/// continues.
///
/// ```
/// use rewheel::{Timeout, GiveUpReason, millis};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// const PATIENCE: Timeout = Timeout::new(millis(5));
/// let error = PATIENCE.call(|| std::future::pending::<std::io::Result<()>>()).await.unwrap_err();
/// assert_eq!(error.reason(), GiveUpReason::Timeout);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Timeout {
    limit: Duration,
    clock: Clock,
}

impl Timeout {
    /// Creates a timeout with this limit.
    ///
    /// # Panics
    /// Panics if the value is zero; in a constant that is a compile error.
    #[track_caller]
    pub const fn new(limit: Duration) -> Timeout {
        Timeout { limit: valid(checked_timeout(limit)), clock: Clock::system() }
    }

    /// As [`new`](Timeout::new), without the panic.
    ///
    /// ```
    /// use rewheel::{Timeout, seconds};
    ///
    /// let error = Timeout::try_new(seconds(0)).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid timeout `0s`: use a time above zero");
    /// ```
    ///
    /// # Errors
    /// Rejects a limit of zero.
    pub fn try_new(limit: Duration) -> Result<Timeout, SettingError> {
        let limit = checked_timeout(limit).map_err(|rule| rule.with(text(limit)))?;
        Ok(Timeout { limit, clock: Clock::system() })
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Timeout {
        self.clock = clock.into();
        self
    }

    /// Makes a call.
    ///
    /// # Errors
    /// Returns the call's own error as `last`, or the timeout.
    pub async fn call<F, Fut, T, E>(&self, operation: F) -> Result<T, Error<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: Classify,
    {
        self.call_judged(E::classify, operation).await
    }

    /// As [`call`](Timeout::call), for errors that do not implement [`Classify`]: `judge` says what an error means to the policies
    /// around this call.
    ///
    /// # Errors
    /// The same as for `call`.
    pub async fn call_judged<F, Fut, T, E>(
        &self,
        judge: impl FnOnce(&E) -> Class,
        operation: F,
    ) -> Result<T, Error<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let started = self.clock.now();
        let result = self.cut(started, operation()).await;
        let elapsed = || self.clock.now().since(started);
        match result {
            Some(Ok(value)) => Ok(value),
            Some(Err(last)) => Err(Error::of_class(&judge(&last), last).with_elapsed(elapsed())),
            None => Err(Error::new(Refused::new(GiveUpReason::Timeout, None), 1, elapsed(), None)),
        }
    }

    /// Waits for a result; `None` if the time is over first.
    pub(crate) async fn cut<T>(&self, started: Moment, call: impl Future<Output = T>) -> Option<T> {
        let mut call = pin!(call);
        let mut sleep = pin!(None::<Sleep>);
        poll_fn(|cx| {
            if let Poll::Ready(result) = call.as_mut().poll(cx) {
                return Poll::Ready(Some(result));
            }
            if sleep.is_none() {
                let left = self.limit.saturating_sub(self.clock.now().since(started));
                sleep.set(Some(self.clock.sleep(left)));
            }
            match sleep.as_mut().as_pin_mut() {
                Some(sleep) => sleep.poll(cx).map(|()| None),
                None => Poll::Pending,
            }
        })
        .await
    }
}

/// Refuses a timeout of zero, which no call fits.
pub(crate) const fn checked_timeout(limit: Duration) -> Result<Duration, NotAllowed> {
    if limit.is_zero() { Err(not_allowed!("timeout", "use a time above zero")) } else { Ok(limit) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Timeout;
    use crate::{Clock, GiveUpReason, ManualClock, seconds};
    use std::convert::Infallible;

    #[tokio::test]
    async fn cuts_a_call_at_the_limit() {
        let clock = ManualClock::new();
        let slow = || async {
            Clock::from(&clock).sleep(seconds(3)).await;
            Ok::<_, Infallible>(())
        };
        let timeout = Timeout::new(seconds(2)).clock(&clock);
        let error = clock.drive(timeout.call(slow)).await.unwrap_err();
        assert_eq!((error.reason(), error.elapsed()), (GiveUpReason::Timeout, seconds(2)));
        assert!(clock.drive(Timeout::new(seconds(4)).clock(&clock).call(slow)).await.is_ok());
    }

    #[tokio::test]
    async fn counts_the_time_before_the_first_wait() {
        let clock = ManualClock::new();
        let slow = || async {
            clock.advance(seconds(2)); // work that does not yield
            Clock::from(&clock).sleep(seconds(1)).await;
            Ok::<_, Infallible>(())
        };
        let timeout = Timeout::new(seconds(2)).clock(&clock);
        assert_eq!(clock.drive(timeout.call(slow)).await.unwrap_err().elapsed(), seconds(2));
    }
}
