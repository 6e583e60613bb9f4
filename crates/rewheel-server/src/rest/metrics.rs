//! Serves metrics to collectors such as Prometheus.

use super::query::Parameters;
use crate::app::App;
use crate::metrics;
use crate::problem::Problem;
use axum::extract::State;
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The media type of the classic text format.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`: metrics of the fleet, and of this server since its start. Without the store it still returns the latter.
pub(super) async fn metrics(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let engine = app.engine()?;
    let fleet = engine.fleet().await.ok();
    let text = metrics::text(&engine.meters(fleet.as_ref()));
    Ok(([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}
