//! Serves schedules, and changes them.

use super::Page;
use super::body::{self, Body};
use super::cursor::List;
use super::if_match::{IfMatch, etag};
use super::query::Parameters;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::schedule::{self, ScheduleDocument};
use crate::tokens::Caller;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rewheel_core::KindName;
use rewheel_core::store::{Cursor, PageRequest};
use rewheel_engine::{ScheduleChange, ScheduleChanged, ScheduleStatus};
use serde::Serialize;
use std::sync::Arc;

/// Bytes of a request besides the payload of its job.
const DEFINITION_BYTES_MAX: usize = 16 * 1024;

/// `GET /v1/schedules`: newest first.
pub(super) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    let limit = parameters.limit();
    let cursor = parameters.after_as::<Cursor>(List::Schedules);
    parameters.finish()?;
    let page = PageRequest { cursor, ..PageRequest::first(limit) };
    let page = app.engine()?.schedules(&page).await?;
    let items: Vec<_> = page.items.iter().map(|status| document(&app, status)).collect();
    let next = page.next.map(|cursor| List::Schedules.cursor(&cursor.to_string()));
    Ok(Json(Page { items, next }).into_response())
}

/// `GET /v1/schedules/{name}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let status = app.engine()?.schedule(&name).await?.ok_or_else(|| not_found(&name))?;
    Ok(answer(&app, &status))
}

/// `PUT /v1/schedules/{name}`: omitted fields get their default.
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let payload_max = app.config().engine.payload_bytes_max;
    let text = body::read(body, payload_max.saturating_add(DEFINITION_BYTES_MAX)).await?;
    writable(&app, &name)?;
    let schedule = schedule::parse(&text, payload_max)?;
    let engine = app.engine_for_work()?;
    let put = engine.put_schedule(&name, &schedule, caller.who()).await;
    let status = put.map_err(|error| schedule::refused(error, Some(&schedule.job)))?;
    Ok(answer(&app, &status))
}

/// `DELETE /v1/schedules/{name}`: returns the schedule as it was.
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    (uri, headers): (Uri, HeaderMap),
    body: Body,
) -> Result<Response, Problem> {
    writable(&app, &name)?;
    change(State(app), Path(name), caller, (uri, headers, body), ScheduleChange::Remove).await
}

/// `POST /v1/schedules/{name}/{pause,resume}`
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    (uri, headers, body): (Uri, HeaderMap, Body),
    change: ScheduleChange,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let if_version = IfMatch::read(&headers)?.version();
    body::read_nothing(body).await?;
    let engine = app.engine_for_work()?;
    let changed = engine.change_schedule(&name, change, if_version, caller.who()).await;
    match changed.map_err(|error| schedule::refused(error, None))? {
        ScheduleChanged::Done(status) => Ok(answer(&app, &status)),
        ScheduleChanged::NotFound => Err(not_found(&name)),
        ScheduleChanged::VersionChanged(version) => {
            let detail = format!("schedule `{name}` has changed: its version is now {version}");
            Err(Problem::new(Code::VersionChanged, detail)
                .hint("read the schedule again, then send the request with its new ETag"))
        }
    }
}

/// A job that was submitted by hand.
#[derive(Serialize)]
struct FiredNow {
    id: String,
}

/// `POST /v1/schedules/{name}/fire`
pub(super) async fn fire(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    body::read_nothing(body).await?;
    let engine = app.engine_for_work()?;
    let job = engine.schedule(&name).await?.map(|status| status.schedule.job);
    let fired = engine.fire_schedule(&name, caller.who()).await;
    let fired = fired.map_err(|error| schedule::refused(error, job.as_ref()))?;
    let id = fired.ok_or_else(|| not_found(&name))?.to_string();
    let place = [("location", format!("/v1/jobs/{id}"))];
    Ok((StatusCode::CREATED, place, Json(FiredNow { id })).into_response())
}

/// Refuses to change a schedule of the config file.
fn writable(app: &App, name: &str) -> Result<(), Problem> {
    let is_managed =
        KindName::parse(name).is_ok_and(|name| app.config().schedules.contains_key(&name));
    if is_managed {
        let detail = format!(
            "schedule `{name}` is defined in the config file of the server and cannot be changed by REST"
        );
        return Err(Problem::new(Code::ManagedByConfig, detail)
            .hint(format!("change [schedules.{name}] in the config file and restart the server")));
    }
    Ok(())
}

pub(super) fn not_found(name: &str) -> Problem {
    Problem::new(Code::NotFound, format!("schedule `{name}` does not exist"))
}

fn document(app: &App, status: &ScheduleStatus) -> ScheduleDocument {
    let name = KindName::parse(&status.name);
    let is_managed = name.is_ok_and(|name| app.config().schedules.contains_key(&name));
    ScheduleDocument::new(status, is_managed)
}

fn answer(app: &App, status: &ScheduleStatus) -> Response {
    ([(ETAG, etag(status.version))], Json(document(app, status))).into_response()
}
