//! What a submit does if another job has its key.

use crate::audit::AuditFields;
use crate::id::{Fence, JobId};
use crate::job::{Job, NewJob, Status, When};
use crate::limits::Limits;
use crate::timestamp::Timestamp;
use rewheel::duration;
use std::time::Duration;

/// Until when a job keeps its key. The submit that arrives decides it, not the job that has the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UniqueUntil {
    /// Until it has ended and its key has expired.
    #[default]
    Ended,
    /// Until it is claimed for the first time, or ends before that. The new job then takes the key, and the old job continues
    /// without it.
    Claimed,
}

impl UniqueUntil {
    /// All values.
    pub const ALL: [UniqueUntil; 2] = [UniqueUntil::Ended, UniqueUntil::Claimed];

    /// Returns the name used in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            UniqueUntil::Ended => "ended",
            UniqueUntil::Claimed => "claimed",
        }
    }

    /// Reads the name used in JSON and SQL.
    ///
    /// # Errors
    /// Says which names there are.
    ///
    /// ```
    /// use rewheel_core::UniqueUntil;
    ///
    /// assert_eq!(UniqueUntil::parse("claimed"), Ok(UniqueUntil::Claimed));
    /// assert_eq!(UniqueUntil::parse("never"), Err("must be `ended` or `claimed`"));
    /// ```
    pub fn parse(text: &str) -> Result<UniqueUntil, &'static str> {
        let known = UniqueUntil::ALL.into_iter().find(|one| one.as_str() == text);
        known.ok_or("must be `ended` or `claimed`")
    }
}

/// What a submit does to the job that has its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDuplicate {
    /// Nothing: the answer is that job.
    #[default]
    Answer,
    /// Replaces what that job will run, as long as it has not been claimed.
    Replace,
}

impl OnDuplicate {
    /// All values.
    pub const ALL: [OnDuplicate; 2] = [OnDuplicate::Answer, OnDuplicate::Replace];

    /// Returns the name used in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnDuplicate::Answer => "answer",
            OnDuplicate::Replace => "replace",
        }
    }

    /// Reads the name used in JSON and SQL.
    ///
    /// # Errors
    /// Says which names there are.
    pub fn parse(text: &str) -> Result<OnDuplicate, &'static str> {
        let known = OnDuplicate::ALL.into_iter().find(|one| one.as_str() == text);
        known.ok_or("must be `answer` or `replace`")
    }
}

/// Runs a job when no submit with its key has arrived for a while.
///
/// ```
/// use rewheel::seconds;
/// use rewheel_core::Debounce;
///
/// let debounce = Debounce::new(seconds(2), None)?;
/// assert_eq!((debounce.delay(), debounce.max()), (seconds(2), seconds(20)));
/// assert!(Debounce::new(seconds(2), Some(seconds(1))).is_err());
/// # Ok::<(), rewheel_core::DuplicatesError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Debounce {
    delay: Duration,
    max: Duration,
}

impl Debounce {
    /// The default limit, in delays: a key that is submitted without a pause still runs.
    pub const DELAYS_MAX: u32 = 10;

    /// Creates it: each submit makes the job due after `delay`, but no later than `max` after the job was created. Without `max`,
    /// [`Debounce::DELAYS_MAX`] delays.
    ///
    /// # Errors
    /// `delay` must be longer than zero, and `max` not shorter than `delay`.
    pub fn new(delay: Duration, max: Option<Duration>) -> Result<Debounce, DuplicatesError> {
        let wrong = |why: String| Err(DuplicatesError { field: "debounce", why });
        if delay.is_zero() {
            return wrong("needs a delay longer than 0s".to_owned());
        }
        let delay = delay.min(Limits::DURATION_MAX);
        let max = max.unwrap_or_else(|| delay.saturating_mul(Debounce::DELAYS_MAX));
        if max < delay {
            let (max, delay) = (duration::text(max), duration::text(delay));
            return wrong(format!("has the max {max}, which is shorter than its delay {delay}"));
        }
        Ok(Debounce { delay, max: max.min(Limits::DURATION_MAX) })
    }

    /// Returns how long no submit must arrive.
    pub const fn delay(self) -> Duration {
        self.delay
    }

    /// Returns how long submits can postpone the job, counted from its creation.
    pub const fn max(self) -> Duration {
        self.max
    }
}

/// Error: these settings for duplicates cannot be combined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct DuplicatesError {
    /// The field to change.
    pub field: &'static str,
    /// The reason.
    pub why: String,
}

/// What a submit does if another job has its key.
///
/// ```
/// use rewheel::seconds;
/// use rewheel_core::{Debounce, Duplicates, OnDuplicate, UniqueUntil};
///
/// let debounced = Duplicates::new(None, None, Some(Debounce::new(seconds(2), None)?))?;
/// assert_eq!(debounced.unique_until(), UniqueUntil::Claimed);
/// assert_eq!(debounced.on_duplicate(), OnDuplicate::Replace);
/// # Ok::<(), rewheel_core::DuplicatesError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duplicates {
    // What was set: a debounce must not be combined with the defaults if they were asked for.
    unique_until: Option<UniqueUntil>,
    on_duplicate: Option<OnDuplicate>,
    debounce: Option<Debounce>,
}

/// What to do about the job that has the key of a new job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnKey {
    /// The new job is a duplicate, or refused if it has another payload.
    Answer,
    /// The new job replaces what that job will run.
    Replace,
    /// The new job is stored, and takes the key.
    Take,
}

impl Duplicates {
    /// Combines settings; what is missing has its default. A debounce implies [`UniqueUntil::Claimed`] and
    /// [`OnDuplicate::Replace`].
    ///
    /// # Errors
    /// A debounce cannot be combined with other values of the two.
    pub fn new(
        unique_until: Option<UniqueUntil>,
        on_duplicate: Option<OnDuplicate>,
        debounce: Option<Debounce>,
    ) -> Result<Duplicates, DuplicatesError> {
        let wrong = |why: &str| Err(DuplicatesError { field: "debounce", why: why.to_owned() });
        if debounce.is_some() && unique_until == Some(UniqueUntil::Ended) {
            return wrong(
                "cannot be combined with `unique_until` = `ended`: a job that runs must not keep the key; use `claimed`, or leave it out",
            );
        }
        if debounce.is_some() && on_duplicate == Some(OnDuplicate::Answer) {
            return wrong(
                "cannot be combined with `on_duplicate` = `answer`: a debounced job is replaced by a later submit; use `on_duplicate` = `replace`, or leave out `on_duplicate`",
            );
        }
        Ok(Duplicates { unique_until, on_duplicate, debounce })
    }

    /// Returns these settings with another [`UniqueUntil`].
    ///
    /// # Errors
    /// As [`Duplicates::new`].
    pub fn with_unique_until(self, until: UniqueUntil) -> Result<Duplicates, DuplicatesError> {
        Duplicates::new(Some(until), self.on_duplicate, self.debounce)
    }

    /// Returns these settings with another [`OnDuplicate`].
    ///
    /// # Errors
    /// As [`Duplicates::new`].
    pub fn with_on_duplicate(self, on: OnDuplicate) -> Result<Duplicates, DuplicatesError> {
        Duplicates::new(self.unique_until, Some(on), self.debounce)
    }

    /// Returns these settings with a debounce.
    ///
    /// # Errors
    /// As [`Duplicates::new`].
    pub fn with_debounce(self, debounce: Debounce) -> Result<Duplicates, DuplicatesError> {
        Duplicates::new(self.unique_until, self.on_duplicate, Some(debounce))
    }

    /// Returns until when a job keeps its key.
    pub const fn unique_until(self) -> UniqueUntil {
        match (self.debounce, self.unique_until) {
            (Some(_), _) => UniqueUntil::Claimed,
            (None, Some(until)) => until,
            (None, None) => UniqueUntil::Ended,
        }
    }

    /// Returns what happens to the job that has the key.
    pub const fn on_duplicate(self) -> OnDuplicate {
        match (self.debounce, self.on_duplicate) {
            (Some(_), _) => OnDuplicate::Replace,
            (None, Some(on)) => on,
            (None, None) => OnDuplicate::Answer,
        }
    }

    /// Returns how submits postpone the job.
    pub const fn debounce(self) -> Option<Debounce> {
        self.debounce
    }

    /// Returns whether the submit only answers with the job that has the key, whatever its state.
    pub fn is_default(self) -> bool {
        self.unique_until() == UniqueUntil::Ended && self.on_duplicate() == OnDuplicate::Answer
    }

    /// Decides what to do about the job that has the key. Every store asks this.
    ///
    /// ```
    /// use rewheel_core::{Duplicates, OnKey, UniqueUntil, Waits};
    ///
    /// let claimed = Duplicates::new(Some(UniqueUntil::Claimed), None, None)?;
    /// assert_eq!(claimed.decide(Waits::Yes), OnKey::Answer);
    /// assert_eq!(claimed.decide(Waits::No), OnKey::Take);
    /// # Ok::<(), rewheel_core::DuplicatesError>(())
    /// ```
    pub const fn decide(self, waits: Waits) -> OnKey {
        match (waits, self.on_duplicate(), self.unique_until()) {
            (Waits::Yes, OnDuplicate::Replace, _) => OnKey::Replace,
            (Waits::Yes, OnDuplicate::Answer, _) | (Waits::No, _, UniqueUntil::Ended) => {
                OnKey::Answer
            }
            (Waits::No, _, UniqueUntil::Claimed) => OnKey::Take,
        }
    }
}

/// Whether a job waits to be claimed for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It is scheduled or paused, and was never claimed.
    Yes,
    /// It was claimed, or has ended.
    No,
}

impl Job {
    /// Returns whether the job waits to be claimed for the first time. Only then can a submit replace it.
    pub fn waits(&self) -> Waits {
        let is_free = matches!(self.status, Status::Scheduled | Status::Paused);
        if is_free && self.fence == Fence::new(0) { Waits::Yes } else { Waits::No }
    }
}

impl NewJob {
    /// Checks that a job whose submit says what to do about duplicates has a key, and no group if it replaces others. Every entry point
    /// does this.
    ///
    /// # Errors
    /// Names the setting to change.
    pub fn check_duplicates(&self) -> Result<(), DuplicatesError> {
        let duplicates = self.duplicates;
        if self.group_key.is_some() && duplicates.on_duplicate() == OnDuplicate::Replace {
            let field = if duplicates.debounce.is_some() { "debounce" } else { "on_duplicate" };
            let why =
                "cannot be combined with `group_key`: a job keeps its position in its group, \
                       so it cannot be replaced"
                    .to_owned();
            return Err(DuplicatesError { field, why });
        }
        if self.key.is_some() || duplicates.is_default() {
            return Ok(());
        }
        let field = match duplicates.on_duplicate() {
            _ if duplicates.debounce.is_some() => "debounce",
            OnDuplicate::Replace => "on_duplicate",
            OnDuplicate::Answer => "unique_until",
        };
        let why = "needs a `key`: it applies to jobs with the same key".to_owned();
        Err(DuplicatesError { field, why })
    }

    /// Returns this job in place of one that waits with the same key: with its id, and with the times that the replaced job gets.
    /// What the submit gives is replaced, also with nothing; only the id, the key, the group and the time of creation stay. A debounced job is
    /// never postponed beyond its limit.
    pub fn in_place_of(&self, before: &Job, now: Timestamp) -> NewJob {
        let due = self.due.resolve(now);
        let due = match self.duplicates.debounce {
            Some(debounce) => due.min(before.created.plus(debounce.max)),
            None => due,
        };
        NewJob {
            id: before.id,
            group_key: before.group.as_ref().map(|group| group.key.clone()),
            due: When::At(due),
            deadline: self.deadline.map(|deadline| When::At(deadline.resolve(now))),
            ..self.clone()
        }
    }

    /// Returns the stored job after this one, made by [`NewJob::in_place_of`], has replaced it.
    pub fn replaced(&self, before: &Job) -> Job {
        let (status, version) = (before.status, before.version.next());
        Job { status, version, group: before.group.clone(), ..self.to_job(before.created) }
    }

    /// Returns whether the deadline has passed, or is before the job is due.
    pub fn is_too_late(&self, now: Timestamp) -> bool {
        let deadline = self.deadline.map(|deadline| deadline.resolve(now));
        deadline.is_some_and(|deadline| deadline <= now || deadline < self.due.resolve(now))
    }
}

/// Returns the audit log values before and after a submit replaced a job: what has changed, and the id of that submit.
pub fn replaced_facts(before: &Job, after: &Job, submit: JobId) -> (AuditFields, AuditFields) {
    let (mut old, mut new) = (AuditFields::default(), AuditFields::default());
    let mut add = |name: &str, of: &dyn Fn(&Job) -> Option<String>| {
        let (was, is) = (of(before), of(after));
        if was != is {
            old = std::mem::take(&mut old).with(name, was);
            new = std::mem::take(&mut new).with(name, is);
        }
    };
    let text = |payload: &[u8]| {
        let cut = payload.len().min(Limits::MESSAGE_BYTES_MAX);
        String::from_utf8_lossy(&payload[..cut]).into_owned()
    };
    add("payload", &|job| job.payload.as_deref().map(text));
    add("due", &|job| Some(job.due.as_millis().to_string()));
    add("priority", &|job| Some(job.lane.priority.get().to_string()));
    add("deadline", &|job| job.deadline.map(|at| at.as_millis().to_string()));
    add("attempts_max", &|job| job.attempts_max.map(|max| max.to_string()));
    add("attempt_timeout", &|job| {
        job.attempt_timeout.map(|timeout| duration::text(timeout).to_string())
    });
    add("backoff", &|job| job.backoff.map(|backoff| backoff.to_string()));
    add("shard_key", &|job| job.shard_key.as_ref().map(ToString::to_string));
    (old, new.with("submit", Some(submit)))
}

#[cfg(test)]
mod tests;
