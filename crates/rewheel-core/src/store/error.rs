//! Store errors.

use crate::id::HolderId;
use rewheel::{Category, Class, Classify};
use std::error::Error;
use std::fmt::Write as _;

/// An error of whatever a store is made of.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A verb failed. Each variant is something that the caller does differently.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written. Wait, then repeat it.
    #[error("the store is unavailable")]
    Unavailable(#[source] BoxError),
    /// It may have been written or not. Repeat it as it is: every verb can bear that.
    #[error("the store's response was lost")]
    Ambiguous(#[source] BoxError),
    /// Nothing was written, and nothing will be until there is room. Take no new jobs.
    #[error("the store is full: free disk space; no acknowledged job is lost")]
    Full(#[source] BoxError),
    /// Something in this batch cannot be stored. Find it by [`halving`](crate::store::halving).
    #[error("the store rejected the request")]
    Rejected(#[source] BoxError),
    /// The holder is dead or never joined. Drop its work, and join as another.
    #[error("holder {0} has expired: register again under a new id")]
    HolderDead(HolderId),
    /// A person must look at the store; the text says at what.
    #[error("{what}")]
    Broken {
        /// What is wrong, and what to do.
        what: String,
        /// What the store said.
        #[source]
        source: Option<BoxError>,
    },
    /// It was closed by its owner.
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

    /// Returns the error with its causes, in one line: the words of whatever the store is made of
    /// are what an operator searches for.
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

/// Whether the same call may be made again at once, and whether its failure speaks against the
/// store. Only what did not reach the store, or did not come back, does: everything else is an
/// answer, and who answers is there.
///
/// ```
/// use rewheel::{Classify, Verdict};
/// use rewheel_core::store::StoreError;
///
/// let away = StoreError::Unavailable("connection refused".into()).classify();
/// assert!(away.verdict == Verdict::Retry && away.category.blames_dependency());
/// // There is no use in asking again within the second, nor in refusing others their reads.
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
            // Its owner does not want answers any more: that is neither for nor against the store.
            StoreError::Closed => Class::stop(Category::Cancelled).with_code("closed"),
        }
    }
}
