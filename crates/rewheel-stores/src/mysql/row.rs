//! Converts single values between rows and the types of this program.

use super::error::{VerbError, unreadable};
use mysql_async::prelude::FromValue;
use mysql_async::{Row, Value};
use rewheel::{Backoff, Category};
use rewheel_core::{DueReason, Failure, Timestamp, Wanted};
use std::str::FromStr;
use std::time::Duration;

/// Reads a column.
pub(super) fn get<T: FromValue>(row: &Row, at: usize) -> Result<T, VerbError> {
    match row.get_opt(at) {
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) | None => {
            let name = row.columns_ref().get(at).map(|column| column.name_str().into_owned());
            Err(unreadable(&format!("column {}", name.unwrap_or_else(|| at.to_string()))))
        }
    }
}

/// Reads an id or a hash.
pub(super) fn bytes<const N: usize>(row: &Row, at: usize) -> Result<[u8; N], VerbError> {
    let value: Vec<u8> = get(row, at)?;
    value.try_into().map_err(|_| unreadable("an id"))
}

/// Reads an id or a hash that may be missing.
pub(super) fn maybe_bytes<const N: usize>(
    row: &Row,
    at: usize,
) -> Result<Option<[u8; N]>, VerbError> {
    let value: Option<Vec<u8>> = get(row, at)?;
    value.map(|value| value.try_into().map_err(|_| unreadable("an id"))).transpose()
}

/// Returns an id as a value.
pub(super) fn id16(id: [u8; 16]) -> Value {
    Value::Bytes(id.to_vec())
}

/// Returns a number as a value: all columns are signed.
pub(super) fn count(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
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

pub(super) fn wanted(number: u8) -> Result<Option<Wanted>, VerbError> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Wanted::Pause)),
        2 => Ok(Some(Wanted::Cancel)),
        _ => Err(unreadable("a requested change")),
    }
}

/// Returns the stored form of a requested change.
pub(super) fn wanted_number(wanted: Option<Wanted>) -> u8 {
    match wanted {
        None => 0,
        Some(Wanted::Pause) => 1,
        Some(Wanted::Cancel) => 2,
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
