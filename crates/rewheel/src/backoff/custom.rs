//! Backoffs that are code of the user.

use super::Past;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A backoff that is your own code. The code may keep state, such as a connection count or a calendar.
///
/// Register it by name with [`Backoffs::register_custom`](crate::Backoffs::register_custom). Closures
/// implement this trait, too. Text and config files contain the name of the backoff.
///
/// ```
/// use rewheel::{Backoffs, CustomBackoff, Jitter, Past, Random, seconds};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// /// Waits longer while more calls are queued.
/// #[derive(Clone, Default)]
/// struct ByQueue(Arc<AtomicU64>);
///
/// impl CustomBackoff for ByQueue {
///     fn delay(&self, past: &Past) -> Duration {
///         seconds(u64::from(past.attempt) + self.0.load(Ordering::Relaxed) / 100)
///     }
/// }
///
/// let queue = ByQueue::default();
/// let mut backoffs = Backoffs::new();
/// let backoff = backoffs.register_custom("by_queue", queue.clone())?.jitter(Jitter::NONE);
///
/// assert_eq!(backoff.delay(2, &Random::thread()), seconds(2));
/// queue.0.store(500, Ordering::Relaxed);
/// assert_eq!(backoff.delay(2, &Random::thread()), seconds(7));
/// assert_eq!(backoffs.parse("by_queue max 30s jitter none"), Ok(backoff));
/// # Ok::<_, rewheel::NameError>(())
/// ```
pub trait CustomBackoff: Send + Sync {
    /// Returns the delay after a failed attempt, before bounds and jitter. Called once for each
    /// wait, in the thread of the call: be quick, and do not block.
    fn delay(&self, past: &Past) -> Duration;
}

impl<F: Fn(&Past) -> Duration + Send + Sync> CustomBackoff for F {
    fn delay(&self, past: &Past) -> Duration {
        self(past)
    }
}

/// User code with a name, which makes it printable and comparable.
#[derive(Clone, Copy)]
pub(super) enum Custom {
    Function {
        name: &'static str,
        delay: fn(attempt: u32) -> Duration,
    },
    Object(&'static Object),
    /// A name that was stored by a process which knows its code.
    Unknown(&'static str),
}

/// Names of unknown backoffs. They stay until the process ends, so that a [`Backoff`](super::Backoff) can be copied.
static UNKNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Names come from code, so there are few. Beyond this number they share one name.
const UNKNOWN_MAX: usize = 10_000;

/// First delay of an unknown backoff that nothing replaced.
const UNKNOWN_BASE: Duration = Duration::from_millis(100);

/// A registered [`CustomBackoff`]. It stays until the process ends, so that a [`Backoff`] can be
/// copied.
///
/// [`Backoff`]: super::Backoff
pub(super) struct Object {
    name: Box<str>,
    /// A panic in user code does not concern the policy, which keeps nothing of its own here.
    delay: AssertUnwindSafe<Box<dyn CustomBackoff>>,
}

impl Custom {
    /// Keeps the object until the process ends.
    pub(super) fn object(name: &str, delay: impl CustomBackoff + 'static) -> Custom {
        let object = Object { name: name.into(), delay: AssertUnwindSafe(Box::new(delay)) };
        Custom::Object(Box::leak(Box::new(object)))
    }

    /// Keeps the name until the process ends.
    pub(super) fn unknown(name: &str) -> Custom {
        let mut known = UNKNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(name) {
            return Custom::Unknown(name);
        }
        if known.len() >= UNKNOWN_MAX {
            return Custom::Unknown("unknown");
        }
        let name: &'static str = Box::leak(name.into());
        known.insert(name);
        Custom::Unknown(name)
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Custom::Function { name, .. } => name,
            Custom::Object(object) => &object.name,
            Custom::Unknown(name) => name,
        }
    }

    pub(super) fn delay(&self, past: &Past) -> Duration {
        match self {
            Custom::Function { delay, .. } => delay(past.attempt),
            Custom::Object(object) => object.delay.delay(past),
            Custom::Unknown(_) => {
                let doublings = past.attempt.saturating_sub(1).min(31);
                UNKNOWN_BASE.saturating_mul(1 << doublings)
            }
        }
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Custom {}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Custom").field(&self.name()).finish()
    }
}
