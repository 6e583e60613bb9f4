//! Job accounting (every submitted job is accounted for), and pruning.

use crate::name::KindName;
use crate::state::State;
use crate::timestamp::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Job accounting, read in one snapshot: `submitted = live + dead + finished + pruned`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Number of jobs ever stored.
    pub submitted: u64,
    /// Jobs that are scheduled, leased or paused.
    pub live: u64,
    /// Dead letters.
    pub dead: u64,
    /// Jobs that ended and are kept.
    pub finished: u64,
    /// Jobs that ended and were deleted, after their retention or at once.
    pub pruned: u64,
}

impl Books {
    /// Returns the number of jobs that are not accounted for. A number other than zero is an error. A negative number means
    /// that the store contains more jobs than were submitted.
    ///
    /// ```
    /// use rewheel_core::store::Books;
    ///
    /// let books = Books { submitted: 9, live: 1, dead: 0, finished: 7, pruned: 1 };
    /// assert_eq!(books.missing(), 0);
    /// ```
    pub fn missing(&self) -> i64 {
        let found = self.live + self.dead + self.finished + self.pruned;
        i64::try_from(self.submitted).unwrap_or(i64::MAX) - i64::try_from(found).unwrap_or(i64::MAX)
    }
}

/// The jobs of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The kind.
    pub kind: KindName,
    /// Number of jobs that are scheduled, leased, paused and dead; always contains these four states.
    pub jobs: BTreeMap<State, u64>,
    /// When the first scheduled job is due.
    pub oldest_due: Option<Timestamp>,
}

/// A request to delete expired data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prune {
    /// Maximum number of each type: a prune must not delay other work. A store may delete more ended jobs if it can delete all of them
    /// at once.
    pub limit: usize,
    /// Deletes audit log entries older than this.
    pub audit_older_than: Duration,
}

/// Number of deleted items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Ended jobs, with their attempts.
    pub finished: u64,
    /// Results of ended jobs; and later, what was remembered of them.
    pub results: u64,
    /// Keys of ended jobs.
    pub keys: u64,
    /// Entries of the audit log.
    pub audit: u64,
    /// Holders that died long ago.
    pub holders: u64,
    /// Ledger rows that were merged into one.
    pub ledger: u64,
}

impl Pruned {
    /// Returns whether any type reached the limit of the batch, so that there may be more.
    ///
    /// ```
    /// use rewheel_core::store::Pruned;
    ///
    /// assert!(Pruned { keys: 1_000, ..Pruned::default() }.is_full(1_000));
    /// assert!(!Pruned { keys: 999, ledger: 999, ..Pruned::default() }.is_full(1_000));
    /// ```
    pub fn is_full(&self, limit: usize) -> bool {
        let Pruned { finished, results, keys, audit, holders, ledger } = *self;
        let counts = [finished, results, keys, audit, holders, ledger];
        counts.into_iter().any(|count| count >= limit as u64)
    }

    /// Returns whether there was nothing to delete.
    pub const fn is_nothing(&self) -> bool {
        matches!(self, Pruned { finished: 0, results: 0, keys: 0, audit: 0, holders: 0, ledger: 0 })
    }
}
