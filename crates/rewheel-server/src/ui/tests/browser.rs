//! A server and a browser for tests.

use crate::app::App;
use crate::config::{AdminToken, Config, PublicUrl};
use crate::rest::router;
use crate::tokens::{make, stored};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use rewheel::Category;
use rewheel_core::{Actor, Failure, Report};
use rewheel_engine::{Engine, KindSettings};
use rewheel_stores::connect;
use std::collections::BTreeMap;
use std::sync::Arc;
use tower::ServiceExt;
use url::form_urlencoded;

/// The admin token in the config of tests.
pub(super) const ADMIN: &str = "0123456789abcdef0123456789abcdef";

/// A server with its engine.
pub(super) struct Site {
    pub(super) app: Arc<App>,
    pub(super) engine: Engine,
    pub(super) router: Router,
}

impl Site {
    /// A server on loopback without tokens.
    pub(super) async fn open() -> Site {
        Site::with(Config::default()).await
    }

    /// A server with an admin token.
    pub(super) async fn closed() -> Site {
        let mut config = Config::default();
        config.server.admin_token = AdminToken::parse(ADMIN).ok();
        Site::with(config).await
    }

    /// A closed server behind a proxy.
    pub(super) async fn behind(url: &str) -> Site {
        let mut config = Config::default();
        config.server.admin_token = AdminToken::parse(ADMIN).ok();
        config.server.public_url = PublicUrl::parse(url).ok();
        Site::with(config).await
    }

    /// An open server whose kind `broken` fails with this message.
    pub(super) async fn failing_with(message: &'static str) -> Site {
        Site::made(Config::default(), message).await
    }

    /// Its kind `mail` has no runner, so that its jobs stay as they are; jobs of `broken` die at once.
    pub(super) async fn with(config: Config) -> Site {
        Site::made(config, "it is broken: 17").await
    }

    async fn made(config: Config, message: &'static str) -> Site {
        let engine = Engine::builder(connect("memory://").await.unwrap())
            .kind("mail", KindSettings::default())
            .kind("broken", KindSettings { attempts_max: 1, ..KindSettings::default() })
            .raw_handler("broken", move |job| async move {
                let is_other = job.payload().windows(5).any(|part| part == b"other");
                let message = if is_other { "another cause" } else { message };
                Report::dead(Failure::new(Category::Rejected, None, message))
            })
            .start()
            .await
            .unwrap();
        let app = Arc::new(App::new(config));
        app.started(engine.clone());
        let router = router(Arc::clone(&app));
        Site { app, engine, router }
    }

    /// Creates a token, and returns its text.
    pub(super) async fn token(&self, request: &str) -> String {
        let (new, text) = make(request).unwrap();
        let put = self.engine.store().put_token(&new, &Actor::new("test")).await.unwrap();
        stored(put, &new.name).unwrap();
        self.app.tokens().forget();
        text.reveal().to_owned()
    }

    /// Sends a request to REST with a token, and returns the document.
    pub(super) async fn rest(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: &str,
    ) -> serde_json::Value {
        let mut request = Request::builder().method(method).uri(path);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, bytes) = (response.status(), response.into_body());
        let bytes = axum::body::to_bytes(bytes, usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(super) fn browser(&self) -> Browser {
        Browser { router: self.router.clone(), cookies: BTreeMap::new(), more: Vec::new() }
    }

    /// Returns a browser whose pages get this answer from this path of REST.
    pub(super) fn browser_over(&self, path: &'static str, answer: serde_json::Value) -> Browser {
        let answer = axum::routing::get(move || async move { axum::Json(answer) });
        let rest =
            Router::new().route(path, answer).fallback_service(crate::rest::inner(&self.app));
        let router = super::super::over(&self.app, rest).with_state(Arc::clone(&self.app));
        Browser { router, cookies: BTreeMap::new(), more: Vec::new() }
    }

    /// Returns a browser that is signed in.
    pub(super) async fn signed_in(&self, token: &str) -> Browser {
        let mut browser = self.browser();
        let page = browser.get("/ui/sign-in").await;
        let code = page.code();
        let shown = browser.post("/ui/sign-in", &[("code", &code), ("token", token)]).await;
        assert_eq!(shown.status, 303, "{}", shown.html);
        browser
    }
}

/// A browser with its cookies.
#[derive(Clone)]
pub(super) struct Browser {
    router: Router,
    pub(super) cookies: BTreeMap<String, String>,
    pub(super) more: Vec<(&'static str, String)>,
}

/// A page, or a redirect.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) html: String,
}

impl Browser {
    pub(super) async fn get(&mut self, path: &str) -> Shown {
        self.send(Method::GET, path, String::new()).await
    }

    pub(super) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Shown {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.send(Method::POST, path, body).await
    }

    /// Opens a page, then sends a form with the code of that page.
    pub(super) async fn submit(
        &mut self,
        page: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Shown {
        let code = self.get(page).await.code();
        self.post(path, &[fields, &[("code", code.as_str())]].concat()).await
    }

    async fn send(&mut self, method: Method, path: &str, body: String) -> Shown {
        let cookies: Vec<_> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request =
            Request::builder().method(method).uri(path).header("host", "127.0.0.1:7420");
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        for (name, value) in &self.more {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        for set in parts.headers.get_all("set-cookie") {
            let (pair, _) = set.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let html = String::from_utf8(bytes.to_vec()).unwrap();
        Shown { status: parts.status.as_u16(), headers: parts.headers, html }
    }
}

impl Shown {
    /// Returns the code for forms.
    #[track_caller]
    pub(super) fn code(&self) -> String {
        self.field("code")
    }

    /// Returns the value of the first hidden field with this name.
    #[track_caller]
    pub(super) fn field(&self, name: &str) -> String {
        let start = format!("name=\"{name}\" value=\"");
        let rest =
            self.html.split_once(&start).unwrap_or_else(|| panic!("no {name} in {}", self.html)).1;
        rest.split('"').next().unwrap().replace("&#34;", "\"").replace("&#38;", "&")
    }

    /// Returns the value of a field with an id.
    #[track_caller]
    pub(super) fn field_of(&self, id: &str) -> String {
        let rest = self.html.split_once(&format!("id=\"{id}\"")).unwrap().1;
        rest.split_once("value=\"").unwrap().1.split('"').next().unwrap().to_owned()
    }

    #[track_caller]
    pub(super) fn location(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.html);
        self.headers["location"].to_str().unwrap()
    }

    #[track_caller]
    pub(super) fn has(&self, text: &str) -> &Shown {
        assert!(self.html.contains(text), "no `{text}` in {}", self.html);
        self
    }

    #[track_caller]
    pub(super) fn lacks(&self, text: &str) -> &Shown {
        assert!(!self.html.contains(text), "`{text}` in {}", self.html);
        self
    }
}
