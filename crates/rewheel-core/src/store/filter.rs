//! Filters and pages for listing jobs.

use crate::decision::DueReason;
use crate::id::{HolderId, JobId};
use crate::incident::{FailedJob, Incident};
use crate::job::{Job, Lane, Status};
use crate::limits::Limits;
use crate::name::{GroupKey, Key, KindName, Tenant};
use crate::state::State;
use crate::timestamp::Timestamp;
use rewheel::Category;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Selects jobs. An empty or `None` condition matches every job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Jobs in one of these states.
    pub states: Vec<State>,
    /// Jobs of one of these kinds.
    pub kinds: Vec<KindName>,
    /// Jobs of this tenant.
    pub tenant: Option<Tenant>,
    /// Jobs with this key, while the store keeps the key. Found by an index: one lookup for each matching kind and tenant.
    pub key: Option<Key>,
    /// Jobs that were submitted together with the result of this job. Found by an index.
    pub parent: Option<JobId>,
    /// Jobs of the group with this key.
    pub group_key: Option<GroupKey>,
    /// Jobs whose latest failure has this category.
    pub category: Option<Category>,
    /// Jobs whose latest failure has this code.
    pub code: Option<String>,
    /// Jobs of the incident with this id, see [`Incident::of`].
    pub incident: Option<String>,
    /// Jobs that wait, or waited, for this reason.
    pub reason: Option<DueReason>,
    /// Jobs with this number of used attempts.
    pub attempts: Option<AttemptRange>,
    /// Leased jobs of these holders.
    pub holders: Vec<HolderId>,
    /// Jobs with this text in the id, the key or the latest failure, ignoring case.
    pub text: Option<String>,
    /// Due at or after this time.
    pub due_after: Option<Timestamp>,
    /// Due before this time.
    pub due_before: Option<Timestamp>,
    /// Created at or after this time.
    pub created_after: Option<Timestamp>,
    /// Created before this time.
    pub created_before: Option<Timestamp>,
}

impl Filter {
    /// Returns whether a job matches.
    pub fn matches(&self, job: &Job) -> bool {
        self.wants(job.state())
            && (self.kinds.is_empty() || self.kinds.contains(&job.lane.kind))
            && self.tenant.as_ref().is_none_or(|tenant| job.lane.tenant.as_ref() == Some(tenant))
            && self.key.as_ref().is_none_or(|key| job.key.as_ref() == Some(key))
            && self.parent.is_none_or(|parent| job.parent == Some(parent))
            && self
                .group_key
                .as_ref()
                .is_none_or(|key| job.group.as_ref().is_some_and(|group| group.key == *key))
            && self.category.is_none_or(|category| {
                job.failure.as_ref().is_some_and(|failure| failure.category() == category)
            })
            && self.code.as_ref().is_none_or(|code| {
                job.failure.as_ref().is_some_and(|failure| failure.code() == Some(code))
            })
            && self.reason.is_none_or(|reason| job.because == reason)
            && self.attempts.is_none_or(|range| range.has(job.attempt))
            && self.holds(&job.status)
            && self.due_after.is_none_or(|after| job.due >= after)
            && self.due_before.is_none_or(|before| job.due < before)
            && self.created_after.is_none_or(|after| job.created >= after)
            && self.created_before.is_none_or(|before| job.created < before)
            && self.text.as_ref().is_none_or(|text| says(job, &text.to_lowercase()))
            // The last one: it reads the whole message.
            && self.incident.as_ref().is_none_or(|id| Incident::of(job).as_ref() == Some(id))
    }

    fn holds(&self, status: &Status) -> bool {
        self.holders.is_empty()
            || matches!(status, Status::Leased { holder, .. } if self.holders.contains(holder))
    }

    /// Returns whether jobs in this state can match.
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

/// Numbers of attempts, from the first to the last.
///
/// ```
/// use rewheel_core::store::AttemptRange;
///
/// let several: AttemptRange = ">3".parse()?;
/// assert!(several.has(4) && !several.has(3));
/// assert_eq!("3".parse::<AttemptRange>()?, AttemptRange { least: 3, most: 3 });
/// assert_eq!(several.to_string(), ">=4");
/// assert_eq!("2-5".parse::<AttemptRange>()?, AttemptRange { least: 2, most: 5 });
/// assert_eq!(AttemptRange { least: 2, most: 5 }.to_string(), "2-5");
/// assert!("many".parse::<AttemptRange>().is_err() && "5-2".parse::<AttemptRange>().is_err());
/// # Ok::<(), rewheel_core::store::AttemptRangeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRange {
    /// The smallest number.
    pub least: u32,
    /// The largest number.
    pub most: u32,
}

/// Error: the text is not a number of attempts, or no number matches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a number of attempts such as `3`, `>3`, `>=3`, `<3`, `<=3` or `2-5`")]
pub struct AttemptRangeError;

impl AttemptRange {
    /// Returns whether a number is in the range.
    pub const fn has(self, attempts: u32) -> bool {
        self.least <= attempts && attempts <= self.most
    }
}

impl FromStr for AttemptRange {
    type Err = AttemptRangeError;

    fn from_str(text: &str) -> Result<AttemptRange, AttemptRangeError> {
        if let Some((least, most)) = text.split_once('-') {
            let number = |text: &str| {
                let is_plain = text.starts_with(|c: char| c.is_ascii_digit());
                text.parse().ok().filter(|_| is_plain).ok_or(AttemptRangeError)
            };
            let (least, most) = (number(least)?, number(most)?);
            return if least <= most {
                Ok(AttemptRange { least, most })
            } else {
                Err(AttemptRangeError)
            };
        }
        let (sign, digits) =
            text.split_at(text.len() - text.trim_start_matches(['<', '>', '=']).len());
        let is_plain = digits.starts_with(|c: char| c.is_ascii_digit());
        let number: u32 = digits.parse().ok().filter(|_| is_plain).ok_or(AttemptRangeError)?;
        let (least, most) = match sign {
            "" | "=" => (Some(number), Some(number)),
            ">" => (number.checked_add(1), Some(u32::MAX)),
            ">=" => (Some(number), Some(u32::MAX)),
            "<" => (Some(0), number.checked_sub(1)),
            "<=" => (Some(0), Some(number)),
            _ => return Err(AttemptRangeError),
        };
        match (least, most) {
            (Some(least), Some(most)) => Ok(AttemptRange { least, most }),
            (_, _) => Err(AttemptRangeError),
        }
    }
}

impl fmt::Display for AttemptRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (least, most) if least == most => write!(f, "{least}"),
            (0, most) => write!(f, "<={most}"),
            (least, u32::MAX) => write!(f, ">={least}"),
            // An operation stores this text: it must not select more than the range does.
            (least, most) => write!(f, "{least}-{most}"),
        }
    }
}

/// Position and size of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The end of the previous page.
    pub cursor: Option<Cursor>,
    /// Maximum number of jobs, at most [`Limits::PAGE_MAX`].
    pub limit: usize,
    /// Maximum number of rows to scan before the page is returned.
    pub scan_max: usize,
    /// How long to scan before the page is returned; no limit if `None`. At least [`PageRequest::SCANNED_MIN`] rows of each table are
    /// scanned, so that every page makes progress.
    pub scan_time: Option<Duration>,
}

impl PageRequest {
    /// Number of rows of each table that are scanned whatever the time.
    pub const SCANNED_MIN: usize = 1_000;

    /// Requests the first page.
    pub const fn first(limit: usize) -> PageRequest {
        PageRequest { cursor: None, limit, scan_max: Limits::SCAN_MAX, scan_time: None }
    }

    /// Requests the page after `cursor`.
    pub const fn behind(cursor: Cursor, limit: usize) -> PageRequest {
        PageRequest { cursor: Some(cursor), ..PageRequest::first(limit) }
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// The start of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// Position of the end of a page. The text of a cursor has a meaning only for the store that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(JobId);

impl Cursor {
    /// Creates a cursor after a job.
    pub const fn behind(job: JobId) -> Cursor {
        Cursor(job)
    }

    /// Creates a cursor between two jobs, where `newer` has the larger id. The cursor has only the digits that are needed to
    /// separate the two ids, and contains neither id, because the client may not be allowed to see these jobs.
    pub fn between(newer: JobId, older: JobId) -> Cursor {
        let (newer, older) =
            (u128::from_be_bytes(newer.to_bytes()), u128::from_be_bytes(older.to_bytes()));
        // The highest bit in which they differ is set in the newer id. All bits after it are cleared.
        let cleared = 127_u32.saturating_sub((newer ^ older).leading_zeros());
        let place = (newer >> cleared) << cleared;
        Cursor(JobId::from_bytes(place.to_be_bytes()))
    }

    /// Returns the id that is larger than all ids on the next page.
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

/// Error: the text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a valid cursor: use `next` of the previous page")]
pub struct CursorError;

/// Selects failed jobs to scan, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureScan {
    /// Jobs of these kinds; all if empty.
    pub kinds: Vec<KindName>,
    /// Jobs of this tenant; all if `None`.
    pub tenant: Option<Tenant>,
    /// Maximum number of rows for dead letters and for live jobs each, the newest first.
    pub rows_max: usize,
    /// Approximate maximum of message bytes for dead letters and for live jobs each.
    pub bytes_max: usize,
}

impl FailureScan {
    /// Returns whether jobs of a lane are selected.
    pub fn wants(&self, lane: &Lane) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&lane.kind))
            && self.tenant.as_ref().is_none_or(|tenant| lane.tenant.as_ref() == Some(tenant))
    }
}

/// Live jobs and dead letters whose latest attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Dead letters first, then live jobs, each with the newest id first.
    pub jobs: Vec<FailedJob>,
    /// Whether all jobs were scanned. If not, only the newest jobs were scanned.
    pub complete: bool,
}

/// Number of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The exact number.
    Exactly(u64),
    /// A lower bound; there were more rows than the scan limit.
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
            // The random part of an id is not revealed.
            assert_eq!(place.to_bytes()[10..], [0; 6]);
        }
    }
}
