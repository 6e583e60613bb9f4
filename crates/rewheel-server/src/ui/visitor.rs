//! The visitor of a page: their session, rights and preferences.

use super::Ui;
use super::preferences::Preferences;
use super::refusal::Refusal;
use super::secret::FormSecret;
use crate::problem::Code;
use crate::rest::{RequestId, check_nearby};
use crate::tokens::Caller;
use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap,
    HeaderName, IF_MATCH, TRANSFER_ENCODING,
};
use axum::http::request::Parts;
use rewheel_core::{Timestamp, TokenRole};
use std::sync::Arc;

/// The cookie with the token of the session.
pub(super) const SESSION: &str = "rewheel_session";

/// The cookie that forms depend on, with or without a session.
pub(super) const FORM: &str = "rewheel_form";

/// Headers about the body and the browser, which requests to REST do not repeat.
const OWN: [HeaderName; 7] = [
    ACCEPT_ENCODING,
    AUTHORIZATION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    COOKIE,
    IF_MATCH,
    TRANSFER_ENCODING,
];

/// Who looks at a page.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) ui: Arc<Ui>,
    pub(super) session: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) caller: Caller,
    pub(super) secret: FormSecret,
    pub(super) preferences: Preferences,
    /// The time of the store.
    pub(super) now: Timestamp,
}

impl Visitor {
    /// Returns whether the visitor may change jobs.
    pub(super) fn operates(&self) -> bool {
        self.caller.roles().allow(TokenRole::Operate)
    }

    /// Returns whether the visitor may change kinds: that is about all tenants.
    pub(super) fn operates_all(&self) -> bool {
        self.operates() && self.sees_all()
    }

    /// Returns whether the visitor may change tokens and settings.
    pub(super) fn is_admin(&self) -> bool {
        self.caller.roles().allow(TokenRole::Admin) && self.sees_all()
    }

    /// Returns whether the visitor sees all tenants.
    pub(super) fn sees_all(&self) -> bool {
        self.caller.tenant().is_none()
    }

    pub(super) fn link(&self, page: &str) -> String {
        self.ui.base.link(page)
    }

    /// Returns the URL of the server for commands.
    pub(super) fn server(&self) -> String {
        self.ui.base.server(self.headers.get(HOST).and_then(|host| host.to_str().ok()))
    }

    /// Returns the option of curl that sends a token, if the server needs one.
    pub(super) fn curl_token(&self) -> &'static str {
        match self.caller.has_token() {
            true => " -H \"Authorization: Bearer $REWHEEL_TOKEN\"",
            false => "",
        }
    }
}

impl FromRequestParts<Arc<Ui>> for Visitor {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, ui: &Arc<Ui>) -> Result<Visitor, Refusal> {
        let session = cookie(&parts.headers, SESSION).map(str::to_owned);
        let form = cookie(&parts.headers, FORM).unwrap_or_default().to_owned();
        let engine = ui.app.engine()?;
        let admitted = ui.app.tokens().admit(Ok(&**engine.store()), session.as_deref()).await;
        let caller = admitted.map_err(|problem| {
            let mut refusal = Refusal::from(problem);
            refusal.needs_sign_in = refusal.is(Code::Unauthorized);
            refusal
        })?;
        if !caller.has_token() {
            check_nearby(&parts.uri, &parts.headers)?;
        }
        if !caller.roles().allow(TokenRole::Read) {
            let detail = format!("this token cannot look: it has {}", caller.roles());
            let hint = "sign in with a token that has the role `read`, `operate` or `admin`";
            return Err(Refusal::new(Code::Forbidden, &detail).hint(hint));
        }
        let form = match parts.extensions.get::<NewForm>() {
            Some(NewForm(new)) => new.clone(),
            None => form,
        };
        let secret = FormSecret::new(&form, session.as_deref());
        let now = ui.app.now().await?;
        let preferences = Preferences::of(&parts.headers);
        let headers = passed_on(parts);
        Ok(Visitor { ui: Arc::clone(ui), session, headers, caller, secret, preferences, now })
    }
}

/// The form cookie that the answer to this request sets.
#[derive(Clone, Debug)]
pub(super) struct NewForm(pub(super) String);

fn passed_on(parts: &Parts) -> HeaderMap {
    let mut headers = parts.headers.clone();
    for own in OWN {
        headers.remove(own);
    }
    let id = parts.extensions.get::<RequestId>();
    if let Some(id) = id.and_then(|id| HeaderValue::try_from(&id.0).ok()) {
        headers.insert("x-request-id", id);
    }
    headers
}

/// Returns a cookie of the request.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let sent = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = sent.flat_map(|value| value.split(';')).filter_map(|one| one.split_once('='));
    let found = pairs.find(|(found, _)| found.trim() == name);
    found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}
