//! The kinds and routes of the mixed workload.

use super::service::Service;

/// Returns the sections of the config file.
pub(crate) fn sections(service: &Service) -> String {
    let Service { url, throttling_url, .. } = service;
    let plain = "";
    let mut text = String::new();
    for (kind, url, more) in [
        ("report", url, "result = true"),
        ("metered", throttling_url, r#"hold = "kind""#),
        ("polite", throttling_url, r#"hold = "host""#),
        ("invoice", url, r#"on_dead = "continue""#),
        ("entry", url, r#"on_dead = "block""#),
        ("mail", url, plain),
        ("page", url, plain),
        ("tick", url, plain),
        ("slow-tick", url, plain),
        ("doomed", url, plain),
        ("refund", url, plain),
    ] {
        text += &callback(kind, url, more);
    }
    text + WORKER + ROUTE
}

fn callback(kind: &str, url: &str, more: &str) -> String {
    // A job of the kind `doomed` ends at its deadline, not with its attempts.
    let backoff =
        if kind == "doomed" { "fixed 200ms jitter none" } else { "fixed 20ms jitter none" };
    format!(
        r#"
        [kinds.{kind}]
        runner = "callback"
        attempts_max = 500
        attempt_timeout = "5s"
        takeovers_max = 100
        backoff = "{backoff}"
        keep_succeeded = "1d"
        {more}
        [kinds.{kind}.callback]
        url = "{url}/{kind}"
        allow = ["127.0.0.0/8"]
        retry_after_max = "2s"
        "#
    )
}

const WORKER: &str = r#"
        [kinds.charge]
        runner = "worker"
        attempts_max = 500
        attempt_timeout = "5s"
        takeovers_max = 100
        backoff = "fixed 20ms jitter none"
        keep_succeeded = "1d"
        result = true
        "#;

/// Dead letters of `entry` are for the operator.
const ROUTE: &str = r#"
        [[notify.route]]
        to = "job:refund"
        kinds = ["doomed", "invoice"]
        "#;
