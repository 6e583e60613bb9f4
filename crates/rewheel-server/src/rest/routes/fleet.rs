//! Routes that show holders, statistics, the audit log and events.

use super::{Route, get};
use crate::openapi::Operation;
use crate::openapi::shape::{id, kind, list, text, word};
use crate::problem::Code;
use crate::rest::access::{READ_ALL, READ_JOB};
use crate::rest::{audit, events, fleet};
use serde_json::json;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get(
            "/v1/holders",
            READ_ALL,
            fleet::holders,
            Operation::new("listHolders", "List holders: the nodes and workers that run jobs.")
                .paged()
                .gives(200, "Live holders, then recently dead ones.", "HolderPage")
                .reads(),
        ),
        get(
            "/v1/stats",
            READ_ALL,
            fleet::stats,
            Operation::new("getStats", "Show job counts and engine statistics.")
                .gives(200, "Job counts by state, and counters of this server.", "Stats")
                .reads(),
        ),
        get(
            "/v1/audit",
            READ_JOB,
            audit::list,
            Operation::new("listAudit", "Show the audit log, newest first.")
                .query("job", "Only entries of this job.", id())
                .query("what", "Only these actions.", list(word()))
                .query("kind", "Only entries of these kinds.", list(kind()))
                .query("who", "Only entries of these actors.", list(word()))
                .paged()
                .gives(200, "A page of the audit log.", "AuditPage")
                .reads(),
        ),
        get("/v1/events", READ_JOB, events::listen, listen()),
    ]
}

fn listen() -> Operation {
    let summary =
        "Stream state changes of jobs: `event: job` with `job`, `kind`, `from`, `to`, `at`.";
    let seq = json!({"type": "string", "pattern": "^[0-9]{1,18}$"});
    Operation::new("listenToEvents", summary)
        .query("kind", "Only these kinds.", list(kind()))
        .query("job", "Only this job.", id())
        .query("after", "The id of the last event received.", seq.clone())
        .header("Last-Event-ID", "The same, as browsers send it.", seq)
        .gives_as(200, "An endless stream of events.", ("text/event-stream", text()))
        .reads()
        .may(&[Code::Throttled])
}
