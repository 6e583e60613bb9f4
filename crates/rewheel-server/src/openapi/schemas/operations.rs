//! Schemas of bulk operations.

use super::{AT, ID, page};
use crate::openapi::shape::{Object, count, example, flag, id, list, one_of, or_null, text, time};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Preview", example(preview(), json!({"count": 412, "complete": true, "sample": [ID]}))),
        ("Operation", example(operation(), operation_example())),
        ("OperationPage", page("Operation").open("A page of operations.")),
    ]
}

fn preview() -> Value {
    let complete = "True if `count` is exact. False if there are more matching jobs.";
    Object::new()
        .has("count", count(), "Number of jobs that would change.")
        .has("complete", flag(), complete)
        .has("sample", list(id()), "Ids of some of these jobs.")
        .open("The jobs that an operation would change: their number and some of their ids.")
}

fn operation() -> Value {
    let step = Object::new()
        .has("step", count(), "Number of the step.")
        .has("steps", count(), "Number of steps of the canary.")
        .open("The canary step in progress.");
    let refused =
        json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}});
    let verbs = one_of(["cancel", "pause", "resume", "retry", "redrive"]);
    let states = one_of(["running", "paused", "done", "aborted"]);
    let reason = "Why the operation was aborted. Null if the operation was not aborted.";
    Object::new()
        .has("id", id(), "Id of the operation.")
        .has("verb", verbs, "What the operation does to each job.")
        .has("state", states, "State of the operation.")
        .has("total", count(), "Number of jobs to change.")
        .has("done", count(), "Number of jobs that were changed.")
        .has("failed", count(), "Number of jobs that the operation could not change.")
        .has("refused", refused, "The jobs in `failed`, counted by reason.")
        .has("reason", or_null(text()), reason)
        .has("canary", or_null(step), "The canary step in progress. Null without a canary.")
        .has("by", text(), "Who started the operation.")
        .has("created", time(), "Time at which the operation was started.")
        .has(
            "finished",
            or_null(time()),
            "Time at which the operation ended. Null while the operation is running.",
        )
        .open("A bulk operation and its progress.")
}

fn operation_example() -> Value {
    json!({
        "id": ID, "verb": "redrive", "state": "running", "total": 412, "done": 17, "failed": 0,
        "refused": {}, "reason": null, "canary": null, "by": "rest", "created": AT, "finished": null,
    })
}
