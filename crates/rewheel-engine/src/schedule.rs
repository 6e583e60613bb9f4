//! Schedules: submit a job at each instant of a cron expression or a period.
//!
//! A schedule is a job of its own, with the name of the schedule as its key. When it is due, its runner submits the job of the
//! instant and snoozes until the next one, in one transaction. So one instant makes one job: a node that crashes before the
//! settle has submitted nothing, and a node that lost its lease cannot settle.

mod cron;
mod calendar;
mod timing;
mod plan;
mod document;
mod run;
mod change;

pub use self::change::{ScheduleChange, ScheduleChanged};
pub use self::cron::{Cron, CronError};
pub use self::timing::Timing;

pub(crate) use self::run::Scheduler;

use self::document::Document;
use crate::engine::Engine;
use crate::follow_ups::{FollowUp, IntoFollowUp};
use crate::own_jobs;
use crate::settings::KindSettings;
use crate::submit::SubmitError;
use rewheel::Backoff;
use rewheel_core::store::{Filter, Page, PageRequest, StoreError, StoreResult};
use rewheel_core::{
    Failure, Job, JobId, Key, KindName, NewJob, State, Tenant, Timestamp, Version, When,
};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// The kind of schedules.
pub(crate) const KIND: &str = "rewheel.schedule";

/// How many instants ahead are shown.
const NEXT_SHOWN: usize = 5;

/// A job, and when it is submitted.
///
/// ```
/// use rewheel_engine::{Actor, CatchUp, Engine, FollowUp, JobContext, Overlap, Report, Schedule};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// async fn report(ctx: JobContext) -> Result<(), Report> {
///     println!("the report of {:?}", ctx.instant()); // the same in each attempt, however late
///     Ok(())
/// }
/// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
///     .raw_handler("report", report)
///     .start()
///     .await?;
/// let nightly = Schedule::cron("0 3 * * *", "Europe/Berlin", FollowUp::raw("report", b"{}".to_vec()))?
///     .overlap(Overlap::Skip)
///     .catch_up(CatchUp::One);
/// engine.put_schedule("nightly-report", &nightly, &Actor::new("ops")).await?;
/// let status = engine.schedule("nightly-report").await?.expect("it was put");
/// assert_eq!((status.next.len(), status.fired), (5, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// When it fires.
    pub timing: Timing,
    /// The job of each instant; its id is not used.
    pub job: NewJob,
    /// What happens while the previous job has not ended.
    pub overlap: Overlap,
    /// What happens to instants that no engine could fire in time.
    pub catch_up: CatchUp,
}

/// What happens at an instant while a job of an earlier one has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// The instant is skipped, and counted as such.
    #[default]
    Skip,
    /// Its job is submitted.
    Allow,
}

/// What happens after instants that no engine could fire in time: all were down, or the store was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// They are missed, and counted as such. An instant is in time for one minute.
    None,
    /// The latest of them fires, however late; the others are missed.
    #[default]
    One,
}

/// An instant that submitted a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The instant.
    pub instant: Timestamp,
    /// Its job.
    pub job: JobId,
}

/// A stored schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleStatus {
    /// The name.
    pub name: String,
    /// Its own job, which is the parent of the jobs that it submits.
    pub id: JobId,
    /// The definition.
    pub schedule: Schedule,
    /// The state of its own job.
    pub state: State,
    /// Increases with every change and every instant.
    pub version: Version,
    /// When it was created.
    pub created: Timestamp,
    /// The next five instants; none while it is paused or dead.
    pub next: Vec<Timestamp>,
    /// The latest instant that submitted a job.
    pub last: Option<Fired>,
    /// Number of instants that submitted a job.
    pub fired: u64,
    /// Number of instants that were skipped because an earlier job had not ended.
    pub skipped: u64,
    /// Number of instants that no engine could fire in time.
    pub missed: u64,
    /// Why the latest instant could not be fired at once; stays until the schedule is removed.
    pub failure: Option<Failure>,
}

/// Error: a schedule was not stored.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A field is invalid.
    #[error("{field} {why}")]
    Field {
        /// The field; `job.kind` is a field of the job.
        field: &'static str,
        /// The reason.
        why: String,
    },
    /// The job of the schedule would not be accepted.
    #[error("job: {0}")]
    Job(#[source] SubmitError),
    /// The schedule fires again and again while it is changed.
    #[error("the schedule is firing, or other callers are changing it: try again")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ScheduleError {
    fn field(field: &'static str, why: impl Display) -> ScheduleError {
        ScheduleError::Field { field, why: why.to_string() }
    }
}

impl Schedule {
    /// Submits a job at the times of a cron expression, see [`Timing::cron`].
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn cron(cron: &str, zone: &str, job: impl IntoFollowUp) -> Result<Schedule, ScheduleError> {
        Schedule::of_follow_up(Timing::cron(cron, zone)?, job.into_follow_up())
    }

    /// Submits a job in each period, see [`Timing::every`].
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn every(period: Duration, job: impl IntoFollowUp) -> Result<Schedule, ScheduleError> {
        Schedule::of_follow_up(Timing::every(period)?, job.into_follow_up())
    }

    fn of_follow_up(timing: Timing, job: FollowUp) -> Result<Schedule, ScheduleError> {
        Schedule::new(timing, job.into_job().map_err(ScheduleError::Job)?)
    }

    /// Submits this job. Times of the job must be relative to each instant, and it must not have a key.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn new(timing: Timing, job: NewJob) -> Result<Schedule, ScheduleError> {
        if job.key.is_some() {
            let why =
                "does not apply to a schedule: remove it, each instant submits a job without a key";
            return Err(ScheduleError::field("job.key", why));
        }
        if matches!(job.due, When::At(_)) {
            let why = "does not apply to a schedule: use `delay`";
            return Err(ScheduleError::field("job.due", why));
        }
        if matches!(job.deadline, Some(When::At(_))) {
            let why = "does not apply to a schedule: remove it, a deadline is one fixed time";
            return Err(ScheduleError::field("job.deadline", why));
        }
        let (overlap, catch_up) = (Overlap::default(), CatchUp::default());
        Ok(Schedule { timing, job, overlap, catch_up })
    }

    /// Sets what happens while an earlier job has not ended.
    #[must_use]
    pub fn overlap(self, overlap: Overlap) -> Schedule {
        Schedule { overlap, ..self }
    }

    /// Sets what happens to instants that no engine could fire in time.
    #[must_use]
    pub fn catch_up(self, catch_up: CatchUp) -> Schedule {
        Schedule { catch_up, ..self }
    }

    /// Sets the tenant of the jobs.
    #[must_use]
    pub fn tenant(mut self, tenant: Tenant) -> Schedule {
        self.job.tenant = Some(tenant);
        self
    }
}

impl Overlap {
    /// Returns the name used in config and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Overlap::Skip => "skip",
            Overlap::Allow => "allow",
        }
    }
}

impl FromStr for Overlap {
    type Err = String;

    fn from_str(text: &str) -> Result<Overlap, String> {
        match text {
            "skip" => Ok(Overlap::Skip),
            "allow" => Ok(Overlap::Allow),
            other => Err(format!("`{other}` is not valid: use skip or allow")),
        }
    }
}

impl CatchUp {
    /// Returns the name used in config and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            CatchUp::None => "none",
            CatchUp::One => "one",
        }
    }
}

impl FromStr for CatchUp {
    type Err = String;

    fn from_str(text: &str) -> Result<CatchUp, String> {
        match text {
            "none" => Ok(CatchUp::None),
            "one" => Ok(CatchUp::One),
            other => Err(format!("`{other}` is not valid: use none or one")),
        }
    }
}

/// Parses the name of a schedule, which has the form of a kind's name.
fn parse_name(name: &str) -> Result<Key, ScheduleError> {
    KindName::parse(name).map_err(|why| ScheduleError::field("name", why))?;
    Key::parse(name).map_err(|why| ScheduleError::field("name", why))
}

fn kind() -> KindName {
    KindName::parse(KIND).unwrap_or_else(|_| unreachable!("it is a name"))
}

/// The settings of schedules. They never give up: a schedule whose job cannot be submitted now fires as soon as it can.
fn settings() -> KindSettings {
    KindSettings {
        attempts_max: 1_000_000_000,
        attempt_timeout: Duration::from_secs(30),
        backoff: Backoff::exponential(Duration::from_secs(1)).max(Duration::from_secs(30)),
        takeovers_max: 1_000_000_000,
        // A schedule is leased only while it fires, so that it can be changed at any other time: its snoozes go back to the store,
        // and a kind with a fleet limit is claimed when it is due, not before.
        sticky_max: Duration::ZERO,
        fleet_concurrency_max: Some(u32::MAX),
        ..KindSettings::default()
    }
}

impl ScheduleStatus {
    /// Reads the schedule of a job; `None` if it is another kind of job, was removed, or was listed without its payload.
    fn of(job: &Job) -> Option<ScheduleStatus> {
        let is_there = job.state().is_live() || job.state() == State::Dead;
        if job.lane.kind.as_str() != KIND || !is_there {
            return None;
        }
        let document = Document::decode(job.payload.as_deref()?).ok()?;
        let schedule = document.schedule().ok()?;
        let mut next = Vec::new();
        if matches!(job.state(), State::Scheduled | State::Leased) {
            let follow = |at: &Timestamp| schedule.timing.next_after(*at);
            next = std::iter::successors(Some(document.next()), follow).take(NEXT_SHOWN).collect();
        }
        Some(ScheduleStatus {
            name: job.key.as_ref()?.to_string(),
            id: job.id,
            state: job.state(),
            version: job.version,
            created: job.created,
            next,
            last: document.last(),
            fired: document.fired,
            skipped: document.skipped,
            missed: document.missed,
            failure: job.failure.clone(),
            schedule,
        })
    }
}

impl Engine {
    /// Returns a schedule by its name.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn schedule(&self, name: &str) -> StoreResult<Option<ScheduleStatus>> {
        let Ok(key) = parse_name(name) else { return Ok(None) };
        Ok(self.schedule_job(&key).await?.as_ref().and_then(ScheduleStatus::of))
    }

    /// Returns schedules, the newest first.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn schedules(&self, page: &PageRequest) -> StoreResult<Page<ScheduleStatus>> {
        let (kinds, parent) = (vec![kind()], Some(own_jobs::SCHEDULES));
        let filter = Filter { states: there(), kinds, parent, ..Filter::default() };
        let listed = self.store().list(&filter, page).await?;
        let mut items = Vec::new();
        for part in listed.items.chunks(own_jobs::READ_AT_ONCE) {
            let read = own_jobs::read(&**self.store(), part).await?;
            items.extend(read.iter().flatten().filter_map(ScheduleStatus::of));
        }
        Ok(Page { items, next: listed.next })
    }

    /// Returns the job of a schedule that was not removed, with its payload.
    async fn schedule_job(&self, name: &Key) -> StoreResult<Option<Job>> {
        let key = Some(name.clone());
        let filter = Filter { states: there(), kinds: vec![kind()], key, ..Filter::default() };
        let listed = self.store().list(&filter, &PageRequest::first(1)).await?;
        let Some(found) = listed.items.first() else { return Ok(None) };
        let job = self.store().get(found.id).await?;
        Ok(job.filter(|job| there().contains(&job.state())))
    }
}

/// The states of schedules that were not removed.
fn there() -> Vec<State> {
    vec![State::Scheduled, State::Leased, State::Paused, State::Dead]
}
