//! The JSON document of a bulk operation.

use crate::rfc3339;
use rewheel_core::store::Count;
use rewheel_engine::{Canary, Operation, Preview};
use serde::Serialize;
use std::collections::BTreeMap;

/// The progress of a bulk operation.
#[derive(Debug, Serialize)]
pub(crate) struct OperationDocument {
    id: String,
    verb: &'static str,
    state: &'static str,
    total: u64,
    done: u64,
    failed: u64,
    /// Why jobs could not be changed, with the number of jobs for each reason.
    refused: BTreeMap<String, u64>,
    /// Why it ended early.
    reason: Option<String>,
    canary: Option<CanaryDocument>,
    incident: Option<String>,
    by: String,
    created: String,
    finished: Option<String>,
}

/// The steps of a canary, and the progress of the current one.
#[derive(Debug, Serialize)]
struct CanaryDocument {
    /// Null once all steps succeeded.
    step: Option<usize>,
    steps: usize,
    sizes: Vec<u32>,
    redriven: usize,
    ok: usize,
    failed: usize,
    failed_job: Option<String>,
    /// The jobs that follow after the last step.
    rest: u64,
}

/// The preview of a bulk operation.
#[derive(Debug, Serialize)]
pub(crate) struct PreviewDocument {
    count: u64,
    /// Whether all jobs were counted; otherwise there are more.
    complete: bool,
    sample: Vec<String>,
}

impl OperationDocument {
    pub(crate) fn new(operation: &Operation) -> OperationDocument {
        OperationDocument {
            id: operation.id.to_string(),
            verb: operation.verb.as_str(),
            state: operation.state.as_str(),
            total: operation.total,
            done: operation.done,
            failed: operation.failed,
            refused: operation.refused.clone(),
            reason: operation.reason.clone(),
            canary: operation.canary.as_ref().map(|canary| CanaryDocument::new(operation, canary)),
            incident: operation.incident.clone(),
            by: operation.by.to_string(),
            created: rfc3339::text(operation.created),
            finished: operation.finished.map(rfc3339::text),
        }
    }
}

impl CanaryDocument {
    fn new(operation: &Operation, canary: &Canary) -> CanaryDocument {
        let in_steps = canary.sizes.iter().map(|size| u64::from(*size)).sum();
        CanaryDocument {
            step: operation.step.map(|(step, _)| step),
            steps: canary.sizes.len(),
            sizes: canary.sizes.clone(),
            redriven: canary.redriven,
            ok: canary.ok,
            failed: canary.failed,
            failed_job: canary.example.map(|id| id.to_string()),
            rest: operation.total.saturating_sub(in_steps),
        }
    }
}

impl PreviewDocument {
    pub(crate) fn new(preview: &Preview) -> PreviewDocument {
        let (count, complete) = match preview.count {
            Count::Exactly(count) => (count, true),
            Count::AtLeast(count) => (count, false),
        };
        let sample = preview.sample.iter().map(ToString::to_string).collect();
        PreviewDocument { count, complete, sample }
    }
}
