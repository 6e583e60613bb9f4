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
    let next = about(
        or_null(text()),
        "Value of the query parameter `cursor` for the next page. Null on the last page.",
    );
    Object::new().has("items", list(reference(of))).has("next", next)
}

fn jobs() -> Vec<(&'static str, Value)> {
    vec![
        ("Problem", example(problem(), problem_example())),
        (
            "Job",
            example(
                job()
                    .open("A job. Lists of jobs do not contain `payload`, `attempts` and `audit`."),
                job_example(),
            ),
        ),
        ("Receipt", receipt()),
        ("JobPage", page("Job").open("A page of jobs.")),
        ("Failure", failure().open("The failure of an attempt.")),
        ("Attempt", attempt()),
        ("AuditEntry", audit().open("An entry of the audit log.")),
        (
            "BatchAnswer",
            Object::new()
                .has("results", list(reference("BatchResult")))
                .open("The result of each job of the batch, in the order of the request."),
        ),
        ("BatchResult", batch_result()),
        ("Preview", example(preview(), json!({"count": 412, "complete": true, "sample": [ID]}))),
        ("Operation", example(operation(), operation_example())),
        ("OperationPage", page("Operation").open("A page of operations.")),
    ]
}

fn problem() -> Value {
    let error = Object::new()
        .has("field", about(text(), "JSON pointer to the invalid field of the request."))
        .has("message", text())
        .open("An error in one field.");
    Object::new()
        .has("type", json!({"type": "string", "pattern": "^urn:rewheel:problem:[a-z_]+$"}))
        .has("title", text())
        .has("status", json!({"type": "integer", "minimum": 400, "maximum": 599}))
        .has("code", about(text(), "Error code. Programs should decide by this field."))
        .has("detail", about(text(), "Description of the error for people. The text may change between releases."))
        .has("errors", list(error))
        .has("hint", about(or_null(text()), "What to do about the error."))
        .has("request_id", about(text(), "Id of the request. The header `x-request-id` and the server log contain the same id."))
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
        .has("attempt", about(count(), "Number of the latest attempt. 0 before the first attempt."))
        .has("attempts_max", count())
        .has("takeovers", about(count(), "Number of nodes or workers that died while they ran this job."))
        .has("fence", about(count(), "Fencing token. It grows each time a node or worker claims the job."))
        .has("holder", or_null(id()))
        .has(
            "wanted",
            or_null(about(
                one_of(["pause", "cancel"]),
                "Change that was requested while the job was running. It takes effect when the attempt ends.",
            )),
        )
        .has("version", about(count(), "Version of the job. It grows with each visible change and is the ETag."))
        .has("due", time())
        .has("deadline", or_null(time()))
        .has("due_because", because.open("Why the job is due at this time."))
        .has(
            "held_because",
            or_null(held.open("Why a job that is due does not run yet. Null if nothing holds the job back.")),
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
                "Number of attempts that are missing in `attempts`. The server keeps the first and the latest attempts of a job.",
            ),
        )
        .may("audit", list(reference("AuditEntry")))
        .may("duplicate", about(flag(), "True if the job already existed. Present only in responses to submits."))
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
        .open("The existing job with the same key, for callers without the role `read`.")
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
    let facts = about(json!({"type": "object"}), "The changed fields and their values.");
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
        "anyOf": [stored.open("The job was stored, or already existed."), refused.open("The job was rejected. Occurs only with `partial=true`.")],
        "examples": [{"id": ID, "duplicate": false}],
    })
}

fn preview() -> Value {
    Object::new()
        .has("count", count())
        .has(
            "complete",
            about(flag(), "True if `count` is exact. False if there are more matching jobs."),
        )
        .has("sample", list(id()))
        .open("The jobs that an operation would change: their number and some of their ids.")
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
        .has("refused", about(refused, "Number of jobs that were not changed, by reason."))
        .has(
            "reason",
            about(or_null(text()), "Why the operation was aborted. Null if it was not aborted."),
        )
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
            page("Incident")
                .has("complete", about(flag(), "True if the server read all failed jobs. False if it read only the newest ones."))
                .open("A page of incidents, those with the most jobs first."),
        ),
        ("Kind", kind_document()),
        ("KindPage", page("Kind").open("A page of kinds.")),
        ("Holder", holder()),
        ("HolderPage", page("Holder").open("A page of holders: first live holders, then holders that died recently.")),
        ("AuditLine", line.open("An entry of the audit log, with its job or kind.")),
        ("AuditPage", page("AuditLine").open("A page of the audit log, newest first.")),
        ("Stats", stats()),
        ("Live", live.open("The response of the liveness check.")),
        ("Ready", ready.open("The response of the readiness check.")),
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
        .open("Failed jobs of one kind that have the same cause.")
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
        .has("forced", about(flag(), "True if an operator opened or closed the breaker. The breaker then ignores failures until it is reset."))
        .may("since", time())
        .may("until", about(time(), "Set if the called service asked to wait: nobody calls it before."))
        .may("reason", text());
    Object::new()
        .has("kind", kind())
        .has("runner", requests::runner())
        .has(
            "runnable",
            about(flag(), "True if this server or a worker can run jobs of this kind."),
        )
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
        .has("here", about(flag(), "True if this holder is the server that sent the response."))
        .has("lease_ttl", duration())
        .has("renewals", count())
        .has("joined", time())
        .has("renewed", time())
        .has("died", or_null(time()))
        .open("A holder: a node or worker that runs jobs.")
}

const COUNTED: &str = "Time at which the jobs were counted, by the clock of the store.";

const APPROXIMATE: &str = "True if the counts may be some seconds old. Above 10,000 jobs, the server counts periodically instead of for each request.";

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
        .has("decisions", list(decision.open("Number of decisions of one type.")))
        .has("notices", list(notices.open("Counters of one notification route.")));
    let holders = Object::new().has("alive", count());
    Object::new()
        .has("jobs", by_state())
        .has("oldest_due", or_null(time()))
        .has("as_of", about(time(), COUNTED))
        .has("approximate", about(flag(), APPROXIMATE))
        .has("holders", holders.open("Number of holders (nodes and workers)."))
        .has("here", here.open("Counters of this server since its start."))
        .open("Job counts and engine statistics.")
}

fn health() -> Value {
    let state = || one_of(["ok", "degraded", "down"]);
    let component = Object::new().has("ok", flag()).has("state", state()).has("message", text());
    let component = component.open("The health of one part of the server.");
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
    let result = json!({"anyOf": [settled.open("The result was stored."), lost.open("The result was ignored because the worker no longer holds the job.")]});
    let claimed = Object::new()
        .has("holder", id())
        .has("lease_ttl", duration())
        .has("jobs", list(reference("Work")));
    let heard = Object::new().has("lease_ttl", duration()).has(
        "cancel",
        about(
            list(id()),
            "Ids of jobs that the worker must stop because a user cancelled or paused them.",
        ),
    );
    vec![
        ("Work", a_work()),
        (
            "Claimed",
            claimed.open("Jobs to run. The list is empty if no job became due within `wait`."),
        ),
        ("Heard", heard.open("The renewed lease and the jobs that the worker must stop.")),
        (
            "Settled",
            Object::new()
                .has("results", list(result))
                .open("What happened to each reported result, in the order of the request."),
        ),
        ("Extended", extended()),
        ("Kept", kept()),
        (
            "Left",
            Object::new()
                .has("given_back", count())
                .open("Number of jobs that were given back to the queue."),
        ),
    ]
}

fn extended() -> Value {
    let longer = Object::new()
        .has("id", id())
        .has("extended", json!({"const": true}))
        .has("overdue", about(time(), "Time until which the worker must report a result. After that time another worker may get the job."));
    let lost = Object::new()
        .has("id", id())
        .has("extended", json!({"const": false}))
        .has("reason", one_of(["fence_lost"]));
    json!({"anyOf": [longer.open("The time limit was extended."), lost.open("The worker no longer holds the job.")]})
}

fn kept() -> Value {
    let kept = Object::new().has("id", id()).has("kept", json!({"const": true}));
    let lost = Object::new()
        .has("id", id())
        .has("kept", json!({"const": false}))
        .has("reason", one_of(["fence_lost"]));
    json!({"anyOf": [kept.open("The checkpoint was stored."), lost.open("The worker no longer holds the job.")]})
}

fn a_work() -> Value {
    Object::new()
        .has("id", id())
        .has("kind", kind())
        .has("payload", json!({}))
        .has("key", or_null(text()))
        .has("tenant", or_null(text()))
        .has("attempt", count())
        .has("fence", about(count(), "Fencing token of this lease. The worker sends it back with settle, extend and checkpoint."))
        .has("deadline", or_null(time()))
        .has("attempt_timeout", duration())
        .has("traceparent", or_null(text()))
        .open("A job claimed by a worker.")
}
