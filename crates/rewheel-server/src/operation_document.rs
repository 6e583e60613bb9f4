//! The JSON document of a bulk operation.

use crate::rfc3339;
use rewheel_core::store::Count;
use rewheel_engine::{Operation, Preview};
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
    canary: Option<Step>,
    by: String,
    created: String,
    finished: Option<String>,
}

/// The canary step in progress.
#[derive(Debug, Serialize)]
struct Step {
    step: usize,
    steps: usize,
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
            canary: operation.step.map(|(step, steps)| Step { step, steps }),
            by: operation.by.to_string(),
            created: rfc3339::text(operation.created),
            finished: operation.finished.map(rfc3339::text),
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
