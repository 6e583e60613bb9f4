//! Starts bulk operations, and shows their progress.

use super::Page;
use super::body::{self, Body, SMALL_BYTES_MAX};
use super::cursor::List;
use super::if_match::IfMatch;
use super::query::Parameters;
use crate::app::App;
use crate::bulk::{self, Order};
use crate::operation_document::{OperationDocument, PreviewDocument};
use crate::problem::{Code, Problem};
use crate::tokens::Caller;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rewheel_core::JobId;
use rewheel_core::store::{Change, ChangeVerb, Changed, Count, Cursor, PageRequest};
use rewheel_engine::{BulkVerb, Engine, OperateError, Operation, Selection, SubmitError};
use std::sync::Arc;

/// `POST /v1/jobs/{cancel,pause,resume,retry,redrive}`
pub(super) async fn order(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    body: Body,
    verb: BulkVerb,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let text = body::read(body, SMALL_BYTES_MAX).await?;
    let mut order = bulk::parse(verb, &text)?;
    caller.narrow(&mut order.bulk.selection.filter)?;
    obey(&app, &caller, order).await
}

/// `POST /v1/incidents/{id}/{hold,release,redrive}`
pub(super) async fn order_incident(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    caller: Caller,
    uri: Uri,
    body: Body,
    verb: BulkVerb,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let text = body::read(body, SMALL_BYTES_MAX).await?;
    let mut order = bulk::parse_about(Selection::of_incident(&id), verb, &text)?;
    caller.narrow(&mut order.bulk.selection.filter)?;
    let preview = app.engine_for_work()?.preview(&order.bulk).await.map_err(refused)?;
    if preview.count == Count::Exactly(0) {
        let detail = format!("incident {id} does not exist, or has no jobs to {verb}");
        return Err(Problem::new(Code::NotFound, detail)
            .hint("GET /v1/incidents lists all incidents with their ids"));
    }
    obey(&app, &caller, order).await
}

async fn obey(app: &App, caller: &Caller, order: Order) -> Result<Response, Problem> {
    let engine = app.engine_for_work()?;
    if order.dry_run {
        let preview = engine.preview(&order.bulk).await.map_err(refused)?;
        return Ok(Json(PreviewDocument::new(&preview)).into_response());
    }
    let operation = engine.operate(&order.bulk, caller.who()).await.map_err(refused)?;
    let document = OperationDocument::new(&operation);
    let place = [("location", format!("/v1/operations/{}", operation.id))];
    Ok((StatusCode::ACCEPTED, place, Json(document)).into_response())
}

/// `GET /v1/operations`: newest first.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    let limit = parameters.limit();
    let cursor = parameters.after_as::<Cursor>(List::Operations);
    parameters.finish()?;
    let page = PageRequest { cursor, ..PageRequest::first(limit) };
    let page = app.engine()?.operations(&page, caller.tenant()).await?;
    let items: Vec<_> = page.items.iter().map(OperationDocument::new).collect();
    let next = page.next.map(|cursor| List::Operations.cursor(&cursor.to_string()));
    Ok(Json(Page { items, next }).into_response())
}

/// `GET /v1/operations/{id}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let operation = find(app.engine()?, &caller, &id).await?;
    answer(&id, operation.as_ref())
}

/// `POST /v1/operations/{id}/abort`
pub(super) async fn abort(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    caller: Caller,
    (uri, headers): (Uri, HeaderMap),
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let if_version = IfMatch::read(&headers)?.version();
    body::read_nothing(body).await?;
    let engine = app.engine_for_work()?;
    let Some(operation) = find(engine, &caller, &id).await? else { return answer(&id, None) };
    let abort = Change { if_version, ..Change::new(operation.id, ChangeVerb::Abort) };
    if let Changed::VersionChanged(version) = engine.change(abort, caller.who()).await? {
        let detail = format!("operation {id} has changed: the version of its job is now {version}");
        return Err(Problem::new(Code::VersionChanged, detail)
            .hint("send the ETag of GET /v1/jobs/{id} in If-Match, or omit If-Match to abort the operation without a check of its version"));
    }
    answer(&id, engine.operation(operation.id).await?.as_ref())
}

/// Returns whether the caller may see an operation.
fn sees(caller: &Caller, operation: &Operation) -> bool {
    caller.tenant().is_none() || caller.tenant() == operation.tenant.as_ref()
}

async fn find(engine: &Engine, caller: &Caller, id: &str) -> Result<Option<Operation>, Problem> {
    let operation = match id.parse::<JobId>() {
        Ok(id) => engine.operation(id).await?,
        Err(_) => None,
    };
    Ok(operation.filter(|operation| sees(caller, operation)))
}

fn answer(id: &str, operation: Option<&Operation>) -> Result<Response, Problem> {
    let operation = operation.ok_or_else(|| {
        Problem::new(Code::NotFound, format!("operation {id} does not exist")).hint(
            "check the id; the operation was never started, or was deleted after its retention",
        )
    })?;
    Ok(Json(OperationDocument::new(operation)).into_response())
}

fn refused(error: OperateError) -> Problem {
    match error {
        OperateError::Field { field, why } => {
            Problem::of_fields(Code::InvalidField, vec![bulk::field_error(field, &why)])
        }
        OperateError::Submit(SubmitError::ShutDown) => {
            Problem::new(Code::ShuttingDown, "the server is shutting down")
        }
        OperateError::Submit(error) => Problem::new(Code::Internal, error),
        OperateError::Store(error) => error.into(),
    }
}
