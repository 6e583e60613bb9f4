//! Tests of valid and invalid failure rules.

use crate::settings::KindSettings;
use rewheel::{Category, StatusSet, minutes, seconds};
use rewheel_core::{Action, FailureRule, FailureRules, Sticky};
use serde_json::{Value, json};

fn parse(routes: &Value) -> Result<KindSettings, String> {
    let settings: KindSettings = serde_json::from_value(json!({ "failure_rules": routes }))
        .map_err(|error| error.to_string())?;
    settings.check().map_err(|error| error.to_string())?;
    Ok(settings)
}

#[track_caller]
fn says(rule: &Value, expected: &str) {
    let error = parse(&json!([{"when": {"code": "a"}, "then": "dead"}, rule])).unwrap_err();
    let error = error.strip_prefix("failure_rules: ").unwrap_or(&error);
    assert_eq!(error, expected);
}

#[test]
fn rules_are_read_and_written_back() {
    let routes = json!([
        {"when": {"status": "409"}, "then": "snooze 5m"},
        {"when": {"category": "throttled"}, "then": "retry x4", "sticky": false},
        {"when": {"category": ["io", "timeout"], "code": "E*", "message": "reset"}, "then": "retry 30s", "sticky": true},
        {"when": {"code": ["card_*", "stolen"], "status": "404 5xx"}, "then": "dead"},
        {"then": "pause"},
    ]);
    let settings = parse(&routes).unwrap();
    let expected = FailureRules::new()
        .rule(FailureRule::new(Action::Snooze(minutes(5))).on_status(StatusSet::EMPTY.with(409)))
        .rule(
            FailureRule::new(Action::RetrySlower(4))
                .on_category(Category::Throttled)
                .sticky(Sticky::No),
        )
        .rule(
            FailureRule::new(Action::RetryAfter(seconds(30)))
                .on_category(Category::Io)
                .on_category(Category::Timeout)
                .on_code("E*")
                .on_message("reset")
                .sticky(Sticky::Yes),
        )
        .rule(
            FailureRule::new(Action::Dead)
                .on_code("card_*")
                .on_code("stolen")
                .on_status(StatusSet::EMPTY.with(404).with_class(5)),
        )
        .rule(FailureRule::new(Action::Pause));
    assert_eq!(settings.failure_rules, expected);
    assert_eq!(serde_json::to_value(&settings).unwrap()["failure_rules"], routes);
}

#[test]
fn a_status_may_be_a_number_or_several() {
    let settings = parse(&json!([{"when": {"status": [409, "5xx"]}, "then": "dead"}])).unwrap();
    let statuses = StatusSet::EMPTY.with(409).with_class(5);
    assert_eq!(
        settings.failure_rules,
        FailureRules::new().rule(FailureRule::new(Action::Dead).on_status(statuses))
    );
}

#[test]
fn a_kind_without_rules_does_not_mention_them() {
    let written = serde_json::to_value(KindSettings::default()).unwrap();
    assert!(written.get("failure_rules").is_none(), "an older node can still read it");
}

#[test]
fn a_mistake_is_told_with_the_number_of_its_rule() {
    let code = json!({"code": "b"});
    says(
        &json!({"when": code, "then": "snoze 5m"}),
        "rule 2: then: `snoze 5m` is not one of retry, retry 30s, retry x4, snooze 5m, dead, fail, \
         pause, cancel",
    );
    says(&json!({"when": code}), "rule 2: then: is required: the action");
    says(&json!({"when": code, "then": 5}), "rule 2: then: must be a string such as \"snooze 5m\"");
    says(&json!("dead"), "rule 2: must be a table with `when` and `then`");
    says(
        &json!({"when": code, "than": "dead", "then": "dead"}),
        "rule 2: unknown key `than`: the keys are when, then, sticky",
    );
    says(
        &json!({"when": {"codes": "b"}, "then": "dead"}),
        "rule 2: when: unknown key `codes`: the keys are category, code, status, message",
    );
    says(
        &json!({"when": {}, "then": "dead"}),
        "rule 2: when: is empty: set category, code, status or message, or remove it to match every failure",
    );
    says(
        &json!({"when": "409", "then": "dead"}),
        "rule 2: when: must be a table such as { status = \"409\" }",
    );
    says(
        &json!({"when": {"category": "busy"}, "then": "dead"}),
        "rule 2: category: `busy` is not one of timeout, io, throttled, circuit_open, \
         bulkhead_full, rejected, transient, cancelled, deadline, panic, no_handler, bad_payload, \
         unknown",
    );
    says(
        &json!({"when": {"category": 5}, "then": "dead"}),
        "rule 2: category: must be a string or a list of strings",
    );
    says(
        &json!({"when": {"code": []}, "then": "dead"}),
        "rule 2: code: is empty: name at least one",
    );
    says(
        &json!({"when": {"status": "none"}, "then": "dead"}),
        "rule 2: status: must name a status, such as 409 or 5xx",
    );
    says(&json!({"when": {"message": 5}, "then": "dead"}), "rule 2: message: must be a string");
    says(
        &json!({"when": code, "then": "retry", "sticky": "no"}),
        "rule 2: sticky: must be true or false",
    );
}

#[test]
fn a_bad_status_is_quoted() {
    let error = parse(&json!([{"when": {"status": "6xx"}, "then": "dead"}])).unwrap_err();
    assert!(error.starts_with("rule 1: status: `6xx` "), "{error}");
}

#[test]
fn a_rule_that_cannot_work_is_told_too() {
    let code = json!({"code": "b"});
    says(
        &json!({"when": code, "then": "snooze 5m", "sticky": true}),
        "rule 2: sticky: applies only to retry, not to `snooze 5m`",
    );
    says(
        &json!({"when": code, "then": "retry 2h"}),
        "rule 2: then: `retry 2h` is longer than retry_after_max (1h)",
    );
    says(
        &json!({"when": code, "then": "retry x1"}),
        "rule 2: then: `retry x1`: must be x2 to x1000",
    );
}
