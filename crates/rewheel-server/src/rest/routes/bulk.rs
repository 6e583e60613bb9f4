//! Routes that change many jobs at once, and that show such operations.

use super::{Route, get, post};
use crate::openapi::Operation;
use crate::openapi::shape::id;
use crate::problem::Code;
use crate::rest::access::{OPERATE, READ};
use crate::rest::operations;
use rewheel_engine::BulkVerb;

pub(super) fn routes() -> Vec<Route> {
    vec![
        order(
            "/v1/jobs/cancel",
            (BulkVerb::Cancel, "Order"),
            Operation::new("cancelJobs", "Cancel the jobs that match a filter."),
        ),
        order(
            "/v1/jobs/pause",
            (BulkVerb::Pause, "Order"),
            Operation::new("pauseJobs", "Pause the jobs that match a filter."),
        ),
        order(
            "/v1/jobs/resume",
            (BulkVerb::Resume, "Order"),
            Operation::new("resumeJobs", "Resume the paused jobs that match a filter."),
        ),
        order(
            "/v1/jobs/retry",
            (BulkVerb::Retry, "Order"),
            Operation::new("retryJobs", "Make the jobs that match a filter due now."),
        ),
        order(
            "/v1/jobs/redrive",
            (BulkVerb::Redrive, "Redrive"),
            Operation::new("redriveJobs", "Redrive the dead letters that match a filter."),
        ),
        get(
            "/v1/operations",
            READ,
            operations::list,
            Operation::new("listOperations", "List bulk operations, newest first.")
                .paged()
                .gives(200, "A page of operations.", "OperationPage")
                .reads(),
        ),
        get(
            "/v1/operations/{id}",
            READ,
            operations::show,
            Operation::new("getOperation", "Show the progress of an operation.")
                .at("id", "Id of the operation.", id())
                .gives(200, "The operation.", "Operation")
                .reads(),
        ),
        post(
            "/v1/operations/{id}/abort",
            OPERATE,
            operations::abort,
            Operation::new("abortOperation", "Abort an operation.")
                .at("id", "Id of the operation.", id())
                .if_match("ETag of the job with the id of the operation (`GET /v1/jobs/{id}`). The server aborts the operation only if that job still has this ETag.")
                .may_take("Nothing")
                .gives(200, "The operation after the change.", "Operation")
                .writes()
                .may(&[Code::VersionChanged]),
        ),
    ]
}

/// A change of the jobs that a filter selects, with the schema of its body.
fn order(path: &'static str, (verb, body): (BulkVerb, &str), operation: Operation) -> Route {
    let handler = move |app, caller, uri, body| operations::order(app, caller, uri, body, verb);
    post(path, OPERATE, handler, operation.takes(body).starts_operation())
}
