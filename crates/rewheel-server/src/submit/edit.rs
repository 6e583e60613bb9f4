//! Parses an edit of one job.

use super::{at_least_one, priority};
use crate::fields::Fields;
use crate::payload;
use crate::problem::{Code, Problem};
use crate::rfc3339;
use rewheel_core::When;
use rewheel_core::store::Edit;

/// Every field of a job that can be edited.
pub(crate) const FIELDS: [&str; 5] = ["payload", "priority", "due", "deadline", "attempts_max"];

/// Parses an edit. A deadline of `null` removes the deadline.
pub(crate) fn parse_edit(text: &str, bytes_max: usize) -> Result<Edit, Problem> {
    let mut fields = Fields::read(text, "", &FIELDS)?;
    let removes = fields.get("deadline").is_some() && !fields.has("deadline");
    let deadline = fields.text("deadline", rfc3339::parse).map(When::At);
    let payload = fields.take("payload").map(serde_json::value::RawValue::get);
    let edit = Edit {
        payload: payload.map(|payload| payload.as_bytes().to_vec()),
        priority: fields.number("priority", priority),
        due: fields.text("due", rfc3339::parse).map(When::At),
        deadline: if removes { Some(None) } else { deadline.map(Some) },
        attempts_max: fields.number("attempts_max", at_least_one),
    };
    let bytes = edit.payload.as_ref().map_or(0, Vec::len);
    let is_too_large = bytes > bytes_max;
    if is_too_large {
        fields.wrong("payload", format!("has {bytes} bytes; the limit is {bytes_max}"));
    } else if let Some(Err(why)) = payload.map(payload::check) {
        fields.wrong("payload", why);
    }
    let errors = fields.into_errors();
    if !errors.is_empty() {
        let code = if is_too_large { Code::TooLarge } else { Code::InvalidField };
        return Err(Problem::of_fields(code, errors));
    }
    if edit == Edit::default() {
        let problem = Problem::new(Code::InvalidField, "the request contains no field to change");
        return Err(problem.hint(format!("send at least one of the fields {}", FIELDS.join(", "))));
    }
    Ok(edit)
}

#[cfg(test)]
mod tests {
    use super::{Code, Edit, parse_edit};

    #[test]
    fn what_is_said_is_changed_and_nothing_else() {
        let text = r#"{"payload":{"a":1},"priority":9,"due":"2026-01-01T00:00:00Z","attempts_max":3,
            "deadline":"2026-01-02T00:00:00Z"}"#;
        let edit = parse_edit(text, 100).unwrap();
        assert_eq!(edit.payload.as_deref(), Some(&br#"{"a":1}"#[..]));
        assert!(edit.due.is_some() && edit.priority.is_some() && edit.attempts_max == Some(3));
        assert!(matches!(edit.deadline, Some(Some(_))));
        let none = parse_edit(r#"{"deadline":null}"#, 100).unwrap();
        assert_eq!(none, Edit { deadline: Some(None), ..Edit::default() });
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, field) in [
            (r#"{"priority":10}"#, "/priority"),
            (r#"{"due":"soon"}"#, "/due"),
            (r#"{"attempts_max":0}"#, "/attempts_max"),
            (r#"{"kind":"a"}"#, "/kind"),
        ] {
            let problem = parse_edit(text, 100).unwrap_err();
            assert_eq!(
                (problem.code, problem.errors[0].field.as_str()),
                (Code::InvalidField, field)
            );
        }
        assert_eq!(parse_edit("{}", 100).unwrap_err().code, Code::InvalidField);
        assert_eq!(parse_edit(r#"{"payload":12345}"#, 4).unwrap_err().code, Code::TooLarge);
    }
}
