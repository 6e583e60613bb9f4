//! Reads the kinds that changed since the last read.

use crate::kind::Kind;

/// Kinds as they are now: those that changed since an earlier reading, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindsSince {
    /// What to ask with next time, see [`KindStore::kinds_since`](super::KindStore::kinds_since).
    pub at: u64,
    /// Whether `kinds` has every kind. A kind that is not among them then does not exist any more.
    pub all: bool,
    /// By name. Some may be as they were.
    pub kinds: Vec<Kind>,
}
