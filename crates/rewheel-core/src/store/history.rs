//! Counts per kind and minute, which every node reports.

mod fold;

use super::StoreResult;
use crate::id::HolderId;
use crate::kind_history::HistorySlot;
use crate::timestamp::Timestamp;
use async_trait::async_trait;
use std::time::Duration;

/// Keeps what nodes counted per kind and minute. A store does not read the counts: each row is the bytes of one
/// [`HistorySlot`].
#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// Stores what a node has counted so far in some minutes. A row replaces the previous row of the same minute and reporter, so that
    /// a call that is repeated after its response was lost counts nothing twice. Ignores rows that begin more than
    /// [`HistoryRow::LATE_MAX`] ago, or later than [`HistoryRow::EARLY_MAX`] from now. Returns the store's time.
    async fn report_history(&self, rows: &[HistoryRow]) -> StoreResult<Timestamp>;

    /// Returns rows in the order of their start and reporter.
    async fn history(&self, scan: &HistoryScan) -> StoreResult<HistoryPage>;

    /// Replaces all rows of a time range by one row, or deletes them. Does nothing and returns `false` if the number of rows is another
    /// one than expected: another node was faster.
    async fn fold_history(&self, fold: &HistoryFold) -> StoreResult<bool>;
}

/// What one node counted in one minute, or what several counted in several minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// When the slot begins: a whole minute of the store's clock.
    pub start: Timestamp,
    /// An id that the node chose when it started. It stays the same if the node registers as another holder.
    pub reporter: HolderId,
    /// The counts, see [`HistorySlot::encode`].
    pub data: Vec<u8>,
}

impl HistoryRow {
    /// How late a minute may be reported. After this time its rows do not change, so that they can be merged.
    pub const LATE_MAX: Duration = Duration::from_secs(600);

    /// How much earlier than its start a minute may be reported: the node estimates the store's time.
    pub const EARLY_MAX: Duration = Duration::from_secs(60);

    /// The reporter of merged rows.
    pub const MERGED: HolderId = HolderId::from_bytes([0; 16]);

    /// Returns the position of the row.
    pub const fn position(&self) -> HistoryPosition {
        (self.start, self.reporter)
    }

    /// Returns whether the row may be reported at a time.
    pub fn is_accepted(&self, now: Timestamp) -> bool {
        self.start >= now.minus(HistoryRow::LATE_MAX)
            && self.start <= now.plus(HistoryRow::EARLY_MAX)
    }
}

/// The position of a row: its start and its reporter.
pub type HistoryPosition = (Timestamp, HolderId);

/// Selects rows of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryScan {
    /// Rows that begin at most this long ago.
    pub since: Duration,
    /// Rows that begin more than this long ago; all for zero.
    pub older_than: Duration,
    /// Rows after this position.
    pub after: Option<HistoryPosition>,
    /// Maximum number of rows.
    pub limit: usize,
}

impl HistoryScan {
    /// Returns the times of the selected rows at a time: from the first, before the second.
    pub fn range(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let until = match self.older_than.is_zero() {
            // Rows may begin a little after the present.
            true => Timestamp::from_millis(i64::MAX),
            false => now.minus(self.older_than),
        };
        (now.minus(self.since), until)
    }
}

/// Rows of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// The store's time.
    pub now: Timestamp,
    /// The rows. Fewer than the limit mean that there are no more.
    pub rows: Vec<HistoryRow>,
}

/// Replaces the rows of a time range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFold {
    /// Rows that begin at or after this time.
    pub from: Timestamp,
    /// Rows that begin before this time.
    pub until: Timestamp,
    /// How many rows there are; any number if `None`.
    pub rows: Option<usize>,
    /// The row that replaces them.
    pub into: Option<HistoryRow>,
}

impl HistoryFold {
    /// After this time the rows of all nodes for one minute are merged.
    pub const MERGE_AFTER: Duration = HistoryRow::LATE_MAX.saturating_mul(2);

    /// Returns the deletion of what is no longer kept.
    pub fn expired(now: Timestamp) -> HistoryFold {
        let kept = HistorySlot::KEPT + HistorySlot::MINUTE * HistorySlot::COARSE_MINUTES;
        let from = Timestamp::from_millis(i64::MIN);
        HistoryFold { from, until: now.minus(kept), rows: None, into: None }
    }
}
