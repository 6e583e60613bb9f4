//! Creates, lists and revokes tokens.

use super::Page;
use super::body::{self, Body, SMALL_BYTES_MAX};
use super::cursor::{self, List};
use super::query::Parameters;
use crate::app::App;
use crate::conditions::Conditions;
use crate::problem::{Code, FieldError, Problem};
use crate::tokens::{Caller, TokenDocument, find, is_session, make, stored, token_id};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rewheel_core::store::Store;
use rewheel_core::{Token, TokenId, TokenRevoked, TokenRole, redact};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for listing the tokens when one is revoked by name.
const LIST_MAX: Duration = Duration::from_secs(10);

/// `POST /v1/tokens`: the only response that contains the token.
pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let (new, text) = make(&body::read(body, SMALL_BYTES_MAX).await?)?;
    if !caller.has_token() && !new.roles.allow(TokenRole::Admin) {
        let why = "must include `admin`: the first token must be able to create other tokens, because every later request needs a token";
        return Err(Problem::of_fields(Code::InvalidField, vec![FieldError::new("/roles", why)]));
    }
    let put = app.engine_for_work()?.store().put_token(&new, caller.who()).await;
    // Also if it is unknown whether the token was stored.
    app.tokens().forget();
    let token = stored(put?, &new.name)?;
    let document = TokenDocument::new(&token).reveal(&text);
    Ok((StatusCode::CREATED, [(CACHE_CONTROL, "no-store")], Json(document)).into_response())
}

/// `GET /v1/tokens`: sorted by name.
pub(super) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor", "sessions"])?;
    let (limit, after) = (parameters.limit(), parameters.after(List::Tokens));
    let with_sessions = parameters.one("sessions", |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false"),
    });
    parameters.finish()?;
    let mut tokens = app.engine()?.store().tokens().await?;
    tokens.retain(|token| with_sessions.unwrap_or(true) || !is_session(token.name.as_str()));
    // Several ended tokens may have had the same name. No name contains a space, which sorts before every letter.
    let position = |token: &Token| format!("{} {}", token.name, token.id);
    let (page, next) = cursor::cut(tokens, position, after.as_deref(), limit);
    let items: Vec<_> = page.iter().map(TokenDocument::new).collect();
    let next = next.map(|position| List::Tokens.cursor(&position));
    Ok(Json(Page { items, next }).into_response())
}

/// `POST /v1/tokens/{id}/revoke`: by id, or by name.
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Path(wanted): Path<String>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    body::read_nothing(body).await?;
    let store = app.engine_for_work()?.store();
    let not_found = || {
        Problem::new(Code::NotFound, format!("token `{}` does not exist", redact(&wanted)))
            .hint("GET /v1/tokens lists all tokens with id and name")
    };
    // By id, a token can be revoked even if the store cannot list its tokens.
    if let Some(id) = token_id(&wanted)
        && let TokenRevoked::Revoked(token) = revoke_by_id(&app, &**store, id, &caller).await?
    {
        return Ok(Json(TokenDocument::new(&token)).into_response());
    }
    let tokens = timeout(LIST_MAX, store.tokens()).await.map_err(|_| {
        Problem::new(Code::StoreUnavailable, "the store did not return the list of tokens in time")
            .hint("revoke the token by its id, or send the request again in a moment")
    })?;
    let id = find(&tokens?, &wanted).ok_or_else(not_found)?.id;
    match revoke_by_id(&app, &**store, id, &caller).await? {
        TokenRevoked::Revoked(token) => Ok(Json(TokenDocument::new(&token)).into_response()),
        TokenRevoked::NotFound => Err(not_found()),
    }
}

/// Revokes a token. This server rejects it at once, even if the store's response is lost.
async fn revoke_by_id(
    app: &App,
    store: &dyn Store,
    id: TokenId,
    caller: &Caller,
) -> Result<TokenRevoked, Problem> {
    app.tokens().revoke(id);
    let revoked = store.revoke_token(id, caller.who()).await;
    app.tokens().revoke(id);
    Ok(revoked?)
}
