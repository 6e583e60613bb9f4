//! Tests which submits are accepted, and the errors of the others.

use super::{Code, NewJob, Problem, When, parse, parse_batch};
use rewheel::Random;
use rewheel_core::{JobId, Timestamp};
use std::time::Duration;

const BYTES_MAX: usize = 100;

fn id() -> JobId {
    JobId::new(Timestamp::from_millis(1), &Random::seeded(1))
}

fn parsed(text: &str) -> NewJob {
    parse(text, id(), BYTES_MAX).unwrap()
}

fn with(field: &str) -> String {
    format!(r#"{{"kind":"a","payload":1,{field}}}"#)
}

#[track_caller]
fn check(field: &str, pointer: &str, message: &str) {
    let problem = parse(&with(field), id(), BYTES_MAX).unwrap_err();
    let errors: Vec<_> =
        problem.errors.iter().map(|error| (error.field.as_str(), error.message.as_str())).collect();
    assert_eq!((problem.code, errors), (Code::InvalidField, vec![(pointer, message)]));
}

#[test]
fn a_job_with_every_field_is_read() {
    let job = parsed(
        r#"{"kind":"charge-card","payload":{"order" : 17},"key":"order-17","tenant":"shop",
            "shard_key":"eu","priority":9,"delay":"1m30s","deadline":"2030-01-01T00:00:00.500Z",
            "attempts_max":3,"attempt_timeout":"5s","backoff":"fixed 1s"}"#,
    );
    assert_eq!((job.kind.as_str(), job.priority.get()), ("charge-card", 9));
    assert_eq!(job.payload, br#"{"order" : 17}"#, "the payload is kept as it was written");
    assert_eq!(job.key.unwrap().as_str(), "order-17");
    assert_eq!(job.tenant.unwrap().as_str(), "shop");
    assert_eq!(job.shard_key.unwrap().as_str(), "eu");
    assert_eq!(job.due, When::In(Duration::from_secs(90)));
    assert_eq!(job.deadline, Some(When::At(Timestamp::from_millis(1_893_456_000_500))));
    assert_eq!((job.attempts_max, job.attempt_timeout), (Some(3), Some(Duration::from_secs(5))));
    assert_eq!(job.backoff.unwrap().to_string(), "fixed 1s jitter none");
}

#[test]
fn any_json_value_is_a_payload() {
    for payload in ["null", "17", "\"text\"", "[1,2]", "{}", "1e300", "{\"a\":1,\"a\":2}"] {
        let job = parsed(&format!(r#"{{"kind":"a","payload":{payload}}}"#));
        assert_eq!(job.payload, payload.as_bytes());
    }
}

#[test]
fn a_due_may_be_in_the_past() {
    let job = parsed(&with(r#""due":"1970-01-01T00:00:01Z""#));
    assert_eq!(job.due, When::At(Timestamp::from_millis(1_000)));
}

#[test]
fn null_means_that_a_field_is_not_set() {
    let job = parsed(&with(r#""key":null,"priority":null,"delay":null,"deadline":null"#));
    assert_eq!((job.key, job.priority.get(), job.deadline), (None, 5, None));
}

#[test]
fn a_bad_value_is_named_with_what_it_must_be() {
    check(r#""priority":10"#, "/priority", "must be 0..9");
    check(r#""priority":-1"#, "/priority", "must be 0..9");
    check(r#""priority":1.5"#, "/priority", "must be a whole number");
    check(r#""priority":"9""#, "/priority", "must be a whole number");
    check(r#""delay":"-5s""#, "/delay", "must not be negative");
    check(r#""delay":5"#, "/delay", "must be a string");
    check(r#""delay":"36501d""#, "/delay", "must be 36500d or shorter");
    check(
        r#""delay":"1s","due":"2030-01-01T00:00:00Z""#,
        "/due",
        "cannot be combined with `delay`: remove one of the two",
    );
    check(r#""deadline":"soon""#, "/deadline", "must be a time such as 2026-01-31T12:00:00.000Z");
    check(r#""attempts_max":0"#, "/attempts_max", "must be 1 to 4294967295");
    check(r#""attempt_timeout":"0s""#, "/attempt_timeout", "must be longer than 0s");
    check(r#""key":"""#, "/key", "must be 1 to 255 bytes without control characters");
    let long = format!(r#""key":"{}""#, "k".repeat(256));
    check(&long, "/key", "must be 1 to 255 bytes without control characters");
    check(r#""tenant":7"#, "/tenant", "must be a string");
    let fields = super::FIELDS.join(", ");
    check(r#""prioritty":1"#, "/prioritty", &format!("is unknown: the known fields are {fields}"));
}

#[test]
fn a_bad_backoff_is_named() {
    let problem = parse(&with(r#""backoff":"sometimes""#), id(), BYTES_MAX).unwrap_err();
    assert_eq!(problem.errors[0].field, "/backoff");
}

fn wrong(problem: &Problem) -> Vec<&str> {
    problem.errors.iter().map(|error| error.field.as_str()).collect()
}

#[test]
fn a_debounce_is_a_delay_or_a_delay_with_a_limit() {
    let debounce = |text: &str| {
        let job = parsed(&with(&format!(r#""key":"k","debounce":{text}"#)));
        let debounce = job.duplicates.debounce().unwrap();
        assert_eq!(job.due, When::In(debounce.delay()));
        (debounce.delay(), debounce.max())
    };
    let seconds = Duration::from_secs;
    assert_eq!(debounce(r#""2s""#), (seconds(2), seconds(20)));
    assert_eq!(debounce(r#"{"delay":"2s","max":"5s"}"#), (seconds(2), seconds(5)));
    assert_eq!(debounce(r#" { "delay" : "2s", "max" : null } "#), (seconds(2), seconds(20)));
    assert_eq!(parsed(&with(r#""debounce":null"#)).duplicates.debounce(), None);
}

#[test]
fn every_mistake_is_told_at_once() {
    let problem = parse(r#"{"kind":"A","priority":10,"delay":"x"}"#, id(), BYTES_MAX).unwrap_err();
    assert_eq!(wrong(&problem), ["/kind", "/priority", "/delay", "/payload"]);
    let problem = parse(r#"{"kind":null}"#, id(), BYTES_MAX).unwrap_err();
    assert_eq!(wrong(&problem), ["/kind", "/payload"]);
}

#[test]
fn a_payload_of_exactly_the_limit_is_taken() {
    let of = |bytes: usize| format!(r#"{{"kind":"a","payload":"{}"}}"#, "x".repeat(bytes - 2));
    assert_eq!(parsed(&of(BYTES_MAX)).payload.len(), BYTES_MAX);
    let problem = parse(&of(BYTES_MAX + 1), id(), BYTES_MAX).unwrap_err();
    assert_eq!((problem.code, wrong(&problem)), (Code::TooLarge, vec!["/payload"]));
}

#[test]
fn a_batch_points_into_its_entries() {
    let text = r#"{"jobs":[{"kind":"a","payload":1},{"kind":"a","payload":1,"priority":10},17]}"#;
    let jobs = parse_batch(text, id, BYTES_MAX).unwrap();
    assert!(jobs[0].is_ok());
    assert_eq!(wrong(jobs[1].as_ref().unwrap_err()), ["/jobs/1/priority"]);
    let not_an_object = jobs[2].as_ref().unwrap_err();
    assert_eq!((not_an_object.code, wrong(not_an_object)), (Code::BadJson, vec!["/jobs/2"]));
}

#[test]
fn a_batch_is_a_list_of_bounded_length() {
    let code = |text: &str| parse_batch(text, id, BYTES_MAX).unwrap_err().code;
    assert_eq!(code("{}"), Code::InvalidField);
    assert_eq!(code(r#"{"jobs":{}}"#), Code::BadJson);
    assert_eq!(code(r#"{"jobs":[],"more":1}"#), Code::InvalidField);
    let many = vec!["{}"; 10_001].join(",");
    assert_eq!(code(&format!(r#"{{"jobs":[{many}]}}"#)), Code::TooLarge);
    assert!(parse_batch(r#"{"jobs":[]}"#, id, BYTES_MAX).unwrap().is_empty());
}
