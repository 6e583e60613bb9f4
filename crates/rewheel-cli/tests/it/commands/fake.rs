//! A fake server with scripted responses that records the requests it gets.

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::IntoResponse;
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// A recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// For example `GET /v1/jobs?limit=1`.
    pub(crate) line: String,
    pub(crate) body: String,
}

type Answers = dyn Fn(&Asked) -> (u16, String) + Send + Sync;

/// A server in this process.
pub(crate) struct Fake {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _serving: JoinSet<()>,
    _runtime: Runtime,
}

impl Fake {
    /// Starts a server that responds to each request with a status and a text.
    pub(crate) fn start(answers: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> Fake {
        let (answers, asked): (Arc<Answers>, _) = (Arc::new(answers), Arc::default());
        let runtime = Runtime::new().unwrap();
        let remembered: Arc<Mutex<Vec<Asked>>> = Arc::clone(&asked);
        let answer = move |method: Method, uri: Uri, body: Bytes| async move {
            let body = String::from_utf8(body.to_vec()).unwrap();
            let asked = Asked { line: format!("{method} {uri}"), body };
            let (status, text) = answers(&asked);
            remembered.lock().unwrap().push(asked);
            let kind =
                if text.starts_with("event:") { "text/event-stream" } else { "application/json" };
            (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, kind)], text)
                .into_response()
        };
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        let router =
            Router::new().fallback(answer).layer(axum::extract::DefaultBodyLimit::disable());
        serving.spawn_on(async { axum::serve(listener, router).await.unwrap() }, runtime.handle());
        Fake { url, asked, _serving: serving, _runtime: runtime }
    }

    /// Returns the requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Returns the only request since the last call, as its line and its body.
    #[track_caller]
    pub(crate) fn asked_once(&self) -> (String, String) {
        let mut asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        let asked = asked.remove(0);
        (asked.line, asked.body)
    }
}
