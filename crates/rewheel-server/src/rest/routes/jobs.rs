//! Routes that submit jobs, and that read or change one.

use super::{Route, get, patch, post};
use crate::openapi::shape::{
    duration_asked, flag, id, kind, list, name, reference, time_asked, word,
};
use crate::openapi::{Operation, category, reason, state};
use crate::problem::Code;
use crate::rest::access::{OPERATE, READ, SUBMIT};
use crate::rest::{job_result, jobs, submit};
use rewheel_core::store::ChangeVerb;
use serde_json::json;

const ETAG: &str = "Version of the job, for the header If-Match of a later request.";
const IF_MATCH: &str =
    "ETag of the job. The server changes the job only if it still has this ETag.";

pub(super) fn routes() -> Vec<Route> {
    vec![
        post("/v1/jobs", SUBMIT, submit::one, submit_one()),
        get("/v1/jobs", READ, jobs::list, list_jobs()),
        post("/v1/jobs/batch", SUBMIT, submit::batch, submit_batch()),
        get(
            "/v1/jobs/{id}",
            READ,
            jobs::show,
            Operation::new("getJob", "Show a job with its attempts and audit log.")
                .at("id", "Id of the job.", id())
                .query("wait", "Answer when the job has ended, or after this time, up to 60s.", duration_asked())
                .gives(200, "The job.", "Job")
                .with("ETag", ETAG)
                .reads()
                .may(&[Code::Throttled]),
        ),
        get(
            "/v1/jobs/{id}/result",
            READ,
            job_result::result,
            Operation::new("getJobResult", "Download the result of a job that succeeded.")
                .at("id", "Id of the job.", id())
                .gives_as(
                    200,
                    "The bytes of the result, with its content type. A worker or the called service wrote them: do not trust them.",
                    ("*/*", json!({})),
                )
                .reads()
                .may(&[Code::NoResult, Code::WrongState, Code::ResultPruned]),
        ),
        patch(
            "/v1/jobs/{id}",
            OPERATE,
            jobs::edit,
            Operation::new("editJob", "Change a job that is not leased.")
                .at("id", "Id of the job.", id())
                .if_match(IF_MATCH)
                .takes("Edit")
                .gives(200, "The job after the change.", "Job")
                .with("ETag", ETAG)
                .writes()
                .may(&[Code::WrongState, Code::VersionChanged]),
        ),
        change(
            "/v1/jobs/{id}/cancel",
            (ChangeVerb::Cancel, "cancelled"),
            Operation::new("cancelJob", "Cancel a job."),
        ),
        change(
            "/v1/jobs/{id}/pause",
            (ChangeVerb::Pause, "paused"),
            Operation::new("pauseJob", "Pause a job."),
        ),
        change(
            "/v1/jobs/{id}/resume",
            (ChangeVerb::Resume, "resumed"),
            Operation::new("resumeJob", "Resume a paused job."),
        ),
        change(
            "/v1/jobs/{id}/retry",
            (ChangeVerb::Retry, "retried"),
            Operation::new("retryJob", "Make a job due now. Also restarts a dead letter."),
        ),
    ]
}

/// A change of the job that the path names, with the word that errors use for it.
fn change(path: &'static str, change: (ChangeVerb, &'static str), operation: Operation) -> Route {
    let handler = move |app, id, caller, uri, headers, body| {
        jobs::change(app, id, caller, (uri, headers), body, change)
    };
    let operation = operation
        .at("id", "Id of the job.", id())
        .if_match(IF_MATCH)
        .may_take("Nothing")
        .gives(200, "The job after the change.", "Job")
        .with("ETag", ETAG)
        .writes()
        .may(&[Code::WrongState, Code::VersionChanged]);
    post(path, OPERATE, handler, operation)
}

fn submit_one() -> Operation {
    let key = "Idempotency key of the job, if the body has no `key`. The server removes double quotes around the key (RFC 8941).";
    let key_pattern = r#"^([!#-+\--:<-\[\]-~]{1,255}|"([ !#-\[\]-~]|\\["\\]){1,255}")$"#;
    Operation::new("submitJob", "Submit a job.")
        .header("Idempotency-Key", key, json!({"type": "string", "pattern": key_pattern}))
        .takes("NewJob")
        .gives(201, "The job was stored.", "Job")
        .gives_as(
            200,
            "A job with the same key already exists. Callers with the role `read` get the whole job, other callers get only its id, kind, key, tenant and state (`Receipt`).",
            ("application/json", json!({"anyOf": [reference("Job"), reference("Receipt")]})),
        )
        .writes()
        .may(&[Code::KeyReused, Code::UnknownKind, Code::Throttled])
}

fn submit_batch() -> Operation {
    let summary = "Submit many jobs. The server stores all of them or none; with `partial=true` it stores the valid ones.";
    Operation::new("submitJobs", summary)
        .query(
            "partial",
            "Store the valid jobs even if other jobs of the batch are invalid (default false).",
            flag(),
        )
        .takes("Batch")
        .gives(201, "All jobs were stored, or already existed.", "BatchAnswer")
        .gives(
            200,
            "Only with `partial=true`: `results` shows which jobs were stored and which were rejected.",
            "BatchAnswer",
        )
        .writes()
        .may(&[Code::KeyReused, Code::UnknownKind, Code::Throttled])
}

fn list_jobs() -> Operation {
    let key = "Only the job with exactly this key.";
    Operation::new("listJobs", "List jobs, newest first.")
        .query("state", "Only jobs in these states.", list(state()))
        .query("kind", "Only jobs of these kinds.", list(kind()))
        .query("tenant", "Only jobs of this tenant.", name(128))
        .query("key", key, name(255))
        .query(
            "parent",
            "Only follow-ups of this job: jobs that were submitted together with its result.",
            id(),
        )
        .query(
            "schedule",
            "Only jobs of the schedule with this name. 404 if there is none.",
            kind(),
        )
        .query("group_key", "Only jobs of the group with this key.", name(255))
        .query("category", "Only jobs whose latest failure has this category.", category())
        .query("code", "Only jobs whose latest failure has this code.", word())
        .query("incident", "Only jobs of the incident with this id.", word())
        .query("reason", "Only jobs that wait, or waited, for this reason.", reason())
        .query(
            "attempt",
            "Only jobs with this number of used attempts: `3`, `>3`, `>=3`, `<3` or `<=3`.",
            word(),
        )
        .query(
            "holder",
            "Only leased jobs of the holders with this id or name. 404 if there is none.",
            word(),
        )
        .query("q", "Only jobs with this text in the id, the key or the latest failure.", word())
        .query("due_after", "Only jobs that are due at this time or later.", time_asked())
        .query("due_before", "Only jobs that are due before this time.", time_asked())
        .query("created_after", "Only jobs that were created at this time or later.", time_asked())
        .query("created_before", "Only jobs that were created before this time.", time_asked())
        .paged()
        .gives(200, "A page of jobs.", "JobPage")
        .reads()
        .may(&[Code::NotFound])
}
