//! Schemas of the response documents.

use super::shape::{
    Object, about, count, duration, example, flag, id, kind, list, one_of, or_null, reference,
    text, time,
};
use super::{requests, tokens};
use rewheel::Category;
use rewheel_core::{DueReason, State};
use rewheel_engine::HeldReason;
use serde_json::{Map, Value, json};

const ID: &str = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";
const AT: &str = "2026-01-31T12:00:00.000Z";

/// Every schema by name.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    let all = jobs().into_iter().chain(others()).chain(work()).chain(tokens::all());
    for (name, schema) in all.chain(requests::all()) {
        schemas.insert(name.to_owned(), schema);
    }
    schemas
}

pub(crate) fn state() -> Value {
    one_of(State::ALL.map(State::as_str))
}

pub(crate) fn category() -> Value {
    one_of(Category::ALL.iter().map(|category| category.as_str()))
}

/// A page of a list.
fn page(of: &str) -> Object {
    let next = about(or_null(text()), "The `cursor` of the next page; null on the last one.");
    Object::new().has("items", list(reference(of))).has("next", next)
}

fn jobs() -> Vec<(&'static str, Value)> {
    vec![
        ("Problem", example(problem(), problem_example())),
        (
            "Job",
            example(
                job().open("A job. Lists leave out payload, attempts and audit."),
                job_example(),
            ),
        ),
        ("Receipt", receipt()),
        ("JobPage", page("Job").open("A page of jobs.")),
        ("Failure", failure().open("A failure.")),
        ("Attempt", attempt()),
        ("AuditEntry", audit().open("An audit entry.")),
        (
            "BatchAnswer",
            Object::new()
                .has("results", list(reference("BatchResult")))
                .open("The outcome of each entry."),
        ),
        ("BatchResult", batch_result()),
        ("Preview", example(preview(), json!({"count": 412, "complete": true, "sample": [ID]}))),
        ("Operation", example(operation(), operation_example())),
        ("OperationPage", page("Operation").open("A page of operations.")),
    ]
}

fn problem() -> Value {
    let error = Object::new()
        .has("field", about(text(), "JSON pointer to the field in the request."))
        .has("message", text())
        .open("An error of one field.");
    Object::new()
        .has("type", json!({"type": "string", "pattern": "^urn:rewheel:problem:[a-z_]+$"}))
        .has("title", text())
        .has("status", json!({"type": "integer", "minimum": 400, "maximum": 599}))
        .has("code", about(text(), "Error code, for programs."))
        .has("detail", about(text(), "Description of the error, for people."))
        .has("errors", list(error))
        .has("hint", about(or_null(text()), "What to do."))
        .has("request_id", about(text(), "Also in the x-request-id header and in the server log."))
        .open("A problem document (RFC 9457).")
}

fn problem_example() -> Value {
    json!({
        "type": "urn:rewheel:problem:invalid_field", "title": "invalid field", "status": 422,
        "code": "invalid_field", "detail": "priority must be 0..9",
        "errors": [{"field": "/priority", "message": "must be 0..9"}], "hint": null,
        "request_id": "5f6a7b8c9d0e1f2a",
    })
}

fn job() -> Object {
    let reasons = DueReason::ALL.map(DueReason::as_str);
    let because = Object::new().has("reason", one_of(reasons)).has("text", text());
    let held = Object::new()
        .has("reason", one_of(HeldReason::ALL.map(HeldReason::as_str)))
        .has("until", or_null(time()))
        .has("text", text());
    Object::new()
        .has("id", id())
        .has("kind", kind())
        .has("state", state())
        .may("payload", about(json!({}), "Any JSON value, as it was submitted."))
        .has("key", or_null(text()))
        .has("tenant", or_null(text()))
        .has("shard_key", or_null(text()))
        .has("priority", json!({"type": "integer", "minimum": 0, "maximum": 9}))
        .has("attempt", about(count(), "Number of the latest attempt; 0 before the first."))
        .has("attempts_max", count())
        .has("takeovers", about(count(), "How many holders died while they ran it."))
        .has("fence", about(count(), "Grows with each lease of the job."))
        .has("holder", or_null(id()))
        .has("wanted", or_null(one_of(["pause", "cancel"])))
        .has("version", about(count(), "Grows with each visible change; the ETag."))
        .has("due", time())
        .has("deadline", or_null(time()))
        .has("due_because", because.open("Why the job is due at this time."))
        .has(
            "held_because",
            or_null(held.open("Why a due job does not run yet; computed for each request.")),
        )
        .has("attempt_timeout", duration())
        .has("backoff", text())
        .has("created", time())
        .has("finished", or_null(time()))
        .has("failure", or_null(reference("Failure")))
        .may("attempts", list(reference("Attempt")))
        .may(
            "attempts_dropped",
            about(
                count(),
                "Number of attempt records that were dropped between the first and the last ones.",
            ),
        )
        .may("audit", list(reference("AuditEntry")))
        .may("duplicate", about(flag(), "Only in responses to submits: the job already existed."))
}

pub(super) fn job_example() -> Value {
    json!({
        "id": ID, "kind": "charge-card", "state": "scheduled", "payload": {"order": 17},
        "key": "order-17", "tenant": null, "shard_key": null, "priority": 5, "attempt": 1,
        "attempts_max": 8, "takeovers": 0, "fence": 2, "holder": null, "wanted": null, "version": 3,
        "due": AT, "deadline": null,
        "due_because": {"reason": "backoff", "text": "attempt 1 timed out; waiting 83ms"},
        "held_because": null,
        "attempt_timeout": "30s", "backoff": "exponential 100ms x2 max 30s jitter full", "created": AT,
        "finished": null, "failure": {"category": "timeout", "code": "504", "message": "no answer"},
        "attempts": [{
            "attempt": 1, "fence": 1, "holder": ID, "started": AT, "duration": "30s",
            "category": "timeout", "code": "504", "message": "no answer", "decision": "retry",
            "delay": "83ms",
        }],
        "audit": [],
    })
}

fn receipt() -> Value {
    Object::new()
        .has("id", id())
        .has("duplicate", json!({"const": true}))
        .has("kind", kind())
        .has("key", or_null(text()))
        .has("tenant", or_null(text()))
        .has("state", state())
        .open("A job with the same key already exists.")
}

fn failure() -> Object {
    Object::new().has("category", category()).has("code", or_null(text())).has("message", text())
}

fn attempt() -> Value {
    let decisions = ["succeed", "retry", "snooze", "dead", "fail", "pause", "cancel"];
    failure()
        .has("attempt", count())
        .has("fence", count())
        .has("holder", id())
        .has("started", time())
        .has("duration", duration())
        .has("decision", one_of(decisions))
        .has("delay", or_null(duration()))
        .open("An attempt that failed.")
}

fn audit() -> Object {
    let facts = about(json!({"type": "object"}), "What changed, by name.");
    Object::new()
        .has("at", time())
        .has("who", text())
        .has("what", text())
        .has("before", facts.clone())
        .has("after", facts)
}

fn batch_result() -> Value {
    let stored = Object::new().has("id", id()).has("duplicate", flag());
    let refused = Object::new().has("problem", reference("Problem"));
    json!({
        "anyOf": [stored.open("The job is stored."), refused.open("The job is rejected; only with partial=true.")],
        "examples": [{"id": ID, "duplicate": false}],
    })
}

fn preview() -> Value {
    Object::new()
        .has("count", count())
        .has("complete", about(flag(), "Whether the count is complete; otherwise there are more."))
        .has("sample", list(id()))
        .open("What an operation would change.")
}

fn operation() -> Value {
    let step = Object::new().has("step", count()).has("steps", count());
    let refused =
        json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}});
    Object::new()
        .has("id", id())
        .has("verb", one_of(["cancel", "pause", "resume", "retry", "redrive"]))
        .has("state", one_of(["running", "paused", "done", "aborted"]))
        .has("total", count())
        .has("done", count())
        .has("failed", count())
        .has("refused", about(refused, "Number of jobs that could not be changed, by reason."))
        .has("reason", about(or_null(text()), "Why it was aborted."))
        .has("canary", or_null(step.open("The canary step in progress.")))
        .has("by", text())
        .has("created", time())
        .has("finished", or_null(time()))
        .open("A bulk operation and its progress.")
}

fn operation_example() -> Value {
    json!({
        "id": ID, "verb": "redrive", "state": "running", "total": 412, "done": 17, "failed": 0,
        "refused": {}, "reason": null, "canary": null, "by": "rest", "created": AT, "finished": null,
    })
}

fn others() -> Vec<(&'static str, Value)> {
    let line = audit().has("job", or_null(id())).has("kind", or_null(kind()));
    let live = Object::new().has("live", json!({"const": true}));
    let ready = Object::new().has("ready", json!({"const": true}));
    vec![
        ("Incident", incident()),
        (
            "IncidentPage",
            page("Incident").has("complete", flag()).open("Incidents, largest first."),
        ),
        ("Kind", kind_document()),
        ("KindPage", page("Kind").open("A page of kinds.")),
        ("Holder", holder()),
        ("HolderPage", page("Holder").open("Live holders, then recently dead ones.")),
        ("AuditLine", line.open("An audit entry with its job or kind.")),
        ("AuditPage", page("AuditLine").open("A page of the audit log, newest first.")),
        ("Stats", stats()),
        ("Live", live.open("The process responds.")),
        ("Ready", ready.open("The server accepts requests.")),
        ("Health", health()),
    ]
}

fn incident() -> Value {
    failure()
        .has("id", text())
        .has("kind", kind())
        .has("count", count())
        .has("dead", count())
        .has("first_seen", time())
        .has("last_seen", time())
        .has("examples", list(id()))
        .open("Failures with the same cause.")
}

fn by_state() -> Value {
    Object::new()
        .has("scheduled", count())
        .has("leased", count())
        .has("paused", count())
        .has("dead", count())
        .open("Number of jobs by state.")
}

fn kind_document() -> Value {
    let breaker = Object::new()
        .has("state", one_of(["closed", "open", "half_open"]))
        .has("forced", about(flag(), "Whether an operator set the state."))
        .may("since", time())
        .may("reason", text());
    Object::new()
        .has("kind", kind())
        .has("runner", requests::runner())
        .has("runnable", about(flag(), "Whether this server can run its jobs."))
        .has("paused", flag())
        .has("parked", flag())
        .has("settings", reference("KindSettings"))
        .has("breaker", breaker.open("State of the circuit breaker of a kind."))
        .has("jobs", by_state())
        .has("oldest_due", or_null(time()))
        .may("as_of", about(time(), COUNTED))
        .has("approximate", about(flag(), APPROXIMATE))
        .open("A kind of job.")
}

fn holder() -> Value {
    Object::new()
        .has("id", id())
        .has("name", text())
        .has("role", one_of(["engine", "worker"]))
        .has("state", one_of(["alive", "silent", "dead"]))
        .has("here", about(flag(), "Whether it is the server that sends this response."))
        .has("lease_ttl", duration())
        .has("renewals", count())
        .has("joined", time())
        .has("renewed", time())
        .has("died", or_null(time()))
        .open("A holder: a node or worker that runs jobs.")
}

const COUNTED: &str = "Time of the count, by the store's clock.";

const APPROXIMATE: &str =
    "Whether the counts come from a periodic sample (above 10,000 jobs) and may be a little old.";

fn stats() -> Value {
    let decision = Object::new()
        .has("decision", text())
        .has("category", or_null(category()))
        .has("count", count());
    let notices = Object::new()
        .has("notifier", text())
        .has("sent", count())
        .has("suppressed", count())
        .has("failed", count())
        .has("summaries", count());
    let here = Object::new()
        .has("holder", id())
        .has("lease_expired", flag())
        .has("stopping", flag())
        .has("concurrency", count())
        .has("concurrency_free", count())
        .has("waiting", count())
        .has("decisions", list(decision.open("Number of decisions by type.")))
        .has("notices", list(notices.open("Counters of a notifier.")));
    let holders = Object::new().has("alive", count());
    Object::new()
        .has("jobs", by_state())
        .has("oldest_due", or_null(time()))
        .has("as_of", about(time(), COUNTED))
        .has("approximate", about(flag(), APPROXIMATE))
        .has("holders", holders.open("Holders."))
        .has("here", here.open("Counters of this server since its start."))
        .open("Job counts and engine statistics.")
}

fn health() -> Value {
    let state = || one_of(["ok", "degraded", "down"]);
    let component = Object::new().has("ok", flag()).has("state", state()).has("message", text());
    let component = component.open("One part.");
    Object::new()
        .has("ok", flag())
        .has("state", state())
        .has("components", json!({"type": "object", "additionalProperties": component}))
        .open("Health of each part of the server.")
}

fn work() -> Vec<(&'static str, Value)> {
    let settled =
        Object::new().has("id", id()).has("settled", json!({"const": true})).has("state", state());
    let lost = Object::new()
        .has("id", id())
        .has("settled", json!({"const": false}))
        .has("reason", one_of(["fence_lost"]));
    let result =
        json!({"anyOf": [settled.open("It counts."), lost.open("The result came too late.")]});
    let claimed = Object::new()
        .has("holder", id())
        .has("lease_ttl", duration())
        .has("jobs", list(reference("Work")));
    let heard = Object::new().has("lease_ttl", duration()).has("cancel", list(id()));
    vec![
        ("Work", a_work()),
        ("Claimed", claimed.open("Jobs to run; empty if none became due within `wait`.")),
        ("Heard", heard.open("Duration of the lease, and jobs to stop.")),
        ("Settled", Object::new().has("results", list(result)).open("The outcome of each result.")),
        ("Extended", extended()),
        ("Kept", kept()),
        ("Left", Object::new().has("given_back", count()).open("How many jobs were given back.")),
    ]
}

fn extended() -> Value {
    let longer = Object::new()
        .has("id", id())
        .has("extended", json!({"const": true}))
        .has("overdue", about(time(), "When the worker loses the job."));
    let lost = Object::new()
        .has("id", id())
        .has("extended", json!({"const": false}))
        .has("reason", one_of(["fence_lost"]));
    json!({"anyOf": [longer.open("The time limit is extended."), lost.open("The worker no longer holds the job.")]})
}

fn kept() -> Value {
    let kept = Object::new().has("id", id()).has("kept", json!({"const": true}));
    let lost = Object::new()
        .has("id", id())
        .has("kept", json!({"const": false}))
        .has("reason", one_of(["fence_lost"]));
    json!({"anyOf": [kept.open("The change is stored."), lost.open("The worker no longer holds the job.")]})
}

fn a_work() -> Value {
    Object::new()
        .has("id", id())
        .has("kind", kind())
        .has("payload", json!({}))
        .has("key", or_null(text()))
        .has("tenant", or_null(text()))
        .has("attempt", count())
        .has("fence", count())
        .has("deadline", or_null(time()))
        .has("attempt_timeout", duration())
        .has("traceparent", or_null(text()))
        .open("A job claimed by a worker.")
}
