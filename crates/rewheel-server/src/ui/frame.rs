//! What surrounds every page: navigation, status line and footer.

use super::Ui;
use super::assets;
use super::preferences::{Preferences, Theme};
use super::shown::Zone;
use super::visitor::Visitor;
use askama::Template;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// The values of the layout.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) base: String,
    pub(super) title: String,
    /// The word in the navigation that is the current page.
    pub(super) here: &'static str,
    pub(super) theme: &'static str,
    pub(super) next_theme: &'static str,
    pub(super) keys: bool,
    pub(super) zone: String,
    pub(super) has_zone: bool,
    /// The name of the token, if there is one.
    pub(super) who: Option<String>,
    pub(super) is_signed_in: bool,
    pub(super) is_open: bool,
    pub(super) sees_all: bool,
    pub(super) operates: bool,
    pub(super) operates_all: bool,
    pub(super) is_admin: bool,
    pub(super) code: String,
    pub(super) css: String,
    pub(super) js: String,
    pub(super) icon: String,
    pub(super) now: String,
    pub(super) version: &'static str,
    pub(super) node: String,
    /// Whether the page updates itself.
    pub(super) is_live: bool,
    pub(super) notice: Option<String>,
}

impl Visitor {
    /// Returns the frame of a page.
    pub(super) fn frame(&self, title: &str, here: &'static str) -> Frame {
        let mut frame = Frame::bare(&self.ui, &self.preferences, title);
        let name = self.caller.who().as_str();
        frame.here = here;
        frame.who = self.caller.has_token().then(|| name.trim_start_matches("token:").to_owned());
        frame.is_signed_in = self.session.is_some() && self.caller.has_token();
        frame.is_open = !self.caller.has_token();
        frame.sees_all = self.sees_all();
        frame.operates = self.operates();
        frame.operates_all = self.operates_all();
        frame.is_admin = self.is_admin();
        frame.code = self.secret.code();
        frame.now = self.zone().clock(self.now);
        frame
    }

    pub(super) fn zone(&self) -> Zone {
        self.preferences.zone.clone()
    }
}

impl Frame {
    /// The frame of a page without a visitor.
    pub(super) fn bare(ui: &Ui, preferences: &Preferences, title: &str) -> Frame {
        let base = ui.base.path().to_owned();
        Frame {
            css: assets::link(&base, "app.css"),
            js: assets::link(&base, "app.js"),
            icon: assets::link(&base, "icon.svg"),
            title: title.to_owned(),
            here: "",
            theme: preferences.theme.as_str(),
            next_theme: match preferences.theme {
                Theme::Dark => "light",
                Theme::Light | Theme::System => "dark",
            },
            keys: preferences.keys,
            zone: preferences.zone.name(),
            has_zone: preferences.has_zone,
            who: None,
            is_signed_in: false,
            is_open: false,
            sees_all: false,
            operates: false,
            operates_all: false,
            is_admin: false,
            code: String::new(),
            now: String::new(),
            version: env!("CARGO_PKG_VERSION"),
            node: ui.app.config().engine.name.clone(),
            is_live: false,
            notice: None,
            base,
        }
    }

    #[must_use]
    pub(super) fn live(mut self) -> Frame {
        self.is_live = true;
        self
    }

    #[must_use]
    pub(super) fn notice(mut self, notice: Option<String>) -> Frame {
        self.notice = notice;
        self
    }
}

/// Renders a page.
pub(super) fn show(page: &impl Template) -> Response {
    show_as(StatusCode::OK, page)
}

/// Renders a page with a status.
pub(super) fn show_as(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to render a page of the dashboard");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
