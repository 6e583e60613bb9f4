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

/// A clock for tests: time stands still until it is moved, so nothing waits and nothing is flaky.
///
/// Clones share one time. Hand `&clock` to any policy, then either [`drive`](ManualClock::drive) a
/// call to its end, or [`advance`](ManualClock::advance) by hand and look at what happened.
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
    /// By the moment they wait for, then by who came first.
    waiting: BTreeMap<SleeperKey, Waker>,
    count: u64,
}

pub(super) type SleeperKey = (Moment, u64);

impl ManualClock {
    /// Starts at zero.
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    /// Returns how far the clock was moved since it was made.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.shared.now.load(Ordering::Acquire))
    }

    /// Moves the time on and wakes whoever waited for it.
    pub fn advance(&self, by: Duration) {
        let target = self.now().plus(by);
        // One sleeper at a time, each at its moment: a waker may look at the clock.
        while let Some((at, waker)) = self.take_next(target) {
            self.shared.now.fetch_max(at.as_nanos(), Ordering::AcqRel);
            waker.wake();
        }
        self.shared.now.fetch_max(target.as_nanos(), Ordering::AcqRel);
    }

    /// Moves the time to the earliest moment that anything waits for; `false` if nothing waits.
    pub fn advance_to_next(&self) -> bool {
        let Some((at, waker)) = self.take_next(Moment::NEVER) else { return false };
        self.shared.now.fetch_max(at.as_nanos(), Ordering::AcqRel);
        waker.wake();
        true
    }

    /// Runs `call` to its end, moving the time whenever it waits.
    ///
    /// Made for calls that wait for this clock, and for other tasks of a current-thread runtime. A
    /// call that waits for real input or output, or for a policy that goes by another clock, would
    /// see its timeouts pass at once: advance by hand there.
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
        self.sleepers().waiting.remove(&key);
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

/// How often other tasks get a turn before the time is moved: longer than the chains of tasks that
/// wake each other in tests.
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
                // Work that is ready on this executor comes before the passing of time.
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
