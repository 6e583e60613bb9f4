//! Selects the atomics: those of the standard library, or loom's in interleaving tests.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Locks even if a panic in another thread left the mutex poisoned.
///
/// Every critical section of this crate keeps its data consistent between any two statements, so a
/// panic (which only this crate could cause) must not disable the caller's dependency.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks a mutex that is never held for longer than a few dozen instructions: spinning takes less
/// time than sleeping.
#[inline]
pub(crate) fn lock_soon<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    const TRIES: u32 = 32;
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => give_way(),
        }
    }
    lock(mutex)
}

/// Leaves a contended cache line to its current thread for a moment. That thread does several
/// operations on it, which is faster for both than moving the line back and forth each time.
#[cold]
pub(crate) fn give_way() {
    /// Measured with two threads that do nothing else: the limiter rows of `cargo xtask bench`.
    const PAUSES: u32 = 16;
    for _ in 0..PAUSES {
        #[cfg(not(loom))]
        std::hint::spin_loop();
        #[cfg(loom)]
        loom::hint::spin_loop();
    }
}

/// Keeps data that many threads write off the cache lines of data that they only read. 128 bytes,
/// because processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);

impl<T> std::ops::Deref for OwnLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
