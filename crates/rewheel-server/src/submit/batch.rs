//! Parses many jobs from one request.

use crate::fields::{Fields, List, bad_json};
use crate::problem::{Code, FieldError, Problem};
use rewheel_core::{JobId, Limits, NewJob};
use serde_json::value::RawValue;

/// Parses `{"jobs":[…]}`: returns the job or the errors of each entry.
///
/// # Errors
/// Says what is wrong with the request as a whole.
pub fn parse_batch(
    text: &str,
    mut new_id: impl FnMut() -> JobId,
    payload_bytes_max: usize,
) -> Result<Vec<Result<NewJob, Problem>>, Problem> {
    let mut fields = Fields::read(text, "", &["jobs"])?;
    let Some(raw) = fields.take("jobs") else {
        fields.wrong("jobs", "is required: set it to a list of jobs");
        return Err(Problem::of_fields(Code::InvalidField, fields.into_errors()));
    };
    let entries = List::read(raw.get(), Limits::SUBMIT_MAX);
    let entries = entries.map_err(|error| bad_json(&error, "/jobs"))?;
    if entries.count > Limits::SUBMIT_MAX {
        let message = format!("has {} entries; the limit is {}", entries.count, Limits::SUBMIT_MAX);
        return Err(Problem::of_fields(Code::TooLarge, vec![FieldError::new("/jobs", message)]));
    }
    let errors = fields.into_errors();
    if !errors.is_empty() {
        return Err(Problem::of_fields(Code::InvalidField, errors));
    }
    let parse = |(place, entry): (usize, &&RawValue)| {
        let at = format!("/jobs/{place}");
        let job = super::parse_at(&at, entry.get(), new_id(), payload_bytes_max)?;
        super::check_duplicates(&at, &job).map(|()| job)
    };
    Ok(entries.kept.iter().enumerate().map(parse).collect())
}
