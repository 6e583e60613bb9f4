//! Picks the atomics: the standard library's, or loom's when a test explores every interleaving.

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
/// Every critical section of this crate keeps its data whole between any two statements, so a
/// panic (which could only be one of ours) must not take the caller's dependency down with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Keeps what many threads write off the cache lines of what they only read. 128 bytes, because
/// processors fetch lines in pairs.
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
