//! Tests the section `defaults.kind`.

use super::super::Config;
use super::{check, load};
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, RunnerKind};
use std::time::Duration;

fn kind(config: &Config, name: &str) -> KindSettings {
    config.kinds[&KindName::parse(name).unwrap()].clone()
}

#[test]
fn what_a_kind_leaves_open_is_filled() {
    let text = r#"
        [defaults.kind]
        attempts_max = 5
        concurrency_max = 4
        breaker = { window = 50, open_for = "5s" }
        [kinds.mail]
        [kinds.report]
        attempts_max = 2
        breaker = { window = 10 }
    "#;
    let config = load(text, &[("REWHEEL__DEFAULTS__KIND__STICKY_MAX", "3s")]).unwrap();
    let (mail, report) = (kind(&config, "mail"), kind(&config, "report"));
    assert_eq!((mail.attempts_max, report.attempts_max), (5, 2));
    assert_eq!((mail.concurrency_max, report.concurrency_max), (Some(4), Some(4)));
    assert_eq!((mail.sticky_max, report.sticky_max), (Duration::from_secs(3), mail.sticky_max));
    let breaker = report.breaker.unwrap();
    assert_eq!((breaker.window, breaker.open_for), (10, Duration::from_secs(5)));
    // An explicit value counts, also if it is the built-in one.
    let text = "[defaults.kind]\nattempts_max = 5\n[kinds.mail]\nattempts_max = 8";
    assert_eq!(kind(&load(text, &[]).unwrap(), "mail").attempts_max, 8);
    let env = [("REWHEEL__KINDS__MAIL__ATTEMPTS_MAX", "9")];
    let of_env = load("[defaults.kind]\nattempts_max = 5\n[kinds.mail]", &env).unwrap();
    assert_eq!(kind(&of_env, "mail").attempts_max, 9);
}

#[test]
fn a_callback_is_filled_only_where_there_is_one() {
    let text = r#"
        [defaults.kind]
        runner = "callback"
        [defaults.kind.callback]
        headers = { x-shop = "north" }
        [kinds.hook.callback]
        url = "https://a.example/hook"
        [kinds.work]
        runner = "worker"
    "#;
    let config = load(text, &[]).unwrap();
    let hook = kind(&config, "hook");
    assert_eq!(hook.runner, RunnerKind::Callback);
    assert_eq!(hook.callback.as_ref().unwrap()["headers"]["x-shop"], "north");
    assert_eq!(hook.callback.unwrap()["url"], "https://a.example/hook");
    assert_eq!(kind(&config, "work").callback, None);
}

#[test]
fn a_mistake_in_a_default_is_named_with_its_line() {
    check(
        "[defaults.kind]\natempts_max = 5",
        &[],
        "rewheel.toml:2: defaults.kind.atempts_max: unknown key `atempts_max`, expected one of `runner`, `attempts_max`",
    );
    check("[defaults.kinds]\na = 5", &[], "rewheel.toml:1: defaults.kinds: unknown key `kinds`");
    check(
        "[defaults.kind]\nattempts_max = 0",
        &[],
        "rewheel.toml:2: defaults.kind.attempts_max: must be 1 or more",
    );
    check(
        "[defaults.kind]\nattempts_max = 9\nattempts_ceiling = 8",
        &[],
        "rewheel.toml:3: defaults.kind.attempts_ceiling: must not be lower than attempts_max",
    );
    check(
        "[defaults.kind]\nattempt_timeout = \"2h\"\nattempt_timeout_ceiling = \"1h\"",
        &[],
        "rewheel.toml:3: defaults.kind.attempt_timeout_ceiling: must not be shorter than attempt_timeout",
    );
    check(
        "[defaults.kind]\nbackoff = \"fixed 1s\"\ndelay_floor = \"2s\"",
        &[],
        "rewheel.toml:3: defaults.kind.delay_floor: must not be longer than the first delay of backoff",
    );
    check(
        "[defaults.kind.callback]\ntimout = \"2h\"",
        &[],
        "rewheel.toml:2: defaults.kind.callback.timout: unknown",
    );
    let env = [("REWHEEL__DEFAULTS__KIND__ATTEMPTS_MAX", "0")];
    check("", &env, "REWHEEL__DEFAULTS__KIND__ATTEMPTS_MAX: defaults.kind.attempts_max: must be 1");
}

#[test]
fn a_default_that_makes_a_kind_invalid_is_named_with_the_kind() {
    check(
        "[defaults.kind]\nattempts_ceiling = 20\n[kinds.mail]\n[kinds.poll]\nattempts_max = 50",
        &[],
        "rewheel.toml:4: kinds.poll.attempts_ceiling: must not be lower than attempts_max; this kind conflicts with the default \
         defaults.kind.attempts_ceiling (rewheel.toml:2): set attempts_ceiling in [kinds.poll], or change the default",
    );
    check(
        "[defaults.kind]\nattempts_max = 20\n[kinds.poll]\nattempts_ceiling = 10",
        &[],
        "rewheel.toml:4: kinds.poll.attempts_ceiling: must not be lower than attempts_max; this kind conflicts with the default \
         defaults.kind.attempts_max (rewheel.toml:2)",
    );
    check(
        "[defaults.kind]\nrunner = \"callback\"\n[kinds.poll]",
        &[],
        "rewheel.toml:3: kinds.poll.callback: is required for the runner `callback`: set callback.url; this kind conflicts with \
         the default defaults.kind.runner (rewheel.toml:2)",
    );
    let env = [("REWHEEL__DEFAULTS__KIND__ATTEMPTS_CEILING", "20")];
    let error = load("[kinds.poll]\nattempts_max = 50", &env).unwrap_err().to_string();
    assert!(error.contains("(REWHEEL__DEFAULTS__KIND__ATTEMPTS_CEILING)"), "{error}");
    // The kind's own mistake is not blamed on a default.
    let error = load("[defaults.kind]\nattempts_max = 5\n[kinds.a]\nattempt_timeout = \"0s\"", &[]);
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "rewheel.toml:4: kinds.a.attempt_timeout: must be longer than 0s");
}

#[test]
fn the_effective_values_of_a_kind_say_that_they_are_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rewheel.toml");
    let text = "[defaults.kind]\nattempts_max = 5\ncallback = { headers = { x-key = \"geheim\" } }\n\
                [kinds.mail]\nrunner = \"callback\"\nsticky_max = \"1s\"\ncallback = { url = \"https://a.example\" }";
    std::fs::write(&path, text).unwrap();
    let all = Config::in_force(Some(&path), std::iter::empty()).unwrap();
    let found = |key: &str| {
        let one = all.iter().find(|one| one.key == key).unwrap_or_else(|| panic!("no {key}"));
        let origin = one.origin.rsplit('/').next().unwrap();
        format!("{} {origin}", one.value.as_ref().unwrap())
    };
    assert_eq!(found("defaults.kind.attempts_max"), "5 rewheel.toml:2");
    assert_eq!(found("kinds.mail.attempts_max"), "5 rewheel.toml:2");
    assert_eq!(found("kinds.mail.sticky_max"), "\"1s\" rewheel.toml:6");
    assert_eq!(found("kinds.mail.takeovers_max"), "3 default");
    assert_eq!(found("kinds.mail.callback.headers"), "{ x-key = \"***\" } rewheel.toml:3");
    assert!(all.iter().all(|one| one.key != "defaults.kind.sticky_max"), "it is not set");
    assert!(!serde_json::to_string(&all).unwrap().contains("geheim"));
}

#[test]
fn what_the_documentation_shows_is_accepted() {
    let page = include_str!("../../../../../docs/limits.md");
    let (_, section) = page.split_once("## Defaults for all kinds").unwrap();
    let (_, example) = section.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let config = load(example, &[]).unwrap();
    let (charge, mail) = (kind(&config, "charge-card"), kind(&config, "mail"));
    assert_eq!((charge.attempts_max, mail.attempts_max), (20, 5));
    assert_eq!((charge.attempts_ceiling, mail.attempts_ceiling), (Some(50), Some(50)));
}
