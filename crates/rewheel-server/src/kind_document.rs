//! The JSON documents of kinds, for reading and writing.

mod writing;

pub(crate) use self::writing::{known_fields, patched, with_secrets};

use crate::callback::masked;
use crate::config::KindDefaults;
use crate::fields::{Fields, without_fractions};
use crate::problem::{Code, FieldError, Problem};
use crate::{rfc3339, runners};
use rewheel_core::{Action, FailureRule, FailureRules, Kind, OnDead, State};
use rewheel_engine::{BreakerSettings, BudgetSettings, Hold, JobCounts, KindSettings, RunnerKind};
use serde::Serialize;
use std::time::Duration;

/// A kind as JSON.
#[derive(Debug, Serialize)]
pub struct KindDocument {
    kind: String,
    runner: RunnerKind,
    runnable: bool,
    paused: bool,
    parked: bool,
    settings: serde_json::Value,
    breaker: Breaker,
    jobs: Jobs,
    oldest_due: Option<String>,
    /// When the jobs were counted, if not just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
    /// Whether jobs may have changed state since then.
    approximate: bool,
}

/// The state of a kind's circuit: whether its dependency is called.
#[derive(Debug, Serialize)]
struct Breaker {
    state: &'static str,
    /// Whether an operator decided.
    forced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Until when the called service asked to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Breaker {
    fn of(kind: &Kind) -> Breaker {
        let parked = kind.parked.as_ref();
        Breaker {
            state: match parked {
                None => "closed",
                Some(parked) if parked.prober.is_some() => "half_open",
                Some(_) => "open",
            },
            forced: kind.forced,
            since: parked.map(|parked| rfc3339::text(parked.since)),
            until: parked.and_then(|parked| parked.until).map(rfc3339::text),
            reason: parked.map(|parked| parked.reason.clone()),
        }
    }
}

/// The number of jobs of a kind, by state.
#[derive(Debug, Default, Serialize)]
struct Jobs {
    scheduled: u64,
    leased: u64,
    paused: u64,
    dead: u64,
}

/// Whether this server can run the jobs of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runnable {
    /// It can.
    Yes,
    /// It cannot: the jobs wait.
    No,
}

impl KindDocument {
    /// Builds the document of a kind.
    pub fn new(
        kind: &Kind,
        counts: &JobCounts,
        runnable: Runnable,
        defaults: &KindDefaults,
    ) -> KindDocument {
        let tally = counts.of(&kind.name);
        // Unreadable settings, perhaps of a newer release, are shown as defaults.
        let mut settings: KindSettings = serde_json::from_str(&kind.settings).unwrap_or_default();
        settings.callback.iter_mut().for_each(masked);
        let runner = settings.runner;
        let mut settings = serde_json::to_value(settings).unwrap_or_default();
        defaults.show_open(&mut settings);
        let count = |state| tally.and_then(|tally| tally.jobs.get(&state)).copied().unwrap_or(0);
        KindDocument {
            kind: kind.name.to_string(),
            runner,
            runnable: runnable == Runnable::Yes,
            paused: kind.paused,
            parked: kind.parked.is_some(),
            settings,
            breaker: Breaker::of(kind),
            jobs: Jobs {
                scheduled: count(State::Scheduled),
                leased: count(State::Leased),
                paused: count(State::Paused),
                dead: count(State::Dead),
            },
            oldest_due: tally.and_then(|tally| tally.oldest_due).map(rfc3339::text),
            as_of: counts.approximate.then(|| rfc3339::text(counts.as_of)),
            approximate: counts.approximate,
        }
    }
}

/// Parses the settings of a kind.
///
/// # Errors
/// Lists every invalid setting.
pub fn parse_settings(text: &str) -> Result<KindSettings, Problem> {
    let known = names();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let fields = Fields::read(text, "", &known)?;
    let mut errors = Vec::new();
    for name in &known {
        // Parse each setting on its own, to find every error with its name.
        if let Some(raw) = fields.get(name) {
            let alone = serde_json::from_str::<serde_json::Value>(raw.get()).map(|mut value| {
                without_fractions(&mut value);
                serde_json::json!({ *name: value })
            });
            let why = match alone.and_then(serde_json::from_value::<KindSettings>) {
                Err(error) => Some(without_place(&error)),
                // The name of a custom backoff can be read, but this server knows none.
                Ok(settings) if *name == "backoff" => {
                    let error = settings.check().err().map(|error| error.to_string());
                    error.map(|error| error.trim_start_matches("backoff: ").to_owned())
                }
                Ok(_) => None,
            };
            errors.extend(why.map(|why| FieldError::new(place(name, &why), why)));
        }
    }
    errors.splice(..0, fields.into_errors());
    if !errors.is_empty() {
        return Err(Problem::of_fields(Code::InvalidField, errors));
    }
    let wrong = |field: String, why: String| {
        Problem::of_fields(Code::InvalidField, vec![FieldError::new(field, why)])
    };
    let settings = serde_json::from_str::<serde_json::Value>(text).and_then(|mut value| {
        without_fractions(&mut value);
        serde_json::from_value::<KindSettings>(value)
    });
    let settings = settings.map_err(|error| wrong(String::new(), without_place(&error)))?;
    settings.check().map_err(|error| {
        let error = error.to_string();
        let (name, why) = error.split_once(": ").unwrap_or(("", &error));
        wrong(place(name, why), why.to_owned())
    })?;
    match runners::check(&settings) {
        Some(error) => Err(Problem::of_fields(Code::InvalidField, vec![error])),
        None => Ok(settings),
    }
}

/// Returns the names of all settings, including optional ones.
pub(crate) fn names() -> Vec<String> {
    let all = KindSettings {
        hold: Hold::Off,
        result: true,
        on_dead: OnDead::Block,
        concurrency_max: Some(1),
        fleet_concurrency_max: Some(1),
        attempts_ceiling: Some(1),
        attempt_timeout_ceiling: Some(Duration::ZERO),
        delay_floor: Some(Duration::ZERO),
        breaker: Some(BreakerSettings::default()),
        retry_budget: Some(BudgetSettings::default()),
        rate: "1/s".parse().ok(),
        callback: Some(serde_json::Value::Null),
        failure_rules: FailureRules::new().rule(FailureRule::new(Action::Retry)),
        ..KindSettings::default()
    };
    match serde_json::to_value(all) {
        Ok(serde_json::Value::Object(fields)) => fields.keys().cloned().collect(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// Returns the pointer to an invalid field. Messages number rules from 1, pointers from 0.
fn place(name: &str, why: &str) -> String {
    let number = why.strip_prefix("rule ").and_then(|rest| rest.split_once(':'));
    match number.and_then(|(number, _)| number.parse::<usize>().ok()) {
        Some(number) if name == "failure_rules" => format!("/{name}/{}", number.saturating_sub(1)),
        Some(_) | None => format!("/{}", name.replace('.', "/")),
    }
}

/// Removes the position from an error: it refers to a text that the client never saw.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, names, parse_settings};

    #[test]
    fn every_setting_has_its_name() {
        let names = names();
        let some = ["runner", "attempts_max", "concurrency_max", "callback", "failure_rules"];
        for name in some {
            assert!(names.iter().any(|known| known == name), "{name} is missing");
        }
    }

    #[test]
    fn settings_are_read() {
        let settings = parse_settings(r#"{"attempts_max":3,"sticky_max":"2s"}"#).unwrap();
        assert_eq!(settings.attempts_max, 3);
        let settings = parse_settings(r#"{"attempts_max":3.0,"takeovers_max":2e0}"#).unwrap();
        assert_eq!((settings.attempts_max, settings.takeovers_max), (3, 2));
        assert_eq!(parse_settings("{}").unwrap(), Default::default());
    }

    #[test]
    fn every_bad_setting_is_named() {
        let text = r#"{"atempts_max":3,"attempt_timeout":5,"runner":"magic","backoff":"often"}"#;
        let problem = parse_settings(text).unwrap_err();
        let mut named: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        named.sort_unstable();
        assert_eq!(named, ["/atempts_max", "/attempt_timeout", "/backoff", "/runner"]);
        let without = problem.errors.iter().all(|error| !error.message.contains(" at line "));
        assert!(without, "{:?}", problem.errors);
    }

    #[test]
    fn a_callback_is_checked_too() {
        let blamed = |text: &str| parse_settings(text).unwrap_err().errors.remove(0).field;
        assert_eq!(blamed(r#"{"runner":"callback"}"#), "/callback");
        let bad = r#"{"runner":"callback","callback":{"url":"http://10.0.0.1/"}}"#;
        assert_eq!(blamed(bad), "/callback/url");
        let good = r#"{"runner":"callback","callback":{"url":"https://pay.example/"}}"#;
        assert!(parse_settings(good).is_ok());
    }

    #[test]
    fn a_bad_rule_is_named_with_its_number_and_place() {
        let blamed = |text: &str| {
            let error = parse_settings(text).unwrap_err().errors.remove(0);
            (error.field, error.message)
        };
        let text =
            r#"{"failure_rules":[{"then":"retry","when":{"code":"a"}},{"then":"snoze 5m"}]}"#;
        let (field, message) = blamed(text);
        assert_eq!(field, "/failure_rules/1");
        assert!(message.starts_with("rule 2: then: `snoze 5m` is not one of retry"), "{message}");
        let (field, message) =
            blamed(r#"{"failure_rules":[{"then":"retry 2h"}],"retry_after_max":"1h"}"#);
        assert_eq!(field, "/failure_rules/0");
        assert!(message.contains("longer than retry_after_max (1h)"), "{message}");
        assert_eq!(blamed(r#"{"failure_rules":{"then":"retry"}}"#).0, "/failure_rules");
        let good = r#"{"failure_rules":[{"then":"retry 2h"}],"retry_after_max":"3h"}"#;
        assert!(parse_settings(good).is_ok());
    }

    #[test]
    fn a_setting_that_cannot_work_is_named() {
        let problem = parse_settings(r#"{"attempts_max":0}"#).unwrap_err();
        assert_eq!(problem.errors[0].field, "/attempts_max");
        assert_eq!(problem.detail, "attempts_max must be 1 or more");
        assert_eq!(parse_settings("[").unwrap_err().code, Code::BadJson);
        let problem = parse_settings(r#"{"breaker":{"failure_ratio":2}}"#).unwrap_err();
        assert_eq!(problem.errors[0].field, "/breaker/failure_ratio");
        assert!(parse_settings(r#"{"breaker":{"open_for":"5s"}}"#).is_ok());
    }
}
