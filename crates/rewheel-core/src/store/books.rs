//! Job accounting (every submitted job is accounted for), and pruning.

use crate::name::KindName;
use crate::state::State;
use crate::timestamp::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The books, read in one snapshot: `submitted = live + dead + finished + pruned`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Jobs that were ever stored.
    pub submitted: u64,
    /// Jobs that are scheduled, leased or paused.
    pub live: u64,
    /// Dead letters.
    pub dead: u64,
    /// Jobs that ended and are kept.
    pub finished: u64,
    /// Jobs that ended and are not kept any more, or never were.
    pub pruned: u64,
}

impl Books {
    /// Returns how many jobs nobody can account for: zero, or something is wrong. Negative when
    /// there are more than were submitted.
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
    /// Which kind.
    pub kind: KindName,
    /// How many are scheduled, leased, paused and dead; none of the four is left out.
    pub jobs: BTreeMap<State, u64>,
    /// When the first of those scheduled is due.
    pub oldest_due: Option<Timestamp>,
}

/// What to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prune {
    /// How much of each at most: a prune must not hold up the work.
    pub limit: usize,
    /// Audit entries older than this.
    pub audit_older_than: Duration,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Ended jobs, with their attempts.
    pub finished: u64,
    /// Keys of ended jobs.
    pub keys: u64,
    /// Entries of the audit log.
    pub audit: u64,
    /// Holders that died long ago.
    pub holders: u64,
    /// Lines of the ledger that were added up into one.
    pub ledger: u64,
}

impl Pruned {
    /// Returns whether a batch of this size deleted as much of something as it may: there may be more.
    ///
    /// ```
    /// use rewheel_core::store::Pruned;
    ///
    /// assert!(Pruned { keys: 1_000, ..Pruned::default() }.is_full(1_000));
    /// assert!(!Pruned { keys: 999, ledger: 999, ..Pruned::default() }.is_full(1_000));
    /// ```
    pub fn is_full(&self, limit: usize) -> bool {
        let Pruned { finished, keys, audit, holders, ledger } = *self;
        [finished, keys, audit, holders, ledger].into_iter().any(|count| count >= limit as u64)
    }

    /// Returns whether there was nothing to delete.
    pub const fn is_nothing(&self) -> bool {
        matches!(self, Pruned { finished: 0, keys: 0, audit: 0, holders: 0, ledger: 0 })
    }
}
