//! Tracks store calls in progress that may return leases.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Calls that may return leases: claims, direct inserts, sticky settles. A lease that is in the store but unknown to this engine
/// is lost only after every such call that was in progress has ended.
#[derive(Debug)]
pub(crate) struct PendingCalls {
    numbers: Mutex<Numbers>,
    ended: Notify,
    /// Notified of each call whose outcome is unknown.
    unsure: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Numbers {
    next: u64,
    on_the_way: BTreeSet<u64>,
}

/// A call in progress. If it is dropped before its end, its outcome is unknown.
#[derive(Debug)]
#[must_use]
pub(crate) struct Call<'c> {
    calls: &'c PendingCalls,
    number: u64,
    has_ended: bool,
}

impl PendingCalls {
    pub(crate) fn new(unsure: Arc<Notify>) -> PendingCalls {
        PendingCalls { numbers: Mutex::default(), ended: Notify::new(), unsure }
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        // No code under this lock can panic.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self) -> Call<'_> {
        let mut numbers = self.numbers();
        let number = numbers.next;
        numbers.next += 1;
        numbers.on_the_way.insert(number);
        Call { calls: self, number, has_ended: false }
    }

    /// Waits for a call whose outcome is unknown.
    pub(crate) async fn unsure(&self) {
        self.unsure.notified().await;
    }

    /// Waits until every call that is now in progress has ended. Others may begin meanwhile.
    pub(crate) async fn ended(&self) {
        let next = self.numbers().next;
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.numbers().on_the_way.first().is_none_or(|first| *first >= next) {
                return;
            }
            ended.await;
        }
    }
}

impl Call<'_> {
    /// Ends the call: its leases are known by now, or the store reported a failure.
    pub(crate) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.calls.unsure.notify_one();
        }
        self.calls.numbers().on_the_way.remove(&self.number);
        self.calls.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::PendingCalls;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    #[test]
    fn waits_for_those_on_their_way_and_no_others() {
        let calls = PendingCalls::new(Arc::default());
        let (one, other) = (calls.begin(), calls.begin());
        let mut ended = pin!(calls.ended());
        let mut is_over =
            || ended.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!is_over());
        let later = calls.begin();
        other.end();
        assert!(!is_over());
        one.end();
        assert!(is_over());
        drop(later);
    }

    #[test]
    fn tells_of_a_call_that_was_given_up() {
        let unsure = Arc::new(tokio::sync::Notify::new());
        let calls = PendingCalls::new(Arc::clone(&unsure));
        let mut told = pin!(calls.unsure());
        let mut is_told = || told.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        calls.begin().end();
        assert!(!is_told());
        drop(calls.begin());
        assert!(is_told());
    }
}
