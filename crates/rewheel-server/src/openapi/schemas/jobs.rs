//! Schemas of jobs: state, failures, history.

use super::{AT, ID, category, page, state};
use crate::openapi::shape::{
    Object, about, between, count, duration, example, flag, id, kind, list, one_of, or_null,
    reference, text, time,
};
use rewheel_core::DueReason;
use rewheel_engine::HeldReason;
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    let job = job()
        .open("A job. Lists of jobs do not contain `payload`, `result`, `attempts` and `audit`.");
    let line = audit()
        .has("job", or_null(id()), "Id of the changed job. Null if the entry is about a kind.")
        .has("kind", or_null(kind()), "Kind of the changed job, or the changed kind.");
    vec![
        ("Problem", example(problem(), problem_example())),
        ("Job", example(job, job_example())),
        ("Receipt", receipt()),
        ("JobPage", page("Job").open("A page of jobs.")),
        ("Failure", failure().open("The failure of an attempt.")),
        ("Attempt", attempt()),
        ("AuditEntry", audit().open("An entry of the audit log.")),
        ("AuditLine", line.open("An entry of the audit log, with its job or kind.")),
        ("AuditPage", page("AuditLine").open("A page of the audit log, newest first.")),
        ("BatchAnswer", batch_answer()),
        ("BatchResult", batch_result()),
        ("Incident", incident()),
        ("IncidentPage", incidents()),
    ]
}

fn problem() -> Value {
    let error = Object::new()
        .has("field", text(), "JSON pointer to the invalid field of the request.")
        .has("message", text(), "What is wrong with the field.")
        .open("An error in one field.");
    let urn = json!({"type": "string", "pattern": "^urn:rewheel:problem:[a-z_]+$"});
    let detail = "Description of the error for people. The text may change between releases.";
    let request_id =
        "Id of the request. The header `x-request-id` and the server log contain the same id.";
    Object::new()
        .has(
            "type",
            urn,
            "Type of the problem: `urn:rewheel:problem:` and the value of the field `code`.",
        )
        .has("title", text(), "Short name of the error: `code` in words.")
        .has("status", between(400, 599), "HTTP status of the response.")
        .has(
            "code",
            text(),
            "Error code. Programs should use the field `code` to tell errors apart.",
        )
        .has("detail", text(), detail)
        .has(
            "errors",
            list(error),
            "The invalid fields of the request. Empty if the error is not about a field.",
        )
        .has("hint", or_null(text()), "What to do about the error.")
        .has("request_id", text(), request_id)
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
    who_and_what()
        .has("attempt", count(), "Number of the latest attempt. 0 before the first attempt. If a call was continued as this job, the attempts of that call are included.")
        .has("attempts_max", count(), "Maximum number for `attempt`. Like `attempt`, this number includes the attempts before the latest redrive, and the attempts of a call that was continued as this job.")
        .has("takeovers", count(), "How often another node or worker took over the job, because its holder died or because the job was overdue.")
        .has("fence", count(), "Fencing token. The fence grows with each claim, each retry on the same node and each takeover of the job.")
        .has("holder", or_null(id()), "Id of the holder (node or worker) that runs the job, or will run the job when it is due. Null if no holder has claimed the job.")
        .has("wanted", or_null(one_of(["pause", "cancel"])), "Change that was requested while the job was running. It takes effect when the attempt ends.")
        .has("version", count(), "Version of the job. It grows with each visible change and is the ETag.")
        .has("due", time(), "Time at which the next attempt may start. For an ended job: time at which its last attempt was allowed to start.")
        .has("deadline", or_null(time()), "No attempt starts after this time. Null if the job has no deadline.")
        .has("due_because", due_because(), "Why the job is due at this time.")
        .has("held_because", or_null(held_because()), "Why a job that is due does not run yet. Null if nothing holds the job back.")
        .has("attempt_timeout", duration(), "Timeout of one attempt.")
        .has("backoff", text(), "Delays between attempts.")
        .has("created", time(), "Time at which the job was stored.")
        .has("finished", or_null(time()), "Time at which the job ended. Null if the job has not ended.")
        .has("failure", or_null(reference("Failure")), "The latest failure. Null if no attempt has failed.")
        .has("incident", or_null(text()), "Id of the incident that the latest failure belongs to. Null if no attempt has failed.")
        .may("result", or_null(result()), "The result of the job. Null if there is none. GET /v1/jobs/{id}/result returns its bytes.")
        .may("result_dropped", or_null(text()), "Why the result was not kept. Null if it was kept, or if there was none.")
        .may("attempts", list(reference("Attempt")), "The settled attempts, oldest first. An attempt that succeeded is the last one.")
        .may("attempts_dropped", count(), "Number of attempts that are left out of `attempts`. The server keeps the first 10 and the latest 90 failed attempts of a job.")
        .may("audit", list(reference("AuditEntry")), "Changes made to the job by operators and nodes, oldest first.")
        .may("duplicate", flag(), "True if the job already existed. Present only in responses to submits.")
        .may("replaced", json!({"const": true}), "True if the submit replaced the payload and the other fields of the existing job. Absent otherwise.")
}

fn result() -> Value {
    Object::new()
        .has("content_type", text(), "Content type of the result.")
        .has("bytes", count(), "Size of the result in bytes.")
        .open("A result, without its bytes.")
}

fn who_and_what() -> Object {
    let payload = "Any JSON value, as it was submitted.";
    Object::new()
        .has("id", id(), "Id of the job.")
        .has("kind", kind(), "Kind of the job.")
        .has("state", state(), "State of the job.")
        .may("payload", json!({}), payload)
        .has("key", or_null(text()), "Idempotency key. Null if the job was submitted without a key.")
        .has("tenant", or_null(text()), "Tenant that the job belongs to. Null if it has none.")
        .has(
            "shard_key",
            or_null(text()),
            "Key that assigns the job to a shard. Null if it has none.",
        )
        .has("parent", or_null(id()), "Id of the parent: this job was submitted together with the result of the parent. Null if the job has no parent.")
        .has(
            "instant",
            or_null(time()),
            "Instant of the schedule that submitted the job. Null if no schedule did.",
        )
        .has("group_key", or_null(text()), "Key of the group. The jobs of a group run one at a time, in the order of their submits. Null if the job has no group.")
        .has("blocked", flag(), "True while the job is scheduled and an earlier job of its group has not ended.")
        .has("turn", or_null(count()), "Number that grows each time a job of the group is allowed to run. Null before this job is allowed to run, and if the job has no group.")
        .has("priority", between(0, 9), "Priority. Jobs with priority 9 run first.")
}

fn due_because() -> Value {
    Object::new()
        .has("reason", one_of(DueReason::ALL.map(DueReason::as_str)), "The reason, for programs.")
        .has("text", text(), "The reason in words.")
        .open("Why the job is due at this time.")
}

fn held_because() -> Value {
    let reasons = HeldReason::ALL.map(HeldReason::as_str);
    Object::new()
        .has("reason", one_of(reasons), "The reason, for programs.")
        .has(
            "until",
            or_null(time()),
            "Time until which the job is held back. Null if that is not known.",
        )
        .has("text", text(), "The reason in words.")
        .open("Why a job that is due does not run yet. Null if nothing holds the job back.")
}

fn job_example() -> Value {
    let attempt = json!({
        "attempt": 1, "fence": 1, "holder": ID, "started": AT, "duration": "30s",
        "category": "timeout", "code": "504", "message": "no answer", "decision": "retry",
        "delay": "83ms",
    });
    let failure = json!({"category": "timeout", "code": "504", "message": "no answer"});
    let because = json!({"reason": "backoff", "text": "attempt 1 timed out; waiting 83ms"});
    json!({
        "id": ID, "kind": "charge-card", "state": "scheduled", "payload": {"order": 17},
        "key": "order-17", "tenant": null, "shard_key": null, "parent": null, "instant": null, "group_key": null, "blocked": false,
        "turn": null, "priority": 5, "attempt": 1,
        "attempts_max": 8, "takeovers": 0, "fence": 2, "holder": null, "wanted": null, "version": 3,
        "due": AT, "deadline": null,
        "due_because": because,
        "held_because": null,
        "attempt_timeout": "30s", "backoff": "exponential 100ms x2 max 30s jitter full", "created": AT,
        "finished": null, "failure": failure, "incident": "9f0c4a1b2d3e4f50",
        "result": null, "result_dropped": null,
        "attempts": [attempt],
        "audit": [],
    })
}

fn receipt() -> Value {
    Object::new()
        .has("id", id(), "Id of the existing job.")
        .has("duplicate", json!({"const": true}), "Always true: the job already existed.")
        .may(
            "replaced",
            json!({"const": true}),
            "True if the submit replaced the payload and the other fields of the existing job. Absent otherwise.",
        )
        .has("kind", kind(), "Kind of the job.")
        .has("key", or_null(text()), "Idempotency key of the job.")
        .has("tenant", or_null(text()), "Tenant that the job belongs to. Null if it has none.")
        .has("state", state(), "State of the job.")
        .open("The existing job with the same key, for callers without the role `read`.")
}

fn failure() -> Object {
    let code = "Error code, for example an HTTP status. Null if the failure has none.";
    Object::new()
        .has("category", category(), "Category of the failure.")
        .has("code", or_null(text()), code)
        .has("message", text(), "Description of the failure for people.")
}

fn attempt() -> Value {
    let decisions = ["succeed", "retry", "snooze", "dead", "fail", "pause", "cancel"];
    Object::new()
        .has(
            "category",
            or_null(category()),
            "Category of the failure. Null if the attempt succeeded.",
        )
        .has(
            "code",
            or_null(text()),
            "Error code, or the HTTP status of a success. Null if there is none.",
        )
        .has(
            "message",
            or_null(text()),
            "Description of the failure for people. Null if the attempt succeeded.",
        )
        .has("attempt", count(), "Number of the attempt.")
        .has("fence", count(), "Fencing token of the job during this attempt.")
        .has("holder", id(), "Id of the holder (node or worker) that ran the attempt.")
        .has("started", time(), "Time at which the attempt started.")
        .has("duration", duration(), "Duration of the attempt.")
        .has("decision", one_of(decisions), "What followed.")
        .has(
            "delay",
            or_null(duration()),
            "Delay before the next attempt. Null if there was no next attempt.",
        )
        .open("A settled attempt.")
}

fn audit() -> Object {
    let facts = || json!({"type": "object"});
    Object::new()
        .has("at", time(), "Time of the change.")
        .has("who", text(), "Who made the change, for example `token:ops` or `holder:node-1`.")
        .has("what", text(), "What was done, for example `cancel`.")
        .has("before", facts(), "The changed fields and their old values.")
        .has("after", facts(), "The changed fields and their new values.")
}

fn batch_answer() -> Value {
    let results = "One result for each job, in the order of the request.";
    Object::new()
        .has("results", list(reference("BatchResult")), results)
        .open("The result of each job of the batch, in the order of the request.")
}

fn batch_result() -> Value {
    let stored = Object::new()
        .has("id", id(), "Id of the job.")
        .has("duplicate", flag(), "True if the job already existed.")
        .may(
            "replaced",
            json!({"const": true}),
            "True if the submit replaced the payload and the other fields of the existing job. Absent otherwise.",
        )
        .open("The job was stored, or already existed.");
    let refused = Object::new()
        .has("problem", reference("Problem"), "Why the job was rejected.")
        .open("The job was rejected. Occurs only with `partial=true`.");
    let schema =
        example(json!({"anyOf": [stored, refused]}), json!({"id": ID, "duplicate": false}));
    about(schema, "The result of one job of a batch.")
}

fn incident() -> Value {
    failure()
        .has(
            "id",
            text(),
            "Id of the incident. It is the same on every node and after every restart.",
        )
        .has("kind", kind(), "Kind of the jobs.")
        .has("count", count(), "Number of jobs whose latest failure has this cause.")
        .has("dead", count(), "Number of these jobs that are dead letters.")
        .has("first_seen", time(), "Time of the oldest of these failures.")
        .has("last_seen", time(), "Time of the newest of these failures.")
        .has("examples", list(id()), "Ids of some of these jobs.")
        .may("complete", flag(), "True if the server read all failed jobs. False if it read only the newest ones. Absent in lists, which have it for all items.")
        .open("Failed jobs of one kind that have the same cause.")
}

fn incidents() -> Value {
    let complete =
        "True if the server read all failed jobs. False if it read only the newest ones.";
    page("Incident")
        .has("complete", flag(), complete)
        .open("A page of incidents, those with the most dead letters first.")
}
