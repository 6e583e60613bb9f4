//! Store errors.

use crate::id::HolderId;
use rewheel::{Category, Class, Classify};
use std::error::Error;
use std::fmt::Write as _;

/// An error of the underlying database or file.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Error of a store method. Each variant requires a different reaction of the caller.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written. Wait, then repeat the call.
    #[error("the store is unavailable")]
    Unavailable(#[source] BoxError),
    /// The call may or may not have been written. Repeat it, an insert with [`Sent::Again`](crate::store::Sent::Again). Only
    /// [`KindStore::grant`](crate::store::KindStore::grant) must not be repeated.
    #[error("the store's response was lost")]
    Ambiguous(#[source] BoxError),
    /// Nothing was written, and nothing will be until there is space. Accept no new jobs.
    #[error("the store is full: free disk space; no acknowledged job is lost")]
    Full(#[source] BoxError),
    /// An item of this batch cannot be stored. Find it by [`halving`](crate::store::halving).
    #[error("the store rejected the request")]
    Rejected(#[source] BoxError),
    /// The holder is dead or never registered. Drop its work, and register as a new holder.
    #[error("holder {0} has expired: register again under a new id")]
    HolderDead(HolderId),
    /// The store needs operator action; the text says which.
    #[error("{what}")]
    Broken {
        /// What is wrong, and what to do.
        what: String,
        /// The error of the underlying database.
        #[source]
        source: Option<BoxError>,
    },
    /// The store was closed by its owner.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Returns whether repeating the same call may help.
    pub const fn is_transient(&self) -> bool {
        match self {
            StoreError::Unavailable(_) | StoreError::Ambiguous(_) | StoreError::Full(_) => true,
            StoreError::Rejected(_)
            | StoreError::HolderDead(_)
            | StoreError::Broken { .. }
            | StoreError::Closed => false,
        }
    }

    /// Returns the error with its causes, in one line, because operators search for the text of the
    /// underlying database error.
    ///
    /// ```
    /// use rewheel_core::store::StoreError;
    ///
    /// let error = StoreError::Unavailable("connection refused".into());
    /// assert_eq!(error.with_causes(), "the store is unavailable: connection refused");
    /// ```
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        text
    }
}

/// Decides whether the call may be repeated at once, and whether the failure counts against the
/// store. Only calls that did not reach the store, or whose response was lost, count: any other
/// error is a response, so the store is available.
///
/// ```
/// use rewheel::{Classify, Verdict};
/// use rewheel_core::store::StoreError;
///
/// let away = StoreError::Unavailable("connection refused".into()).classify();
/// assert!(away.verdict == Verdict::Retry && away.category.blames_dependency());
/// // A retry within the same second cannot help, and reads of other callers must not be refused.
/// let full = StoreError::Full("no space left on device".into()).classify();
/// assert!(full.verdict == Verdict::Stop && !full.category.blames_dependency());
/// ```
impl Classify for StoreError {
    fn classify(&self) -> Class {
        match self {
            StoreError::Unavailable(_) => Class::retry(Category::Io),
            StoreError::Ambiguous(_) => Class::retry(Category::Timeout),
            StoreError::Full(_) => Class::stop(Category::Rejected).with_code("full"),
            StoreError::Rejected(_) => Class::stop(Category::Rejected),
            StoreError::HolderDead(_) => Class::stop(Category::Rejected).with_code("holder_dead"),
            StoreError::Broken { .. } => Class::stop(Category::Rejected).with_code("broken"),
            // The owner closed the store: this counts neither for nor against it.
            StoreError::Closed => Class::stop(Category::Cancelled).with_code("closed"),
        }
    }
}
