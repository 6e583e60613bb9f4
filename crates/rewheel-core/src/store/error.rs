//! Why a store could not do what was asked.

use crate::id::HolderId;

/// An error of whatever a store is made of.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A verb failed. Each variant is something that the caller does differently.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written. Wait, then repeat it.
    #[error("the store is unavailable")]
    Unavailable(#[source] BoxError),
    /// It may have been written or not. Repeat it as it is: every verb can bear that.
    #[error("the store's answer was lost")]
    Ambiguous(#[source] BoxError),
    /// Nothing was written, and nothing will be until there is room. Take no new jobs.
    #[error("the store has no room left: free disk space, nothing that was acknowledged is lost")]
    Full(#[source] BoxError),
    /// Something in this batch cannot be stored. Find it by [`halving`](crate::store::halving).
    #[error("the store refuses what it was given")]
    Rejected(#[source] BoxError),
    /// The holder is dead or never joined. Drop its work, and join as another.
    #[error("holder {0} is not alive: join again under a new id")]
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
}
