//! Serves kinds, and changes their settings.

use super::body::Body;
use super::cursor::{self, List};
use super::if_match::{IfMatch, etag};
use super::query::Parameters;
use super::{Page, body};
use crate::app::App;
use crate::kind_document::{
    KindDocument, Runnable, known_fields, parse_settings, patched, with_secrets,
};
use crate::problem::{Code, FieldError, Problem};
use crate::runners;
use crate::tokens::Caller;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use rewheel_core::{
    Actor, Kind, KindChange, KindEdit, KindEditVerb, KindEdited, KindName, Limits, Version,
};
use rewheel_engine::{Engine, KindSettings};
use std::sync::Arc;

/// Maximum number of retries when others write the same settings at the same time.
const WRITES_MAX: usize = 5;

/// `GET /v1/kinds`
pub(super) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    let (limit, after) = (parameters.limit(), parameters.after(List::Kinds));
    parameters.finish()?;
    let engine = app.engine()?;
    let kinds = engine.store().kinds().await?;
    let position = |kind: &Kind| kind.name.to_string();
    let (page, next) = cursor::cut(kinds, position, after.as_deref(), limit);
    let next = next.map(|position| List::Kinds.cursor(&position));
    let items = documents(&app, engine, &page).await?;
    Ok(Json(Page { items, next }).into_response())
}

/// `GET /v1/kinds/{kind}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let kind = KindName::parse(&name).map_err(|_| not_found(&name))?;
    let found = find(&app, app.engine()?, &kind).await?.ok_or_else(|| not_found(&name))?;
    Ok(found.into_response())
}

/// `PUT /v1/kinds/{kind}`: omitted settings get their default, that of the config file or the built-in one.
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    (uri, headers): (Uri, HeaderMap),
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let if_match = IfMatch::read(&headers)?;
    let text = body::read(body, Limits::SETTINGS_BYTES_MAX).await?;
    let kind = writable(&app, &name)?;
    let write = |before: Option<&Kind>| {
        let text = with_secrets(&text, before)?;
        // A filled text would not show repeated fields.
        let filled = match known_fields(&text) {
            Ok(()) => app.config().kind_defaults.fill_request(&text),
            Err(_) => (text.clone(), Vec::new()),
        };
        settings(&app, &text, filled)
    };
    write_kind(&app, &caller, &kind, if_match, &write).await
}

/// `PATCH /v1/kinds/{kind}`: a merge patch of the settings, by RFC 7396. Omitted settings stay, null restores the default.
pub(super) async fn patch(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    (uri, headers): (Uri, HeaderMap),
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let if_match = IfMatch::read(&headers)?;
    let text = body::read(body, Limits::SETTINGS_BYTES_MAX).await?;
    let kind = writable(&app, &name)?;
    let write = |before: Option<&Kind>| {
        let before = before.ok_or_else(|| not_found(&name))?;
        let patched = patched(&text, before)?;
        settings(&app, &patched, app.config().kind_defaults.restore(&text, &patched))
    };
    write_kind(&app, &caller, &kind, if_match, &write).await
}

/// `DELETE /v1/kinds/{kind}`: returns the kind as it was.
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    (uri, headers): (Uri, HeaderMap),
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let if_version = IfMatch::read(&headers)?.version();
    body::read_nothing(body).await?;
    let kind = writable(&app, &name)?;
    let engine = app.engine_for_work()?;
    if engine.has_handler(&kind) {
        let detail = format!("kind `{kind}` cannot be deleted: this server has a handler for it");
        return Err(Problem::new(Code::WrongState, detail).hint(
            "remove the handler and restart the server first; to only stop the jobs, pause the kind",
        ));
    }
    let document = find(&app, engine, &kind).await?.ok_or_else(|| not_found(&name))?;
    let edit = KindEdit { name: kind, what: KindEditVerb::Delete, if_version };
    edited(engine.edit_kind(&edit, caller.who()).await?, &name)?;
    Ok(Json(document.document).into_response())
}

/// `POST /v1/kinds/{kind}/{pause,resume,breaker/…}`
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    (uri, headers): (Uri, HeaderMap),
    change: fn(&Actor) -> KindChange,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let if_version = IfMatch::read(&headers)?.version();
    let kind = KindName::parse(&name).map_err(|_| not_found(&name))?;
    if kind.is_reserved() {
        let why = format!("kind `{kind}` is internal to the engine and cannot be changed");
        return Err(Problem::new(Code::Forbidden, why)
            .hint("to stop a bulk operation, use POST /v1/operations/{id}/abort"));
    }
    let engine = app.engine_for_work()?;
    let what = KindEditVerb::Change(change(caller.who()));
    let edit = KindEdit { name: kind.clone(), what, if_version };
    edited(engine.edit_kind(&edit, caller.who()).await?, &name)?;
    let found = find(&app, engine, &kind).await?.ok_or_else(|| not_found(&name))?;
    Ok(found.into_response())
}

/// Returns the name of a kind that may be changed over REST.
fn writable(app: &App, name: &str) -> Result<KindName, Problem> {
    let kind = KindName::parse(name).map_err(|error| {
        Problem::of_fields(Code::InvalidField, vec![FieldError::new("/kind", error)])
            .hint("the name of the kind is the last part of the path")
    })?;
    if kind.is_reserved() {
        let why = "must not begin with `rewheel.`: these kinds are reserved";
        let errors = vec![FieldError::new("/kind", why)];
        return Err(Problem::of_fields(Code::InvalidField, errors));
    }
    if app.config().kinds.contains_key(&kind) {
        let detail = format!(
            "kind `{kind}` is defined in the config file of the server and cannot be changed by REST"
        );
        return Err(Problem::new(Code::ManagedByConfig, detail)
            .hint(format!("change [kinds.{kind}] in the config file and restart the server")));
    }
    Ok(kind)
}

/// Parses settings that a request may write, `filled` with the named defaults.
fn settings(
    app: &App,
    text: &str,
    (filled, names): (String, Vec<String>),
) -> Result<KindSettings, Problem> {
    // Check this before resolving variables: whether a forbidden variable is set must not be revealed.
    if let Some(error) = runners::check_reach(text, &app.config().server) {
        return Err(Problem::of_fields(Code::InvalidField, vec![error]));
    }
    match parse_settings(&filled) {
        Err(problem) if !names.is_empty() && parse_settings(text).is_ok() => Err(problem.hint(format!(
            "these defaults are from [defaults.kind] in the config file of the server: {}; if one of them does not fit, send your own value for it",
            names.join(", ")
        ))),
        parsed => parsed,
    }
}

/// Writes settings that may depend on the stored ones: reads again if another client wrote in between.
async fn write_kind(
    app: &App,
    caller: &Caller,
    kind: &KindName,
    if_match: IfMatch,
    settings: &(dyn Fn(Option<&Kind>) -> Result<KindSettings, Problem> + Sync),
) -> Result<Response, Problem> {
    let engine = app.engine_for_work()?;
    for _ in 0..WRITES_MAX {
        let before = engine.store().kinds().await?.into_iter().find(|known| known.name == *kind);
        match (if_match, &before) {
            (IfMatch::Exists | IfMatch::Version(_), None) => {
                let detail = format!("kind `{kind}` does not exist");
                return Err(Problem::new(Code::VersionChanged, detail)
                    .hint("to create the kind, send the request without If-Match"));
            }
            (IfMatch::Version(wanted), Some(before)) if before.version != wanted => {
                return Err(version_changed(before));
            }
            (IfMatch::Version(_) | IfMatch::Exists | IfMatch::Whatever, _) => {}
        }
        let settings = settings(before.as_ref())?;
        let if_version = before.map(|before| before.version);
        match engine.put_kind_if(kind, &settings, if_version, caller.who()).await? {
            KindEdited::Done(_) => {
                let found = find(app, engine, kind).await?;
                return Ok(found.ok_or_else(|| not_found(kind.as_str()))?.into_response());
            }
            KindEdited::VersionChanged(_) | KindEdited::HasJobs(_) | KindEdited::NotFound => {}
        }
    }
    let detail =
        format!("kind `{kind}` was not changed: other requests are changing it at the same time");
    Err(Problem::new(Code::VersionChanged, detail).hint("send the request again in a moment"))
}

fn edited(edited: KindEdited, name: &str) -> Result<(), Problem> {
    match edited {
        KindEdited::Done(_) => Ok(()),
        KindEdited::VersionChanged(kind) => Err(version_changed(&kind)),
        KindEdited::NotFound => Err(not_found(name)),
        KindEdited::HasJobs(_) => {
            let detail = format!("kind `{name}` has unfinished jobs");
            let hint = format!(
                "wait until its jobs have ended, or cancel them: POST /v1/jobs/cancel with {{\"filter\":{{\"kind\":\"{name}\",\
                 \"state\":[\"scheduled\",\"leased\",\"paused\",\"dead\"]}}}}"
            );
            Err(Problem::new(Code::WrongState, detail).hint(hint))
        }
    }
}

fn version_changed(kind: &Kind) -> Problem {
    let detail = format!("kind `{}` has changed: its version is now {}", kind.name, kind.version);
    Problem::new(Code::VersionChanged, detail)
        .hint("read the kind again, then send the request with its new ETag")
}

fn not_found(name: &str) -> Problem {
    Problem::new(Code::NotFound, format!("kind `{name}` does not exist"))
}

/// A kind's document, with its version.
struct Shown {
    document: KindDocument,
    version: Version,
}

impl IntoResponse for Shown {
    fn into_response(self) -> Response {
        ([(ETAG, etag(self.version))], Json(self.document)).into_response()
    }
}

async fn find(app: &App, engine: &Engine, name: &KindName) -> Result<Option<Shown>, Problem> {
    let mut kinds = engine.store().kinds().await?;
    kinds.retain(|kind| kind.name == *name);
    let document = documents(app, engine, &kinds).await?.pop();
    let version = kinds.first().map(|kind| kind.version);
    Ok(document.zip(version).map(|(document, version)| Shown { document, version }))
}

async fn documents(
    app: &App,
    engine: &Engine,
    kinds: &[Kind],
) -> Result<Vec<KindDocument>, Problem> {
    let counts = engine.job_counts().await?;
    let describe = |kind: &Kind| {
        let is_run = engine.runs(&kind.name) || app.workers().run(&kind.name);
        let runnable = if is_run { Runnable::Yes } else { Runnable::No };
        KindDocument::new(kind, &counts, runnable, &app.config().kind_defaults)
    };
    Ok(kinds.iter().map(describe).collect())
}
