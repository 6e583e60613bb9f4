//! Schemas of nodes: their leases, statistics, health.

use super::kinds::{APPROXIMATE, COUNTED, OLDEST_DUE, by_state};
use super::{category, page};
use crate::openapi::shape::{Object, count, duration, flag, id, list, one_of, or_null, text, time};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    let live = Object::new().has("live", json!({"const": true}), "Always true.");
    let ready = Object::new().has("ready", json!({"const": true}), "Always true.");
    let holders = "A page of holders: first live holders, then holders that died recently.";
    vec![
        ("Holder", holder()),
        ("HolderPage", page("Holder").open(holders)),
        ("Stats", stats()),
        ("History", history()),
        ("Live", live.open("The response of the liveness check.")),
        ("Ready", ready.open("The response of the readiness check.")),
        ("Health", health()),
    ]
}

fn holder() -> Value {
    Object::new()
        .has("id", id(), "Id of the holder.")
        .has("name", text(), "Name of the holder, from its config or its first claim.")
        .has("role", one_of(["engine", "worker"]), "Type of the holder: `engine` (a node) or `worker`.")
        .has(
            "state",
            one_of(["alive", "silent", "dead"]),
            "`alive`: the holder renews its lease. `silent`: its lease has expired. `dead`: another holder marked it as dead.",
        )
        .has("here", flag(), "True if this holder is the server that sent the response.")
        .has("lease_ttl", duration(), "How long the lease of the holder lasts without a renewal.")
        .has("renewals", count(), "How often the holder has renewed its lease.")
        .has("joined", time(), "Time at which the holder registered.")
        .has("renewed", time(), "Time of the latest lease renewal.")
        .has(
            "died",
            or_null(time()),
            "Time at which another holder marked this holder as dead. Null if it is alive.",
        )
        .open("A holder: a node or worker that runs jobs.")
}

fn stats() -> Value {
    let holders = Object::new()
        .has("alive", count(), "Number of living holders: those that renew their lease.")
        .open("Number of holders (nodes and workers).");
    Object::new()
        .has("jobs", by_state(), "Number of jobs by state.")
        .has("oldest_due", or_null(time()), OLDEST_DUE)
        .has("as_of", time(), COUNTED)
        .has("approximate", flag(), APPROXIMATE)
        .has("holders", holders, "Number of holders (nodes and workers).")
        .has("here", here(), "Counters of this server since its start.")
        .open("Job counts and engine statistics.")
}

fn here() -> Value {
    let decision = Object::new()
        .has("decision", text(), "What followed an attempt, for example `retry`.")
        .has("category", or_null(category()), "Category of the failure. Null for a success.")
        .has("count", count(), "How often attempts ended with this decision and category.")
        .open("How often one decision was made. A decision is what follows an attempt, such as succeed or retry.");
    let notices = Object::new()
        .has("notifier", text(), "Name of the route.")
        .has("sent", count(), "Notifications that were delivered.")
        .has(
            "suppressed",
            count(),
            "Notifications that were not sent individually, but counted in a summary.",
        )
        .has("failed", count(), "Notifications that could not be delivered.")
        .has("summaries", count(), "Summaries that were delivered.")
        .open("Counters of one notification route.");
    Object::new()
        .has("holder", id(), "Holder id of this server.")
        .has("lease_expired", flag(), "True if this server could not renew its lease in time.")
        .has("stopping", flag(), "True if this server is shutting down.")
        .has("concurrency", count(), "Number of slots: attempts that may run at the same time.")
        .has("concurrency_free", count(), "Number of free slots.")
        .has("waiting", count(), "Number of claimed jobs that wait in memory.")
        .has("decisions", list(decision), "Number of decisions, by type.")
        .has("notices", list(notices), "Counters of each notification route.")
        .open("Counters of this server since its start.")
}

fn history() -> Value {
    let number = || json!({"type": "number", "minimum": 0});
    let distribution = || {
        Object::new()
            .has(
                "p50_ms",
                or_null(number()),
                "Half of the attempts took at most this many milliseconds. Null without attempts.",
            )
            .has(
                "p95_ms",
                or_null(number()),
                "95 % of the attempts took at most this many milliseconds. Null without attempts.",
            )
            .has(
                "buckets",
                list(count()),
                "Number of attempts in each bucket; `bounds_ms` has the upper bounds.",
            )
            .open("How attempts are distributed over buckets.")
    };
    let counts = Object::new()
        .has("submitted", count(), "Jobs that were submitted.")
        .has("attempts", count(), "Attempts that started.")
        .has("succeeded", count(), "Jobs that succeeded.")
        .has("retried", count(), "Attempts after which the job is retried.")
        .has("snoozed", count(), "Attempts that were postponed without using up an attempt.")
        .has("failed", count(), "Jobs that ended in the state `failed`.")
        .has("dead", count(), "Jobs that became dead letters.")
        .has("cancelled", count(), "Jobs that were cancelled while an attempt ran.")
        .has(
            "concurrency_max",
            count(),
            "Maximum number of attempts that ran at the same time, without those of workers. For several nodes or kinds the sum of their maximums.",
        )
        .has("duration", distribution(), "Duration of attempts.")
        .has("lateness", distribution(), "Time from the due time to the start of attempts.")
        .open("What happened in the minutes of a point.");
    let point = Object::new()
        .has("start", time(), "When the point begins, by the clock of the store.")
        .has("minutes", count(), "How many minutes it covers: 1 or 5.")
        .has(
            "reported",
            count(),
            "In how many of these minutes a node reported. The others are not part of the counts.",
        )
        .has(
            "counts",
            or_null(counts),
            "Null if no node reported: the counts are unknown, not zero.",
        )
        .open("A point of a history.");
    let bound = json!({"type": "number", "minimum": 0});
    Object::new()
        .has("as_of", time(), "When the history was read.")
        .has("bounds_ms", list(bound), "Upper bounds of the buckets in milliseconds. The last bucket has none.")
        .has("points", list(point), "The points, the oldest first.")
        .open("What happened to jobs, minute by minute. The current minute is there as soon as a node has reported in it.")
}

fn health() -> Value {
    let state = || one_of(["ok", "degraded", "down"]);
    let component = Object::new()
        .has("ok", flag(), "False if the part does not work.")
        .has("state", state(), "State of the part.")
        .has("message", text(), "The state in words, and what to do.")
        .open("The health of one part of the server.");
    let components = json!({"type": "object", "additionalProperties": component});
    Object::new()
        .has("ok", flag(), "False if a part of the server does not work.")
        .has("state", state(), "The worst state of all parts.")
        .has("components", components, "The parts of the server, by name.")
        .open("Health of each part of the server.")
}
