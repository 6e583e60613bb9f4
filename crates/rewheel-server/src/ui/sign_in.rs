//! Starts and ends sessions.

use super::Ui;
use super::finish::redirect;
use super::form::{self, Submitted};
use super::frame::{Frame, show_as};
use super::preferences::Preferences;
use super::refusal::Refusal;
use super::secret::FormSecret;
use super::visitor::{FORM, NewForm, SESSION, cookie};
use crate::problem::{Code, Problem};
use crate::tokens::{SESSION_TTL, session_id, stored};
use askama::Template;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{HeaderMap, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use rewheel_core::TokenRole;
use std::sync::Arc;
use url::form_urlencoded;

/// A visitor who may have no session.
#[derive(Debug)]
pub(super) struct Stranger {
    preferences: Preferences,
    secret: FormSecret,
}

impl Stranger {
    fn of(headers: &HeaderMap, extensions: &Extensions) -> Stranger {
        let new = extensions.get::<NewForm>().map(|NewForm(new)| new.as_str());
        let form = new.or_else(|| cookie(headers, FORM)).unwrap_or_default();
        Stranger { preferences: Preferences::of(headers), secret: FormSecret::new(form, None) }
    }
}

impl FromRequestParts<Arc<Ui>> for Stranger {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Ui>) -> Result<Stranger, Refusal> {
        Ok(Stranger::of(&parts.headers, &parts.extensions))
    }
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    next: String,
    wrong: Option<String>,
}

fn ask(ui: &Ui, stranger: &Stranger, next: String, wrong: Option<String>) -> Response {
    let mut frame = Frame::bare(ui, &stranger.preferences, "Sign in");
    frame.code = stranger.secret.code();
    let status = if wrong.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
    show_as(status, &SignInPage { frame, next, wrong })
}

/// `GET /ui/sign-in`
pub(super) async fn page(State(ui): State<Arc<Ui>>, stranger: Stranger, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let next = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "next");
    let next = ui.base.next(&next.map(|(_, next)| next.into_owned()).unwrap_or_default());
    ask(&ui, &stranger, next, None)
}

/// `POST /ui/sign-in`: makes a session of a token.
pub(super) async fn sign_in(
    State(ui): State<Arc<Ui>>,
    request: Request,
) -> Result<Response, Refusal> {
    let stranger = Stranger::of(request.headers(), request.extensions());
    let fields = form::read(request, &ui).await?;
    form::check(stranger.secret.accepts(fields.text("code")))?;
    let next = ui.base.next(fields.text("next"));
    match session(&ui, fields.text("token")).await {
        Ok(text) => Ok(with_session(redirect(&next), &ui, &text, SESSION_TTL.as_secs())),
        Err(problem)
            if matches!(problem.code, Code::Unauthorized | Code::Forbidden | Code::Throttled) =>
        {
            Ok(ask(&ui, &stranger, next, Some(problem.detail)))
        }
        Err(problem) => Err(problem.into()),
    }
}

/// Creates a session, and returns its text.
async fn session(ui: &Ui, token: &str) -> Result<String, Problem> {
    let engine = ui.app.engine_for_work()?;
    let store = engine.store();
    let caller = ui.app.tokens().admit(Ok(&**store), Some(token)).await?;
    if !caller.roles().allow(TokenRole::Read) {
        let detail = format!(
            "this token cannot look: it has {}, and the dashboard needs read, operate or admin",
            caller.roles()
        );
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let Some(made) = caller.session() else {
        let detail =
            "this server needs no token, or this is the token of a session: use the token itself";
        return Err(Problem::new(Code::Forbidden, detail));
    };
    let (new, text) = made?;
    for id in caller.sessions_to_end(&store.tokens().await?)? {
        ui.app.tokens().revoke(id);
        store.revoke_token(id, caller.who()).await?;
    }
    let put = store.put_token(&new, caller.who()).await;
    // Also if it is unknown whether the token was stored.
    ui.app.tokens().forget();
    stored(put?, &new.name)?;
    Ok(text.reveal().to_owned())
}

/// `POST /ui/sign-out`: revokes the session.
pub(super) async fn sign_out(
    State(ui): State<Arc<Ui>>,
    form: Submitted,
) -> Result<Response, Refusal> {
    let signed_out = redirect(&ui.base.link("/sign-in"));
    let session = form.visitor.session.as_deref().filter(|_| form.visitor.caller.is_session());
    let id = session.and_then(session_id);
    let Some(id) = id else { return Ok(signed_out) };
    ui.app.tokens().revoke(id);
    let store = ui.app.engine()?.store();
    let revoked = store.revoke_token(id, form.visitor.caller.who()).await;
    ui.app.tokens().revoke(id);
    revoked.map_err(Problem::from)?;
    Ok(with_session(signed_out, &ui, "", 0))
}

fn with_session(mut response: Response, ui: &Ui, text: &str, age_s: u64) -> Response {
    let cookie = HeaderValue::try_from(ui.base.cookie(SESSION, text, age_s));
    response.headers_mut().extend(cookie.ok().map(|cookie| (SET_COOKIE, cookie)));
    response
}
