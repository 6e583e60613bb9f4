//! Routes that show holders, statistics, the audit log and events.

use super::{Route, get};
use crate::openapi::Operation;
use crate::openapi::shape::{duration_asked, id, kind, list, text, word};
use crate::problem::Code;
use crate::rest::access::{READ_ALL, READ_JOB};
use crate::rest::{audit, events, fleet, history};
use serde_json::json;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get(
            "/v1/holders",
            READ_ALL,
            fleet::holders,
            Operation::new("listHolders", "List holders: the nodes and workers that run jobs.")
                .paged()
                .gives(
                    200,
                    "A page of holders: first live holders, then holders that died recently.",
                    "HolderPage",
                )
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
            "/v1/history",
            READ_ALL,
            history::show,
            Operation::new(
                "getHistory",
                "Show what happened to jobs of the last 24 hours, minute by minute.",
            )
            .query("kind", "Add up only these kinds. Without it, adds up all kinds.", list(kind()))
            .query("since", "How far back, 1 minute to 24 hours (default 24h).", duration_asked())
            .gives(
                200,
                "One point for each of the last 180 minutes, and for each five minutes before.",
                "History",
            )
            .reads(),
        ),
        get(
            "/v1/audit",
            READ_JOB,
            audit::list,
            Operation::new("listAudit", "Show the audit log, newest first.")
                .query("job", "Only entries about this job.", id())
                .query("what", "Only entries with these actions.", list(word()))
                .query("kind", "Only entries about these kinds.", list(kind()))
                .query(
                    "who",
                    "Only entries about actions of these users, tokens or nodes.",
                    list(word()),
                )
                .paged()
                .gives(200, "A page of the audit log.", "AuditPage")
                .reads(),
        ),
        get("/v1/events", READ_JOB, events::listen, listen()),
    ]
}

fn listen() -> Operation {
    let summary = "Stream the state changes of jobs as server-sent events. The data of each event has the fields `job`, `kind`, `from`, `to` and `at`.";
    let seq = json!({"type": "string", "pattern": "^[0-9]{1,18}$"});
    Operation::new("listenToEvents", summary)
        .query("kind", "Only events of these kinds.", list(kind()))
        .query("job", "Only events of this job.", id())
        .query(
            "after",
            "Id of the last event that the client received. The stream continues after this event.",
            seq.clone(),
        )
        .header(
            "Last-Event-ID",
            "The same as `after`. Browsers send this header when they reconnect.",
            seq,
        )
        .gives_as(200, "A stream of events that does not end.", ("text/event-stream", text()))
        .reads()
        .may(&[Code::Throttled])
}
