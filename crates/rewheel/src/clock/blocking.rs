//! Sleeps by blocking the thread, for callers without an async runtime.

use super::Clock;
use crate::cancel::CancelToken;
use std::sync::Arc;
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
