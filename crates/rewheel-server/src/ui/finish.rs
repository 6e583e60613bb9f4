//! What holds for all pages: security headers, the form cookie, and pages for problems.

use super::Ui;
use super::frame::{Frame, show_as};
use super::preferences::Preferences;
use super::refusal::Refusal;
use super::secret::random_text;
use super::visitor::{FORM, NewForm, SESSION, cookie};
use crate::problem::Code;
use crate::rest::{AsItIs, RequestId};
use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, SET_COOKIE,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use url::form_urlencoded;

/// Scripts, styles and forms only of this server, and no frames of other sites.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// `no-referrer` would make browsers send `Origin: null` with forms.
const HEADERS: [(HeaderName, &str); 5] = [
    (HeaderName::from_static("content-security-policy"), POLICY),
    (HeaderName::from_static("referrer-policy"), "same-origin"),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// How long the form cookie lasts: longer than a session.
const FORM_AGE_S: u64 = 30 * 24 * 3_600;

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    refusal: Refusal,
}

#[derive(Template)]
#[template(path = "reload.html")]
struct ReloadPage {
    url: String,
}

/// Adds what every page has.
pub(super) async fn finish(
    State(ui): State<Arc<Ui>>,
    mut request: Request,
    next: Next,
) -> Response {
    let preferences = Preferences::of(request.headers());
    if is_link_of_another_site(&request) {
        let mut response = show_as(StatusCode::OK, &ReloadPage { url: wanted(&ui, &request) });
        harden(response.headers_mut());
        response.extensions_mut().insert(AsItIs);
        return response;
    }
    let new_form = cookie(request.headers(), FORM).is_none().then(random_text);
    if let Some(form) = &new_form {
        request.extensions_mut().insert(NewForm(form.clone()));
    }
    let wanted = wanted(&ui, &request);
    let id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    let mut response = next.run(request).await;
    let refusal = response.extensions_mut().remove::<Refusal>();
    if let Some(mut refusal) = refusal.or_else(|| of_router(&response)) {
        if refusal.request_id.is_empty() {
            refusal.request_id = id.unwrap_or_default();
        }
        response = refused(&ui, &preferences, refusal, &wanted);
    }
    harden(response.headers_mut());
    if let Some(form) = new_form {
        let cookie = HeaderValue::try_from(ui.base.cookie(FORM, &form, FORM_AGE_S));
        response.headers_mut().extend(cookie.ok().map(|cookie| (SET_COOKIE, cookie)));
    }
    // These answers are pages, not problem documents.
    response.extensions_mut().insert(AsItIs);
    response
}

/// A link from another site arrives without the cookies: the page loads itself again, once, and then has them. A new form cookie here
/// would replace that of pages that are open already.
fn is_link_of_another_site(request: &Request) -> bool {
    let headers = request.headers();
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    matches!(site, Some("cross-site" | "same-site"))
        && *request.method() == Method::GET
        && cookie(headers, FORM).is_none()
        && cookie(headers, SESSION).is_none()
}

/// Returns the refusal of the router itself, such as a method that a path does not have.
fn of_router(response: &Response) -> Option<Refusal> {
    let status = response.status();
    let media_type = response.headers().get(CONTENT_TYPE);
    let is_page =
        media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/html"));
    match status {
        _ if is_page || !(status.is_client_error() || status.is_server_error()) => None,
        StatusCode::METHOD_NOT_ALLOWED => Some(Refusal::new(
            Code::MethodNotAllowed,
            "this address is only for a form; open a page instead",
        )),
        status if status.is_client_error() => {
            Some(Refusal::new(Code::BadQuery, "the address of the page is not valid"))
        }
        _ => Some(Refusal::new(Code::Internal, "internal server error")),
    }
}

/// Returns the address of the page as the browser sees it. After a form, the page to come back to is the overview.
fn wanted(ui: &Ui, request: &Request) -> String {
    // The router removed the path of the dashboard.
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    match *request.method() == Method::GET {
        true => ui.base.next(&ui.base.link(path)),
        false => ui.base.link("/"),
    }
}

fn refused(ui: &Ui, preferences: &Preferences, refusal: Refusal, wanted: &str) -> Response {
    if refusal.needs_sign_in {
        let next: String = form_urlencoded::byte_serialize(wanted.as_bytes()).collect();
        return redirect(&ui.base.link(&format!("/sign-in?next={next}")));
    }
    let status = StatusCode::from_u16(refusal.status);
    let frame = Frame::bare(ui, preferences, &refusal.title());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    show_as(status, &ProblemPage { frame, refusal })
}

fn harden(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Redirects with GET, also after a form.
pub(super) fn redirect(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let place = HeaderValue::try_from(to).unwrap_or_else(|_| HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, place);
    response.extensions_mut().insert(AsItIs);
    response
}
