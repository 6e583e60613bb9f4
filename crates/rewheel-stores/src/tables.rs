//! Reads a page of jobs from the three tables of an SQL store.

use crate::patience::Patience;
use rewheel_core::store::{Cursor, Filter, PageRequest, StoreError};
use rewheel_core::{JobId, Limits, State};

/// The three tables that jobs are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Live,
    Dead,
    Finished,
}

/// By which index jobs are listed.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// All of them, by id.
    All,
    /// Those that one job submitted.
    ByParent,
    /// Those of the groups with one key.
    ByGroup,
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl Listed {
    pub(crate) fn by(filter: &Filter) -> Listed {
        match (&filter.parent, &filter.group_key) {
            (Some(_), _) => Listed::ByParent,
            (None, Some(_)) => Listed::ByGroup,
            (None, None) => Listed::All,
        }
    }
}

/// Returns the tables that a filter needs to look into.
pub(crate) fn tables(filter: &Filter) -> Vec<Table> {
    let wants = |states: &[State]| states.iter().any(|state| filter.wants(*state));
    let mut tables = Vec::with_capacity(3);
    if wants(&[State::Scheduled, State::Leased, State::Paused]) {
        tables.push(Table::Live);
    }
    if wants(&[State::Dead]) {
        tables.push(Table::Dead);
    }
    if wants(&[State::Succeeded, State::Failed, State::Cancelled]) {
        tables.push(Table::Finished);
    }
    tables
}

/// Lanes that a search for a key without kind or tenant looks at: each is a probe of an index.
pub(crate) const KEY_LANES_MAX: usize = Limits::SCAN_MAX;

/// Refuses to look for a key in too many lanes.
pub(crate) fn too_many_lanes() -> StoreError {
    let what = format!(
        "the search by key covers more than {KEY_LANES_MAX} lanes (combinations of kind, tenant, priority and shard): \
         give the kind, the tenant or both"
    );
    StoreError::Rejected(what.into())
}

/// Reads one table for a page, from the newest id to the oldest.
#[derive(Debug)]
pub(crate) struct Reading {
    limit: usize,
    scan_max: usize,
    scanned: usize,
    /// Jobs that were found so far.
    pub(crate) matched: usize,
    last: Option<JobId>,
    patience: Patience,
    /// The place down to which the table was read; `None` where it was read to its end.
    pub(crate) read_to: Option<JobId>,
}

impl Reading {
    pub(crate) fn new(limit: usize, page: &PageRequest, patience: &Patience) -> Reading {
        let scan_max = page.scan_max.max(1);
        let patience = patience.clone();
        Reading { limit, scan_max, scanned: 0, matched: 0, last: None, patience, read_to: None }
    }

    /// Returns whether this row is still looked at. Where it is not, the page ends between it and the one before it: a
    /// cursor must not name a row, which may be that of a stranger.
    pub(crate) fn goes_on(&mut self, id: JobId) -> bool {
        if self.last.is_some() && self.matched >= self.limit {
            return self.end(id);
        }
        self.goes_past(id)
    }

    /// The same for a job that is in another table: a full page does not end before it, because it may be the last one.
    pub(crate) fn goes_past(&mut self, id: JobId) -> bool {
        let is_over = self.scanned >= self.scan_max || self.patience.is_over(self.scanned);
        if self.last.is_some() && is_over {
            return self.end(id);
        }
        self.scanned += 1;
        self.last = Some(id);
        true
    }

    /// Ends the page between the last row and this one.
    fn end(&mut self, id: JobId) -> bool {
        self.read_to = self.last.map(|last| Cursor::between(last, id).job());
        false
    }
}
