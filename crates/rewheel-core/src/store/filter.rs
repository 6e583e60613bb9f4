//! Chooses jobs, a page at a time.

use crate::id::JobId;
use crate::job::Job;
use crate::limits::Limits;
use crate::name::{KindName, Tenant};
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

    /// Returns the job that the place is behind.
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
#[error("is not a cursor: use the `next` of the page before")]
pub struct CursorError;

/// How many jobs there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Exactly(u64),
    /// At least so many; there were more rows than could be looked at.
    AtLeast(u64),
}
