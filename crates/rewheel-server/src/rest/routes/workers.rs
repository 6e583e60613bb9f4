//! Routes for workers: processes elsewhere that run jobs.

use super::{Route, post};
use crate::openapi::Operation;
use crate::problem::Code;
use crate::rest::access::WORK_ALL;
use crate::rest::workers;

pub(super) fn routes() -> Vec<Route> {
    vec![
        post(
            "/v1/workers/claim",
            WORK_ALL,
            workers::claim,
            Operation::new("claim", "Claim jobs to run. Waits up to `wait` if no job is due.")
                .takes("Claim")
                .gives(200, "The claimed jobs. The list can be empty.", "Claimed")
                .writes()
                .may(&[Code::HolderExpired, Code::UnknownKind]),
        ),
        post(
            "/v1/workers/heartbeat",
            WORK_ALL,
            workers::heartbeat,
            Operation::new("heartbeat", "Send a heartbeat. A heartbeat renews the lease of the worker.")
                .takes("Heartbeat")
                .gives(200, "The lease was renewed.", "Heard")
                .writes()
                .may(&[Code::HolderExpired]),
        ),
        post(
            "/v1/workers/settle",
            WORK_ALL,
            workers::settle,
            Operation::new("settle", "Report the results of attempts.")
                .takes("Settle")
                .gives(200, "What happened to each reported result.", "Settled")
                .writes()
                .may(&[Code::HolderExpired, Code::UnknownKind, Code::WrongState]),
        ),
        post(
            "/v1/workers/extend",
            WORK_ALL,
            workers::extend,
            Operation::new("extend", "Extend the time limit of a running job.")
                .takes("Extend")
                .gives(200, "The new time limit, or `fence_lost` if the worker has lost the job to another holder.", "Extended")
                .writes()
                .may(&[Code::HolderExpired]),
        ),
        post(
            "/v1/workers/checkpoint",
            WORK_ALL,
            workers::checkpoint,
            Operation::new(
                "checkpoint",
                "Save a checkpoint: replace the payload of a running job. The next attempt gets the new payload.",
            )
            .takes("Checkpoint")
            .gives(200, "The checkpoint was stored, or `fence_lost` if the worker has lost the job to another holder.", "Kept")
            .writes()
            .may(&[Code::HolderExpired]),
        ),
        post(
            "/v1/workers/leave",
            WORK_ALL,
            workers::leave,
            Operation::new("leave", "Deregister a worker. Its jobs are scheduled again, and other workers can claim them.")
                .takes("Leave")
                .gives(200, "The worker was deregistered.", "Left")
                .writes()
                .may(&[Code::HolderExpired]),
        ),
    ]
}
