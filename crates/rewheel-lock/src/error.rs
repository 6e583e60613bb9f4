//! Errors of locks.

use crate::backend::{BackendError, Holder};
use crate::name::LockName;
use crate::token::FencingToken;
use rewheel_core::store::BoxError;
use std::any::Any;
use std::fmt;
use std::time::Duration;

/// A lock was not acquired, was lost, or could not be released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// An argument is not allowed. Nothing was sent to the server.
    #[error("invalid `{argument}`: {problem}")]
    Invalid {
        /// Name of the argument.
        argument: &'static str,
        /// What is wrong, and what to use instead.
        problem: String,
    },
    /// Another holder has the lock, and did not release it within the time that the request may wait.
    #[error("lock `{name}` is busy: waited {}{}", rewheel::duration::text(*.waited), holder_text(.holder.as_ref()))]
    Busy {
        /// Name of the lock.
        name: LockName,
        /// How long the request waited.
        waited: Duration,
        /// The holder, if there was one at the last look. Without one, other requests were first in line.
        holder: Option<Holder>,
    },
    /// Too many requests wait for the lock already.
    #[error(
        "lock `{name}` has {} waiting requests, which is the limit: reduce the number of tasks that wait for it, or use a job queue",
        crate::backend::LINE_MAX
    )]
    LineFull {
        /// Name of the lock.
        name: LockName,
    },
    /// This task holds the lock already. Waiting would never end.
    #[error(
        "lock `{name}` is already held by this task: release it first, or pass the guard to the code that needs it; \
             branches of one task that take turns use `run`, or tasks of their own"
    )]
    Reentrant {
        /// Name of the lock.
        name: LockName,
    },
    /// The lock was lost while it was held: another holder may have it. The work was cancelled, and may have had effects.
    #[error(
        "lock `{name}` with token {token} was lost: its lease ended before it was renewed or released; the work was cancelled, check what it \
             has done before you repeat it"
    )]
    Lost {
        /// Name of the lock.
        name: LockName,
        /// The token that the lock had.
        token: FencingToken,
    },
    /// The server cannot be reached or cannot answer now. Trying again may succeed.
    #[error("the lock server is unavailable: {0}")]
    Unavailable(#[source] BoxError),
    /// The server answered that this cannot work: an operator must act.
    #[error("the lock server cannot be used: {what}")]
    Broken {
        /// What is wrong, and what to do.
        what: String,
        /// The cause.
        #[source]
        source: Option<BoxError>,
    },
}

impl From<BackendError> for LockError {
    fn from(error: BackendError) -> LockError {
        match error {
            BackendError::Unavailable(source) => LockError::Unavailable(source),
            BackendError::Broken { what, source } => LockError::Broken { what, source },
        }
    }
}

fn holder_text(holder: Option<&Holder>) -> String {
    match holder {
        Some(Holder { owner, token, lease_left }) => {
            let left = rewheel::duration::text(*lease_left);
            format!(", held by `{owner}` with token {token} and {left} left of its lease")
        }
        None => ", other requests are first in line".to_owned(),
    }
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no text)")
}

/// The work under a lock did not succeed.
#[derive(Debug)]
pub enum RunError<E> {
    /// The lock was not acquired or was lost.
    Lock(LockError),
    /// The work itself returned an error. The lock was released.
    Work(E),
}

impl<E> From<LockError> for RunError<E> {
    fn from(error: LockError) -> RunError<E> {
        RunError::Lock(error)
    }
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Lock(error) => error.fmt(f),
            RunError::Work(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RunError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Lock(error) => error.source(),
            RunError::Work(error) => error.source(),
        }
    }
}
