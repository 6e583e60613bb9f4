//! Defines every operation of the OpenAPI document.

use super::operation::Operation;
use super::schemas::{category, state};
use super::shape::{between, flag, id, kind, list, name, reference, text, time_asked};
use crate::problem::Code;
use rewheel_core::Limits;
use serde_json::{Value, json};

/// Returns all operations, in reading order.
pub(super) fn all() -> Vec<Operation> {
    let mut all = jobs();
    all.extend(one_job());
    all.extend(bulk());
    all.extend(incidents());
    all.extend(kinds());
    all.extend(fleet());
    all.extend(workers());
    all.extend(tokens());
    all.extend(server());
    all
}

/// Adds the parameters of a paged list.
fn paged(operation: Operation) -> Operation {
    let most = u64::try_from(Limits::PAGE_MAX).unwrap_or(u64::MAX);
    let limit = between(1, most);
    operation.query("limit", "Maximum number of results (default 100).", limit).query(
        "cursor",
        "`next` of the previous page, unchanged.",
        cursor(),
    )
}

/// The schema of a cursor, which is opaque to clients.
fn cursor() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9_-]+$"})
}

/// The schema of a text that must not be empty.
fn word() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn jobs() -> Vec<Operation> {
    let list_of =
        Operation::new(("get", "/v1/jobs"), ("jobs", "listJobs"), "List jobs, newest first.")
            .query("state", "Only jobs in these states.", list(state()))
            .query("kind", "Only these kinds.", list(kind()))
            .query("tenant", "Only this tenant.", name(128))
            .query(
                "key",
                "Only the job with exactly this key; kind and tenant are optional.",
                name(255),
            )
            .query("category", "Only jobs whose latest failure has this category.", category())
            .query("q", "Only jobs whose text contains this.", word())
            .query("due_after", "Only jobs due after this time.", time_asked())
            .query("due_before", "Only jobs due before this time.", time_asked())
            .query("created_after", "Only jobs created after this time.", time_asked())
            .query("created_before", "Only jobs created before this time.", time_asked());
    let key = "The `key` of the job if the body has none. Double quotes around it (RFC 8941) are removed.";
    let key_pattern = r#"^([!#-+\--:<-\[\]-~]{1,255}|"([ !#-\[\]-~]|\\["\\]){1,255}")$"#;
    let submit = Operation::new(("post", "/v1/jobs"), ("jobs", "submitJob"), "Submits a job.")
        .header("Idempotency-Key", key, json!({"type": "string", "pattern": key_pattern}))
        .takes("NewJob")
        .gives(201, "The job is stored.", "Job")
        .gives_as(
            200,
            "It was there already, with the same key. Callers without the role `read` get a receipt.",
            ("application/json", json!({"anyOf": [reference("Job"), reference("Receipt")]})),
        )
        .writes()
        .may(&[Code::KeyReused, Code::UnknownKind, Code::Throttled]);
    let batch = "Submits many jobs: all, or none, or with `partial` those that can be stored.";
    vec![
        submit,
        Operation::new(("post", "/v1/jobs/batch"), ("jobs", "submitJobs"), batch)
            .query("partial", "Whether to store the good ones among bad ones.", flag())
            .takes("Batch")
            .gives(201, "All are stored.", "BatchAnswer")
            .gives(200, "Some may be stored.", "BatchAnswer")
            .writes()
            .may(&[Code::KeyReused, Code::UnknownKind, Code::Throttled]),
        paged(list_of).gives(200, "A page of jobs.", "JobPage").reads(),
    ]
}

/// The schema of a tag for If-Match.
fn tag() -> Value {
    json!({"type": "string", "pattern": "^(\\*|(W/)?\"?[0-9]{1,18}\"?)$"})
}

fn one_job() -> Vec<Operation> {
    let of = |operation: Operation| operation.at("id", "The job.", id());
    let etag = "The version, for If-Match.";
    let if_match = "Change the job only if it still has this ETag.";
    let change = |path, name, summary| {
        of(Operation::new(("post", path), ("jobs", name), summary))
            .header("If-Match", if_match, tag())
            .may_take("Nothing")
            .gives(200, "The job after the change.", "Job")
            .with("ETag", etag)
            .writes()
            .may(&[Code::WrongState, Code::VersionChanged])
    };
    vec![
        of(Operation::new(
            ("get", "/v1/jobs/{id}"),
            ("jobs", "getJob"),
            "Show a job with its attempts and audit log.",
        ))
        .gives(200, "The job.", "Job")
        .with("ETag", etag)
        .reads(),
        of(Operation::new(
            ("patch", "/v1/jobs/{id}"),
            ("jobs", "editJob"),
            "Change a job that is not leased.",
        ))
        .header("If-Match", if_match, tag())
        .takes("Edit")
        .gives(200, "The job after the change.", "Job")
        .with("ETag", etag)
        .writes()
        .may(&[Code::WrongState, Code::VersionChanged]),
        change("/v1/jobs/{id}/cancel", "cancelJob", "Cancel a job."),
        change("/v1/jobs/{id}/pause", "pauseJob", "Pause a job."),
        change("/v1/jobs/{id}/resume", "resumeJob", "Resume a paused job."),
        change(
            "/v1/jobs/{id}/retry",
            "retryJob",
            "Make a job due now; also restarts a dead letter.",
        ),
    ]
}

fn bulk() -> Vec<Operation> {
    let order = |path, name, summary, body| {
        Operation::new(("post", path), ("bulk", name), summary)
            .takes(body)
            .gives(200, "With dry_run: what would change.", "Preview")
            .gives(202, "The operation has started.", "Operation")
            .with("Location", "URL of the operation.")
            .writes()
    };
    let of = |operation: Operation| operation.at("id", "The operation.", id());
    let list_of = Operation::new(
        ("get", "/v1/operations"),
        ("bulk", "listOperations"),
        "List bulk operations, newest first.",
    );
    vec![
        order("/v1/jobs/cancel", "cancelJobs", "Cancel the jobs that match a filter.", "Order"),
        order("/v1/jobs/pause", "pauseJobs", "Pause the jobs that match a filter.", "Order"),
        order(
            "/v1/jobs/resume",
            "resumeJobs",
            "Resume the paused jobs that match a filter.",
            "Order",
        ),
        order("/v1/jobs/retry", "retryJobs", "Make the jobs that match a filter due now.", "Order"),
        order(
            "/v1/jobs/redrive",
            "redriveJobs",
            "Redrive the dead letters that match a filter.",
            "Redrive",
        ),
        paged(list_of).gives(200, "A page of operations.", "OperationPage").reads(),
        of(Operation::new(
            ("get", "/v1/operations/{id}"),
            ("bulk", "getOperation"),
            "Show the progress of an operation.",
        ))
        .gives(200, "The operation.", "Operation")
        .reads(),
        of(Operation::new(
            ("post", "/v1/operations/{id}/abort"),
            ("bulk", "abortOperation"),
            "Abort an operation.",
        ))
        .header("If-Match", "Abort only if the operation's job still has this ETag.", tag())
        .may_take("Nothing")
        .gives(200, "The operation after the change.", "Operation")
        .writes()
        .may(&[Code::VersionChanged]),
    ]
}

fn incidents() -> Vec<Operation> {
    let order = |path, name, summary, body| {
        Operation::new(("post", path), ("incidents", name), summary)
            .at("id", "The incident.", word())
            .may_take(body)
            .gives(200, "With dry_run: what would change.", "Preview")
            .gives(202, "The operation has started.", "Operation")
            .with("Location", "URL of the operation.")
            .writes()
    };
    vec![
        paged(Operation::new(
            ("get", "/v1/incidents"),
            ("incidents", "listIncidents"),
            "List failures of the newest jobs, grouped by cause.",
        ))
        .query("kind", "Only these kinds.", list(kind()))
        .query("tenant", "Only this tenant.", name(128))
        .gives(200, "Incidents, largest first.", "IncidentPage")
        .reads(),
        order(
            "/v1/incidents/{id}/hold",
            "holdIncident",
            "Pause the live jobs of an incident.",
            "IncidentOrder",
        ),
        order(
            "/v1/incidents/{id}/release",
            "releaseIncident",
            "Resume the paused jobs.",
            "IncidentOrder",
        ),
        order(
            "/v1/incidents/{id}/redrive",
            "redriveIncident",
            "Redrive the dead letters of an incident.",
            "IncidentRedrive",
        ),
    ]
}

fn kinds() -> Vec<Operation> {
    let of = |operation: Operation| operation.at("kind", "The kind.", kind());
    let (etag, if_match) =
        ("The version, for If-Match.", "Change the kind only if it still has this ETag.");
    let change = |path, name, summary| {
        of(Operation::new(("post", path), ("kinds", name), summary))
            .header("If-Match", if_match, tag())
            .gives(200, "The kind after the change.", "Kind")
            .with("ETag", etag)
            .writes()
            .may(&[Code::VersionChanged])
    };
    let list_of =
        Operation::new(("get", "/v1/kinds"), ("kinds", "listKinds"), "List kinds by name.");
    vec![
        paged(list_of).gives(200, "A page of kinds.", "KindPage").reads(),
        of(Operation::new(("get", "/v1/kinds/{kind}"), ("kinds", "getKind"), "Show a kind."))
            .gives(200, "The kind.", "Kind")
            .with("ETag", etag)
            .reads(),
        of(Operation::new(
            ("put", "/v1/kinds/{kind}"),
            ("kinds", "putKind"),
            "Create a kind, or replace its settings. A masked secret from an earlier response keeps its stored value.",
        ))
        .header("If-Match", if_match, tag())
        .takes("KindSettings")
        .gives(200, "The kind after the change.", "Kind")
        .with("ETag", etag)
        .writes()
        .may(&[Code::ManagedByConfig, Code::VersionChanged]),
        of(Operation::new(
            ("patch", "/v1/kinds/{kind}"),
            ("kinds", "patchKind"),
            "Change some settings of a kind.",
        ))
        .header("If-Match", if_match, tag())
        .takes("KindPatch")
        .gives(200, "The kind after the change.", "Kind")
        .with("ETag", etag)
        .writes()
        .may(&[Code::ManagedByConfig, Code::VersionChanged]),
        of(Operation::new(
            ("delete", "/v1/kinds/{kind}"),
            ("kinds", "deleteKind"),
            "Delete a kind without unfinished jobs.",
        ))
        .header("If-Match", if_match, tag())
        .may_take("Nothing")
        .gives(200, "The deleted kind.", "Kind")
        .writes()
        .may(&[Code::ManagedByConfig, Code::VersionChanged, Code::WrongState]),
        change("/v1/kinds/{kind}/pause", "pauseKind", "Pause a kind: no job of it starts."),
        change("/v1/kinds/{kind}/resume", "resumeKind", "Resume the paused jobs."),
        change(
            "/v1/kinds/{kind}/breaker/open",
            "openBreaker",
            "Open the breaker of a kind: it stays parked until it is closed.",
        ),
        change(
            "/v1/kinds/{kind}/breaker/close",
            "closeBreaker",
            "Close the breaker of a kind: it runs in spite of failures.",
        ),
        change(
            "/v1/kinds/{kind}/breaker/reset",
            "resetBreaker",
            "Reset the breaker of a kind: its failures decide again.",
        ),
    ]
}

fn fleet() -> Vec<Operation> {
    let audit = Operation::new(
        ("get", "/v1/audit"),
        ("fleet", "listAudit"),
        "Show the audit log, newest first.",
    )
    .query("job", "Only entries of this job.", id())
    .query("what", "Only these actions.", list(word()))
    .query("kind", "Only entries of these kinds.", list(kind()))
    .query("who", "Only entries of these actors.", list(word()));
    let seq = json!({"type": "string", "pattern": "^[0-9]{1,18}$"});
    let events =
        "Stream state changes of jobs: `event: job` with `job`, `kind`, `from`, `to`, `at`.";
    vec![
        paged(Operation::new(
            ("get", "/v1/holders"),
            ("fleet", "listHolders"),
            "List holders: the nodes and workers that run jobs.",
        ))
        .gives(200, "Live holders, then recently dead ones.", "HolderPage")
        .reads(),
        Operation::new(
            ("get", "/v1/stats"),
            ("fleet", "getStats"),
            "Show job counts and engine statistics.",
        )
        .gives(200, "Job counts by state, and counters of this server.", "Stats")
        .reads(),
        paged(audit).gives(200, "A page of the audit log.", "AuditPage").reads(),
        Operation::new(("get", "/v1/events"), ("fleet", "listenToEvents"), events)
            .query("kind", "Only these kinds.", list(kind()))
            .query("job", "Only this job.", id())
            .query("after", "The id of the last event received.", seq.clone())
            .header("Last-Event-ID", "The same, as browsers send it.", seq)
            .gives_as(200, "An endless stream of events.", ("text/event-stream", text()))
            .reads()
            .may(&[Code::Throttled]),
    ]
}

fn workers() -> Vec<Operation> {
    vec![
        Operation::new(
            ("post", "/v1/workers/claim"),
            ("workers", "claim"),
            "Claim jobs; waits until there are some.",
        )
        .takes("Claim")
        .gives(200, "Jobs to run, possibly none.", "Claimed")
        .writes()
        .may(&[Code::HolderExpired, Code::UnknownKind]),
        Operation::new(
            ("post", "/v1/workers/heartbeat"),
            ("workers", "heartbeat"),
            "Renew the lease of a worker.",
        )
        .takes("Heartbeat")
        .gives(200, "The lease is renewed.", "Heard")
        .writes()
        .may(&[Code::HolderExpired]),
        Operation::new(
            ("post", "/v1/workers/settle"),
            ("workers", "settle"),
            "Report the results of attempts.",
        )
        .takes("Settle")
        .gives(200, "The outcome of each result.", "Settled")
        .writes()
        .may(&[Code::HolderExpired]),
        Operation::new(
            ("post", "/v1/workers/extend"),
            ("workers", "extend"),
            "Extend the time limit of one job.",
        )
        .takes("Extend")
        .gives(200, "Whether the worker still holds the job, and until when.", "Extended")
        .writes()
        .may(&[Code::HolderExpired]),
        Operation::new(
            ("post", "/v1/workers/checkpoint"),
            ("workers", "checkpoint"),
            "Save a checkpoint: replace the payload of a running job, so that the next attempt continues from it.",
        )
        .takes("Checkpoint")
        .gives(200, "Whether the worker still holds the job.", "Kept")
        .writes()
        .may(&[Code::HolderExpired]),
        Operation::new(
            ("post", "/v1/workers/leave"),
            ("workers", "leave"),
            "Deregister a worker and give back its jobs.",
        )
        .takes("Leave")
        .gives(200, "The worker is deregistered.", "Left")
        .writes()
        .may(&[Code::HolderExpired]),
    ]
}

fn tokens() -> Vec<Operation> {
    let revoke = "Revoke a token: within a second every server rejects it.";
    let named = json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"});
    vec![
        Operation::new(
            ("post", "/v1/tokens"),
            ("tokens", "createToken"),
            "Create a token. Only this response contains it.",
        )
        .takes("NewToken")
        .gives(201, "The token.", "Token")
        .writes(),
        paged(Operation::new(("get", "/v1/tokens"), ("tokens", "listTokens"), "Lists tokens."))
            .gives(200, "A page of tokens, by name.", "TokenPage")
            .reads(),
        Operation::new(("post", "/v1/tokens/{id}/revoke"), ("tokens", "revokeToken"), revoke)
            .at("id", "Id or name of the token.", named)
            .may_take("Nothing")
            .gives(200, "The token after the change.", "Token")
            .writes(),
    ]
}

fn server() -> Vec<Operation> {
    let get = |path, name, summary| Operation::new(("get", path), ("server", name), summary);
    vec![
        get("/livez", "livez", "Liveness check: the process responds. Never calls the store.")
            .gives(200, "It does.", "Live"),
        get("/readyz", "readyz", "Readiness check: the server accepts requests.")
            .gives(200, "They are.", "Ready")
            .may(&[Code::StoreUnavailable, Code::ShuttingDown]),
        get("/health", "health", "Health of each part of the server.")
            .gives(200, "Everything is healthy.", "Health")
            .gives(
                503,
                "A part of the server is unhealthy: jobs are not accepted or not run.",
                "Health",
            )
            .may(&[Code::StoreUnavailable]),
        get("/metrics", "metrics", "Metrics in the Prometheus text format.")
            .gives_as(200, "Meters.", ("text/plain", text()))
            .reads(),
        get("/openapi.json", "openapi", "This document.").gives_as(
            200,
            "This document.",
            ("application/json", json!({"type": "object"})),
        ),
        get("/docs", "docs", "This document as a web page.").gives_as(
            200,
            "A page without external resources.",
            ("text/html", text()),
        ),
    ]
}
