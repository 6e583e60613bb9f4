//! The locks under test, as two processes see them.

use rewheel::{Clock, ManualClock, Random, minutes, seconds};
use rewheel_core::store::ClockOffset;
use rewheel_lock::{Ask, IfHeld, LockBackend, LockName, Locks, RequestId, Turn};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The lease of the tests: no test takes so long, so it ends only if the test moves the clock.
pub(crate) const LEASE: Duration = minutes(10);

/// The longest wait of the tests: far above what any of them takes.
pub(crate) const LONG: Duration = minutes(5);

/// The locks of one server, opened by two processes.
pub(crate) struct Subject {
    pub(crate) one: Locks,
    pub(crate) other: Locks,
    /// For calls without a guard, as a process that dies makes them.
    pub(crate) backend: Arc<dyn LockBackend>,
    /// A process that can be paused: it renews nothing while its clock does not advance.
    pub(crate) pausable: Locks,
    pub(crate) pause: ManualClock,
    /// Moves the clock of the server.
    pub(crate) clock: ClockOffset,
    other_backend: Arc<dyn LockBackend>,
    random: Random,
    _kept: Box<dyn Any + Send + Sync>,
}

impl Subject {
    pub(crate) fn new<B: LockBackend + Clone + 'static>(
        one: B,
        other: B,
        clock: ClockOffset,
        kept: impl Any + Send + Sync,
    ) -> Subject {
        let pause = ManualClock::new();
        Subject {
            one: Locks::new(one.clone()).owner("one"),
            other: Locks::new(other.clone()).owner("other"),
            pausable: Locks::new(one.clone()).owner("pausable").clock(Clock::from(&pause)),
            pause,
            backend: Arc::new(one),
            other_backend: Arc::new(other),
            clock,
            random: Random::thread(),
            _kept: Box::new(kept),
        }
    }

    pub(crate) fn id(&self) -> RequestId {
        RequestId::new(&self.random)
    }

    /// Moves the clock of the server, and lets all requests look at it.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.look();
    }

    /// Lets all waiting requests look at their locks now, so that tests need not wait for the next time.
    pub(crate) fn look(&self) {
        self.backend.wakeups().wake_all();
        self.other_backend.wakeups().wake_all();
    }

    /// Asks as a process that dies right after: nothing renews what it gets.
    pub(crate) async fn ask_and_die(&self, lock: &str, if_held: IfHeld) -> (RequestId, Turn) {
        let (name, id) = (name(lock), self.id());
        let ask = Ask { name: &name, id, owner: "dead", lease: LEASE, if_held };
        (id, self.backend.acquire(&ask).await.expect("the server answers"))
    }

    /// Moves the clock of the server back, so that no place in line expires before the next call, however slow the machine is.
    pub(crate) fn keep_places(&self) {
        self.clock.turn_back(minutes(1));
    }

    /// Waits until so many requests are in line. No place expires meanwhile.
    pub(crate) async fn wait_for_line(&self, lock: &str, count: usize) {
        let has_come = async || {
            self.keep_places();
            self.one.inspect(lock).await.expect("the server answers").waiting == count
        };
        eventually(has_come).await;
    }

    /// Waits until the lock is free.
    pub(crate) async fn wait_until_free(&self, lock: &str) {
        eventually(async || {
            self.one.inspect(lock).await.expect("the server answers").holder.is_none()
        })
        .await;
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.one.fmt(f)
    }
}

pub(crate) fn name(lock: &str) -> LockName {
    LockName::parse(lock).expect("a name")
}

/// Waits for a condition, with a limit that no machine is too slow for.
pub(crate) async fn eventually(condition: impl AsyncFn() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(waiting).await;
}

/// Waits for a future, with a limit that no machine is too slow for.
pub(crate) async fn in_time<F: IntoFuture>(waiting: F) -> F::Output {
    tokio::time::timeout(seconds(120), waiting).await.expect("it does not take minutes")
}
