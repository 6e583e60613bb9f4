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
