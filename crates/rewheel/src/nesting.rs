//! Detects a retry that runs inside another retry.
//!
//! Three layers that each make four attempts turn one call into 64. While an attempt is polled (or called, if it blocks), its
//! thread is marked. A retry that starts on a marked thread makes one attempt; only the outer retry repeats the call. Work that
//! an attempt passes to another task or thread is not covered. A blocking attempt may run a runtime with `block_on`, which polls
//! other tasks in the same thread: these are not part of the attempt, and their retries are not suppressed.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The task of the innermost blocking attempt on this thread; `None` outside of one.
    static BLOCKING_IN: Cell<Option<Task>> = const { Cell::new(None) };
}

/// The task that a thread runs. The future of `block_on` itself is not a task.
type Task = Option<TaskId>;

#[cfg(feature = "tokio")]
type TaskId = tokio::task::Id;
#[cfg(not(feature = "tokio"))]
type TaskId = std::convert::Infallible;

fn current_task() -> Task {
    #[cfg(feature = "tokio")]
    return tokio::task::try_id();
    #[cfg(not(feature = "tokio"))]
    None
}

/// Returns whether a blocking attempt runs on this thread in another task than this code, which is then not part of it.
#[cold]
fn is_foreign() -> bool {
    BLOCKING_IN.get().is_some_and(|task| task != current_task())
}

/// Marks this thread, if requested, while a blocking attempt runs.
#[derive(Debug)]
pub(crate) struct InsideBlocking {
    before: Option<Task>,
    _inside: Inside,
}

impl InsideBlocking {
    pub(crate) fn enter_if(marks: bool) -> InsideBlocking {
        let before = BLOCKING_IN.get();
        if marks {
            BLOCKING_IN.set(Some(current_task()));
        }
        InsideBlocking { before, _inside: Inside::enter_if(marks) }
    }
}

impl Drop for InsideBlocking {
    fn drop(&mut self) {
        BLOCKING_IN.set(self.before);
    }
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

    /// Returns whether the thread was already marked by an attempt that this code is part of.
    #[inline]
    pub(crate) fn is_nested(&self) -> bool {
        self.before && !is_foreign()
    }

    /// Returns whether an attempt of some retry is running on this thread.
    #[inline]
    pub(crate) fn is_marked() -> bool {
        INSIDE.get() && !is_foreign()
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
