//! Observers: receive an event for everything that happens to the locks of this process.

use crate::error::{LockError, panic_text};
use crate::name::LockName;
use crate::token::FencingToken;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Receives events of locks as they happen.
///
/// Called from the task that keeps the lock: be quick, and do not block. A panic is logged, and has no effect on the lock.
///
/// ```
/// use rewheel_lock::{LockEvent, LockObserver, Locks};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// #[derive(Debug, Default)]
/// struct Lost(AtomicU32);
///
/// impl LockObserver for Lost {
///     fn observe(&self, event: &LockEvent<'_>) {
///         if let LockEvent::Lost { .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let locks = Locks::memory().observer(Arc::new(Lost::default()));
/// # drop(locks);
/// ```
pub trait LockObserver: std::fmt::Debug + Send + Sync {
    /// Handles an event.
    fn observe(&self, event: &LockEvent<'_>);
}

/// An event of a lock.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum LockEvent<'a> {
    /// A request got its lock.
    Acquired {
        /// Name of the lock.
        name: &'a LockName,
        /// Its token.
        token: FencingToken,
        /// How long the request waited.
        waited: Duration,
    },
    /// A request did not get its lock.
    NotAcquired {
        /// Name of the lock.
        name: &'a LockName,
        /// The reason.
        error: &'a LockError,
        /// How long the request waited.
        waited: Duration,
    },
    /// A renewal failed. It is repeated until the lease ends.
    RenewalFailed {
        /// Name of the lock.
        name: &'a LockName,
        /// Its token.
        token: FencingToken,
        /// The reason.
        error: &'a LockError,
        /// How long the lock is kept without a renewal.
        lease_left: Duration,
    },
    /// A lock was lost while it was held.
    Lost {
        /// Name of the lock.
        name: &'a LockName,
        /// Its token.
        token: FencingToken,
        /// How long it was held.
        held: Duration,
    },
    /// A lock was released.
    Released {
        /// Name of the lock.
        name: &'a LockName,
        /// Its token.
        token: FencingToken,
        /// How long it was held.
        held: Duration,
    },
    /// A release failed. It is repeated until the lease ends, which has the same effect.
    ReleaseFailed {
        /// Name of the lock.
        name: &'a LockName,
        /// The reason.
        error: &'a LockError,
    },
}

/// Logs an event, and passes it to the observer.
pub(crate) fn tell(observer: Option<&Arc<dyn LockObserver>>, event: &LockEvent<'_>) {
    log(event);
    let Some(observer) = observer else { return };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| observer.observe(event))) {
        tracing::error!(panic = panic_text(&*panic), "observer of locks panicked: fix it");
    }
}

fn log(event: &LockEvent<'_>) {
    match *event {
        LockEvent::Acquired { name, token, waited } => {
            tracing::debug!(lock = %name, token = token.get(), ?waited, "lock acquired");
        }
        LockEvent::NotAcquired { name, error, waited } => {
            tracing::debug!(lock = %name, %error, ?waited, "lock not acquired");
        }
        LockEvent::RenewalFailed { name, token, error, lease_left } => {
            tracing::warn!(
                lock = %name, token = token.get(), %error, ?lease_left,
                "lock renewal failed: it is repeated until the lease ends"
            );
        }
        LockEvent::Lost { name, token, held } => {
            tracing::error!(
                lock = %name, token = token.get(), ?held,
                "lock lost: its work is cancelled, another holder may have the lock"
            );
        }
        LockEvent::Released { name, token, held } => {
            tracing::debug!(lock = %name, token = token.get(), ?held, "lock released");
        }
        LockEvent::ReleaseFailed { name, error } => {
            tracing::warn!(
                lock = %name, %error,
                "lock release failed: it is repeated until the lease ends"
            );
        }
    }
}
