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
            Operation::new("claim", "Claim jobs; waits until there are some.")
                .takes("Claim")
                .gives(200, "Jobs to run, possibly none.", "Claimed")
                .writes()
                .may(&[Code::HolderExpired, Code::UnknownKind]),
        ),
        post(
            "/v1/workers/heartbeat",
            WORK_ALL,
            workers::heartbeat,
            Operation::new("heartbeat", "Renew the lease of a worker.")
                .takes("Heartbeat")
                .gives(200, "The lease is renewed.", "Heard")
                .writes()
                .may(&[Code::HolderExpired]),
        ),
        post(
            "/v1/workers/settle",
            WORK_ALL,
            workers::settle,
            Operation::new("settle", "Report the results of attempts.")
                .takes("Settle")
                .gives(200, "The outcome of each result.", "Settled")
                .writes()
                .may(&[Code::HolderExpired]),
        ),
        post(
            "/v1/workers/extend",
            WORK_ALL,
            workers::extend,
            Operation::new("extend", "Extend the time limit of one job.")
                .takes("Extend")
                .gives(200, "Whether the worker still holds the job, and until when.", "Extended")
                .writes()
                .may(&[Code::HolderExpired]),
        ),
        post(
            "/v1/workers/checkpoint",
            WORK_ALL,
            workers::checkpoint,
            Operation::new(
                "checkpoint",
                "Save a checkpoint: replace the payload of a running job, so that the next attempt continues from it.",
            )
            .takes("Checkpoint")
            .gives(200, "Whether the worker still holds the job.", "Kept")
            .writes()
            .may(&[Code::HolderExpired]),
        ),
        post(
            "/v1/workers/leave",
            WORK_ALL,
            workers::leave,
            Operation::new("leave", "Deregister a worker and give back its jobs.")
                .takes("Leave")
                .gives(200, "The worker is deregistered.", "Left")
                .writes()
                .may(&[Code::HolderExpired]),
        ),
    ]
}
