//! Changes many jobs, and shows how far that is.

use super::body::{self, Body, SMALL_BYTES_MAX};
use super::query::Parameters;
use super::{Page, who};
use crate::app::App;
use crate::bulk::{self, Order};
use crate::conditions::Conditions;
use crate::operation_document::{OperationDocument, PreviewDocument};
use crate::problem::{Code, FieldError, Problem};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rewheel_core::JobId;
use rewheel_core::store::{Count, Cursor, PageRequest};
use rewheel_engine::{BulkVerb, OperateError, Operation, Selection, SubmitError};
use std::sync::Arc;

/// `POST /v1/jobs/{cancel,pause,resume,retry,redrive}`
pub(super) async fn order(
    State(app): State<Arc<App>>,
    uri: Uri,
    body: Body,
    verb: BulkVerb,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let text = body::read(body, SMALL_BYTES_MAX).await?;
    obey(&app, bulk::parse(verb, &text)?).await
}

/// `POST /v1/incidents/{id}/{hold,release,redrive}`
pub(super) async fn order_incident(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    uri: Uri,
    body: Body,
    verb: BulkVerb,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let text = body::read(body, SMALL_BYTES_MAX).await?;
    let order = bulk::parse_about(Selection::of_incident(&id), verb, &text)?;
    let preview = app.engine_for_work()?.preview(&order.bulk).await.map_err(refused)?;
    if preview.count == Count::Exactly(0) {
        let detail = format!("no job of an incident {id} could be changed so ({verb})");
        return Err(Problem::new(Code::NotFound, detail).hint("GET /v1/incidents lists them"));
    }
    obey(&app, order).await
}

async fn obey(app: &App, order: Order) -> Result<Response, Problem> {
    let engine = app.engine_for_work()?;
    if order.dry_run {
        let preview = engine.preview(&order.bulk).await.map_err(refused)?;
        return Ok(Json(PreviewDocument::new(&preview)).into_response());
    }
    let operation = engine.operate(&order.bulk, &who()).await.map_err(refused)?;
    let document = OperationDocument::new(&operation);
    let place = [("location", format!("/v1/operations/{}", operation.id))];
    Ok((StatusCode::ACCEPTED, place, Json(document)).into_response())
}

/// `GET /v1/operations`: the latest first.
pub(super) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    let limit = parameters.limit();
    let cursor = parameters.one("cursor", str::parse::<Cursor>);
    parameters.finish()?;
    let page = PageRequest { cursor, ..PageRequest::first(limit) };
    let page = app.engine()?.operations(&page).await?;
    let items: Vec<_> = page.items.iter().map(OperationDocument::new).collect();
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(Json(Page { items, next }).into_response())
}

/// `GET /v1/operations/{id}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let operation = match id.parse::<JobId>() {
        Ok(id) => app.engine()?.operation(id).await?,
        Err(_) => None,
    };
    answer(&id, operation.as_ref())
}

/// `POST /v1/operations/{id}/abort`
pub(super) async fn abort(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    body::read_nothing(body).await?;
    let operation = match id.parse::<JobId>() {
        Ok(id) => app.engine_for_work()?.abort(id, &who()).await?,
        Err(_) => None,
    };
    answer(&id, operation.as_ref())
}

fn answer(id: &str, operation: Option<&Operation>) -> Result<Response, Problem> {
    let operation = operation.ok_or_else(|| {
        Problem::new(Code::NotFound, format!("there is no operation {id}"))
            .hint("it was never ordered, or it ended and is not kept any more")
    })?;
    Ok(Json(OperationDocument::new(operation)).into_response())
}

fn refused(error: OperateError) -> Problem {
    match error {
        OperateError::Field { field, why } => {
            let errors = vec![FieldError::new(format!("/{field}"), why)];
            Problem::of_fields(Code::InvalidField, errors)
        }
        OperateError::Submit(SubmitError::Stopping) => {
            Problem::new(Code::ShuttingDown, "the server is shutting down")
        }
        OperateError::Submit(error) => Problem::new(Code::Internal, error),
        OperateError::Store(error) => error.into(),
    }
}
