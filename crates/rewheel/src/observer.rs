//! Tells whoever listens what policies do.

#[cfg(feature = "tracing")]
mod log;

#[cfg(feature = "tracing")]
pub use self::log::LogObserver;

use crate::breaker::BreakerState;
use crate::classify::Class;
use crate::error::{Refused, Why};
use std::sync::Arc;
use std::time::Duration;

/// Receives what policies do, as it happens: the seam that telemetry is built on.
///
/// Called outside of every lock, in the thread that did it: be quick, and do not block. Where no
/// observer is set, events are not even made.
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
    /// Something happened.
    fn observe(&self, event: &Event<'_>);
}

/// Tells an observer of a refusal, if there is one.
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
    by: Why,
    waited: Duration,
) {
    if let Some(observer) = observer {
        tell_admitted(&**observer, name, by, waited);
    }
}

/// Out of line: most policies have no observer, and should not make room for it.
#[inline(never)]
fn tell_admitted(observer: &dyn Observer, name: &str, by: Why, waited: Duration) {
    observer.observe(&Event::Admitted { name, by, waited });
}

#[cold]
fn tell(observer: &dyn Observer, name: &str, refused: Refused) {
    let Refused { why, retry_in, .. } = refused;
    observer.observe(&Event::Refused { name, why, retry_in });
}

/// Something that a policy did. `name` is the one that the call or the policy was given.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An attempt failed.
    AttemptFailed {
        /// Of the call.
        name: &'a str,
        /// Which attempt, counted from 1.
        attempt: u32,
        /// What the failure means.
        class: &'a Class,
    },
    /// Another attempt follows after a wait.
    Retrying {
        /// Of the call.
        name: &'a str,
        /// The attempt that failed, counted from 1.
        attempt: u32,
        /// How long the next one waits.
        delay: Duration,
    },
    /// A call succeeded.
    Succeeded {
        /// Of the call.
        name: &'a str,
        /// How many attempts it took.
        attempts: u32,
        /// How long it took, waits included.
        elapsed: Duration,
    },
    /// A call was given up.
    GaveUp {
        /// Of the call.
        name: &'a str,
        /// Why.
        why: Why,
        /// How many attempts were made.
        attempts: u32,
        /// How long it took, waits included.
        elapsed: Duration,
    },
    /// A breaker, a limiter, a bulkhead or a budget refused something.
    Refused {
        /// Of the policy that refused.
        name: &'a str,
        /// Which one it was, in effect.
        why: Why,
        /// When it may be worth asking again, where that is known.
        retry_in: Option<Duration>,
    },
    /// A limiter or a bulkhead let a call in.
    Admitted {
        /// Of the policy that let it in.
        name: &'a str,
        /// What it would have refused it for.
        by: Why,
        /// How long it waited in line.
        waited: Duration,
    },
    /// A circuit breaker was built. Breakers of keys are not reported: there is one for each key,
    /// and they share their name.
    BreakerBuilt {
        /// Of the breaker.
        name: &'a str,
        /// What it does with calls.
        state: BreakerState,
    },
    /// A circuit breaker changed its state.
    BreakerChanged {
        /// Of the breaker.
        name: &'a str,
        /// Before.
        from: BreakerState,
        /// Now.
        to: BreakerState,
    },
}
