//! Merges rows of several tables into one page.

use rewheel_core::store::{Cursor, Filter, Page, StoreError, Tally};
use rewheel_core::{Job, JobId, KindName, Limits, State, Timestamp};
use std::collections::BTreeMap;

/// The three tables that contain jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Live,
    Dead,
    Finished,
}

/// Returns the tables that a filter has to read.
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

/// Maximum number of lanes for a key search without kind or tenant: each costs one index probe.
pub(crate) const KEY_LANES_MAX: usize = Limits::SCAN_MAX;

/// The error of a key search over too many lanes.
pub(crate) fn too_many_lanes() -> StoreError {
    let what = format!("there are more than {KEY_LANES_MAX} lanes: add the kind or the tenant");
    StoreError::Rejected(what.into())
}

/// Reads one table for a page, from the newest id to the oldest.
#[derive(Debug)]
pub(crate) struct Reading {
    limit: usize,
    scan_max: usize,
    scanned: usize,
    /// The number of jobs found so far.
    pub(crate) matched: usize,
    last: Option<JobId>,
    /// The id down to which the table was read; `None` if it was read to its end.
    pub(crate) read_to: Option<JobId>,
}

impl Reading {
    pub(crate) fn new(limit: usize, scan_max: usize) -> Reading {
        Reading { limit, scan_max, scanned: 0, matched: 0, last: None, read_to: None }
    }

    /// Returns whether this row is still part of the read. If it is not, the page ends between it and the row before. A cursor must not
    /// contain the id of a row, which may belong to another tenant.
    pub(crate) fn goes_on(&mut self, id: JobId) -> bool {
        if let Some(last) = self.last
            && (self.matched >= self.limit || self.scanned >= self.scan_max)
        {
            self.read_to = Some(Cursor::between(last, id).job());
            return false;
        }
        self.scanned += 1;
        self.last = Some(id);
        true
    }
}

/// Keeps the jobs that are newer than the id down to which every table was read, at most one page.
pub(crate) fn cut(mut found: Vec<Job>, read_to: Option<JobId>, limit: usize) -> Page<Job> {
    found.sort_by_key(|job| std::cmp::Reverse(job.id));
    if let Some(read_to) = read_to {
        found.retain(|job| job.id >= read_to);
    }
    let mut next = read_to;
    if found.len() > limit {
        found.truncate(limit);
        next = found.last().map(|job| job.id);
    }
    Page { items: found, next: next.map(Cursor::behind) }
}

/// Counts the jobs of each kind.
#[derive(Debug, Default)]
pub(crate) struct Tallies(BTreeMap<KindName, Tally>);

impl Tallies {
    /// Adds jobs of a kind, or only records that the kind exists.
    pub(crate) fn add(
        &mut self,
        kind: &KindName,
        jobs: Option<(State, u64)>,
        due: Option<Timestamp>,
    ) {
        let none =
            [State::Scheduled, State::Leased, State::Paused, State::Dead].map(|state| (state, 0));
        let tally = self.0.entry(kind.clone()).or_insert_with(|| Tally {
            kind: kind.clone(),
            jobs: none.into_iter().collect(),
            oldest_due: None,
        });
        if let Some((state, count)) = jobs {
            *tally.jobs.entry(state).or_default() += count;
        }
        tally.oldest_due = match (tally.oldest_due, due) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    /// Returns the tallies, by kind.
    pub(crate) fn into_vec(self) -> Vec<Tally> {
        self.0.into_values().collect()
    }
}
