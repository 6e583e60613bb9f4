//! Parses submitted jobs from JSON; every entry point uses it.

mod batch;
mod duplicates;
mod edit;

pub use self::batch::parse_batch;
pub use self::duplicates::check_duplicates;
#[cfg(test)]
pub(crate) use self::edit::FIELDS as EDIT_FIELDS;
pub(crate) use self::edit::parse_edit;

use crate::fields::Fields;
use crate::payload;
use crate::problem::{Code, FieldError, Problem};
use crate::rfc3339;
use rewheel::{Backoff, duration};
use rewheel_core::store::Refusal;
use rewheel_core::{
    Debounce, Duplicates, GroupKey, JobId, Key, KindName, Limits, NewJob, OnDuplicate, Priority,
    ShardKey, Tenant, When,
};
use rewheel_engine::{KindSettings, OverCeiling};
use std::fmt::Display;
use std::time::Duration;

/// Every field of a submitted job.
pub(crate) const FIELDS: [&str; 16] = [
    "kind",
    "payload",
    "key",
    "unique_until",
    "on_duplicate",
    "debounce",
    "tenant",
    "shard_key",
    "group_key",
    "priority",
    "delay",
    "due",
    "deadline",
    "attempts_max",
    "attempt_timeout",
    "backoff",
];

/// Parses one job.
///
/// # Errors
/// Lists every invalid field.
///
/// ```
/// use rewheel::Random;
/// use rewheel_core::{JobId, Timestamp};
/// use rewheel_server::submit;
///
/// let id = JobId::new(Timestamp::from_millis(0), &Random::seeded(1));
/// let job = submit::parse(r#"{"kind":"charge-card","payload":{"order":17}}"#, id, 1_000)?;
/// assert_eq!(job.payload, br#"{"order":17}"#);
///
/// let problem = submit::parse(r#"{"kind":"charge-card","priority":10}"#, id, 1_000).unwrap_err();
/// let wrong: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
/// assert_eq!(wrong, ["/priority", "/payload"]);
/// # Ok::<(), rewheel_server::problem::Problem>(())
/// ```
pub fn parse(text: &str, id: JobId, payload_bytes_max: usize) -> Result<NewJob, Problem> {
    parse_at("", text, id, payload_bytes_max)
}

/// Parses the job at a location in the request.
pub(crate) fn parse_at(
    at: &str,
    text: &str,
    id: JobId,
    bytes_max: usize,
) -> Result<NewJob, Problem> {
    let mut fields = Fields::read(text, at, &FIELDS)?;
    if !fields.has("kind") {
        fields.wrong("kind", "is required");
    }
    let kind = fields.text("kind", kind);
    let key = fields.text("key", Key::parse);
    let tenant = fields.text("tenant", Tenant::parse);
    let shard_key = fields.text("shard_key", ShardKey::parse);
    let group_key = fields.text("group_key", GroupKey::parse);
    let priority = fields.number("priority", priority);
    let duplicates = duplicates::duplicates(&mut fields)?;
    let debounce = duplicates.and_then(Duplicates::debounce);
    let due = due(&mut fields, debounce);
    let deadline = fields.text("deadline", rfc3339::parse);
    let attempts_max = fields.number("attempts_max", at_least_one);
    let attempt_timeout = fields.text("attempt_timeout", |text| {
        let timeout = wait(text)?;
        if timeout.is_zero() { Err("must be longer than 0s".to_owned()) } else { Ok(timeout) }
    });
    let backoff = fields.text("backoff", str::parse::<Backoff>);
    let payload = fields.take("payload").map(serde_json::value::RawValue::get);
    if payload.is_none() {
        fields.wrong("payload", "is required: set it to any JSON value");
    }
    let bytes = payload.map_or(0, str::len);
    let is_too_large = bytes > bytes_max;
    if is_too_large {
        fields.wrong("payload", format!("has {bytes} bytes; the limit is {bytes_max}"));
    } else if let Some(Err(why)) = payload.map(payload::check) {
        fields.wrong("payload", why);
    }
    let errors = fields.into_errors();
    let (Some(kind), Some(payload), true) = (kind, payload, errors.is_empty()) else {
        let only_large = is_too_large && errors.len() == 1;
        let code = if only_large { Code::TooLarge } else { Code::InvalidField };
        return Err(Problem::of_fields(code, errors));
    };
    Ok(NewJob {
        tenant,
        key,
        duplicates: duplicates.unwrap_or_default(),
        shard_key,
        group_key,
        priority: priority.unwrap_or_default(),
        due: due.unwrap_or(When::In(Duration::ZERO)),
        deadline: deadline.map(When::At),
        attempts_max,
        attempt_timeout,
        backoff,
        ..NewJob::new(id, kind, payload.as_bytes().to_vec())
    })
}

/// Checks a job against the limits of its kind.
///
/// # Errors
/// Names the field that exceeds a limit.
pub fn check_ceilings(at: &str, job: &NewJob, kind: &KindSettings) -> Result<(), Problem> {
    kind.ceilings().check(job).map_err(|over| over_ceiling(at, &job.kind, &over))
}

/// Returns the problem for a field that exceeds a limit of the kind.
pub(crate) fn over_ceiling(at: &str, kind: &KindName, over: &OverCeiling) -> Problem {
    let error = FieldError::new(format!("{at}/{}", over.field), &over.why);
    Problem::of_fields(Code::InvalidField, vec![error])
        .hint(format!("use a lower value, or raise `{}` of kind `{kind}`", over.setting))
}

/// Returns the problem for a job that the store refused, at a location in the request.
pub fn refused(at: &str, job: &NewJob, why: &Refusal) -> Problem {
    let blame = |code, name: &str, message: &dyn Display| {
        Problem::of_fields(code, vec![FieldError::new(format!("{at}/{name}"), message)])
    };
    match why {
        Refusal::UnknownKind => {
            let message = format!("`{}` does not exist", job.kind);
            let hint = "create the kind: in the config under [kinds], with PUT /v1/kinds/{kind}, or with a handler in Rust";
            blame(Code::UnknownKind, "kind", &message).hint(hint)
        }
        Refusal::KeyReused { job: known } => {
            let message = format!("is already used by job {known}, which has a different payload");
            let hint = match job.duplicates.on_duplicate() {
                OnDuplicate::Answer => {
                    "a key identifies one job: use another key for a different payload"
                }
                OnDuplicate::Replace => {
                    "the job was already claimed or has ended, so it cannot be replaced: to submit another job with its key, set `unique_until` to `claimed`"
                }
            };
            blame(Code::KeyReused, "key", &message).hint(hint)
        }
        Refusal::DeadlineTooEarly => {
            let message = "is in the past, or before the job is due";
            blame(Code::InvalidField, "deadline", &message)
                .hint("use a later deadline; the server compares times with the clock of the store")
        }
        Refusal::TooLarge { bytes, bytes_max } => {
            let message = format!("has {bytes} bytes; the limit of the store is {bytes_max}");
            blame(Code::TooLarge, "payload", &message)
        }
        Refusal::HolderTooOld { holder } => {
            let message = format!("cannot be stored while `{holder}` runs an older release");
            blame(Code::WrongState, "kind", &message)
                .hint("upgrade that node or worker, and send the request again")
        }
        Refusal::AbovePayloadLimit { bytes, bytes_max } => {
            let message = format!("has {bytes} bytes; the limit is {bytes_max}");
            blame(Code::TooLarge, "payload", &message)
                .hint("make the payload smaller, or raise engine.payload_bytes_max in the config")
        }
        Refusal::TenantFull { jobs_max } => {
            let tenant = job.tenant.as_ref().map_or("", Tenant::as_str);
            let message = format!("`{tenant}` is at its limit of {jobs_max} live jobs");
            let hint = "submit the job again when some jobs of the tenant have ended, or raise jobs_max of the tenant in the config";
            blame(Code::Throttled, "tenant", &message).hint(hint)
        }
    }
}

/// Returns when a job may first run: after a delay, or at a time.
fn due(fields: &mut Fields<'_>, debounce: Option<Debounce>) -> Option<When> {
    let delay = fields.text("delay", wait);
    let due = fields.text("due", rfc3339::parse);
    if let Some(debounce) = debounce {
        let other = if delay.is_some() { "delay" } else { "due" };
        if delay.is_some() || due.is_some() {
            let why = format!("cannot be combined with `{other}`: remove one of the two");
            fields.wrong("debounce", why);
        }
        return Some(When::In(debounce.delay()));
    }
    match (delay, due) {
        (Some(_), Some(_)) => {
            fields.wrong("due", "cannot be combined with `delay`: remove one of the two");
            None
        }
        (Some(delay), None) => Some(When::In(delay)),
        (None, Some(due)) => Some(When::At(due)),
        (None, None) => None,
    }
}

fn kind(text: &str) -> Result<KindName, String> {
    let kind = KindName::parse(text).map_err(|error| error.to_string())?;
    if kind.is_reserved() {
        return Err("must not begin with `rewheel.`: these kinds are reserved".to_owned());
    }
    Ok(kind)
}

fn wait(text: &str) -> Result<Duration, String> {
    if text.starts_with('-') {
        return Err("must not be negative".to_owned());
    }
    let wait = duration::parse(text).map_err(|error| error.to_string())?;
    if wait > Limits::DURATION_MAX {
        return Err(format!("must be {} or shorter", duration::text(Limits::DURATION_MAX)));
    }
    Ok(wait)
}

fn priority(number: i64) -> Result<Priority, String> {
    let priority = u8::try_from(number).unwrap_or(u8::MAX);
    Priority::new(priority).map_err(|error| error.to_string())
}

fn at_least_one(number: i64) -> Result<u32, String> {
    let number = u32::try_from(number).ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("must be 1 to {}", u32::MAX))
}

#[cfg(test)]
mod tests;
