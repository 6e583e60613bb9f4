//! Reads an order to change many jobs.

use crate::conditions::{Conditions, NAMES};
use crate::fields::{Fields, pointer};
use crate::problem::{Code, FieldError, Problem};
use crate::rfc3339;
use rewheel_core::When;
use rewheel_engine::{Bulk, BulkVerb, OperateError, Rate, Selection};

/// Every field of an order: which jobs first, then what else may be said.
pub(crate) const FIELDS: [&str; 5] = ["filter", "dry_run", "rate", "canary", "deadline"];

/// An order, as a request has it.
#[derive(Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) bulk: Bulk,
    /// Whether to say what would be changed, and change nothing.
    pub(crate) dry_run: bool,
}

/// Reads an order that says which jobs are meant.
pub(crate) fn parse(verb: BulkVerb, text: &str) -> Result<Order, Problem> {
    let mut fields = Fields::read(text, "", &FIELDS)?;
    let selection = match fields.take("filter").map(|raw| raw.get()) {
        Some(raw) if raw != "null" => {
            let (selection, errors) = selection(raw)?;
            fields.note(errors);
            selection
        }
        _ => {
            fields.wrong("filter", "is missing: say which jobs");
            Selection::default()
        }
    };
    finish(verb, selection, fields)
}

/// Reads an order about jobs that are known.
pub(crate) fn parse_about(
    selection: Selection,
    verb: BulkVerb,
    text: &str,
) -> Result<Order, Problem> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let fields = Fields::read(text, "", &FIELDS[1..])?;
    finish(verb, selection, fields)
}

fn finish(verb: BulkVerb, selection: Selection, mut fields: Fields<'_>) -> Result<Order, Problem> {
    let bulk = Bulk {
        verb,
        selection,
        rate: fields.text("rate", str::parse::<Rate>),
        canary: fields.numbers("canary"),
        deadline: fields.text("deadline", rfc3339::parse).map(When::At),
    };
    let dry_run = fields.flag("dry_run").unwrap_or(false);
    let mut errors = fields.into_errors();
    if errors.is_empty()
        && let Err(OperateError::Field { field, why }) = bulk.check()
    {
        let at = if field == "state" { "/filter" } else { "" };
        errors.push(FieldError::new(pointer(at, field), why));
    }
    if errors.is_empty() {
        return Ok(Order { bulk, dry_run });
    }
    Err(Problem::of_fields(Code::InvalidField, errors))
}

fn selection(text: &str) -> Result<(Selection, Vec<FieldError>), Problem> {
    let known: Vec<&str> = NAMES.into_iter().chain(["incident"]).collect();
    let mut fields = Fields::read(text, "/filter", &known)?;
    let filter = fields.filter();
    let incident = fields.text("incident", |text| Ok::<_, String>(text.to_owned()));
    Ok((Selection { filter, incident }, fields.into_errors()))
}

#[cfg(test)]
mod tests {
    use super::{Code, parse};
    use rewheel_engine::BulkVerb;

    #[test]
    fn everything_that_may_be_said_is_read() {
        let text = r#"{"filter":{"kind":"a","state":["dead"],"tenant":"shop","category":"timeout","q":"x",
            "incident":"00ff","due_after":"2026-01-01T00:00:00Z","due_before":"2026-01-02T00:00:00Z",
            "created_after":"2026-01-01T00:00:00Z","created_before":"2026-01-02T00:00:00Z"},
            "dry_run":true,"rate":"100/s","canary":[1,10,100],"deadline":"2030-01-01T00:00:00Z"}"#;
        let order = parse(BulkVerb::Redrive, text).unwrap();
        let filter = &order.bulk.selection.filter;
        assert_eq!((filter.kinds.len(), filter.states.len(), order.dry_run), (1, 1, true));
        assert_eq!(order.bulk.selection.incident.as_deref(), Some("00ff"));
        assert_eq!((order.bulk.canary.len(), order.bulk.rate), (3, "100/s".parse().ok()));
        assert!(
            filter.due_after < filter.due_before && filter.created_after < filter.created_before
        );
        assert!(filter.tenant.is_some() && filter.category.is_some() && filter.text.is_some());
        assert!(order.bulk.deadline.is_some());
        let several = parse(BulkVerb::Pause, r#"{"filter":{"kind":["a","b"]}}"#).unwrap();
        assert_eq!((several.bulk.selection.filter.kinds.len(), several.dry_run), (2, false));
    }

    #[track_caller]
    fn check(verb: BulkVerb, text: &str, field: &str) {
        let problem = parse(verb, text).unwrap_err();
        assert_eq!(problem.code, Code::InvalidField);
        assert_eq!(problem.errors[0].field, field, "{problem:?}");
    }

    #[test]
    fn a_mistake_is_named() {
        let redrive = BulkVerb::Redrive;
        check(redrive, "{}", "/filter");
        check(redrive, r#"{"filter":null}"#, "/filter");
        check(redrive, r#"{"filter":{}}"#, "/filter");
        check(redrive, r#"{"filter":{"kinds":"a"}}"#, "/filter/kinds");
        check(redrive, r#"{"filter":{"kind":"No!"}}"#, "/filter/kind");
        check(redrive, r#"{"filter":{"kind":[7]}}"#, "/filter/kind");
        check(redrive, r#"{"filter":{"state":"scheduled"}}"#, "/filter/state");
        check(redrive, r#"{"filter":{"kind":"a"},"rate":"fast"}"#, "/rate");
        check(redrive, r#"{"filter":{"kind":"a"},"canary":[0]}"#, "/canary");
        check(redrive, r#"{"filter":{"kind":"a"},"canary":7}"#, "/canary");
        check(redrive, r#"{"filter":{"kind":"a"},"dry_run":"yes"}"#, "/dry_run");
        check(redrive, r#"{"filter":{"kind":"a"},"dryrun":true}"#, "/dryrun");
        check(BulkVerb::Cancel, r#"{"filter":{"kind":"a"},"canary":[1]}"#, "/canary");
    }
}
