//! Merges rows of several tables into one page.

use rewheel_core::store::{Cursor, Page, Tally};
use rewheel_core::{Job, JobId, KindName, State, Timestamp};
use std::collections::BTreeMap;

/// Keeps what is newer than the place that every table was read to, at most a page of it.
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
