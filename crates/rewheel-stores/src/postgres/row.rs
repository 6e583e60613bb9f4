//! Reads a job from its row.

use super::error::{VerbError, unreadable};
use rewheel::{Backoff, Category};
use rewheel_core::{
    DueReason, Failure, Fence, HolderId, Job, JobId, Lane, State, Status, Tenant, Timestamp,
    Version, Wanted,
};
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// Whether to read the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Read,
    LeaveOut,
}

/// Reads a job of any table by column position. All statements that read whole jobs have the same columns.
pub(super) fn read_job(row: &Row, lane: Lane, payload: Payload) -> Result<Job, VerbError> {
    let state: State = row.try_get::<_, &str>(2)?.parse().map_err(|_| unreadable("a state"))?;
    let ended = || Ok::<_, VerbError>(instant(row.try_get(25)?));
    let status = match state {
        State::Scheduled => Status::Scheduled,
        State::Paused => Status::Paused,
        State::Leased => Status::Leased {
            // A holder's row is kept while it has jobs. The nil id means that there was no such holder.
            holder: holder_id(row.try_get::<_, Option<Uuid>>(11)?.unwrap_or_default()),
            overdue: instant(row.try_get(12)?),
            wanted: wanted(row.try_get(13)?)?,
        },
        State::Succeeded => Status::Succeeded(ended()?),
        State::Failed => Status::Failed(ended()?),
        State::Dead => Status::Dead(ended()?),
        State::Cancelled => Status::Cancelled(ended()?),
    };
    Ok(Job {
        id: job_id(row.try_get(0)?),
        lane,
        due: instant(row.try_get(3)?),
        because: because(row.try_get(4)?)?,
        status,
        fence: fence(row.try_get(5)?),
        version: version(row.try_get(6)?),
        attempt: small(row.try_get(7)?),
        attempts_before: small(row.try_get(8)?),
        takeovers: small(row.try_get(9)?),
        takeovers_counted: small(row.try_get(10)?),
        created: instant(row.try_get(14)?),
        deadline: row.try_get::<_, Option<i64>>(15)?.map(instant),
        attempts_max: row.try_get::<_, Option<i64>>(16)?.map(number),
        attempt_timeout: row.try_get::<_, Option<i64>>(17)?.map(duration),
        backoff: backoff(row.try_get(18)?)?,
        key: parsed(row.try_get(19)?, "a key")?,
        shard_key: parsed(row.try_get(20)?, "a shard key")?,
        traceparent: row.try_get(21)?,
        failure: failure(row.try_get(22)?, row.try_get(23)?, row.try_get(24)?)?,
        payload: match payload {
            Payload::Read => Some(row.try_get(26)?),
            Payload::LeaveOut => None,
        },
    })
}

/// Reads a job that was just claimed.
pub(super) fn read_claimed(row: &Row, lane: Lane, holder: HolderId) -> Result<Job, VerbError> {
    Ok(Job {
        id: job_id(row.try_get(4)?),
        lane,
        due: instant(row.try_get(5)?),
        because: because(row.try_get(6)?)?,
        status: Status::Leased { holder, overdue: instant(row.try_get(25)?), wanted: None },
        fence: fence(row.try_get(7)?),
        version: version(row.try_get(8)?),
        attempt: small(row.try_get(9)?),
        attempts_before: small(row.try_get(10)?),
        takeovers: small(row.try_get(11)?),
        takeovers_counted: small(row.try_get(12)?),
        created: instant(row.try_get(13)?),
        deadline: row.try_get::<_, Option<i64>>(14)?.map(instant),
        attempts_max: row.try_get::<_, Option<i64>>(15)?.map(number),
        attempt_timeout: row.try_get::<_, Option<i64>>(16)?.map(duration),
        backoff: backoff(row.try_get(17)?)?,
        key: parsed(row.try_get(18)?, "a key")?,
        shard_key: parsed(row.try_get(19)?, "a shard key")?,
        traceparent: row.try_get(20)?,
        failure: failure(row.try_get(21)?, row.try_get(22)?, row.try_get(23)?)?,
        payload: Some(row.try_get(24)?),
    })
}

pub(super) fn failure(
    category: Option<&str>,
    code: Option<&str>,
    message: Option<&str>,
) -> Result<Option<Failure>, VerbError> {
    let Some(category) = category else { return Ok(None) };
    let category: Category = category.parse().map_err(|_| unreadable("a category"))?;
    Ok(Some(Failure::new(category, code, message.unwrap_or_default())))
}

/// Returns category, code and message as they are stored.
pub(super) fn texts(failure: Option<&Failure>) -> (Option<&str>, Option<&str>, Option<&str>) {
    match failure {
        Some(failure) => {
            (Some(failure.category().as_str()), failure.code(), Some(failure.message()))
        }
        None => (None, None, None),
    }
}

pub(super) fn wanted(text: Option<&str>) -> Result<Option<Wanted>, VerbError> {
    match text {
        None => Ok(None),
        Some("pause") => Ok(Some(Wanted::Pause)),
        Some("cancel") => Ok(Some(Wanted::Cancel)),
        Some(_) => Err(unreadable("a requested change")),
    }
}

/// Reads a backoff. The name of a custom backoff may be unknown to this process.
fn backoff(text: Option<&str>) -> Result<Option<Backoff>, VerbError> {
    text.map(|text| Backoff::from_stored(text).map_err(|_| unreadable("a backoff"))).transpose()
}

fn because(text: &str) -> Result<DueReason, VerbError> {
    DueReason::named(text).ok_or_else(|| unreadable("a due reason"))
}

/// Parses a text that one of our own types wrote.
fn parsed<T: FromStr>(text: Option<&str>, what: &str) -> Result<Option<T>, VerbError> {
    text.map(|text| text.parse().map_err(|_| unreadable(what))).transpose()
}

pub(super) fn job_id(id: Uuid) -> JobId {
    JobId::from_bytes(id.into_bytes())
}

pub(super) fn holder_id(id: Uuid) -> HolderId {
    HolderId::from_bytes(id.into_bytes())
}

pub(super) fn uuid(id: JobId) -> Uuid {
    Uuid::from_bytes(id.to_bytes())
}

pub(super) fn holder_uuid(id: HolderId) -> Uuid {
    Uuid::from_bytes(id.to_bytes())
}

pub(super) fn fence(fence: i64) -> Fence {
    Fence::new(unsigned(fence))
}

pub(super) fn version(version: i64) -> Version {
    Version::new(unsigned(version))
}

/// Converts a number that is never negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn number(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

pub(super) fn small(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// Converts a count to the server's number type.
pub(super) fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts a job's counter to the server's number type.
pub(super) fn counter(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

pub(super) fn instant(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(super) fn duration(millis: i64) -> Duration {
    Duration::from_millis(unsigned(millis))
}

/// Converts a duration to whole milliseconds, rounded up.
pub(super) fn millis(duration: Duration) -> i64 {
    Timestamp::from_millis(0).plus(duration).as_millis()
}

/// Returns the stored form of a tenant: the empty text stands for no tenant.
pub(super) fn tenant_text(tenant: Option<&Tenant>) -> &str {
    tenant.map_or("", Tenant::as_str)
}

pub(super) fn read_tenant(text: &str) -> Result<Option<Tenant>, VerbError> {
    if text.is_empty() {
        return Ok(None);
    }
    Tenant::parse(text).map(Some).map_err(|_| unreadable("a tenant"))
}
