//! Parses the result of a job that a worker sends.

use crate::fields::Fields;
use crate::problem::Problem;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rewheel_core::{ContentType, JobResult};

/// Every field of the result of a job.
pub(crate) const JOB_RESULT_FIELDS: [&str; 3] = ["content_type", "body", "body_base64"];

/// Takes the field `result` of one settled attempt, which is at `at` in the request. Its size is no error: a result that is too
/// large is dropped, and the job still succeeds.
pub(super) fn take(outer: &mut Fields<'_>, at: &str) -> Result<Option<JobResult>, Problem> {
    let Some(raw) = outer.take("result").filter(|raw| raw.get() != "null") else { return Ok(None) };
    let mut fields = Fields::read(raw.get(), &format!("{at}/result"), &JOB_RESULT_FIELDS)?;
    let content_type = fields.text("content_type", ContentType::parse);
    let (json, has_bytes) = (fields.take("body"), fields.has("body_base64"));
    let bytes = fields.text("body_base64", |text| {
        BASE64_STANDARD.decode(text).map_err(|error| format!("must be Base64: {error}"))
    });
    let result = match (json, bytes, has_bytes) {
        (Some(_), _, true) => {
            fields.wrong("body_base64", "is allowed only without `body`: remove one of the two");
            None
        }
        (Some(json), ..) => {
            let content_type = content_type.unwrap_or_else(ContentType::json);
            if !content_type.is_json() {
                let why = "must be a JSON type if the result is in `body`: send other types in `body_base64`";
                fields.wrong("content_type", why);
            }
            Some(JobResult { content_type, body: json.get().as_bytes().to_vec() })
        }
        (None, Some(body), _) => {
            let content_type = content_type.unwrap_or_else(ContentType::bytes);
            Some(JobResult { content_type, body })
        }
        // Said already.
        (None, None, true) => None,
        (None, None, false) => {
            fields.wrong("body", "is required: set it to a JSON value, or set `body_base64`");
            None
        }
    };
    outer.note(fields.into_errors());
    Ok(result)
}
