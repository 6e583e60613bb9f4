//! Detects a retry that runs inside another retry.
//!
//! Three layers that each make four attempts turn one call into 64. While an attempt is polled (or called, if it blocks), its
//! thread is marked. A retry that starts on a marked thread makes one attempt; only the outer retry repeats the call. Work that
//! an attempt passes to another task or thread is not covered.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread, if requested, until it is dropped.
#[derive(Debug)]
pub(crate) struct Inside {
    before: bool,
}

impl Inside {
    /// Without a branch: if `marks` is false, the existing mark stays.
    #[inline]
    pub(crate) fn enter_if(marks: bool) -> Inside {
        let before = INSIDE.get();
        INSIDE.set(before | marks);
        Inside { before }
    }

    /// Returns whether the thread was already marked.
    #[inline]
    pub(crate) const fn is_nested(&self) -> bool {
        self.before
    }

    /// Returns whether an attempt of some retry is running on this thread.
    #[inline]
    pub(crate) fn is_marked() -> bool {
        INSIDE.get()
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

/// Like [`Inside`], for a thread that was not marked before.
#[derive(Debug)]
pub(crate) struct Outermost;

impl Outermost {
    #[inline]
    pub(crate) fn enter() -> Option<Outermost> {
        (!INSIDE.get()).then(|| {
            INSIDE.set(true);
            Outermost
        })
    }
}

impl Drop for Outermost {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}
