//! Sleeps by blocking the thread, for callers without an async runtime.

use super::{Clock, Moment};
use crate::cancel::CancelToken;
use crate::duration::nanos;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Wakes a parked thread.
#[derive(Debug)]
pub(crate) struct ThreadWaker(Thread);

impl ThreadWaker {
    pub(crate) fn current() -> Waker {
        Waker::from(Arc::new(ThreadWaker(thread::current())))
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// How a blocking wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Fully,
    Cancelled,
}

impl Clock {
    /// Blocks this thread for `duration`, or until `cancel` is cancelled.
    ///
    /// On a manual clock the wait itself advances the time: in a single-threaded test no other code
    /// can.
    pub(crate) fn wait_blocking(&self, duration: Duration, cancel: Option<&CancelToken>) -> Waited {
        if cancel.is_some_and(CancelToken::is_cancelled) {
            return Waited::Cancelled;
        }
        if let Some(clock) = self.manual() {
            clock.advance(duration);
            let is_cancelled = cancel.is_some_and(CancelToken::is_cancelled);
            return if is_cancelled { Waited::Cancelled } else { Waited::Fully };
        }
        let Some(cancel) = cancel else {
            sleep(duration);
            return Waited::Fully;
        };
        let _registration = cancel.register(ThreadWaker::current());
        park(duration, cancel)
    }
}

#[expect(clippy::disallowed_methods, reason = "a blocking call asked to wait in this thread")]
fn sleep(duration: Duration) {
    thread::sleep(duration);
}

/// Waits in real time, as [`sleep`] does. The time of a paused tokio runtime stops while its thread is blocked: by that time, the
/// wait would never end.
#[expect(clippy::disallowed_methods, reason = "a blocking call asked to wait in this thread")]
fn park(duration: Duration, cancel: &CancelToken) -> Waited {
    let started = std::time::Instant::now();
    loop {
        if cancel.is_cancelled() {
            return Waited::Cancelled;
        }
        let rest = duration.saturating_sub(started.elapsed());
        if rest.is_zero() {
            return Waited::Fully;
        }
        thread::park_timeout(rest);
    }
}

thread_local! {
    /// How long calls on this thread have blocked it while the time of its tokio runtime was paused.
    static BLOCKED: Cell<u64> = const { Cell::new(0) };
}

/// The number of calls that have such a time. All others do not read it.
static BLOCKED_CALLS: AtomicUsize = AtomicUsize::new(0);

/// Returns by how much the system clock is late on this thread.
#[inline]
pub(super) fn blocked_nanos() -> u64 {
    if BLOCKED_CALLS.load(Ordering::Relaxed) == 0 { 0 } else { BLOCKED.get() }
}

/// The waits of a call that blocks its thread. The time of a paused tokio runtime stops while its thread is blocked; for the
/// policies of this call, it goes on.
#[derive(Debug, Default)]
pub(crate) struct BlockingWaits {
    /// What to restore at the end, if this call has changed it.
    before: Option<u64>,
}

impl BlockingWaits {
    /// Waits until this moment, or until this thread is unparked.
    #[expect(clippy::disallowed_methods, reason = "a blocking call asked to wait in this thread")]
    pub(crate) fn until(&mut self, at: Moment, clock: &Clock) {
        if at == Moment::NEVER {
            return thread::park();
        }
        let now = clock.now();
        if clock.is_manual() {
            clock.wait_blocking(at.since(now), None);
            return;
        }
        let started = std::time::Instant::now();
        thread::park_timeout(at.since(now));
        if clock.is_system() && clock.now() == now {
            self.add(started.elapsed());
        }
    }

    #[cold]
    fn add(&mut self, waited: Duration) {
        let before = BLOCKED.get();
        if self.before.is_none() {
            BLOCKED_CALLS.fetch_add(1, Ordering::Relaxed);
            self.before = Some(before);
        }
        BLOCKED.set(before.saturating_add(nanos(waited)));
    }
}

impl Drop for BlockingWaits {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            BLOCKED.set(before);
            BLOCKED_CALLS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
