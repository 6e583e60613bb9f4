//! A job, as submitted and as stored.

use crate::decision::Because;
use crate::failure::Failure;
use crate::id::{Fence, HolderId, JobId, Version};
use crate::limits::Limits;
use crate::name::{Key, KindName, ShardKey, Tenant};
use crate::priority::Priority;
use crate::shard::Shard;
use crate::state::State;
use crate::timestamp::Timestamp;
use rewheel::Backoff;
use std::time::Duration;

/// A point in time, said from where one stands or outright.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// So long after the store commits it.
    In(Duration),
    /// At this instant of the store's clock.
    At(Timestamp),
}

impl When {
    /// Returns the instant, where the store's clock says `now`.
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

/// A job to be stored. The names in it are proof that they follow the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Made by the submitter, so that an insert whose answer was lost can be repeated.
    pub id: JobId,
    /// What sort of work it is.
    pub kind: KindName,
    /// On whose behalf.
    pub tenant: Option<Tenant>,
    /// What makes submitting it again harmless.
    pub key: Option<Key>,
    /// What decides, with the tenant, on which shard it lives.
    pub shard_key: Option<ShardKey>,
    /// On which shard it lives, if that is not for [`Shard::of`] to say.
    pub shard: Option<Shard>,
    /// Which runs first.
    pub priority: Priority,
    /// The input, as bytes that only its runner understands.
    pub payload: Vec<u8>,
    /// When it may first run.
    pub due: When,
    /// When nobody wants it any more.
    pub deadline: Option<When>,
    /// How many attempts it gets; the kind's setting if it does not say.
    pub attempts_max: Option<u32>,
    /// How long one attempt may take; the kind's setting if it does not say.
    pub attempt_timeout: Option<Duration>,
    /// How long to wait between attempts; the kind's setting if it does not say.
    pub backoff: Option<Backoff>,
    /// The trace that the submitter was in.
    pub traceparent: Option<String>,
}

impl NewJob {
    /// Starts with what a job must have: due at once, everything else as its kind says.
    pub fn new(id: JobId, kind: KindName, payload: Vec<u8>) -> NewJob {
        NewJob {
            id,
            kind,
            tenant: None,
            key: None,
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
        }
    }

    /// Returns the lane it waits in.
    pub fn lane(&self) -> Lane {
        let by_name = || Shard::of(self.tenant.as_ref(), self.shard_key.as_ref());
        Lane {
            kind: self.kind.clone(),
            tenant: self.tenant.clone(),
            priority: self.priority,
            shard: self.shard.unwrap_or_else(by_name),
        }
    }

    /// Returns the job as a store has it right after it was stored at `created`: scheduled, under no lease yet.
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
            created,
            deadline: self.deadline.map(|deadline| deadline.resolve(created)),
            due: self.due.resolve(created),
            because: Because::Submitted,
            status: Status::Scheduled,
            fence: Fence::new(0),
            version: Version::new(1),
            attempt: 0,
            attempts_before: 0,
            takeovers: 0,
            takeovers_counted: 0,
            failure: None,
        }
    }

    /// Whether another is surely in the same lane: found out without making either lane.
    pub fn is_beside(&self, other: &NewJob) -> bool {
        (&self.kind, &self.tenant, self.priority) == (&other.kind, &other.tenant, other.priority)
            && (&self.shard_key, self.shard) == (&other.shard_key, other.shard)
    }
}

/// One range of the index that jobs are claimed from: the unit of fairness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// Of what kind.
    pub kind: KindName,
    /// On whose behalf.
    pub tenant: Option<Tenant>,
    /// How urgent.
    pub priority: Priority,
    /// Whose, rather than others'.
    pub shard: Shard,
}

/// A job as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Made by the submitter.
    pub id: JobId,
    /// Of what kind, on whose behalf, how urgent.
    pub lane: Lane,
    /// What made submitting it again harmless.
    pub key: Option<Key>,
    /// What decides, with the tenant, on which shard it lives.
    pub shard_key: Option<ShardKey>,
    /// The input; lists leave it out.
    pub payload: Option<Vec<u8>>,
    /// How many attempts it gets; the kind's setting if it does not say.
    pub attempts_max: Option<u32>,
    /// How long one attempt may take; the kind's setting if it does not say.
    pub attempt_timeout: Option<Duration>,
    /// How long to wait between attempts; the kind's setting if it does not say.
    pub backoff: Option<Backoff>,
    /// The trace that the submitter was in.
    pub traceparent: Option<String>,
    /// When it was stored.
    pub created: Timestamp,
    /// When nobody wants it any more.
    pub deadline: Option<Timestamp>,
    /// When it may next run, or did.
    pub due: Timestamp,
    /// Why then.
    pub because: Because,
    /// What it is doing.
    pub status: Status,
    /// Grows at every lease write.
    pub fence: Fence,
    /// Grows at every visible change.
    pub version: Version,
    /// The attempts it has used up. One that runs is the next, and is used up when it is settled:
    /// giving a job back or taking it over has nothing to undo.
    pub attempt: u32,
    /// Of those, how many were used up before a person last put it back to work. They are history,
    /// and do not count against `attempts_max`.
    pub attempts_before: u32,
    /// How often it was taken over from a holder that died or forgot it.
    pub takeovers: u32,
    /// Of those, how often it had certainly been running: these count against the kind's cap.
    pub takeovers_counted: u32,
    /// What last went wrong.
    pub failure: Option<Failure>,
}

impl Job {
    /// Returns the state without what belongs to it.
    pub const fn state(&self) -> State {
        self.status.state()
    }

    /// Returns whether it was ever taken over: its starts are recorded from then on.
    pub const fn is_suspect(&self) -> bool {
        self.takeovers > 0
    }
}

/// What a job is doing, and what belongs to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Waits for its time, and for a holder.
    Scheduled,
    /// One holder may act on it.
    Leased {
        /// Who.
        holder: HolderId,
        /// Until when, even if that holder lives: it may have forgotten the job.
        overdue: Timestamp,
        /// What a person wants of it.
        wanted: Option<Wanted>,
    },
    /// Waits for a person.
    Paused,
    /// Done.
    Succeeded(Timestamp),
    /// Given up, and nobody is waiting.
    Failed(Timestamp),
    /// Given up, and asks for a person.
    Dead(Timestamp),
    /// Stopped: nobody wants it.
    Cancelled(Timestamp),
}

impl Status {
    /// Returns the state without what belongs to it.
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

    /// Returns what a person wants of it, while a holder has it.
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

    /// Returns when it ended.
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

/// What a person wants of a job that a holder has. The holder reads it with its heartbeat; whatever
/// frees the job obeys it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// That it waits for a person.
    Pause,
    /// That it stops.
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

    /// Returns what a job that is let go of becomes.
    pub const fn state(self) -> State {
        match self {
            Wanted::Pause => State::Paused,
            Wanted::Cancel => State::Cancelled,
        }
    }
}

/// How long what is left of a job that ended is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The job. Zero: it is not kept.
    pub job: Duration,
    /// Its key: how long submitting it again stays harmless.
    pub key: Duration,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { job: Limits::KEEP_DEFAULT, key: Limits::KEEP_DEFAULT }
    }
}
