//! Shows who did what.

use super::Page;
use super::query::Parameters;
use crate::app::App;
use crate::job_document::AuditDocument;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rewheel_core::{AuditEntry, JobId};
use serde::Serialize;
use std::sync::Arc;

/// One entry, with what it is about.
#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    entry: AuditDocument,
    job: Option<String>,
    kind: Option<String>,
}

/// `GET /v1/audit`: the latest first, of all or of one job.
pub(super) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor", "job"])?;
    let limit = parameters.limit();
    let before = parameters.one("cursor", |text| {
        text.parse::<u64>().map_err(|_| "is not one that an answer named as `next`")
    });
    let job = parameters.one("job", |text| text.parse::<JobId>());
    parameters.finish()?;
    // One more than asked for tells whether there is more.
    let mut entries = app.engine()?.store().audit(job, before, limit + 1).await?;
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| has_more).map(|last| last.seq.to_string());
    let items: Vec<Line> = entries.iter().map(Line::new).collect();
    Ok(Json(Page { items, next }).into_response())
}

impl Line {
    fn new(entry: &AuditEntry) -> Line {
        Line {
            entry: AuditDocument::new(entry),
            job: entry.job.map(|job| job.to_string()),
            kind: entry.kind.as_ref().map(ToString::to_string),
        }
    }
}
