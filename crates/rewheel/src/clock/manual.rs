//! A manual clock for tests.

use super::{Clock, Moment};
use pin_project_lite::pin_project;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A clock for tests: time advances only when the test advances it, so tests do not wait and are not flaky.
///
/// Clones share one time. Pass `&clock` to any policy, then either [`drive`](ManualClock::drive) a
/// call to its end, or [`advance`](ManualClock::advance) the time manually and check the result.
///
/// ```
/// use rewheel::{ManualClock, Retry, Retryable, seconds};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = ManualClock::new();
/// let call = (|| async { Err::<(), _>(std::io::Error::from(std::io::ErrorKind::TimedOut)) })
///     .retry(Retry::fixed(seconds(10)).attempts_max(3))
///     .clock(&clock);
///
/// let error = clock.drive(call).await.unwrap_err();
///
/// assert_eq!((error.attempts(), clock.elapsed()), (3, seconds(20)));
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    now: AtomicU64,
    sleepers: Mutex<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    /// Ordered by the moment they wait for, then by arrival.
    waiting: BTreeMap<SleeperKey, Waker>,
    count: u64,
}

pub(super) type SleeperKey = (Moment, u64);

impl ManualClock {
    /// Creates a clock that starts at zero.
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    /// Returns how far the clock has advanced since it was created.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.shared.now.load(Ordering::Acquire))
    }

    /// Advances the time and wakes the tasks that waited for it.
    pub fn advance(&self, by: Duration) {
        let target = self.now().plus(by);
        // One sleeper at a time, each at its moment: a waker may read the clock.
        while let Some((at, waker)) = self.take_next(target) {
            self.shared.now.fetch_max(at.as_nanos(), Ordering::AcqRel);
            waker.wake();
        }
        self.shared.now.fetch_max(target.as_nanos(), Ordering::AcqRel);
    }

    /// Advances the time to the earliest moment that a task waits for; `false` if none waits.
    pub fn advance_to_next(&self) -> bool {
        let Some((at, waker)) = self.take_next(Moment::NEVER) else { return false };
        self.shared.now.fetch_max(at.as_nanos(), Ordering::AcqRel);
        waker.wake();
        true
    }

    /// Advances the time to the earliest moment that a task waits for, if this moment is at most `by` away. Otherwise advances by
    /// `by` and returns `false`. For a simulation that has events of its own.
    ///
    /// ```
    /// use rewheel::{ManualClock, seconds};
    ///
    /// let clock = ManualClock::new();
    /// assert!(!clock.advance_to_next_within(seconds(3)), "no task waits");
    /// assert_eq!(clock.elapsed(), seconds(3));
    /// ```
    pub fn advance_to_next_within(&self, by: Duration) -> bool {
        let target = self.now().plus(by);
        let next = self.take_next(target);
        let at = next.as_ref().map_or(target, |(at, _)| *at);
        self.shared.now.fetch_max(at.as_nanos(), Ordering::AcqRel);
        let Some((_, waker)) = next else { return false };
        waker.wake();
        true
    }

    /// Runs `call` to its end, and advances the time whenever the call waits.
    ///
    /// For calls that wait for this clock, and for other tasks of a current-thread runtime. Do not
    /// use it for a call that waits for real I/O or for a policy with another clock, because its
    /// timeouts would pass at once. Advance the time manually for such a call.
    pub fn drive<F: IntoFuture>(&self, call: F) -> Drive<F::IntoFuture> {
        Drive { call: call.into_future(), clock: self.clone(), turns_given: 0 }
    }

    #[inline]
    pub(super) fn now(&self) -> Moment {
        Moment::from_nanos(self.shared.now.load(Ordering::Acquire))
    }

    pub(super) fn is_same(&self, other: &ManualClock) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(super) fn register(&self, at: Moment, waker: Waker) -> SleeperKey {
        let mut sleepers = self.sleepers();
        sleepers.count += 1;
        let key = (at, sleepers.count);
        sleepers.waiting.insert(key, waker);
        key
    }

    pub(super) fn forget(&self, key: SleeperKey) {
        let waker = self.sleepers().waiting.remove(&key);
        // Foreign code, which may use this clock: after the lock is released.
        drop(waker);
    }

    fn take_next(&self, until: Moment) -> Option<(Moment, Waker)> {
        let mut sleepers = self.sleepers();
        let entry = sleepers.waiting.first_entry().filter(|entry| entry.key().0 <= until)?;
        let ((at, _), waker) = entry.remove_entry();
        Some((at, waker))
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.shared.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock {
    pub(crate) fn manual(&self) -> Option<&ManualClock> {
        match &self.0 {
            super::Kind::Manual(clock) => Some(clock),
            super::Kind::System | super::Kind::Coarse => None,
        }
    }
}

pin_project! {
    /// The future of [`ManualClock::drive`].
    #[derive(Debug)]
    #[must_use = "a future does nothing until it is awaited"]
    pub struct Drive<F> {
        #[pin]
        call: F,
        clock: ManualClock,
        turns_given: u32,
    }
}

/// How often other tasks are polled before the time advances: more than the length of task chains
/// that wake each other in tests.
const TURNS: u32 = 16;

impl<F: Future> Future for Drive<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        loop {
            if let Poll::Ready(output) = this.call.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            if *this.turns_given < TURNS {
                // Ready tasks of this executor run before the time advances.
                *this.turns_given += 1;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            *this.turns_given = 0;
            if !this.clock.advance_to_next() {
                return Poll::Pending;
            }
        }
    }
}
