//! Tests the section `notify`.

use super::{check, load};
use crate::notify::{NotifyTarget, RouteTarget};
use rewheel_engine::notify::{Event, Severity};
use std::time::Duration;

#[test]
fn every_key_of_the_section_is_read() {
    let text = r#"
        [notify]
        window = "1m"
        window_max = 7
        queue_max = 10
        timeout = "3s"
        [[notify.route]]
        to = "log"
        [[notify.route]]
        to = "feishu"
        url = "http://10.0.0.7/hook"
        secrets = ["s"]
        events = ["dead_letter", "not_retryable"]
        kinds = ["charge-card"]
        tenants = ["shop"]
        severity = "error"
    "#;
    let notify = load(text, &[]).unwrap().notify;
    assert_eq!((notify.window, notify.window_max), (Duration::from_secs(60), 7));
    assert_eq!((notify.queue_max, notify.timeout), (10, Duration::from_secs(3)));
    assert_eq!(
        (notify.route.len(), notify.route[0].to.clone(), notify.route[1].to.clone()),
        (2, NotifyTarget::Log.into(), NotifyTarget::Feishu.into())
    );
    let route = notify.route[1].route();
    assert_eq!(route.events, [Event::DeadLetter, Event::NotRetryable]);
    assert_eq!((route.kinds[0].as_str(), route.tenants[0].as_str()), ("charge-card", "shop"));
    assert_eq!(route.severity, Severity::Error);
}

#[test]
fn the_environment_overrules_the_window_and_may_bring_routes() {
    let env = [
        ("REWHEEL__NOTIFY__WINDOW", "5s"),
        ("REWHEEL__NOTIFY__WINDOW_MAX", "3"),
        ("REWHEEL__NOTIFY__ROUTE", r#"[{ to = "log", severity = "error" }]"#),
    ];
    let notify = load("[notify]\nwindow_max = 9", &env).unwrap().notify;
    assert_eq!((notify.window, notify.window_max), (Duration::from_secs(5), 3));
    assert_eq!(notify.route[0].severity, Severity::Error);
    check("", &[("REWHEEL__NOTIFY__WINDOW", "0s")], "REWHEEL__NOTIFY__WINDOW: notify.window: must");
}

#[test]
fn a_mistake_in_the_section_is_named_with_its_line() {
    check("[notify]\nurl = 1", &[], "rewheel.toml:2: notify.url: unknown key `url`");
    check("[notify]\n\nwindow = \"10ms\"", &[], "rewheel.toml:3: notify.window: must be 1s");
    check("[notify]\nwindow = \"2h\"", &[], "rewheel.toml:2: notify.window: must be 1h");
    check("[notify]\nwindow_max = 0", &[], "rewheel.toml:2: notify.window_max: must be 1");
    check("[notify]\nqueue_max = 0", &[], "rewheel.toml:2: notify.queue_max: must be 1 to");
    check("[notify]\ntimeout = \"1h\"", &[], "rewheel.toml:2: notify.timeout: must be 5m");
}

/// Checks the second of two routes, so that its number and line differ from the first.
#[track_caller]
fn check_route(lines: &str, message: &str) {
    let text = format!("[[notify.route]]\nto = \"log\"\n[[notify.route]]\n{lines}");
    check(&text, &[], &format!("rewheel.toml:{message}"));
}

#[test]
fn a_mistake_in_a_route_is_named_with_its_number_and_line() {
    check_route("to = \"log\"\nevnts = []", "5: notify.route.1.evnts: unknown key `evnts`");
    check_route("to = \"pigeon\"", "4: notify.route.1.to: unknown variant `pigeon`, expected");
    check_route("url = \"https://a.example\"", "3: notify.route.1: missing field `to`");
    check_route("to = \"log\"\nevents = [1]", "5: notify.route.1.events.0: invalid type");
    check_route("to = \"slack\"", "3: notify.route.1.url: is required for `slack`");
    check_route(
        "to = \"log\"\nurl = \"https://a\"",
        "5: notify.route.1.url: does not apply to `log`",
    );
    check_route("to = \"slack\"\nurl = \"ftp://a\"", "5: notify.route.1.url: must begin with http");
    check_route("to = \"slack\"\nurl = \"a b\"", "5: notify.route.1.url: contains a space");
    let slack = "to = \"slack\"\nurl = \"https://a.example\"";
    check_route(
        &format!("{slack}\nsecrets = [\"s\"]"),
        "6: notify.route.1.secrets: does not apply to `slack`",
    );
    check_route(
        "to = \"webhook\"\nurl = \"https://a.example\"\nsecrets = [\"s\"]",
        "6: notify.route.1.secrets.0: must be `whsec_` or `whsk_` followed by",
    );
    let events = "events = [\"dead_letter\", \"dead\"]";
    check_route(
        &format!("{slack}\n{events}"),
        "6: notify.route.1.events: `dead` is not an event: use dead_letter",
    );
    check_route(
        &format!("{slack}\nseverity = \"fatal\""),
        "6: notify.route.1.severity: `fatal` is not a severity: use info",
    );
    check_route(
        &format!("{slack}\nkinds = [\"Mail\"]"),
        "6: notify.route.1.kinds: `Mail` is not a valid name: a name must",
    );
    check_route(
        "to = \"slack\"\nurl = \"https://${REWHEEL_TEST_NOT_SET}/\"",
        "5: notify.route.1.url: uses the environment variable `REWHEEL_TEST_NOT_SET`, which is not set",
    );
}

#[test]
fn a_route_to_a_job_submits_for_dead_letters_of_other_kinds() {
    let load = |lines: &str| load(&format!("[[notify.route]]\nto = \"job:refund\"\n{lines}"), &[]);
    let refund = RouteTarget::Job(rewheel_core::KindName::parse("refund").unwrap());
    let config = load("kinds = [\"charge\"]\nevents = [\"attempts_exhausted\"]").unwrap();
    assert_eq!(config.notify.route[0].to, refund);
    check_route(
        "to = \"job:Refund\"",
        "4: notify.route.1.to: `Refund` is not a valid kind: a kind must",
    );
    check_route(
        "to = \"job:rewheel.x\"",
        "4: notify.route.1.to: `rewheel.x` is not a valid kind: a kind must not",
    );
    let to = "to = \"job:refund\"\n";
    check_route(
        &format!("{to}url = \"https://a.example\""),
        "5: notify.route.1.url: does not apply to a route that submits a job",
    );
    check_route(
        &format!("{to}events = [\"takeover\"]"),
        "5: notify.route.1.events: must not contain `takeover`",
    );
    check_route(
        &format!("{to}kinds = [\"refund\"]"),
        "5: notify.route.1.kinds: must not contain `refund`",
    );
}

/// The example that users copy must work.
#[test]
fn the_example_of_the_documentation_is_read() {
    let page = include_str!("../../../../../docs/notifications.md");
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let example = example
        .replace("${SLACK_URL}", "https://hooks.example/a")
        .replace("${FEISHU_URL}", "https://bots.example/b")
        .replace("${FEISHU_SECRET}", "s");
    let notify = load(&example, &[]).unwrap().notify;
    let defaults = crate::notify::NotifyConfig::default();
    assert_eq!(notify.settings(), defaults.settings(), "the page shows the defaults");
    let to: Vec<String> = notify.route.iter().map(|route| route.to.to_string()).collect();
    assert_eq!(to, ["slack", "feishu", "job:refund", "log"]);
}

/// The page names every event and every destination of a route.
#[test]
fn the_documentation_names_every_event() {
    let page = include_str!("../../../../../docs/notifications.md");
    for event in Event::ROUTED {
        assert!(page.contains(&format!("`{event}`")), "{event} is missing");
    }
}

#[test]
fn a_secret_in_the_wrong_place_is_not_quoted() {
    let route = "[[notify.route]]\nto = \"webhook\"\nurl = \"https://a.example\"\n";
    let text = format!("{route}secrets = \"hunter2\"");
    check(&text, &[], "rewheel.toml:4: notify.route.0.secrets: invalid type: string, expected a");
    let broken = "[{ to = \"webhook\", url = \"https://a.example/hunter2\"";
    check(
        "",
        &[("REWHEEL__NOTIFY__ROUTE", broken)],
        "REWHEEL__NOTIFY__ROUTE: notify.route: invalid type: string, expected a",
    );
    let parsed = load("[[notify.route]]\nto = \"slack\"\nurl = \"https://a.example/hunter2\"", &[]);
    let printed = format!("{:?}", parsed.unwrap().notify);
    assert!(!printed.contains("hunter2"), "{printed}");
}
