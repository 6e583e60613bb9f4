//! Parses requests to change many jobs.

use crate::conditions::{Conditions, NAMES};
use crate::fields::{Fields, pointer};
use crate::problem::{Code, FieldError, Problem};
use crate::rfc3339;
use rewheel_core::When;
use rewheel_engine::{Bulk, BulkVerb, OperateError, Rate, Selection};

/// Every field of a bulk request: first those that select jobs, then the options.
pub(crate) const FIELDS: [&str; 6] = ["filter", "all", "dry_run", "rate", "canary", "deadline"];

/// The number of fields that select jobs.
pub(crate) const FIELDS_WHICH: usize = 2;

/// A parsed bulk request.
#[derive(Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) bulk: Bulk,
    /// Whether to report what would change, without changing anything.
    pub(crate) dry_run: bool,
}

/// Parses a bulk request that selects jobs.
pub(crate) fn parse(verb: BulkVerb, text: &str) -> Result<Order, Problem> {
    let mut fields = Fields::read(text, "", &FIELDS)?;
    let selection = match fields.take("filter").map(|raw| raw.get()) {
        Some(raw) if raw != "null" => {
            let (selection, errors) = selection(raw)?;
            fields.note(errors);
            selection
        }
        _ => Selection::default(),
    };
    let all = fields.flag("all").unwrap_or(false);
    if all && selection.narrows(verb) {
        fields.wrong(
            "all",
            "cannot be combined with filter conditions: remove `all`, or remove the conditions",
        );
    }
    finish(verb, selection, all, fields)
}

/// Parses a bulk request for a given selection.
pub(crate) fn parse_about(
    selection: Selection,
    verb: BulkVerb,
    text: &str,
) -> Result<Order, Problem> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let fields = Fields::read(text, "", &FIELDS[FIELDS_WHICH..])?;
    finish(verb, selection, false, fields)
}

fn finish(
    verb: BulkVerb,
    selection: Selection,
    all: bool,
    mut fields: Fields<'_>,
) -> Result<Order, Problem> {
    let bulk = Bulk {
        verb,
        selection,
        all,
        rate: fields.text("rate", str::parse::<Rate>),
        canary: fields.numbers("canary"),
        deadline: fields.text("deadline", rfc3339::parse).map(When::At),
    };
    let dry_run = fields.flag("dry_run").unwrap_or(false);
    let mut errors = fields.into_errors();
    if errors.is_empty()
        && let Err(OperateError::Field { field, why }) = check(&bulk, dry_run)
    {
        errors.push(field_error(field, &why));
    }
    if errors.is_empty() {
        return Ok(Order { bulk, dry_run });
    }
    Err(Problem::of_fields(Code::InvalidField, errors))
}

/// Checks a request. A dry run may select all jobs: it shows how many jobs a request would change.
fn check(bulk: &Bulk, dry_run: bool) -> Result<(), OperateError> {
    if dry_run { bulk.clone().all().check() } else { bulk.check() }
}

/// Maps a field of a bulk operation to its place in the request.
pub(crate) fn field_error(field: &str, why: &str) -> FieldError {
    match field {
        "filter" => {
            let why = "matches every job: add a condition, or set `\"all\": true`";
            FieldError::new("/filter", why)
        }
        "state" | "kind" => FieldError::new(pointer("/filter", field), why),
        _ => FieldError::new(pointer("", field), why),
    }
}

fn selection(text: &str) -> Result<(Selection, Vec<FieldError>), Problem> {
    let mut fields = Fields::read(text, "/filter", &NAMES)?;
    let mut filter = fields.filter();
    let incident = filter.incident.take();
    Ok((Selection { filter, incident }, fields.into_errors()))
}

#[cfg(test)]
mod tests {
    use super::{Code, parse};
    use rewheel_engine::BulkVerb;

    #[test]
    fn everything_that_may_be_said_is_read() {
        let text = r#"{"filter":{"kind":"a","state":["dead"],"tenant":"shop","category":"timeout","q":"x","key":"k",
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
        assert!(
            filter.tenant.is_some()
                && filter.key.is_some()
                && filter.category.is_some()
                && filter.text.is_some()
        );
        assert!(order.bulk.deadline.is_some());
        let several = parse(BulkVerb::Pause, r#"{"filter":{"kind":["a","b"]}}"#).unwrap();
        assert_eq!((several.bulk.selection.filter.kinds.len(), several.dry_run), (2, false));
    }

    #[test]
    fn everything_is_meant_only_where_it_is_said() {
        for text in
            [r#"{"all":true}"#, r#"{"filter":{},"all":true}"#, r#"{"filter":null,"all":true}"#]
        {
            assert!(parse(BulkVerb::Cancel, text).unwrap().bulk.all, "{text}");
        }
        // A filter on all states that the verb applies to selects everything.
        let states = r#"{"filter":{"state":["scheduled","leased","paused"]}"#;
        assert!(parse(BulkVerb::Cancel, &format!("{states}}}")).is_err());
        assert!(parse(BulkVerb::Cancel, &format!("{states},\"all\":true}}")).is_ok());
        assert!(parse(BulkVerb::Cancel, r#"{"filter":{"state":"paused"}}"#).is_ok());
        for text in ["{}", r#"{"filter":{}}"#] {
            let dry = format!(
                "{}\"dry_run\":true}}",
                text.trim_end_matches('}').to_owned() + if text == "{}" { "" } else { "}," }
            );
            assert!(parse(BulkVerb::Cancel, &dry).unwrap().dry_run, "{dry}");
        }
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
        check(redrive, r#"{"filter":{"q":""}}"#, "/filter/q");
        check(redrive, r#"{"filter":{"q":"-"}}"#, "/filter");
        check(redrive, r#"{"filter":{"state":"dead"}}"#, "/filter");
        check(redrive, r#"{"filter":{"kind":[]}}"#, "/filter/kind");
        check(redrive, r#"{"filter":{"state":[]},"all":true}"#, "/filter/state");
        check(redrive, r#"{"filter":{"tenant":""}}"#, "/filter/tenant");
        check(redrive, r#"{"filter":{"incident":""}}"#, "/filter/incident");
        check(redrive, r#"{"filter":{"created_after":"1970-01-01T00:00:00Z"}}"#, "/filter");
        check(redrive, r#"{"filter":{"kind":"rewheel.operation"}}"#, "/filter/kind");
        check(redrive, r#"{"filter":{"kind":"a"},"all":true}"#, "/all");
        check(redrive, r#"{"all":"yes"}"#, "/all");
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
