//! Preferences of a visitor: theme, time zone and keys.

use super::Ui;
use super::finish::redirect;
use super::form::Submitted;
use super::frame::{Frame, show};
use super::refusal::Refusal;
use super::shown::Zone;
use super::visitor::{Visitor, cookie};
use askama::Template;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{HeaderMap, REFERER, SET_COOKIE};
use axum::response::Response;
use std::sync::Arc;
use url::form_urlencoded;

const THEME: &str = "rewheel_theme";
const ZONE: &str = "rewheel_zone";
const KEYS: &str = "rewheel_keys";

/// How long preferences last.
const AGE_S: u64 = 365 * 24 * 3_600;

/// The colours of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    System,
    Light,
    Dark,
}

impl Theme {
    fn parse(text: &str) -> Theme {
        match text {
            "light" => Theme::Light,
            "dark" => Theme::Dark,
            _ => Theme::System,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Theme::System => "system",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

/// What the cookies of a visitor say.
#[derive(Clone, Debug)]
pub(super) struct Preferences {
    pub(super) theme: Theme,
    pub(super) zone: Zone,
    /// Whether the visitor or their browser chose the zone.
    pub(super) has_zone: bool,
    pub(super) keys: bool,
}

impl Preferences {
    pub(super) fn of(headers: &HeaderMap) -> Preferences {
        let zone = cookie(headers, ZONE).map(decoded);
        Preferences {
            theme: Theme::parse(cookie(headers, THEME).unwrap_or_default()),
            has_zone: zone.is_some(),
            zone: Zone::of(zone.as_deref()),
            keys: cookie(headers, KEYS) != Some("off"),
        }
    }
}

/// Decodes the value of a cookie that a script or a form wrote.
fn decoded(value: &str) -> String {
    let pair = format!("zone={value}");
    form_urlencoded::parse(pair.as_bytes())
        .next()
        .map_or_else(String::new, |(_, zone)| zone.into_owned())
}

#[derive(Template)]
#[template(path = "preferences.html")]
struct PreferencesPage {
    frame: Frame,
}

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage {
    frame: Frame,
}

/// `GET /ui/preferences`
pub(super) async fn page(visitor: Visitor) -> Response {
    show(&PreferencesPage { frame: visitor.frame("Preferences", "preferences") })
}

/// `GET /ui/help`
pub(super) async fn help(visitor: Visitor) -> Response {
    show(&HelpPage { frame: visitor.frame("Help", "help") })
}

/// Returns the page to go back to: what the form says, or the page that it was on.
fn back(form: &Submitted) -> String {
    let next = form.fields.text("next");
    if !next.is_empty() {
        return next.to_owned();
    }
    let referer = form.visitor.headers.get(REFERER).and_then(|referer| referer.to_str().ok());
    let url = referer.and_then(|referer| url::Url::parse(referer).ok());
    url.map_or_else(String::new, |url| {
        url[url::Position::BeforePath..url::Position::AfterQuery].to_owned()
    })
}

/// `POST /ui/preferences`: changes what the form names.
pub(super) async fn save(State(ui): State<Arc<Ui>>, form: Submitted) -> Result<Response, Refusal> {
    let mut cookies = Vec::new();
    if let Some(theme) = form.fields.exact("theme") {
        cookies.push(ui.base.cookie(THEME, Theme::parse(theme).as_str(), AGE_S));
    }
    if let Some(zone) = form.fields.exact("zone") {
        let name = Zone::of(Some(zone.trim())).name();
        if !zone.trim().is_empty() && !name.eq_ignore_ascii_case(zone.trim()) {
            let detail = format!("the time zone `{}` does not exist", zone.trim());
            let hint = "write the name of a time zone such as Europe/Berlin, Asia/Shanghai or UTC";
            return Err(Refusal::new(crate::problem::Code::InvalidField, &detail).hint(hint));
        }
        let value: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        cookies.push(ui.base.cookie(ZONE, &value, AGE_S));
    }
    if form.fields.exact("with_keys").is_some() {
        let keys = if form.fields.exact("keys").is_some() { "on" } else { "off" };
        cookies.push(ui.base.cookie(KEYS, keys, AGE_S));
    }
    let mut response = redirect(&ui.base.next(&back(&form)));
    for cookie in cookies {
        response
            .headers_mut()
            .extend(HeaderValue::try_from(cookie).ok().map(|one| (SET_COOKIE, one)));
    }
    Ok(response)
}
