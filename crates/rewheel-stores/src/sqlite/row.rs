//! Converts single values between rows and the types of this program.

use super::error::{VerbError, unreadable};
use rewheel::{Backoff, Category};
use rewheel_core::{DueReason, Failure, Timestamp, Wanted};
use rusqlite::Row;
use rusqlite::types::FromSql;
use std::str::FromStr;
use std::time::Duration;

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
pub(super) fn backoff(text: Option<String>) -> Result<Option<Backoff>, VerbError> {
    text.map(|text| Backoff::from_stored(&text).map_err(|_| unreadable("a backoff"))).transpose()
}

pub(super) fn because(text: &str) -> Result<DueReason, VerbError> {
    DueReason::named(text).ok_or_else(|| unreadable("a due reason"))
}

/// Parses a text that one of our own types wrote.
pub(super) fn parsed<T: FromStr>(text: Option<String>, what: &str) -> Result<Option<T>, VerbError> {
    text.map(|text| text.parse().map_err(|_| unreadable(what))).transpose()
}

/// Converts a number that is never negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
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
