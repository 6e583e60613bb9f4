//! Reads a job from its row.

use super::error::{VerbError, unreadable};
use super::transaction::Transaction;
use rewheel::{Backoff, Category};
use rewheel_core::{
    DueReason, Failure, Fence, HolderId, Job, JobId, Key, Lane, ShardKey, State, Status, Timestamp,
    Version, Wanted,
};
use rusqlite::Row;
use rusqlite::types::FromSql;
use std::str::FromStr;
use std::time::Duration;

/// Whether to read the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Read,
    LeaveOut,
}

/// Reads a job of any of the three tables by column name.
pub(super) fn read_job(
    tx: &mut Transaction<'_, '_>,
    row: &Row<'_>,
    payload: Payload,
) -> Result<Job, VerbError> {
    let lane = tx.lane_of(row.get("lane")?)?;
    let state: State = parse(row, "state")?;
    Ok(Job {
        id: JobId::from_bytes(row.get("id")?),
        lane,
        key: optional::<Key>(row, "key")?,
        shard_key: optional::<ShardKey>(row, "shard_key")?,
        payload: match payload {
            Payload::Read => Some(row.get("payload")?),
            Payload::LeaveOut => None,
        },
        attempts_max: row.get("attempts_max")?,
        attempt_timeout: span(row, "attempt_timeout_ms")?,
        backoff: backoff(row.get("backoff")?)?,
        traceparent: row.get("traceparent")?,
        created: instant(row.get("created_ms")?),
        deadline: row.get::<_, Option<i64>>("deadline_ms")?.map(instant),
        due: instant(row.get("due_ms")?),
        because: because(&row.get::<_, String>("because")?)?,
        status: status(row, state)?,
        fence: Fence::new(number(row, "fence")?),
        version: Version::new(number(row, "version")?),
        attempt: row.get("attempt")?,
        attempts_before: row.get("attempts_before")?,
        takeovers: row.get("takeovers")?,
        takeovers_counted: row.get("takeovers_counted")?,
        failure: failure(
            row.get("failure_category")?,
            row.get("failure_code")?,
            row.get("failure_message")?,
        )?,
    })
}

fn status(row: &Row<'_>, state: State) -> Result<Status, VerbError> {
    let ended = || Ok::<_, VerbError>(instant(row.get("ended_ms")?));
    Ok(match state {
        State::Scheduled => Status::Scheduled,
        State::Paused => Status::Paused,
        State::Leased => Status::Leased {
            // A holder's row is kept while it has jobs. The nil id means that there was no such
            // holder.
            holder: HolderId::from_bytes(
                row.get::<_, Option<[u8; 16]>>("holder_id")?.unwrap_or_default(),
            ),
            overdue: instant(row.get("overdue_ms")?),
            wanted: wanted(row.get("wanted")?)?,
        },
        State::Succeeded => Status::Succeeded(ended()?),
        State::Failed => Status::Failed(ended()?),
        State::Dead => Status::Dead(ended()?),
        State::Cancelled => Status::Cancelled(ended()?),
    })
}

/// Reads a scheduled job by column position, which is faster.
pub(super) fn read_found(row: &Row<'_>, lane: &Lane) -> Result<Job, VerbError> {
    let texts = |at| row.get::<_, Option<String>>(at);
    Ok(Job {
        id: JobId::from_bytes(row.get(1)?),
        lane: lane.clone(),
        due: instant(row.get(2)?),
        because: because(row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?)?,
        status: Status::Scheduled,
        fence: Fence::new(unsigned(row.get(4)?)),
        version: Version::new(unsigned(row.get(5)?)),
        attempt: row.get(6)?,
        attempts_before: row.get(7)?,
        takeovers: row.get(8)?,
        takeovers_counted: row.get(9)?,
        created: instant(row.get(10)?),
        deadline: row.get::<_, Option<i64>>(11)?.map(instant),
        attempts_max: row.get(12)?,
        attempt_timeout: row.get::<_, Option<i64>>(13)?.map(duration),
        backoff: backoff(texts(14)?)?,
        key: parsed(texts(15)?, "a key")?,
        shard_key: parsed(texts(16)?, "a shard key")?,
        traceparent: texts(17)?,
        failure: failure(texts(18)?, texts(19)?, texts(20)?)?,
        payload: Some(row.get(21)?),
    })
}

pub(super) fn failure(
    category: Option<String>,
    code: Option<String>,
    message: Option<String>,
) -> Result<Option<Failure>, VerbError> {
    let Some(category) = category else { return Ok(None) };
    let category: Category = category.parse().map_err(|_| unreadable("a category"))?;
    Ok(Some(Failure::new(category, code.as_deref(), message.as_deref().unwrap_or_default())))
}

pub(super) fn wanted(text: Option<String>) -> Result<Option<Wanted>, VerbError> {
    match text.as_deref() {
        None => Ok(None),
        Some("pause") => Ok(Some(Wanted::Pause)),
        Some("cancel") => Ok(Some(Wanted::Cancel)),
        Some(_) => Err(unreadable("a requested change")),
    }
}

/// Reads a backoff. The name of a custom backoff may be unknown to this process.
fn backoff(text: Option<String>) -> Result<Option<Backoff>, VerbError> {
    text.map(|text| Backoff::from_stored(&text).map_err(|_| unreadable("a backoff"))).transpose()
}

pub(super) fn because(text: &str) -> Result<DueReason, VerbError> {
    DueReason::named(text).ok_or_else(|| unreadable("a due reason"))
}

/// Parses a text that one of our own types wrote.
pub(super) fn parse<T: FromStr>(row: &Row<'_>, column: &str) -> Result<T, VerbError> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| unreadable(column))
}

fn optional<T: FromStr>(row: &Row<'_>, column: &str) -> Result<Option<T>, VerbError> {
    parsed(row.get(column)?, column)
}

fn parsed<T: FromStr>(text: Option<String>, what: &str) -> Result<Option<T>, VerbError> {
    text.map(|text| text.parse().map_err(|_| unreadable(what))).transpose()
}

fn number(row: &Row<'_>, column: &str) -> Result<u64, VerbError> {
    Ok(unsigned(row.get(column)?))
}

/// Converts a number that is never negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn span(row: &Row<'_>, column: &str) -> Result<Option<Duration>, VerbError> {
    Ok(row.get::<_, Option<i64>>(column)?.map(duration))
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

/// Reads the only column of a row.
pub(super) fn column<T: FromSql>(row: &Row<'_>) -> rusqlite::Result<T> {
    row.get(0)
}
