//! A job, as submitted and as stored.

use crate::decision::DueReason;
use crate::duplicates::Duplicates;
use crate::failure::Failure;
use crate::format::Format;
use crate::group::JobGroup;
use crate::id::{Fence, HolderId, JobId, Version};
use crate::limits::Limits;
use crate::name::{GroupKey, Key, KindName, ShardKey, Tenant};
use crate::priority::Priority;
use crate::shard::Shard;
use crate::state::State;
use crate::timestamp::Timestamp;
use rewheel::Backoff;
use std::time::Duration;

/// A point in time, relative or absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// This long after the store commits.
    In(Duration),
    /// At this time of the store's clock.
    At(Timestamp),
}

impl When {
    /// Returns the absolute time, if the store's clock shows `now`.
    ///
    /// ```
    /// use rewheel_core::{Timestamp, When};
    /// use std::time::Duration;
    ///
    /// let now = Timestamp::from_millis(5_000);
    /// assert_eq!(When::In(Duration::from_secs(1)).resolve(now), Timestamp::from_millis(6_000));
    /// ```
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            When::In(duration) => now.plus(duration),
            When::At(at) => at,
        }
    }
}

/// A job to store. Its names have been validated by their types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Created by the submitter, so that an insert whose response was lost can be repeated.
    pub id: JobId,
    /// The kind of work.
    pub kind: KindName,
    /// The tenant that the job belongs to.
    pub tenant: Option<Tenant>,
    /// Deduplication key: submitting the same key again has no effect, unless `duplicates` says otherwise.
    pub key: Option<Key>,
    /// What happens if another job has the key.
    pub duplicates: Duplicates,
    /// Determines the shard, together with the tenant.
    pub shard_key: Option<ShardKey>,
    /// The shard, if it is not computed by [`Shard::of`].
    pub shard: Option<Shard>,
    /// Priority.
    pub priority: Priority,
    /// The input, as opaque bytes for the runner.
    pub payload: Vec<u8>,
    /// Earliest time of the first attempt.
    pub due: When,
    /// No attempt starts after this time.
    pub deadline: Option<When>,
    /// Maximum number of attempts; defaults to the kind's setting.
    pub attempts_max: Option<u32>,
    /// Timeout of one attempt; defaults to the kind's setting.
    pub attempt_timeout: Option<Duration>,
    /// Delays between attempts; defaults to the kind's setting.
    pub backoff: Option<Backoff>,
    /// Trace context of the submitter.
    pub traceparent: Option<String>,
    /// Number of attempts that a call made before it was continued as this job. The first attempt of the job gets
    /// the next number. These attempts do not count against `attempts_max`.
    pub attempts_before: u32,
    /// The job whose settle submitted it. Stores set it, see [`Settlement::follow_ups`](crate::store::Settlement::follow_ups).
    pub parent: Option<JobId>,
    /// The instant of the schedule that submits it.
    pub instant: Option<Timestamp>,
    /// Jobs with the same group key, kind and tenant run one at a time, in the order in which they were accepted.
    pub group_key: Option<GroupKey>,
}

impl NewJob {
    /// Creates a job with its required values. The job is due at once; everything else defaults to the kind's settings.
    pub fn new(id: JobId, kind: KindName, payload: Vec<u8>) -> NewJob {
        NewJob {
            id,
            kind,
            tenant: None,
            key: None,
            duplicates: Duplicates::default(),
            shard_key: None,
            shard: None,
            priority: Priority::DEFAULT,
            payload,
            due: When::In(Duration::ZERO),
            deadline: None,
            attempts_max: None,
            attempt_timeout: None,
            backoff: None,
            traceparent: None,
            attempts_before: 0,
            parent: None,
            instant: None,
            group_key: None,
        }
    }

    /// Returns the format that every holder must know before the job is stored.
    pub fn format(&self) -> Format {
        if self.group_key.is_some() {
            Format::GROUPS
        } else if self.instant.is_some() {
            Format::SCHEDULES
        } else if self.duplicates.debounce().is_some() {
            Format::DEBOUNCE
        } else if self.parent.is_some() {
            Format::FOLLOW_UPS
        } else {
            Format::FIRST
        }
    }

    /// Returns the lane of the job.
    pub fn lane(&self) -> Lane {
        let by_name = || Shard::of(self.tenant.as_ref(), self.shard_key.as_ref());
        let shard = self.shard.unwrap_or_else(by_name);
        let is_debounced = self.duplicates.debounce().is_some();
        Lane {
            kind: self.kind.clone(),
            tenant: self.tenant.clone(),
            priority: self.priority,
            shard: if is_debounced { shard.debounced() } else { shard },
        }
    }

    /// Returns the job as stored at `created`: scheduled, not leased. A job with a group is blocked until the store releases it.
    ///
    /// ```
    /// use rewheel::{Random, seconds};
    /// use rewheel_core::{JobId, KindName, NewJob, State, Timestamp, When};
    ///
    /// let now = Timestamp::from_millis(1_000);
    /// let id = JobId::new(now, &Random::seeded(1));
    /// let new = NewJob::new(id, KindName::parse("charge-card")?, b"{}".to_vec());
    /// let job = NewJob { due: When::In(seconds(2)), ..new }.to_job(now);
    /// assert_eq!((job.state(), job.due), (State::Scheduled, Timestamp::from_millis(3_000)));
    /// # Ok::<(), rewheel_core::NameError>(())
    /// ```
    pub fn to_job(&self, created: Timestamp) -> Job {
        Job {
            id: self.id,
            lane: self.lane(),
            key: self.key.clone(),
            shard_key: self.shard_key.clone(),
            payload: Some(self.payload.clone()),
            attempts_max: self.attempts_max,
            attempt_timeout: self.attempt_timeout,
            backoff: self.backoff,
            traceparent: self.traceparent.clone(),
            parent: self.parent,
            instant: self.instant,
            group: self.group_key.clone().map(JobGroup::new),
            created,
            deadline: self.deadline.map(|deadline| deadline.resolve(created)),
            due: self.due.resolve(created),
            because: DueReason::Submitted,
            status: Status::Scheduled,
            fence: Fence::new(0),
            version: Version::new(1),
            attempt: self.attempts_before,
            attempts_before: self.attempts_before,
            takeovers: 0,
            takeovers_counted: 0,
            failure: None,
        }
    }

    /// Returns whether the other job is certainly in the same lane, without building the lanes.
    pub fn is_beside(&self, other: &NewJob) -> bool {
        (&self.kind, &self.tenant, self.priority) == (&other.kind, &other.tenant, other.priority)
            && (&self.shard_key, self.shard) == (&other.shard_key, other.shard)
            && self.duplicates.debounce().is_some() == other.duplicates.debounce().is_some()
    }
}

/// One range of the index that jobs are claimed from; the unit of fairness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// The kind.
    pub kind: KindName,
    /// The tenant.
    pub tenant: Option<Tenant>,
    /// The priority.
    pub priority: Priority,
    /// The shard.
    pub shard: Shard,
}

impl Lane {
    /// Returns how long before its due time a job of this lane may be claimed, for a claim with this horizon.
    pub const fn horizon(&self, horizon: Duration) -> Duration {
        if self.shard.is_debounced() { Duration::ZERO } else { horizon }
    }
}

/// A job as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Created by the submitter.
    pub id: JobId,
    /// Kind, tenant, priority and shard.
    pub lane: Lane,
    /// Deduplication key.
    pub key: Option<Key>,
    /// Determines the shard, together with the tenant.
    pub shard_key: Option<ShardKey>,
    /// The input; not included in lists.
    pub payload: Option<Vec<u8>>,
    /// Maximum number of attempts; defaults to the kind's setting.
    pub attempts_max: Option<u32>,
    /// Timeout of one attempt; defaults to the kind's setting.
    pub attempt_timeout: Option<Duration>,
    /// Delays between attempts; defaults to the kind's setting.
    pub backoff: Option<Backoff>,
    /// Trace context of the submitter.
    pub traceparent: Option<String>,
    /// The job whose settle submitted it.
    pub parent: Option<JobId>,
    /// The instant of the schedule that submitted it.
    pub instant: Option<Timestamp>,
    /// The group of the job.
    pub group: Option<JobGroup>,
    /// When it was stored.
    pub created: Timestamp,
    /// No attempt starts after this time.
    pub deadline: Option<Timestamp>,
    /// Earliest time of the next attempt; of an ended job, of its last one.
    pub due: Timestamp,
    /// Why the job is due at this time.
    pub because: DueReason,
    /// State, with the data of that state.
    pub status: Status,
    /// Increases with every lease write.
    pub fence: Fence,
    /// Increases with every visible change.
    pub version: Version,
    /// Number of used attempts. A running attempt counts only when it is settled, so giving a job back or taking it over has
    /// nothing to undo.
    pub attempt: u32,
    /// Number of attempts used before the job was last redriven; until then, of those that a call made in process before it
    /// was continued as this job. These attempts do not count against `attempts_max`.
    pub attempts_before: u32,
    /// Number of takeovers, because the holder died or did not settle the job in time.
    pub takeovers: u32,
    /// Number of takeovers while the job was certainly running; these count against the kind's limit.
    pub takeovers_counted: u32,
    /// The latest failure.
    pub failure: Option<Failure>,
}

impl Job {
    /// Returns the state without its data.
    pub const fn state(&self) -> State {
        self.status.state()
    }

    /// Returns whether the job waits for other jobs of its group.
    pub fn is_blocked(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.blocked)
    }

    /// Returns whether the job was ever taken over. From then on its starts are recorded.
    pub const fn is_suspect(&self) -> bool {
        self.takeovers > 0
    }
}

/// State of a job, with the data of that state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Waits until it is due and a holder claims it.
    Scheduled,
    /// Leased to one holder.
    Leased {
        /// The holder.
        holder: HolderId,
        /// When the job is overdue: after this time it can be taken even from a live holder.
        overdue: Timestamp,
        /// What a user requested for the job.
        wanted: Option<Wanted>,
    },
    /// Paused until an operator resumes it.
    Paused,
    /// Succeeded at this time.
    Succeeded(Timestamp),
    /// Given up at this time; no operator action is needed.
    Failed(Timestamp),
    /// Dead letter since this time; an operator must handle it.
    Dead(Timestamp),
    /// Cancelled at this time.
    Cancelled(Timestamp),
}

impl Status {
    /// Returns the state without its data.
    pub const fn state(&self) -> State {
        match self {
            Status::Scheduled => State::Scheduled,
            Status::Leased { .. } => State::Leased,
            Status::Paused => State::Paused,
            Status::Succeeded(_) => State::Succeeded,
            Status::Failed(_) => State::Failed,
            Status::Dead(_) => State::Dead,
            Status::Cancelled(_) => State::Cancelled,
        }
    }

    /// Returns what a user requested for a leased job.
    pub const fn wanted(&self) -> Option<Wanted> {
        match self {
            Status::Leased { wanted, .. } => *wanted,
            Status::Scheduled
            | Status::Paused
            | Status::Succeeded(_)
            | Status::Failed(_)
            | Status::Dead(_)
            | Status::Cancelled(_) => None,
        }
    }

    /// Returns when the job ended.
    pub const fn finished(&self) -> Option<Timestamp> {
        match self {
            Status::Scheduled | Status::Leased { .. } | Status::Paused => None,
            Status::Succeeded(at)
            | Status::Failed(at)
            | Status::Dead(at)
            | Status::Cancelled(at) => Some(*at),
        }
    }
}

/// What a user requested for a leased job. The holder reads it with its heartbeat; every operation that releases the job applies
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// Pause the job.
    Pause,
    /// Cancel the job.
    Cancel,
}

impl Wanted {
    /// Returns the name used in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Wanted::Pause => "pause",
            Wanted::Cancel => "cancel",
        }
    }

    /// Returns the state of the job once it is released.
    pub const fn state(self) -> State {
        match self {
            Wanted::Pause => State::Paused,
            Wanted::Cancel => State::Cancelled,
        }
    }
}

/// Retention of an ended job and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retain {
    /// Retention of the job. Zero: the job is not kept.
    pub job: Duration,
    /// Retention of its key: how long submitting it again has no effect.
    pub key: Duration,
}

impl Default for Retain {
    fn default() -> Retain {
        Retain { job: Limits::KEEP_DEFAULT, key: Limits::KEEP_DEFAULT }
    }
}
