//! Tests which configs are accepted, and the error messages for the others.

mod kind_defaults;
mod notify;
mod reference;
mod telemetry;
mod tenants;
mod schedules;

use super::location::File;
use super::{Config, ConfigError, Overrides, parse_listen};
use rewheel_core::{KindName, Sticky};
use rewheel_engine::RunnerKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

pub(super) fn load(text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::assemble(&File::new("rewheel.toml".to_owned(), text.to_owned()), &Overrides::of(env)?)
}

#[track_caller]
fn check(text: &str, env: &[(&str, &str)], message: &str) {
    let error = load(text, env).unwrap_err().to_string();
    assert!(error.starts_with(message), "{error:?} does not begin with {message:?}");
}

#[test]
fn nothing_set_is_the_defaults() {
    let config = Config::load(None, std::iter::empty()).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(config.server.listen, SocketAddr::from(([127, 0, 0, 1], 7420)));
    assert_eq!(config.store.url, "sqlite://rewheel.db");
}

#[test]
fn every_section_is_read() {
    let text = r#"
        [server]
        listen = "127.0.0.1:0"
        [store]
        url = "memory://"
        [engine]
        concurrency = 3
        lease_ttl = "2s"
        [retention]
        ended = "1h"
        audit = "1d"
        [kinds.charge-card]
        runner = "callback"
        attempts_max = 4
        [kinds.charge-card.callback]
        url = "https://pay.example/hook"
    "#;
    let config = load(text, &[]).unwrap();
    assert_eq!((config.server.listen.port(), config.store.url.as_str()), (0, "memory://"));
    assert_eq!((config.engine.concurrency, config.engine.lease_ttl), (3, Duration::from_secs(2)));
    assert_eq!(config.engine.retention_ended, Duration::from_secs(3_600));
    assert_eq!(config.engine.retention_audit, Duration::from_secs(24 * 3_600));
    assert_eq!(config.engine.retention_keys, Config::default().engine.retention_keys);
    let kind = &config.kinds[&KindName::parse("charge-card").unwrap()];
    assert_eq!((kind.runner, kind.attempts_max), (RunnerKind::Callback, 4));
    assert_eq!(kind.callback.as_ref().unwrap()["url"], "https://pay.example/hook");
}

#[test]
fn the_environment_overrules_the_file() {
    let text = "[engine]\nconcurrency = 3\nname = \"a\"\n[kinds.mail]\nattempts_max = 2";
    let env = [
        ("REWHEEL__ENGINE__CONCURRENCY", "7"),
        ("REWHEEL__ENGINE__LEASE_TTL", "2s"),
        ("REWHEEL__ENGINE__NAME", "17"),
        ("REWHEEL__STORE__URL", "memory://"),
        ("REWHEEL__RETENTION__KEYS", "5m"),
        ("REWHEEL__KINDS__MAIL__STICKY_MAX", "3s"),
        ("REWHEEL_SERVER", "http://elsewhere"),
        ("HOME", "/root"),
    ];
    let config = load(text, &env).unwrap();
    assert_eq!((config.engine.concurrency, config.engine.name.as_str()), (7, "17"));
    assert_eq!(config.engine.lease_ttl, Duration::from_secs(2));
    assert_eq!(config.engine.retention_keys, Duration::from_secs(300));
    assert_eq!(config.store.url, "memory://");
    let mail = &config.kinds[&KindName::parse("mail").unwrap()];
    assert_eq!((mail.attempts_max, mail.sticky_max), (2, Duration::from_secs(3)));
}

#[test]
fn two_variables_may_need_each_other() {
    let (certificate, key) = ("REWHEEL__SERVER__TLS__CERTIFICATE", "REWHEEL__SERVER__TLS__KEY");
    let config = load("", &[(certificate, "a.pem"), (key, "b.pem")]).unwrap();
    assert_eq!(config.server.tls.unwrap().key.to_str(), Some("b.pem"));
    let why = format!("{certificate}: server.tls.certificate: missing field `key`");
    check("", &[(certificate, "a.pem")], &why);
}

#[test]
fn a_mistake_in_the_file_is_named_with_its_line() {
    check("[servr]", &[], "rewheel.toml:1: servr: unknown key `servr`, expected");
    check("\n[server]\nlisen = 1", &[], "rewheel.toml:3: server.lisen: unknown key `lisen`");
    check("[engine]\nlease_ttl = 2", &[], "rewheel.toml:2: engine.lease_ttl: invalid type");
    check(
        "[engine]\nlease_ttl = \"2\"",
        &[],
        "rewheel.toml:2: engine.lease_ttl: `2` is not a duration",
    );
    check(
        "[engine]\n\nconcurrency = 0",
        &[],
        "rewheel.toml:3: engine.concurrency: must be 1 or more",
    );
    check("[engine]\nkeys = \"1h\"", &[], "rewheel.toml:2: engine.keys: unknown key");
    check("[retention]\nkeys = \"40000d\"", &[], "rewheel.toml:2: retention.keys: must be 36500d");
    check(
        "[server]\nlisten = \"here\"",
        &[],
        "rewheel.toml:2: server.listen: `here` is not an IP address",
    );
    let limit = |text: &str, why: &str| {
        let text = format!("[server]\n[server.limits]\n{text}");
        check(&text, &[], &format!("rewheel.toml:3: server.limits.{why}"));
    };
    limit("conections_max = 1", "conections_max: unknown key");
    limit("connections_max = 0", "connections_max: must be 1 to 1000000");
    limit("url_bytes_max = 70000", "url_bytes_max: must be 256 to 65534");
    limit("head_timeout = \"1ms\"", "head_timeout: must be 100ms or more");
    limit("write_timeout = 3", "write_timeout: invalid type");
    for bytes in ["5000000", "100663295"] {
        let why = "bodies_bytes_max: must be at least 3 times as large as server.body_bytes_max";
        limit(&format!("bodies_bytes_max = {bytes}"), why);
    }
    let variable = "REWHEEL__SERVER__LIMITS__REQUESTS_MAX";
    check("", &[(variable, "0")], &format!("{variable}: server.limits.requests_max: must be 1"));
    check(
        "[store]\npool_max = 4",
        &[],
        "rewheel.toml:2: store.pool_max: applies only to PostgreSQL",
    );
    let redis = "[store]\nurl = \"redis://h\"\npool_max = 4";
    check(
        redis,
        &[],
        "rewheel.toml:3: store.pool_max: applies only to PostgreSQL, MariaDB and MySQL: other stores",
    );
    let server = "[store]\nurl = \"postgres://h/d\"\npool_max = 1";
    check(server, &[], "rewheel.toml:3: store.pool_max: must be 2 to 1000");
    check("[server", &[], "rewheel.toml:1");
    check("[engine]\nconcurrency = 1\nconcurrency = 2", &[], "rewheel.toml:3");
}

#[test]
fn a_redis_store_gets_the_timeout_of_the_engine_unless_its_url_has_one() {
    for (url, timeout, expected) in [
        ("redis://h", "3s", "redis://h?timeout=3s"),
        ("redis+cluster://h,i?prefix=shop", "3s", "redis+cluster://h,i?prefix=shop&timeout=3s"),
        ("rediss://h?timeout=1s", "3s", "rediss://h?timeout=1s"),
        ("redis://h", "5ms", "redis://h?timeout=100ms"),
    ] {
        let text = format!("[store]\nurl = \"{url}\"\n[engine]\nstatement_timeout = \"{timeout}\"");
        assert_eq!(load(&text, &[]).unwrap().store_url(), expected);
    }
}

#[test]
fn a_mistake_in_a_kind_is_named_with_its_line() {
    let unknown = "[kinds.charge-card]\natempts_max = 3";
    check(unknown, &[], "rewheel.toml:2: kinds.charge-card.atempts_max: unknown key `atempts_max`");
    check("[kinds.a]\nattempts_max = 0", &[], "rewheel.toml:2: kinds.a.attempts_max: must be 1");
    check("[kinds.\"a.b\"]\nattempts_max = 0", &[], "rewheel.toml:2: kinds.a.b.attempts_max: must");
    check(
        "\n[kinds.Charge]",
        &[],
        "rewheel.toml:2: kinds.Charge: `Charge` is not a valid kind name: a kind name must",
    );
    let ratio = "[kinds.a]\nretry_budget = { ratio = 3 }";
    check(ratio, &[], "rewheel.toml:2: kinds.a.retry_budget.ratio: must be 0 to 1");
    let floor = "[kinds.a]\nretry_budget = { floor = \"1/d\" }";
    check(floor, &[], "rewheel.toml:2: kinds.a.retry_budget.floor: must be `1/m` or more");
    check("[kinds.a]\nbackoff = \"often\"", &[], "rewheel.toml:2: kinds.a.backoff: ");
}

#[test]
fn an_admin_token_is_taken_from_the_environment_or_a_file_and_never_shown() {
    let secret = "0123456789abcdef0123456789abcdef";
    let variable = "REWHEEL__SERVER__ADMIN_TOKEN";
    let config = load("", &[(variable, secret)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, format!("{secret}\n")).unwrap();
    let named = format!("[server]\nadmin_token_file = {:?}", path.display().to_string());
    assert_eq!(load(&named, &[]).unwrap().server.admin_token, config.server.admin_token);
    assert!(!format!("{config:?}").contains("0123"), "{config:?}");

    let file = format!("[server]\nadmin_token = \"{secret}\"");
    check(&file, &[], "rewheel.toml:2: server.admin_token: must not be in the config file");
    check(
        "[server]\nadmin_token_file = \"nowhere\"",
        &[],
        "rewheel.toml:2: server.admin_token_file: failed to read nowhere",
    );
    check(
        &named,
        &[(variable, secret)],
        "rewheel.toml:2: server.admin_token_file: cannot be combined",
    );
    std::fs::write(&path, "hunter2").unwrap();
    for (text, env) in [
        ("", vec![(variable, "hunter2")]),
        ("", vec![(variable, "7351")]),
        ("[server]\nadmin_token = \"hunter2\"", vec![]),
        ("[server]\nadmin_token = 7351", vec![]),
        (named.as_str(), vec![]),
    ] {
        let error = load(text, &env).unwrap_err().to_string();
        assert!(error.contains("server.admin_token"), "{error}");
        assert!(!error.contains("hunter2") && !error.contains("7351"), "{error}");
    }
}

#[test]
fn rules_for_failures_are_read() {
    let text = r#"
        [[kinds.charge-card.failure_rules]]
        when = { status = "409" }
        then = "snooze 5m"
        [[kinds.charge-card.failure_rules]]
        when = { category = ["throttled", "timeout"], code = "card_*" }
        then = "retry x4"
        sticky = false
    "#;
    let config = load(text, &[]).unwrap();
    let routes = &config.kinds[&KindName::parse("charge-card").unwrap()].failure_rules;
    let actions: Vec<String> = routes.rules().iter().map(|rule| rule.action.to_string()).collect();
    assert_eq!(actions, ["snooze 5m", "retry x4"]);
    assert_eq!(routes.rules()[1].sticky, Sticky::No);
    let env = [("REWHEEL__KINDS__MAIL__FAILURE_RULES", r#"[{ then = "dead" }]"#)];
    let config = load("", &env).unwrap();
    assert_eq!(config.kinds[&KindName::parse("mail").unwrap()].failure_rules.rules().len(), 1);
}

#[test]
fn the_retry_budget_that_the_documentation_shows_is_accepted() {
    let page = include_str!("../../../../docs/retry-budget.md");
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let config = load(example, &[]).unwrap();
    let budget = config.kinds[&KindName::parse("charge-card").unwrap()].retry_budget.unwrap();
    assert_eq!(budget, rewheel_engine::BudgetSettings::default());
    let defaults = load("[kinds.a]\nretry_budget = {}", &[]).unwrap();
    assert_eq!(defaults.kinds[&KindName::parse("a").unwrap()].retry_budget, Some(budget));
}

#[test]
fn what_the_documentation_shows_is_accepted() {
    let page = include_str!("../../../../docs/failures.md");
    let examples: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    for example in &examples {
        load(example, &[]).unwrap();
    }
    assert_eq!(load(examples.last().unwrap(), &[]).unwrap().engine.region.as_deref(), Some("eu"));
    check(
        "[engine]\nregion = \"E U\"",
        &[],
        "rewheel.toml:2: engine.region: must have 1 to 63 characters (a-z",
    );
    let config = load(examples[0], &[]).unwrap();
    assert_eq!(
        config.kinds[&KindName::parse("charge-card").unwrap()].failure_rules.rules().len(),
        3
    );
}

#[test]
fn a_mistake_in_a_rule_is_named_with_its_number_and_line() {
    let good = "[kinds.a]\n\n[[kinds.a.failure_rules]]\nwhen = { code = \"x\" }\nthen = \"dead\"\n";
    let second = |rule: &str| format!("{good}\n[[kinds.a.failure_rules]]\n{rule}");
    let place = "rewheel.toml:7: kinds.a.failure_rules: rule 2: ";
    for (rule, why) in [
        ("then = \"snoze 5m\"", "then: `snoze 5m` is not one of retry, retry 30s"),
        ("than = \"dead\"", "then: is required"),
        ("then = \"dead\"\nwhen = { kode = 1 }", "when: unknown key `kode`: the keys are category"),
        ("then = \"dead\"\nwhen = { status = \"999\" }", "status: `999`"),
        ("then = \"retry 2h\"", "then: `retry 2h` is longer than retry_after_max"),
        ("then = \"dead\"\nsticky = true", "sticky: applies only to retry"),
    ] {
        check(&second(rule), &[], &format!("{place}{why}"));
    }
    check(
        "[kinds.a]\nfailure_rules = 5",
        &[],
        "rewheel.toml:2: kinds.a.failure_rules: invalid type",
    );
    let env = [("REWHEEL__KINDS__A__FAILURE_RULES", r#"[{ then = "no" }]"#)];
    check(
        "",
        &env,
        "REWHEEL__KINDS__A__FAILURE_RULES: kinds.a.failure_rules: rule 1: then: `no` is not one of",
    );
}

#[test]
fn a_mistake_in_a_callback_is_named_with_its_line() {
    let text = "[kinds.a]\nrunner = \"callback\"";
    check(text, &[], "rewheel.toml:1: kinds.a.callback: is required");
    let text = format!("{text}\n[kinds.a.callback]\nurl = \"http://10.0.0.1/\"");
    check(&text, &[], "rewheel.toml:4: kinds.a.callback.url: ");
}

#[test]
fn a_mistake_in_the_environment_is_named_with_its_variable() {
    check(
        "",
        &[("REWHEEL__ENGINE__PLACE", "1")],
        "REWHEEL__ENGINE__PLACE: engine.place: unknown key",
    );
    check(
        "",
        &[("REWHEEL__ENGIN__CONCURRENCY", "1")],
        "REWHEEL__ENGIN__CONCURRENCY: engin.concurrency: unknown key",
    );
    check(
        "",
        &[("REWHEEL__ENGINE__CONCURRENCY", "many")],
        "REWHEEL__ENGINE__CONCURRENCY: engine.concurrency: invalid",
    );
    check(
        "",
        &[("REWHEEL__ENGINE__CONCURRENCY", "0")],
        "REWHEEL__ENGINE__CONCURRENCY: engine.concurrency: must be 1",
    );
    check(
        "",
        &[("REWHEEL__ENGINE__LEASE_TTL", "2")],
        "REWHEEL__ENGINE__LEASE_TTL: engine.lease_ttl: ",
    );
    check(
        "",
        &[("REWHEEL__ENGINE__RETENTION_KEYS", "2s")],
        "REWHEEL__ENGINE__RETENTION_KEYS: engine.retention_keys: ",
    );
    check("", &[("REWHEEL__SERVER", "x")], "REWHEEL__SERVER: server: ");
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let error = Config::load(Some(Path::new("/nowhere/rewheel.toml")), std::iter::empty());
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/rewheel.toml: failed to read the file"), "{error}");
}

#[test]
fn localhost_is_loopback_without_a_lookup() {
    assert_eq!(parse_listen("localhost:80"), Ok(SocketAddr::from(([127, 0, 0, 1], 80))));
    assert_eq!(parse_listen("[::1]:80").unwrap().port(), 80);
    assert!(parse_listen("127.0.0.1").is_err());
}
