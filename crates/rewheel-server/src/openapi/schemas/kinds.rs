//! Schemas of kinds.

use super::page;
use crate::openapi::requests;
use crate::openapi::shape::{Object, count, flag, kind, one_of, or_null, reference, text, time};
use serde_json::Value;

pub(super) const COUNTED: &str = "Time at which the jobs were counted, by the clock of the store.";

pub(super) const APPROXIMATE: &str = "True if the counts may be some seconds old. Above 10,000 jobs, the server counts periodically instead of for each request.";

pub(super) const OLDEST_DUE: &str =
    "Due time of the job that has waited longest. Null if no job is due.";

pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![("Kind", kind_document()), ("KindPage", page("Kind").open("A page of kinds."))]
}

pub(super) fn by_state() -> Value {
    Object::new()
        .has("scheduled", count(), "Jobs that wait for their next attempt.")
        .has("leased", count(), "Jobs that a node or worker has claimed.")
        .has("paused", count(), "Jobs that an operator or a rule paused.")
        .has("dead", count(), "Dead letters: jobs that wait for an operator.")
        .open("Number of jobs by state.")
}

fn kind_document() -> Value {
    let parked = "True if the circuit breaker has stopped new attempts until a probe succeeds.";
    Object::new()
        .has("kind", kind(), "Name of the kind.")
        .has("runner", requests::runner(), "What runs the jobs of this kind.")
        .has("runnable", flag(), "True if this server or a worker can run jobs of this kind.")
        .has("paused", flag(), "True if an operator paused the kind: no attempt starts.")
        .has("parked", flag(), parked)
        .has("settings", reference("KindSettings"), "Settings of the kind, defaults included.")
        .has("breaker", breaker(), "State of the circuit breaker of a kind.")
        .has("jobs", by_state(), "Number of jobs of this kind by state.")
        .has("oldest_due", or_null(time()), OLDEST_DUE)
        .may("as_of", time(), COUNTED)
        .has("approximate", flag(), APPROXIMATE)
        .open("A kind of job.")
}

fn breaker() -> Value {
    let forced = "True if an operator opened or closed the breaker. The breaker then ignores failures until it is reset.";
    Object::new()
        .has("state", one_of(["closed", "open", "half_open"]), "State of the breaker.")
        .has("forced", flag(), forced)
        .may("since", time(), "Time at which the breaker opened.")
        .may(
            "until",
            time(),
            "Set if the called service asked to wait: no node calls the service before this time.",
        )
        .may("reason", text(), "Why the breaker opened.")
        .open("State of the circuit breaker of a kind.")
}
