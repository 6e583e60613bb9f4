//! Schemas of schedules.

use super::{AT, ID, page};
use crate::openapi::shape::{
    Object, between, count, duration, example, flag, id, kind, list, one_of, or_null, text, time,
};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    let fired =
        Object::new().has("id", id(), "Id of the job.").open("A job that was submitted by hand.");
    vec![
        ("Schedule", example(schedule(), schedule_example())),
        ("SchedulePage", page("Schedule").open("A page of schedules.")),
        ("ScheduleFired", example(fired, json!({"id": ID}))),
    ]
}

fn schedule() -> Value {
    let last = Object::new()
        .has("instant", time(), "The instant.")
        .has("job", id(), "Id of the job of this instant.")
        .open("The latest instant that submitted a job.");
    Object::new()
        .has("name", kind(), "Name of the schedule.")
        .has(
            "id",
            id(),
            "Id of the schedule's own job, which is the `parent` of the jobs that it submits.",
        )
        .has("cron", or_null(text()), "Cron expression. Null if the schedule has a period.")
        .has("zone", or_null(text()), "Time zone of the cron expression.")
        .has("every", or_null(duration()), "Period. Null if the schedule has a cron expression.")
        .has("job", job(), "The job to submit at each instant.")
        .has(
            "overlap",
            one_of(["skip", "allow"]),
            "What happens at an instant if an earlier job of the schedule has not ended.",
        )
        .has(
            "catch_up",
            one_of(["none", "one"]),
            "What happens to instants that passed while no node could fire.",
        )
        .has("paused", flag(), "True while the schedule is paused.")
        .has(
            "managed_by_config",
            flag(),
            "True if the config file of the server defines the schedule.",
        )
        .has("next", list(time()), "The next five instants. Empty while the schedule is paused.")
        .has(
            "last",
            or_null(last),
            "The latest instant that submitted a job. Null if there is none yet.",
        )
        .has("fired", count(), "Number of instants that submitted a job.")
        .has(
            "skipped",
            count(),
            "Number of instants that were skipped because an earlier job had not ended.",
        )
        .has("missed", count(), "Number of instants that no node could fire in time.")
        .has(
            "failure",
            or_null(text()),
            "The latest reason why an instant could not be fired on time.",
        )
        .has(
            "version",
            count(),
            "Version of the schedule. It grows with each change and each instant, and is the ETag.",
        )
        .has("created", time(), "Time at which the schedule was created.")
        .open("A schedule.")
}

fn job() -> Value {
    Object::new()
        .has("kind", kind(), "Kind of the job.")
        .has("payload", json!({}), "Any JSON value.")
        .has("tenant", or_null(text()), "Tenant that the job belongs to. Null if it has none.")
        .has(
            "shard_key",
            or_null(text()),
            "Key that assigns the job to a shard. Null if it has none.",
        )
        .has("group_key", or_null(text()), "Key of the group of the job. Null if it has none.")
        .has("priority", between(0, 9), "Priority. Jobs with priority 9 run first.")
        .has(
            "delay",
            or_null(duration()),
            "How long after the planned time of the schedule the first attempt starts.",
        )
        .has(
            "attempts_max",
            or_null(count()),
            "Maximum number of attempts. Null: the setting of the kind.",
        )
        .has(
            "attempt_timeout",
            or_null(duration()),
            "Timeout of one attempt. Null: the setting of the kind.",
        )
        .has("backoff", or_null(text()), "Delays between attempts. Null: the setting of the kind.")
        .open("The job to submit at each instant.")
}

fn schedule_example() -> Value {
    json!({
        "name": "nightly-report", "id": ID, "cron": "0 3 * * *", "zone": "Europe/Berlin", "every": null,
        "job": {"kind": "report", "payload": {"of": "sales"}, "tenant": null, "shard_key": null, "group_key": null, "priority": 5,
            "delay": null, "attempts_max": null, "attempt_timeout": null, "backoff": null},
        "overlap": "skip", "catch_up": "one", "paused": false, "managed_by_config": false, "next": [AT],
        "last": {"instant": AT, "job": ID}, "fired": 1, "skipped": 0, "missed": 0, "failure": null,
        "version": 2, "created": AT,
    })
}
