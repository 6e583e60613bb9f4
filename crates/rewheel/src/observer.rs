//! Observers: receive an event for everything that policies do.

#[cfg(feature = "tracing")]
mod log;

#[cfg(feature = "tracing")]
pub use self::log::LogObserver;

use crate::breaker::BreakerState;
use crate::classify::{Category, Class};
use crate::error::{GiveUpReason, Refused};
use crate::last_good::Freshness;
use std::sync::Arc;
use std::time::Duration;

/// Receives events of policies as they happen; the base of all telemetry.
///
/// Called outside of all locks, in the thread that caused the event: be quick, and do not block.
/// Without an observer, events are not created.
///
/// ```
/// use rewheel::{Event, Observer, Retry, Retryable, millis};
/// use std::io;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::sync::Arc;
///
/// #[derive(Debug, Default)]
/// struct Retries(AtomicU32);
///
/// impl Observer for Retries {
///     fn observe(&self, event: &Event<'_>) {
///         if let Event::Retrying { .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let retries = Arc::new(Retries::default());
/// let _ = (|| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)))
///     .retry(Retry::fixed(millis(1)).attempts_max(3))
///     .observer("fetch", retries.clone())
///     .call();
/// assert_eq!(retries.0.load(Ordering::Relaxed), 2);
/// ```
pub trait Observer: std::fmt::Debug + Send + Sync {
    /// Handles an event.
    fn observe(&self, event: &Event<'_>);
}

/// Reports a refusal to an observer, if there is one.
#[inline]
pub(crate) fn refused(
    observer: Option<&Arc<dyn Observer>>,
    name: &str,
    refused: Refused,
) -> Refused {
    if let Some(observer) = observer {
        tell(&**observer, name, refused);
    }
    refused
}

/// Tells an observer that a call was let in, if there is one.
#[inline]
pub(crate) fn admitted(
    observer: Option<&Arc<dyn Observer>>,
    name: &str,
    by: GiveUpReason,
    waited: Duration,
) {
    if let Some(observer) = observer {
        tell_admitted(&**observer, name, by, waited);
    }
}

/// Out of line: most policies have no observer, and should not make room for it.
#[inline(never)]
fn tell_admitted(observer: &dyn Observer, name: &str, by: GiveUpReason, waited: Duration) {
    observer.observe(&Event::Admitted { name, by, waited });
}

/// Returns a number for an event, larger than all before. Not of loom: no order depends on it except that of one value.
pub(crate) fn next_serial() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    SERIAL.fetch_add(1, Ordering::Relaxed)
}

#[cold]
fn tell(observer: &dyn Observer, name: &str, refused: Refused) {
    let Refused { why, retry_in, .. } = refused;
    observer.observe(&Event::Refused { name, why, retry_in });
}

/// An event of a policy. `name` is the name of the call or the policy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An attempt failed.
    AttemptFailed {
        /// Name of the call.
        name: &'a str,
        /// The attempt, counted from 1.
        attempt: u32,
        /// Classification of the failure.
        class: &'a Class,
    },
    /// Another attempt follows after a delay.
    Retrying {
        /// Name of the call.
        name: &'a str,
        /// The attempt that failed, counted from 1.
        attempt: u32,
        /// Delay before the next attempt.
        delay: Duration,
    },
    /// A call succeeded.
    Succeeded {
        /// Name of the call.
        name: &'a str,
        /// Number of attempts.
        attempts: u32,
        /// Total time, including waits.
        elapsed: Duration,
    },
    /// A call was given up.
    GaveUp {
        /// Name of the call.
        name: &'a str,
        /// The reason.
        why: GiveUpReason,
        /// Number of attempts.
        attempts: u32,
        /// Total time, including waits.
        elapsed: Duration,
    },
    /// A retry makes only one attempt, because it runs inside an attempt of another retry, which
    /// repeats the call. See [`Retry::nested`](crate::Retry::nested) and
    /// [`Retry::inner`](crate::Retry::inner).
    RetrySuppressed {
        /// Name of the call.
        name: &'a str,
    },
    /// A breaker, a limiter, a bulkhead or a budget refused a call.
    Refused {
        /// Name of the policy that refused.
        name: &'a str,
        /// The reason, which names the policy.
        why: GiveUpReason,
        /// The time after which another call may succeed, if it is known.
        retry_in: Option<Duration>,
    },
    /// A limiter or a bulkhead admitted a call.
    Admitted {
        /// Name of the policy that admitted it.
        name: &'a str,
        /// The policy that admitted the call, named by the reason that it uses for refusals.
        by: GiveUpReason,
        /// Time in the queue.
        waited: Duration,
    },
    /// A circuit breaker was built. Breakers of keys are not reported: there is one for each key,
    /// and they share their name.
    BreakerBuilt {
        /// Name of the breaker.
        name: &'a str,
        /// State of the breaker.
        state: BreakerState,
        /// As in [`BreakerChanged`](Event::BreakerChanged).
        serial: u64,
    },
    /// A circuit breaker changed its state.
    BreakerChanged {
        /// Name of the breaker.
        name: &'a str,
        /// The state before.
        from: BreakerState,
        /// The state after.
        to: BreakerState,
        /// Whether it is the breaker of a key: all breakers of a keyed set have one name.
        keyed: bool,
        /// Larger than in all earlier events of this breaker. Events of different threads may arrive in another order.
        serial: u64,
    },
    /// A [`Hedge`](crate::Hedge) started an extra attempt.
    HedgeStarted {
        /// Name of the hedge.
        name: &'a str,
        /// The extra attempt of this call, counted from 1.
        extra: u32,
        /// Time since the first attempt started.
        after: Duration,
    },
    /// An extra attempt of a [`Hedge`](crate::Hedge) had a result before the first one.
    HedgeWon {
        /// Name of the hedge.
        name: &'a str,
        /// The extra attempt, counted from 1.
        extra: u32,
    },
    /// A call was given up, and its fallback was used.
    FallbackUsed {
        /// Name of the call.
        name: &'a str,
        /// Why the call was given up.
        why: GiveUpReason,
    },
    /// A fallback failed, too.
    FallbackFailed {
        /// Name of the call.
        name: &'a str,
    },
    /// A [`LastGood`](crate::LastGood) returned a value.
    LastGoodServed {
        /// Name of the cache.
        name: &'a str,
        /// Where the value is from.
        freshness: Freshness,
        /// Age of the value.
        age: Duration,
    },
    /// A target of a [`Failover`](crate::Failover) failed or was refused by its breaker, and the call goes to another target.
    FailedOver {
        /// Name of the failover.
        name: &'a str,
        /// The target that failed, counted from 0.
        target: usize,
        /// Category of the failure.
        category: Category,
    },
    /// A target of a [`Failover`](crate::Failover) failed clearly more than the others, and is left out.
    TargetEjected {
        /// Name of the failover.
        name: &'a str,
        /// The target, counted from 0.
        target: usize,
        /// For how long.
        ejected_for: Duration,
    },
    /// An adaptive limit was built, or has changed. If it was built, both values are the same.
    LimitChanged {
        /// Name of the limit.
        name: &'a str,
        /// The limit before.
        from: usize,
        /// The limit after.
        to: usize,
        /// Larger than in all earlier events of this limit. Events of different threads may arrive in another order.
        serial: u64,
    },
    /// A chaos policy has changed a call: made it fail, wait, or hang.
    ChaosInjected {
        /// Name of the policy.
        name: &'a str,
        /// What happens to the call: `fail`, `delay` or `hang`.
        fault: &'static str,
    },
}
