//! Filters and pages for listing jobs.

use crate::id::JobId;
use crate::incident::FailedJob;
use crate::job::{Job, Lane};
use crate::limits::Limits;
use crate::name::{Key, KindName, Tenant};
use crate::state::State;
use crate::timestamp::Timestamp;
use rewheel::Category;
use std::fmt;
use std::str::FromStr;

/// Which jobs. What is empty or `None` lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// In one of these states.
    pub states: Vec<State>,
    /// Of one of these kinds.
    pub kinds: Vec<KindName>,
    /// On this behalf.
    pub tenant: Option<Tenant>,
    /// The jobs that keys with this text belong to, while the store remembers the keys. They are found by an index: one
    /// probe for each kind and tenant that the filter lets through.
    pub key: Option<Key>,
    /// With a last failure of this category.
    pub category: Option<Category>,
    /// With this text in the id, the key or the last failure; capital letters or not.
    pub text: Option<String>,
    /// Due at or after this.
    pub due_after: Option<Timestamp>,
    /// Due before this.
    pub due_before: Option<Timestamp>,
    /// Stored at or after this.
    pub created_after: Option<Timestamp>,
    /// Stored before this.
    pub created_before: Option<Timestamp>,
}

impl Filter {
    /// Returns whether it lets a job through.
    pub fn matches(&self, job: &Job) -> bool {
        self.wants(job.state())
            && (self.kinds.is_empty() || self.kinds.contains(&job.lane.kind))
            && self.tenant.as_ref().is_none_or(|tenant| job.lane.tenant.as_ref() == Some(tenant))
            && self.key.as_ref().is_none_or(|key| job.key.as_ref() == Some(key))
            && self.category.is_none_or(|category| {
                job.failure.as_ref().is_some_and(|failure| failure.category() == category)
            })
            && self.due_after.is_none_or(|after| job.due >= after)
            && self.due_before.is_none_or(|before| job.due < before)
            && self.created_after.is_none_or(|after| job.created >= after)
            && self.created_before.is_none_or(|before| job.created < before)
            && self.text.as_ref().is_none_or(|text| says(job, &text.to_lowercase()))
    }

    /// Returns whether it lets jobs in this state through, as far as the state goes.
    pub fn wants(&self, state: State) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }
}

fn says(job: &Job, text: &str) -> bool {
    let has = |part: &str| part.to_lowercase().contains(text);
    has(&job.id.to_string())
        || job.key.as_ref().is_some_and(|key| has(key.as_str()))
        || job
            .failure
            .as_ref()
            .is_some_and(|failure| has(failure.message()) || failure.code().is_some_and(has))
}

/// Where a page begins, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Where the last one ended.
    pub cursor: Option<Cursor>,
    /// At most so many jobs, and at most [`Limits::PAGE_MAX`].
    pub limit: usize,
    /// After how many rows to answer with what was found.
    pub scan_max: usize,
}

impl PageRequest {
    /// Asks for the first page.
    pub const fn first(limit: usize) -> PageRequest {
        PageRequest { cursor: None, limit, scan_max: Limits::SCAN_MAX }
    }

    /// Asks for the page behind `cursor`.
    pub const fn behind(cursor: Cursor, limit: usize) -> PageRequest {
        PageRequest { cursor: Some(cursor), limit, scan_max: Limits::SCAN_MAX }
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Cursor>,
}

/// Where a page ended. Its text is for nobody but the store that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(JobId);

impl Cursor {
    /// Marks the place behind a job.
    pub const fn behind(job: JobId) -> Cursor {
        Cursor(job)
    }

    /// Marks a place between two jobs of which `newer` has the larger id. The place is the one with the fewest digits that
    /// keeps them apart, and so names neither of them: the reader of the cursor may be allowed to see neither.
    pub fn between(newer: JobId, older: JobId) -> Cursor {
        let (newer, older) =
            (u128::from_be_bytes(newer.to_bytes()), u128::from_be_bytes(older.to_bytes()));
        // The highest bit in which they differ is set in the newer one. What follows it is cleared.
        let cleared = 127_u32.saturating_sub((newer ^ older).leading_zeros());
        let place = (newer >> cleared) << cleared;
        Cursor(JobId::from_bytes(place.to_be_bytes()))
    }

    /// Returns the id that everything on the next page is smaller than.
    pub const fn job(self) -> JobId {
        self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Cursor, CursorError> {
        let id = text.strip_prefix('c').and_then(|id| id.parse().ok());
        id.map(Cursor).ok_or(CursorError)
    }
}

/// The text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a cursor: use `next` of the previous page")]
pub struct CursorError;

/// Which failed jobs to look at, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureScan {
    /// Of one of these kinds; of all if there are none.
    pub kinds: Vec<KindName>,
    /// On this behalf; on every behalf if `None`.
    pub tenant: Option<Tenant>,
    /// At most so many rows of the dead letters and as many of the live jobs, the newest of each.
    pub rows_max: usize,
    /// At most about so many bytes of messages from the dead letters and as many from the live jobs.
    pub bytes_max: usize,
}

impl FailureScan {
    /// Returns whether it is about jobs of a lane.
    pub fn wants(&self, lane: &Lane) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&lane.kind))
            && self.tenant.as_ref().is_none_or(|tenant| lane.tenant.as_ref() == Some(tenant))
    }
}

/// Live jobs and dead letters whose latest attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// The dead letters first, the newest id of each first.
    pub jobs: Vec<FailedJob>,
    /// Whether every job was looked at; otherwise only the newest were.
    pub complete: bool,
}

/// How many jobs there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Exactly(u64),
    /// At least so many; there were more rows than could be looked at.
    AtLeast(u64),
}

#[cfg(test)]
mod tests {
    use super::{Cursor, JobId};
    use crate::timestamp::Timestamp;
    use proptest::prelude::{any, proptest};
    use rewheel::Random;

    proptest! {
        #[test]
        fn a_place_between_two_jobs_keeps_them_apart(one in any::<u128>(), other in any::<u128>()) {
            let id = |number: u128| JobId::from_bytes(number.to_be_bytes());
            let (older, newer) = (id(one.min(other)), id(one.max(other)));
            let place = Cursor::between(newer, older).job();
            assert!(place <= newer);
            assert!(older < place || older == newer);
        }
    }

    #[test]
    fn a_place_between_two_jobs_names_neither() {
        let random = Random::seeded(7);
        for _ in 0..100 {
            let one = JobId::new(Timestamp::from_millis(1_800_000_000_000), &random);
            let other = JobId::new(Timestamp::from_millis(1_800_000_000_000), &random);
            let place = Cursor::between(one.max(other), one.min(other)).job();
            assert!(place != one && place != other);
            // What is chance in an id does not get out.
            assert_eq!(place.to_bytes()[10..], [0; 6]);
        }
    }
}
