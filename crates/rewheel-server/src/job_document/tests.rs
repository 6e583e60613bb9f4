//! Tests the JSON document of a job.

use super::{Failure, Job, JobDocument, Status, Timestamp};
use rewheel::{Category, Random};
use rewheel_core::store::{AttemptEnd, AttemptRecord};
use rewheel_core::{
    Actor, AuditEntry, AuditFields, DueReason, Fence, HolderId, JobId, KindName, Lane, Priority,
    Shard, Version,
};
use rewheel_engine::KindSettings;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const NOW: Timestamp = Timestamp::from_millis(10_000);

pub(super) fn job() -> Job {
    Job {
        id: JobId::new(NOW, &Random::seeded(1)),
        lane: Lane {
            kind: KindName::parse("charge-card").unwrap(),
            tenant: None,
            priority: Priority::DEFAULT,
            shard: Shard::NONE,
        },
        key: None,
        shard_key: None,
        payload: Some(br#"{"b": 1, "a":2}"#.to_vec()),
        attempts_max: None,
        attempt_timeout: None,
        backoff: None,
        traceparent: None,
        parent: None,
        instant: None,
        group: None,
        created: NOW,
        deadline: None,
        due: NOW,
        because: DueReason::Submitted,
        status: Status::Scheduled,
        fence: Fence::new(0),
        version: Version::new(1),
        attempt: 0,
        attempts_before: 0,
        takeovers: 0,
        takeovers_counted: 0,
        failure: None,
    }
}

pub(super) fn holder() -> HolderId {
    HolderId::new(NOW, &Random::seeded(2))
}

fn leased(due: Timestamp) -> Job {
    let status = Status::Leased { holder: holder(), overdue: NOW, wanted: None };
    Job { due, status, attempt: 1, ..job() }
}

fn document(job: &Job) -> Value {
    serde_json::to_value(JobDocument::new(job, &KindSettings::default(), NOW)).unwrap()
}

#[test]
fn a_payload_is_shown_as_it_was_written() {
    let text = serde_json::to_string(&JobDocument::new(&job(), &KindSettings::default(), NOW));
    assert!(text.unwrap().contains(r#""payload":{"b": 1, "a":2}"#));
    let odd = Job { payload: Some(b"\xff{".to_vec()), ..job() };
    assert_eq!(document(&odd)["payload"], "\u{fffd}{");
    let listed = document(&Job { payload: None, ..job() });
    assert!(listed.get("payload").is_none() && listed.get("attempts").is_none());
}

#[test]
fn the_attempt_is_the_latest_that_started() {
    assert_eq!(document(&job())["attempt"], 0);
    let later = Timestamp::from_millis(10_001);
    assert_eq!(document(&leased(later))["attempt"], 1, "it waits in a wheel");
    assert_eq!(document(&leased(NOW))["attempt"], 2, "it runs");
    assert_eq!(document(&Job { attempt: 3, ..job() })["attempt"], 3);
}

#[test]
fn what_the_job_does_not_say_its_kind_says() {
    let shown = document(&job());
    assert_eq!((&shown["attempts_max"], &shown["attempt_timeout"]), (&json!(8), &json!("30s")));
    let own = Job {
        attempts_max: Some(3),
        attempts_before: 8,
        attempt_timeout: Some(Duration::from_millis(1_500)),
        backoff: Some("fixed 1s".parse().unwrap()),
        ..job()
    };
    let shown = document(&own);
    assert_eq!(
        (&shown["attempts_max"], &shown["attempt_timeout"]),
        (&json!(11), &json!("1s500ms"))
    );
    assert_eq!(shown["backoff"], "fixed 1s jitter none");
}

#[test]
fn times_have_milliseconds() {
    let shown = document(&Job { status: Status::Dead(NOW), ..job() });
    assert_eq!(shown["finished"], "1970-01-01T00:00:10.000Z");
    assert_eq!((&shown["state"], &shown["deadline"]), (&json!("dead"), &Value::Null));
}

#[test]
fn the_attempts_of_a_call_in_process_are_shown() {
    let attempts_max = Some(5);
    let spilled = Job { attempt: 3, attempts_before: 3, attempts_max, ..job() };
    let shown = document(&spilled);
    assert_eq!((&shown["attempt"], &shown["attempts_max"]), (&json!(3), &json!(8)));
    let text =
        "submitted after 3 attempts of the call in the process of the caller; to run immediately";
    assert_eq!(shown["due_because"], json!({"reason": "submitted", "text": text}));
}

#[test]
fn a_wait_is_explained() {
    let failure = Failure::new(Category::Timeout, Some("504"), "no answer");
    let waiting =
        Job { because: DueReason::Backoff, attempt: 1, failure: Some(failure.clone()), ..job() };
    let reason =
        json!({"reason": "backoff", "text": "attempt 1 timed out; waiting for the backoff delay"});
    assert_eq!(document(&waiting)["due_because"], reason);

    let record = AttemptRecord {
        attempt: 1,
        fence: Fence::new(1),
        holder: holder(),
        started: NOW,
        duration: Duration::from_secs(30),
        ended: AttemptEnd::Failed(failure),
        decision: "retry".to_owned(),
        delay: Some(Duration::from_millis(83)),
        dropped: 0,
    };
    let shown = JobDocument::new(&waiting, &KindSettings::default(), NOW);
    let shown = serde_json::to_value(shown.with_history(&waiting, &[record], &[])).unwrap();
    assert_eq!(shown["due_because"]["text"], "attempt 1 timed out; waiting 83ms");
    let runs = Job { attempt: 1, because: DueReason::Backoff, ..leased(NOW) };
    let text = document(&Job { failure: waiting.failure.clone(), ..runs });
    let waited = "attempt 1 timed out; waited for the backoff delay";
    assert_eq!(text["due_because"]["text"], waited);
    let attempt = json!({
        "attempt": 1, "fence": 1, "holder": holder().to_string(),
        "started": "1970-01-01T00:00:10.000Z", "duration": "30s", "category": "timeout",
        "code": "504", "message": "no answer", "decision": "retry", "delay": "83ms",
    });
    assert_eq!(shown["attempts"], json!([attempt]));
    assert_eq!(shown["audit"], json!([]));
}

#[test]
fn the_log_tells_instants_as_everybody_does() {
    let facts = |due: i64, text: &str| {
        AuditFields::default()
            .with("due", Some(due))
            .with("deadline", None::<i64>)
            .with("payload", Some(text))
            .with("fence", Some(1_500))
    };
    let entry = AuditEntry {
        seq: 1,
        at: NOW,
        who: Actor::new("token:ops"),
        what: "edit".to_owned(),
        job: None,
        kind: None,
        before: facts(1_500, "1500"),
        after: AuditFields::default().with("due", Some("soon")),
    };
    let shown = serde_json::to_value(super::AuditDocument::new(&entry)).unwrap();
    let before = json!({
        "due": "1970-01-01T00:00:01.500Z", "deadline": null, "payload": "1500", "fence": "1500",
    });
    assert_eq!(shown["before"], before);
    assert_eq!(shown["after"], json!({"due": "soon"}));
}
