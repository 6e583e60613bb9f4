//! Every operation of the document.

use super::operation::Operation;
use super::schemas::{category, state};
use super::shape::{between, flag, id, kind, list, name, reference, text, time_asked};
use crate::problem::Code;
use rewheel_core::Limits;
use serde_json::{Value, json};

/// Returns all operations, in the order of reading.
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

/// What a page of a list is asked for with.
fn paged(operation: Operation) -> Operation {
    let most = u64::try_from(Limits::PAGE_MAX).unwrap_or(u64::MAX);
    let limit = between(1, most);
    operation.query("limit", "How many, at most; 100 if not said.", limit).query(
        "cursor",
        "The `next` of the page before, as it is.",
        cursor(),
    )
}

/// A text that only the server reads.
fn cursor() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9_-]+$"})
}

/// A word that has to say something.
fn word() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn jobs() -> Vec<Operation> {
    let list_of =
        Operation::new(("get", "/v1/jobs"), ("jobs", "listJobs"), "Lists jobs, the latest first.")
            .query("state", "In one of these states.", list(state()))
            .query("kind", "Of one of these kinds.", list(kind()))
            .query("tenant", "On behalf of this tenant.", name(128))
            .query(
                "key",
                "The job that has this key, exactly; its kind and tenant may be left out.",
                name(255),
            )
            .query("category", "Whose latest failure is of this sort.", category())
            .query("q", "Whose text contains this.", word())
            .query("due_after", "Due later than this.", time_asked())
            .query("due_before", "Due earlier than this.", time_asked())
            .query("created_after", "Submitted later than this.", time_asked())
            .query("created_before", "Submitted earlier than this.", time_asked());
    let key = "The `key` of the job, where the body has none. With double quotes around it (RFC 8941) it is the same key.";
    let key_pattern = r#"^([!#-+\--:<-\[\]-~]{1,255}|"([ !#-\[\]-~]|\\["\\]){1,255}")$"#;
    let submit = Operation::new(("post", "/v1/jobs"), ("jobs", "submitJob"), "Submits a job.")
        .header("Idempotency-Key", key, json!({"type": "string", "pattern": key_pattern}))
        .takes("NewJob")
        .gives(201, "It is stored.", "Job")
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

/// A tag for If-Match.
fn tag() -> Value {
    json!({"type": "string", "pattern": "^(\\*|(W/)?\"?[0-9]{1,18}\"?)$"})
}

fn one_job() -> Vec<Operation> {
    let of = |operation: Operation| operation.at("id", "The job.", id());
    let etag = "The version, for If-Match.";
    let if_match = "The ETag that the job must still have.";
    let change = |path, name, summary| {
        of(Operation::new(("post", path), ("jobs", name), summary))
            .header("If-Match", if_match, tag())
            .may_take("Nothing")
            .gives(200, "The job as it is now.", "Job")
            .with("ETag", etag)
            .writes()
            .may(&[Code::WrongState, Code::VersionChanged])
    };
    vec![
        of(Operation::new(
            ("get", "/v1/jobs/{id}"),
            ("jobs", "getJob"),
            "Shows a job with its attempts and audit.",
        ))
        .gives(200, "The job.", "Job")
        .with("ETag", etag)
        .reads(),
        of(Operation::new(
            ("patch", "/v1/jobs/{id}"),
            ("jobs", "editJob"),
            "Changes a job that nobody holds.",
        ))
        .header("If-Match", if_match, tag())
        .takes("Edit")
        .gives(200, "The job as it is now.", "Job")
        .with("ETag", etag)
        .writes()
        .may(&[Code::WrongState, Code::VersionChanged]),
        change("/v1/jobs/{id}/cancel", "cancelJob", "Ends a job for good."),
        change("/v1/jobs/{id}/pause", "pauseJob", "Keeps a job from running."),
        change("/v1/jobs/{id}/resume", "resumeJob", "Lets a paused job run again."),
        change("/v1/jobs/{id}/retry", "retryJob", "Makes a job due now, a dead letter included."),
    ]
}

fn bulk() -> Vec<Operation> {
    let order = |path, name, summary, body| {
        Operation::new(("post", path), ("bulk", name), summary)
            .takes(body)
            .gives(200, "With dry_run: what would be changed.", "Preview")
            .gives(202, "It has begun.", "Operation")
            .with("Location", "Where to see how far it is.")
            .writes()
    };
    let of = |operation: Operation| operation.at("id", "The operation.", id());
    let list_of = Operation::new(
        ("get", "/v1/operations"),
        ("bulk", "listOperations"),
        "Lists operations, the latest first.",
    );
    vec![
        order("/v1/jobs/cancel", "cancelJobs", "Ends the jobs that a filter chooses.", "Order"),
        order(
            "/v1/jobs/pause",
            "pauseJobs",
            "Keeps the jobs that a filter chooses from running.",
            "Order",
        ),
        order(
            "/v1/jobs/resume",
            "resumeJobs",
            "Lets paused jobs that a filter chooses run again.",
            "Order",
        ),
        order(
            "/v1/jobs/retry",
            "retryJobs",
            "Makes the jobs that a filter chooses due now.",
            "Order",
        ),
        order(
            "/v1/jobs/redrive",
            "redriveJobs",
            "Puts dead letters that a filter chooses back to work.",
            "Redrive",
        ),
        paged(list_of).gives(200, "A page of operations.", "OperationPage").reads(),
        of(Operation::new(
            ("get", "/v1/operations/{id}"),
            ("bulk", "getOperation"),
            "Shows how far an operation is.",
        ))
        .gives(200, "The operation.", "Operation")
        .reads(),
        of(Operation::new(
            ("post", "/v1/operations/{id}/abort"),
            ("bulk", "abortOperation"),
            "Ends an operation before its end.",
        ))
        .header("If-Match", "The ETag that the operation's job must still have.", tag())
        .may_take("Nothing")
        .gives(200, "The operation as it is now.", "Operation")
        .writes()
        .may(&[Code::VersionChanged]),
    ]
}

fn incidents() -> Vec<Operation> {
    let order = |path, name, summary, body| {
        Operation::new(("post", path), ("incidents", name), summary)
            .at("id", "The incident.", word())
            .may_take(body)
            .gives(200, "With dry_run: what would be changed.", "Preview")
            .gives(202, "It has begun.", "Operation")
            .with("Location", "Where to see how far it is.")
            .writes()
    };
    vec![
        paged(Operation::new(
            ("get", "/v1/incidents"),
            ("incidents", "listIncidents"),
            "Lists failures by their cause, of the newest jobs.",
        ))
        .query("kind", "Of one of these kinds.", list(kind()))
        .query("tenant", "On behalf of this tenant.", name(128))
        .gives(200, "Incidents, the largest first.", "IncidentPage")
        .reads(),
        order(
            "/v1/incidents/{id}/hold",
            "holdIncident",
            "Pauses the live jobs of an incident.",
            "IncidentOrder",
        ),
        order(
            "/v1/incidents/{id}/release",
            "releaseIncident",
            "Lets them run again.",
            "IncidentOrder",
        ),
        order(
            "/v1/incidents/{id}/redrive",
            "redriveIncident",
            "Puts its dead letters back to work.",
            "IncidentRedrive",
        ),
    ]
}

fn kinds() -> Vec<Operation> {
    let of = |operation: Operation| operation.at("kind", "The kind.", kind());
    let (etag, if_match) =
        ("The version, for If-Match.", "The ETag that the kind must still have.");
    let change = |path, name, summary| {
        of(Operation::new(("post", path), ("kinds", name), summary))
            .header("If-Match", if_match, tag())
            .gives(200, "The kind as it is now.", "Kind")
            .with("ETag", etag)
            .writes()
            .may(&[Code::VersionChanged])
    };
    let list_of =
        Operation::new(("get", "/v1/kinds"), ("kinds", "listKinds"), "Lists kinds by their names.");
    vec![
        paged(list_of).gives(200, "A page of kinds.", "KindPage").reads(),
        of(Operation::new(("get", "/v1/kinds/{kind}"), ("kinds", "getKind"), "Shows a kind."))
            .gives(200, "The kind.", "Kind")
            .with("ETag", etag)
            .reads(),
        of(Operation::new(
            ("put", "/v1/kinds/{kind}"),
            ("kinds", "putKind"),
            "Makes a kind, or writes its settings. A secret that is masked as answers show it stays as it is.",
        ))
        .header("If-Match", if_match, tag())
        .takes("KindSettings")
        .gives(200, "The kind as it is now.", "Kind")
        .with("ETag", etag)
        .writes()
        .may(&[Code::ManagedByConfig, Code::VersionChanged]),
        of(Operation::new(
            ("patch", "/v1/kinds/{kind}"),
            ("kinds", "patchKind"),
            "Changes some settings of a kind.",
        ))
        .header("If-Match", if_match, tag())
        .takes("KindPatch")
        .gives(200, "The kind as it is now.", "Kind")
        .with("ETag", etag)
        .writes()
        .may(&[Code::ManagedByConfig, Code::VersionChanged]),
        of(Operation::new(
            ("delete", "/v1/kinds/{kind}"),
            ("kinds", "deleteKind"),
            "Deletes a kind that has no unfinished jobs.",
        ))
        .header("If-Match", if_match, tag())
        .may_take("Nothing")
        .gives(200, "The kind as it was.", "Kind")
        .writes()
        .may(&[Code::ManagedByConfig, Code::VersionChanged, Code::WrongState]),
        change("/v1/kinds/{kind}/pause", "pauseKind", "Keeps all jobs of a kind from running."),
        change("/v1/kinds/{kind}/resume", "resumeKind", "Lets them run again."),
        change(
            "/v1/kinds/{kind}/breaker/open",
            "openBreaker",
            "Parks a kind until a person closes it again.",
        ),
        change(
            "/v1/kinds/{kind}/breaker/close",
            "closeBreaker",
            "Lets a kind run whatever its failures say.",
        ),
        change(
            "/v1/kinds/{kind}/breaker/reset",
            "resetBreaker",
            "Leaves it to the failures again.",
        ),
    ]
}

fn fleet() -> Vec<Operation> {
    let audit = Operation::new(
        ("get", "/v1/audit"),
        ("fleet", "listAudit"),
        "Shows who did what, the latest first.",
    )
    .query("job", "To this job.", id())
    .query("what", "One of these deeds.", list(word()))
    .query("kind", "To one of these kinds.", list(kind()))
    .query("who", "By one of these.", list(word()));
    let seq = json!({"type": "string", "pattern": "^[0-9]{1,18}$"});
    let events = "Tells what happens to jobs as it happens: `event: job` with `job`, `kind`, `from`, `to`, `at`.";
    vec![
        paged(Operation::new(
            ("get", "/v1/holders"),
            ("fleet", "listHolders"),
            "Shows who runs jobs.",
        ))
        .gives(200, "Who lives, then who died of late.", "HolderPage")
        .reads(),
        Operation::new(("get", "/v1/stats"), ("fleet", "getStats"), "Shows how it goes.")
            .gives(200, "All jobs by state, and what this server did.", "Stats")
            .reads(),
        paged(audit).gives(200, "A page of the audit log.", "AuditPage").reads(),
        Operation::new(("get", "/v1/events"), ("fleet", "listenToEvents"), events)
            .query("kind", "Of one of these kinds.", list(kind()))
            .query("job", "Of this job.", id())
            .query("after", "The id of the last event that was heard.", seq.clone())
            .header("Last-Event-ID", "The same, as browsers say it.", seq)
            .gives_as(200, "Events, without an end.", ("text/event-stream", text()))
            .reads()
            .may(&[Code::Throttled]),
    ]
}

fn workers() -> Vec<Operation> {
    vec![
        Operation::new(
            ("post", "/v1/workers/claim"),
            ("workers", "claim"),
            "Asks for jobs, and waits for some.",
        )
        .takes("Claim")
        .gives(200, "Jobs to run, perhaps none.", "Claimed")
        .writes()
        .may(&[Code::HolderExpired, Code::UnknownKind]),
        Operation::new(
            ("post", "/v1/workers/heartbeat"),
            ("workers", "heartbeat"),
            "Keeps the jobs of a worker its own.",
        )
        .takes("Heartbeat")
        .gives(200, "It lives on.", "Heard")
        .writes()
        .may(&[Code::HolderExpired]),
        Operation::new(
            ("post", "/v1/workers/settle"),
            ("workers", "settle"),
            "Says how attempts ended.",
        )
        .takes("Settle")
        .gives(200, "What became of each result.", "Settled")
        .writes()
        .may(&[Code::HolderExpired]),
        Operation::new(
            ("post", "/v1/workers/extend"),
            ("workers", "extend"),
            "Asks for more time for one job.",
        )
        .takes("Extend")
        .gives(200, "Whether the worker still has the job, and until when.", "Extended")
        .writes()
        .may(&[Code::HolderExpired]),
        Operation::new(
            ("post", "/v1/workers/checkpoint"),
            ("workers", "checkpoint"),
            "Replaces the payload of a job that the worker runs: the next attempt goes on from there.",
        )
        .takes("Checkpoint")
        .gives(200, "Whether the worker still has the job.", "Kept")
        .writes()
        .may(&[Code::HolderExpired]),
        Operation::new(
            ("post", "/v1/workers/leave"),
            ("workers", "leave"),
            "Deregisters a worker and gives back its jobs.",
        )
        .takes("Leave")
        .gives(200, "The worker is gone.", "Left")
        .writes()
        .may(&[Code::HolderExpired]),
    ]
}

fn tokens() -> Vec<Operation> {
    let revoke = "Takes a token back: within a second no server takes it any more.";
    let named = json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"});
    vec![
        Operation::new(
            ("post", "/v1/tokens"),
            ("tokens", "createToken"),
            "Makes a token. Only this answer shows it.",
        )
        .takes("NewToken")
        .gives(201, "The token.", "Token")
        .writes(),
        paged(Operation::new(("get", "/v1/tokens"), ("tokens", "listTokens"), "Lists tokens."))
            .gives(200, "A page of tokens, by name.", "TokenPage")
            .reads(),
        Operation::new(("post", "/v1/tokens/{id}/revoke"), ("tokens", "revokeToken"), revoke)
            .at("id", "The token, by its id or its name.", named)
            .may_take("Nothing")
            .gives(200, "The token as it is now.", "Token")
            .writes(),
    ]
}

fn server() -> Vec<Operation> {
    let get = |path, name, summary| Operation::new(("get", path), ("server", name), summary);
    vec![
        get("/livez", "livez", "Tells whether the process answers. Never asks the store.")
            .gives(200, "It does.", "Live"),
        get("/readyz", "readyz", "Tells whether requests are welcome.")
            .gives(200, "They are.", "Ready")
            .may(&[Code::StoreUnavailable, Code::ShuttingDown]),
        get("/health", "health", "Tells how each part of the server is.")
            .gives(200, "All is well.", "Health")
            .gives(503, "Something keeps jobs from being run or taken in.", "Health")
            .may(&[Code::StoreUnavailable]),
        get("/metrics", "metrics", "Shows meters in the classic text format of Prometheus.")
            .gives_as(200, "Meters.", ("text/plain", text()))
            .reads(),
        get("/openapi.json", "openapi", "Shows this document.").gives_as(
            200,
            "This document.",
            ("application/json", json!({"type": "object"})),
        ),
        get("/docs", "docs", "Shows this document to people.").gives_as(
            200,
            "A page that loads nothing from elsewhere.",
            ("text/html", text()),
        ),
    ]
}
