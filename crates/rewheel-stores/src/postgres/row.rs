//! Converts single values between rows and the types of this program.

use super::error::{VerbError, unreadable};
use rewheel::{Backoff, Category};
use rewheel_core::{
    DueReason, Failure, Fence, HolderId, JobId, Tenant, Timestamp, Version, Wanted,
};
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

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
pub(super) fn backoff(text: Option<&str>) -> Result<Option<Backoff>, VerbError> {
    text.map(|text| Backoff::from_stored(text).map_err(|_| unreadable("a backoff"))).transpose()
}

pub(super) fn because(text: &str) -> Result<DueReason, VerbError> {
    DueReason::named(text).ok_or_else(|| unreadable("a due reason"))
}

/// Parses a text that one of our own types wrote.
pub(super) fn parsed<T: FromStr>(text: Option<&str>, what: &str) -> Result<Option<T>, VerbError> {
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
