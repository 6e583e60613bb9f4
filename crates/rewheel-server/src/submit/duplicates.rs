//! Parses what a submit does if another job has its key.

use super::wait;
use crate::fields::Fields;
use crate::problem::{Code, FieldError, Problem};
use rewheel_core::{Debounce, Duplicates, NewJob, OnDuplicate, UniqueUntil};
use std::time::Duration;

/// The fields of a `debounce` that is an object.
const DEBOUNCE_FIELDS: [&str; 2] = ["delay", "max"];

/// Takes `unique_until`, `on_duplicate` and `debounce`.
///
/// # Errors
/// If `debounce` is an object that is not valid JSON.
pub(super) fn duplicates(fields: &mut Fields<'_>) -> Result<Option<Duplicates>, Problem> {
    let unique_until = fields.text("unique_until", UniqueUntil::parse);
    let on_duplicate = fields.text("on_duplicate", OnDuplicate::parse);
    let Some(debounce) = debounce(fields)? else { return Ok(None) };
    match Duplicates::new(unique_until, on_duplicate, debounce) {
        Ok(duplicates) => Ok(Some(duplicates)),
        Err(error) => {
            fields.wrong(error.field, error.why);
            Ok(None)
        }
    }
}

/// Checks what can be checked only when the key is known: it may be in a header.
///
/// # Errors
/// Names the field that needs a key.
pub fn check_duplicates(at: &str, job: &NewJob) -> Result<(), Problem> {
    job.check_duplicates().map_err(|error| {
        let error = FieldError::new(format!("{at}/{}", error.field), error.why);
        Problem::of_fields(Code::InvalidField, vec![error])
    })
}

/// Takes `debounce`: a duration, or an object with `delay` and `max`. Returns `None` if it is wrong.
fn debounce(fields: &mut Fields<'_>) -> Result<Option<Option<Debounce>>, Problem> {
    let Some(raw) = fields.get("debounce").filter(|raw| raw.get() != "null") else {
        fields.take("debounce");
        return Ok(Some(None));
    };
    let times: Option<(Duration, Option<Duration>)> = if raw.get().starts_with('{') {
        fields.take("debounce");
        let mut inner = Fields::read(raw.get(), &fields.pointer("debounce"), &DEBOUNCE_FIELDS)?;
        if !inner.has("delay") {
            inner.wrong("delay", "is required");
        }
        let (delay, max) = (inner.text("delay", wait), inner.text("max", wait));
        let errors = inner.into_errors();
        let times = delay.filter(|_| errors.is_empty()).map(|delay| (delay, max));
        fields.note(errors);
        times
    } else {
        fields.text("debounce", wait).map(|delay| (delay, None))
    };
    let Some((delay, max)) = times else { return Ok(None) };
    match Debounce::new(delay, max) {
        Ok(debounce) => Ok(Some(Some(debounce))),
        Err(error) => {
            fields.wrong("debounce", error.why);
            Ok(None)
        }
    }
}
