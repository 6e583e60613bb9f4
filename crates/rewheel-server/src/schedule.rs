//! Parses schedules from JSON, and writes them as JSON.

use crate::fields::{Fields, pointer};
use crate::payload;
use crate::problem::{Code, FieldError, Problem};
use crate::rfc3339;
use crate::submit;
use rewheel::duration;
use rewheel_core::{JobId, NewJob, State, Timestamp, When};
use rewheel_engine::{
    CatchUp, Overlap, Schedule, ScheduleError, ScheduleStatus, SubmitError, Timing,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// Every field of a schedule.
pub(crate) const FIELDS: [&str; 6] = ["cron", "zone", "every", "job", "overlap", "catch_up"];

/// Parses a schedule.
///
/// # Errors
/// Lists the invalid fields.
pub(crate) fn parse(text: &str, payload_bytes_max: usize) -> Result<Schedule, Problem> {
    let mut fields = Fields::read(text, "", &FIELDS)?;
    let timing = timing(&mut fields);
    let overlap = fields.text("overlap", str::parse::<Overlap>).unwrap_or_default();
    let catch_up = fields.text("catch_up", str::parse::<CatchUp>).unwrap_or_default();
    let no_id = JobId::from_bytes([0; 16]);
    let job = match fields.take("job").map(RawValue::get) {
        None => {
            fields.wrong("job", "is required: an object with the fields of a submitted job");
            None
        }
        Some(text) => match submit::parse_at("/job", text, no_id, payload_bytes_max) {
            Ok(job) => Some(job),
            Err(problem) if problem.errors.is_empty() => return Err(problem),
            Err(problem) => {
                fields.note(problem.errors);
                None
            }
        },
    };
    let errors = fields.into_errors();
    let (Some(timing), Some(job), true) = (timing, job, errors.is_empty()) else {
        return Err(Problem::of_fields(Code::InvalidField, errors));
    };
    let schedule = Schedule::new(timing, job).map_err(|error| refused(error, None))?;
    Ok(schedule.overlap(overlap).catch_up(catch_up))
}

/// Parses when a schedule fires.
fn timing(fields: &mut Fields<'_>) -> Option<Timing> {
    let own = |text: &str| Ok::<_, String>(text.to_owned());
    let cron = fields.text("cron", own);
    let zone = fields.text("zone", own);
    let every = fields.text("every", duration::parse);
    let are_wrong = ["cron", "zone", "every"].iter().any(|name| fields.is_wrong(name));
    let timing = match (cron, zone, every) {
        _ if are_wrong => return None,
        (Some(_), _, Some(_)) => {
            fields.wrong("every", "cannot be combined with `cron`: remove one of the two");
            return None;
        }
        (None, _, None) => {
            fields.wrong("cron", "is required: set `cron` or `every`");
            return None;
        }
        (None, Some(_), Some(_)) => {
            fields.wrong("zone", "applies only to `cron`: a period has no time zone");
            return None;
        }
        (Some(cron), zone, None) => Timing::cron(&cron, zone.as_deref().unwrap_or("UTC")),
        (None, None, Some(every)) => Timing::every(every),
    };
    match timing {
        Ok(timing) => Some(timing),
        Err(ScheduleError::Field { field, why }) => {
            fields.wrong(field, why);
            None
        }
        Err(error) => {
            fields.wrong("cron", error);
            None
        }
    }
}

/// Returns the problem of a schedule that was not stored.
pub(crate) fn refused(error: ScheduleError, job: Option<&NewJob>) -> Problem {
    let field = |field: &str, why: String| {
        let at = format!("/{}", field.replace('.', "/"));
        Problem::of_fields(Code::InvalidField, vec![FieldError::new(at, why)])
    };
    match (error, job) {
        (ScheduleError::Field { field: name, why }, _) => field(name, why),
        (ScheduleError::Job(SubmitError::Refused(why)), Some(job)) => {
            submit::refused("/job", job, &why)
        }
        (ScheduleError::Job(SubmitError::Field { field: name, why }), _) => {
            let errors = vec![FieldError::new(pointer("/job", name), why)];
            Problem::of_fields(Code::InvalidField, errors)
        }
        (ScheduleError::Job(SubmitError::ShutDown), _) => {
            Problem::new(Code::ShuttingDown, "the server is shutting down")
        }
        (ScheduleError::Job(SubmitError::Store(error)) | ScheduleError::Store(error), _) => {
            error.into()
        }
        (error @ ScheduleError::Job(SubmitError::Refused(_)), None) => {
            field("job", error.to_string())
        }
        (ScheduleError::Busy, _) => Problem::new(
            Code::WrongState,
            "the schedule is firing, or other requests are changing it",
        )
        .hint("send the request again in a moment"),
    }
}

/// A schedule as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ScheduleDocument {
    name: String,
    id: String,
    cron: Option<String>,
    zone: Option<String>,
    every: Option<String>,
    job: JobOfSchedule,
    overlap: &'static str,
    catch_up: &'static str,
    paused: bool,
    managed_by_config: bool,
    next: Vec<String>,
    last: Option<FiredDocument>,
    fired: u64,
    skipped: u64,
    missed: u64,
    failure: Option<String>,
    version: u64,
    created: String,
}

#[derive(Debug, Serialize)]
struct FiredDocument {
    instant: String,
    job: String,
}

/// The job of each instant, with the fields of a submitted job.
#[derive(Debug, Serialize)]
struct JobOfSchedule {
    kind: String,
    payload: Box<RawValue>,
    tenant: Option<String>,
    shard_key: Option<String>,
    group_key: Option<String>,
    priority: u8,
    delay: Option<String>,
    attempts_max: Option<u32>,
    attempt_timeout: Option<String>,
    backoff: Option<String>,
}

impl ScheduleDocument {
    pub(crate) fn new(status: &ScheduleStatus, managed_by_config: bool) -> ScheduleDocument {
        let Schedule { timing, job, overlap, catch_up } = &status.schedule;
        let times = |at: &Timestamp| rfc3339::text(*at);
        let (cron, zone) = timing.as_cron().map(|(cron, zone)| (cron, zone.to_owned())).unzip();
        ScheduleDocument {
            name: status.name.clone(),
            id: status.id.to_string(),
            cron,
            zone,
            every: timing.as_period().map(|every| duration::text(every).to_string()),
            job: JobOfSchedule::new(job),
            overlap: overlap.as_str(),
            catch_up: catch_up.as_str(),
            paused: status.state == State::Paused,
            managed_by_config,
            next: status.next.iter().map(times).collect(),
            last: status.last.map(|last| FiredDocument {
                instant: rfc3339::text(last.instant),
                job: last.job.to_string(),
            }),
            fired: status.fired,
            skipped: status.skipped,
            missed: status.missed,
            failure: status.failure.as_ref().map(ToString::to_string),
            version: status.version.get(),
            created: rfc3339::text(status.created),
        }
    }
}

impl JobOfSchedule {
    fn new(job: &NewJob) -> JobOfSchedule {
        let delay = match job.due {
            When::In(delay) if !delay.is_zero() => Some(duration::text(delay).to_string()),
            When::In(_) | When::At(_) => None,
        };
        JobOfSchedule {
            kind: job.kind.to_string(),
            payload: payload::raw(&job.payload),
            tenant: job.tenant.as_ref().map(ToString::to_string),
            shard_key: job.shard_key.as_ref().map(ToString::to_string),
            group_key: job.group_key.as_ref().map(ToString::to_string),
            priority: job.priority.get(),
            delay,
            attempts_max: job.attempts_max,
            attempt_timeout: job.attempt_timeout.map(|timeout| duration::text(timeout).to_string()),
            backoff: job.backoff.map(|backoff| backoff.to_string()),
        }
    }
}
