//! Starts a server for one test, with a client.

use super::documented;
use reqwest::{Client, Method, RequestBuilder};
use rewheel_core::KindName;
use rewheel_engine::KindSettings;
use rewheel_server::callback::Ceiling;
use rewheel_server::config::Config;
use rewheel_server::{Server, ServerEvent};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::sync::oneshot;

/// A config that needs no file, no port and no disk. It has the kind `mail`, without a runner.
pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.store.url = "memory://".to_owned();
    let loopback = ["127.0.0.0/8", "::1/128"].map(|network| network.parse().unwrap());
    config.server.callback_allow = Ceiling::new(loopback);
    config.kinds.insert(KindName::parse("mail").unwrap(), KindSettings::default());
    config
}

/// Runs a server while a test sends requests.
pub(crate) async fn served(config: Config, test: impl AsyncFnOnce(Api)) {
    let server = Server::bind(config).await.unwrap();
    let api = Api { base: format!("http://{}", server.address()), client: Client::new() };
    let (ready, is_ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut ready = Some(ready);
    let say = |said: &ServerEvent| {
        if let (ServerEvent::Ready(_), Some(ready)) = (said, ready.take()) {
            ready.send(()).unwrap();
        }
    };
    let running = server.run(async move { drop(stopped.await) }, say);
    let asking = async {
        is_ready.await.unwrap();
        test(api).await;
        drop(stop);
    };
    let (ran, ()) = tokio::join!(running, asking);
    ran.unwrap();
}

/// A client of the server.
pub(crate) struct Api {
    pub(crate) base: String,
    pub(crate) client: Client,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Api {
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        Answer::of(self.request(Method::POST, path).body(body.to_owned())).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> Answer {
        Answer::of(self.request(Method::PUT, path).body(body.to_owned())).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &str) -> Answer {
        Answer::of(self.request(Method::PATCH, path).body(body.to_owned())).await
    }

    /// Submits a job of the kind `mail`, and returns its id.
    pub(crate) async fn submit(&self, more: &str) -> String {
        let body = format!(r#"{{"kind":"mail","payload":{{"to":"a"}}{more}}}"#);
        let answer = self.post("/v1/jobs", &body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn count(&self) -> usize {
        self.get("/v1/jobs").await.body["items"].as_array().unwrap().len()
    }
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Answer {
        let (client, request) = request.build_split();
        let request = request.unwrap();
        let asked = (request.method().clone(), request.url().path().to_owned());
        let response = client.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let answer = Answer { status, headers, body };
        documented::check(&asked, &answer);
        answer
    }

    /// Checks that it is a problem document, and returns its code.
    #[track_caller]
    pub(crate) fn problem(&self) -> &str {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        assert_eq!(self.body["status"], self.status, "{self:?}");
        let code = self.body["code"].as_str().unwrap();
        assert_eq!(self.body["type"], format!("urn:rewheel:problem:{code}"));
        assert_eq!(self.body["title"], code.replace('_', " "));
        assert!(!self.body["detail"].as_str().unwrap().is_empty(), "{self:?}");
        assert!(self.body["errors"].is_array(), "{self:?}");
        assert!(self.body.get("hint").is_some(), "{self:?}");
        assert_eq!(self.body["request_id"], self.headers["x-request-id"].to_str().unwrap());
        let waits = self.headers.contains_key("retry-after");
        assert_eq!(waits, matches!(self.status, 429 | 503), "{self:?}");
        code
    }

    /// Returns the invalid fields of a problem.
    #[track_caller]
    pub(crate) fn blamed(&self) -> Vec<&str> {
        self.problem();
        let errors = self.body["errors"].as_array().unwrap();
        errors.iter().map(|error| error["field"].as_str().unwrap()).collect()
    }
}
