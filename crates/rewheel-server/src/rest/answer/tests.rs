//! Tests handlers that panic, on a real connection.

use super::super::body::{self, Body};
use super::super::{layered, routes};
use crate::app::App;
use crate::config::{Config, LimitSettings};
use crate::connections::{Connections, Plain};
use crate::problem::Problem;
use axum::Router;
use axum::routing::{get, post};
use rewheel::CancelToken;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Collects every log line of this thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        struct Line(String);

        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                self.0.push_str(&format!("{}={value:?} ", field.name()));
            }
        }

        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
}

async fn panics(body: Body) -> Result<(), Problem> {
    let text = body::read(body, 10_000_000).await?;
    panic!("it read {} bytes, and had https://ops:secretsecret@bank.example", text.len())
}

fn with_panics(app: &Arc<App>) -> Router {
    let routes = routes::router(app).route("/panics", post(panics)).route(
        "/panics-at-once",
        get(|| async {
            if std::hint::black_box(true) {
                panic!("at once");
            }
        }),
    );
    layered(routes, Arc::clone(app))
}

/// Sends a request on an open connection, and returns the head and the document of the response.
async fn ask(client: &mut TcpStream, request: &str, body: &[u8]) -> (String, Value) {
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {length}\r\n\r\n");
    client.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    let mut heard = Vec::new();
    let (head, length) = loop {
        assert!(client.read_buf(&mut heard).await.unwrap() > 0, "the connection was closed");
        let text = String::from_utf8(heard.clone()).unwrap();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.split_once("content-length: ").unwrap().1;
            break (head.to_owned(), length.lines().next().unwrap().parse::<usize>().unwrap());
        }
    };
    while heard.len() < head.len() + 4 + length {
        assert!(client.read_buf(&mut heard).await.unwrap() > 0, "the connection was closed");
    }
    (head.clone(), serde_json::from_slice(&heard[head.len() + 4..]).unwrap())
}

#[tokio::test]
async fn a_panic_is_answered_and_logged_and_the_connection_goes_on() {
    let lines = Lines::default();
    let _logged =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
    let app = Arc::new(App::new(Config::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (connections, quiet) = (Connections::new(&LimitSettings::default()), CancelToken::new());
    let serving = connections.serve(listener, Plain, with_panics(&app), quiet.clone());
    let asking = async {
        let mut client = TcpStream::connect(address).await.unwrap();
        for (request, body) in [
            ("POST /panics", vec![b'x'; 3_000_000]),
            ("GET /panics-at-once", Vec::new()),
            ("POST /panics", vec![b'x'; 3]),
        ] {
            let (head, problem) = ask(&mut client, request, &body).await;
            assert!(head.starts_with("HTTP/1.1 500 "), "{head}");
            assert!(head.contains("application/problem+json"), "{head}");
            assert_eq!(problem["code"], "internal", "{problem}");
            let id = problem["request_id"].as_str().unwrap();
            assert!(head.contains(&format!("x-request-id: {id}")), "{head}");
            let lines = std::mem::take(&mut *lines.0.lock().unwrap());
            let line = lines.iter().find(|line| line.contains("panicked")).unwrap();
            assert!(line.starts_with("ERROR") && line.contains(id), "{line}");
            assert!(!format!("{lines:?}{problem}").contains("secretsecret"), "{lines:?}");
            assert!(!problem.to_string().contains("at once"), "{problem}");
            assert_eq!(app.bodies().used(), 0, "the room of the body is free again");
        }
        assert!(ask(&mut client, "GET /livez", b"").await.0.starts_with("HTTP/1.1 200 "));
        quiet.cancel();
    };
    tokio::join!(serving, asking);
}
