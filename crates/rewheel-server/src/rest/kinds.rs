//! Shows kinds, and writes their settings.

use super::body::Body;
use super::query::Parameters;
use super::{Page, body};
use crate::app::App;
use crate::conditions::Conditions;
use crate::kind_document::{KindDocument, Runnable, parse_settings};
use crate::problem::{Code, FieldError, Problem};
use crate::runners;
use crate::tokens::Caller;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rewheel_core::{Actor, Kind, KindChange, KindChanged, KindName, Limits};
use rewheel_engine::Engine;
use std::sync::Arc;

/// `GET /v1/kinds`
pub(super) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    let limit = parameters.limit();
    let cursor = parameters.one("cursor", KindName::parse);
    parameters.finish()?;
    let engine = app.engine()?;
    let kinds = engine.store().kinds().await?;
    let mut rest = kinds.into_iter().filter(|kind| cursor.as_ref() < Some(&kind.name));
    let page: Vec<Kind> = rest.by_ref().take(limit).collect();
    let next = rest.next().and(page.last()).map(|last| last.name.to_string());
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
    let not_found = || Problem::new(Code::NotFound, format!("there is no kind `{name}`"));
    let kind = KindName::parse(&name).map_err(|_| not_found())?;
    let document = find(&app, app.engine()?, &kind).await?.ok_or_else(not_found)?;
    Ok(Json(document).into_response())
}

/// `PUT /v1/kinds/{kind}`
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let text = body::read(body, Limits::SETTINGS_BYTES_MAX).await?;
    let kind = KindName::parse(&name).map_err(|error| {
        Problem::of_fields(Code::InvalidField, vec![FieldError::new("/kind", error)])
            .hint("it is the last part of the path")
    })?;
    if kind.is_reserved() {
        let why = "must not begin with `rewheel.`: such kinds are the engine's own";
        let errors = vec![FieldError::new("/kind", why)];
        return Err(Problem::of_fields(Code::InvalidField, errors));
    }
    if app.config().kinds.contains_key(&kind) {
        let detail = format!("`{kind}` is what the server's config file says");
        return Err(Problem::new(Code::ManagedByConfig, detail)
            .hint(format!("change [kinds.{kind}] there, and start the server again")));
    }
    // Before it is known whether they are set: that is nobody's business either.
    if let Some(error) = runners::check_reach(&text, &app.config().server) {
        return Err(Problem::of_fields(Code::InvalidField, vec![error]));
    }
    let settings = parse_settings(&text)?;
    let engine = app.engine_for_work()?;
    engine.put_kind(&kind, &settings, caller.who()).await?;
    let document = find(&app, engine, &kind).await?;
    Ok(Json(document).into_response())
}

/// `POST /v1/kinds/{kind}/{pause,resume,breaker/…}`
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    uri: Uri,
    change: fn(&Actor) -> KindChange,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let not_found = || Problem::new(Code::NotFound, format!("there is no kind `{name}`"));
    let kind = KindName::parse(&name).map_err(|_| not_found())?;
    let engine = app.engine_for_work()?;
    match engine.change_kind(&kind, &change(caller.who()), caller.who()).await? {
        KindChanged::Applied(_) | KindChanged::Refused(_) => {}
        KindChanged::NotFound => return Err(not_found()),
    }
    let document = find(&app, engine, &kind).await?.ok_or_else(not_found)?;
    Ok(Json(document).into_response())
}

async fn find(
    app: &App,
    engine: &Engine,
    name: &KindName,
) -> Result<Option<KindDocument>, Problem> {
    let mut kinds = engine.store().kinds().await?;
    kinds.retain(|kind| kind.name == *name);
    Ok(documents(app, engine, &kinds).await?.pop())
}

async fn documents(
    app: &App,
    engine: &Engine,
    kinds: &[Kind],
) -> Result<Vec<KindDocument>, Problem> {
    let tallies = engine.store().tally().await?;
    let describe = |kind: &Kind| {
        let tally = tallies.iter().find(|tally| tally.kind == kind.name);
        let is_run = engine.runs(&kind.name) || app.workers().run(&kind.name);
        let runnable = if is_run { Runnable::Yes } else { Runnable::No };
        KindDocument::new(kind, tally, runnable)
    };
    Ok(kinds.iter().map(describe).collect())
}
