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
        .has(
            "step",
            or_null(count()),
            "Number of the current step, from 1. Null once all steps succeeded.",
        )
        .has("steps", count(), "Number of steps of the canary.")
        .has("sizes", list(count()), "Number of jobs of each step.")
        .has("redriven", count(), "Number of jobs of the current step that were redriven.")
        .has("ok", count(), "How many of these jobs have ended well.")
        .has("failed", count(), "How many of these jobs failed again.")
        .has(
            "failed_job",
            or_null(id()),
            "Id of one of the jobs that failed again. Null if none did.",
        )
        .has("rest", count(), "Number of jobs that follow after the last step.")
        .open("The steps of a canary, and the progress of the current one.");
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
        .has("canary", or_null(step), "The steps of the canary. Null without a canary.")
        .has(
            "incident",
            or_null(text()),
            "Id of the incident that the jobs belong to, if the request named one. Null otherwise.",
        )
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
        "refused": {}, "reason": null,
        "canary": {"step": 2, "steps": 3, "sizes": [1, 10, 100], "redriven": 10, "ok": 6, "failed": 0, "failed_job": null, "rest": 301},
        "incident": null, "by": "rest", "created": AT, "finished": null,
    })
}
