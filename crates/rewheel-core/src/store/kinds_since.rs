//! Reads the kinds that changed since the last read.

use crate::kind::Kind;

/// The current kinds: those that changed since an earlier read, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindsSince {
    /// The value to pass next time, see [`KindStore::kinds_since`](super::KindStore::kinds_since).
    pub at: u64,
    /// Whether `kinds` contains every kind. If so, a kind that is missing no longer exists.
    pub all: bool,
    /// Ordered by name. Some may be unchanged.
    pub kinds: Vec<Kind>,
}
