//! Calls an unreliable HTTP service with the client around reqwest.
//!
//! Run it with `cargo run -p rewheel --example http_client --features axum,reqwest`.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use rewheel::reqwest::Client;
use rewheel::{Retry, ServiceClass, millis, seconds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example prints its result")]
async fn main() -> Result<(), Failure> {
    for line in run().await? {
        println!("{line}");
    }
    Ok(())
}

/// Makes three calls; returns what happened.
pub async fn run() -> Result<Vec<String>, Failure> {
    let mut server = JoinSet::new();
    let url = start(&mut server).await?;
    let http = reqwest::Client::builder().no_proxy().build()?;
    let client = Client::builder(http)
        .class(&ServiceClass::CRITICAL)
        .retry(Retry::exponential(millis(5)).attempts_max(4))
        .total_timeout(seconds(20))
        .build();

    // Fails twice with 503, and is repeated.
    let page = client.get(format!("{url}/pages/7")).buffered(64 * 1024).await?;
    let get = format!("GET: {} {}", page.status(), page.text().await?);

    // A POST is repeated only with a key.
    let charge =
        || client.post_json(format!("{url}/charges"), &serde_json::json!({ "cents": 4200 }));
    let once = charge().send().await?;
    let repeated = charge().idempotency_key("order-17").send().await?;
    Ok(vec![
        get,
        format!("POST without a key: {}", once.status()),
        format!("POST with a key: {}", repeated.status()),
    ])
}

/// Starts a server whose first two answers on each route are failures.
async fn start(tasks: &mut JoinSet<()>) -> Result<String, Failure> {
    let (gets, posts) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let answer = |count: Arc<AtomicU32>| {
        async move || match count.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => (StatusCode::SERVICE_UNAVAILABLE, "try again"),
            _ => (StatusCode::OK, "done"),
        }
    };
    let app = Router::new()
        .route("/pages/{page}", get(answer(gets)))
        .route("/charges", post(answer(posts)));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tasks.spawn(async move { axum::serve(listener, app).await.expect("a server runs for ever") });
    Ok(url)
}
