//! Schemas of the responses to workers.

use super::state;
use crate::openapi::shape::{
    Object, about, count, duration, id, kind, list, one_of, or_null, reference, text, time,
};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    let cancel = "Ids of jobs that the worker must stop because a user cancelled or paused them.";
    let claimed = Object::new()
        .has("holder", id(), "Holder id of the worker. Send it with every later request.")
        .has("lease_ttl", duration(), LEASE_TTL)
        .has("jobs", list(reference("Work")), "Jobs to run.");
    let heard =
        Object::new().has("lease_ttl", duration(), LEASE_TTL).has("cancel", list(id()), cancel);
    let left = Object::new().has("given_back", count(), "Number of jobs.");
    vec![
        ("Work", work()),
        (
            "Claimed",
            claimed.open("Jobs to run. The list is empty if no job became due within `wait`."),
        ),
        ("Heard", heard.open("The renewed lease and the jobs that the worker must stop.")),
        ("Settled", settled()),
        ("Extended", extended()),
        ("Kept", kept()),
        ("Left", left.open("Number of jobs that the server gave back to the store.")),
    ]
}

const LEASE_TTL: &str = "How long the lease lasts without a heartbeat.";

/// A request for a job that the worker no longer holds.
fn lost(field: &'static str, description: &str) -> Value {
    let reason = "Another holder has the job, or the job has ended.";
    Object::new()
        .has("id", id(), "Id of the job.")
        .has(field, json!({"const": false}), "Always false.")
        .has("reason", one_of(["fence_lost"]), reason)
        .open(description)
}

fn settled() -> Value {
    let settled = Object::new()
        .has("id", id(), "Id of the job.")
        .has("settled", json!({"const": true}), "Always true.")
        .has("state", state(), "State of the job after this result.")
        .open("The result was stored.");
    let lost =
        lost("settled", "The result was ignored because the worker no longer holds the job.");
    let result = json!({"anyOf": [settled, lost]});
    Object::new()
        .has("results", list(result), "What happened to each result.")
        .open("What happened to each reported result, in the order of the request.")
}

fn extended() -> Value {
    let overdue = "Time until which the worker must report a result. After that time another worker may get the job.";
    let longer = Object::new()
        .has("id", id(), "Id of the job.")
        .has("extended", json!({"const": true}), "Always true.")
        .has("overdue", time(), overdue)
        .open("The time limit was extended.");
    let lost = lost("extended", "The worker no longer holds the job.");
    about(json!({"anyOf": [longer, lost]}), "Whether the attempt got more time.")
}

fn kept() -> Value {
    let kept = Object::new()
        .has("id", id(), "Id of the job.")
        .has("kept", json!({"const": true}), "Always true.")
        .open("The checkpoint was stored.");
    let lost = lost("kept", "The worker no longer holds the job.");
    about(json!({"anyOf": [kept, lost]}), "Whether the checkpoint was stored.")
}

fn work() -> Value {
    let fence =
        "Fencing token of this lease. The worker sends it back with settle, extend and checkpoint.";
    Object::new()
        .has("id", id(), "Id of the job.")
        .has("kind", kind(), "Kind of the job.")
        .has("payload", json!({}), "Any JSON value, as it was submitted or saved by a checkpoint.")
        .has("key", or_null(text()), "Idempotency key. Null if the job has none.")
        .has("tenant", or_null(text()), "Tenant that the job belongs to. Null if it has none.")
        .has("attempt", count(), "Number of this attempt, from 1.")
        .has("fence", count(), fence)
        .has("group_key", or_null(text()), "Key of the group. Null if the job has no group.")
        .has("turn", or_null(count()), "Number that grows each time a job of the group is allowed to run. Null if the job has no group.")
        .has("deadline", or_null(time()), "No attempt starts after this time.")
        .has("attempt_timeout", duration(), "Timeout of this attempt.")
        .has("traceparent", or_null(text()), "Trace context of the submitter (W3C).")
        .has(
            "instant",
            or_null(time()),
            "Instant of the schedule that submitted the job. Null if no schedule did.",
        )
        .open("A job claimed by a worker.")
}
