//! Detects a retry that runs inside another retry.
//!
//! Three layers that each make four attempts make 64 calls out of one, at the worst moment. While an
//! attempt is polled (or, blocking, called), its thread is marked; a retry that starts under the
//! mark leaves the repeating to the one around it. Work that an attempt hands to another task or
//! thread is not covered.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread, if it is to, until it is dropped.
#[derive(Debug)]
pub(crate) struct Inside {
    before: bool,
}

impl Inside {
    /// Without a branch: what leaves no mark leaves the one that it found.
    #[inline]
    pub(crate) fn enter_if(marks: bool) -> Inside {
        let before = INSIDE.get();
        INSIDE.set(before | marks);
        Inside { before }
    }

    /// Returns whether the thread was marked already.
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

/// As [`Inside`], where the thread was not marked before.
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
