//! Counts the calls that a chain of three services makes when the last one is down, with and without the call context.
//!
//! Run it with `cargo run -p rewheel --example amplification --features axum,reqwest`.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use rewheel::http::CallContextLayer;
use rewheel::reqwest::{Announce, Client};
use rewheel::{Retry, millis};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Each service retries twice.
const RETRY: Retry = Retry::fixed(millis(1)).attempts_max(3);

/// Whether services tell each other who retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    Passed,
    NotPassed,
}

#[tokio::main]
async fn main() {
    let without = calls_of_one_request(Context::NotPassed).await;
    let with = calls_of_one_request(Context::Passed).await;
    #[expect(clippy::print_stdout, reason = "an example prints its result")]
    {
        println!("calls to the shop, the orders and the stock for one request of a client");
        println!("without the call context: {without:?}");
        println!("with the call context:    {with:?}");
    }
}

/// A client calls the shop, the shop calls the orders, and the orders call the stock, which is down. Returns how often each was called.
pub async fn calls_of_one_request(context: Context) -> [u32; 3] {
    let mut tasks = JoinSet::new();
    let counts = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
    let stock = start(&mut tasks, service(&counts[2], None, context)).await;
    let orders = start(&mut tasks, service(&counts[1], Some(stock), context)).await;
    let shop = start(&mut tasks, service(&counts[0], Some(orders), context)).await;

    let response = client(context).get(shop).send().await.expect("a response, also of a failure");
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    counts.map(|count| count.load(Ordering::Relaxed))
}

/// A service that calls another one; without one it is down.
fn service(count: &Arc<AtomicU32>, next: Option<String>, context: Context) -> Router {
    let (count, client) = (Arc::clone(count), client(context));
    let handler = async move || {
        count.fetch_add(1, Ordering::Relaxed);
        match next {
            Some(next) if client.get(&next).send().await.is_ok_and(is_success) => StatusCode::OK,
            Some(_) | None => StatusCode::SERVICE_UNAVAILABLE,
        }
    };
    let app = Router::new().route("/", get(handler));
    match context {
        Context::Passed => app.layer(CallContextLayer::new()),
        Context::NotPassed => app,
    }
}

fn is_success(response: reqwest::Response) -> bool {
    response.status().is_success()
}

fn client(context: Context) -> Client {
    let announce = match context {
        Context::Passed => Announce::Always,
        Context::NotPassed => Announce::Never,
    };
    let http =
        reqwest::Client::builder().no_proxy().build().expect("a client without TLS settings");
    // The breaker and the budget would hide what retries alone do.
    let builder = Client::builder(http).retry(RETRY).circuit_breaker(None).retry_budget(None);
    builder.announce(announce).build()
}

/// Starts a server, and returns its URL.
async fn start(tasks: &mut JoinSet<()>, app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    tasks.spawn(async move { axum::serve(listener, app).await.expect("a server runs for ever") });
    format!("http://{address}/")
}
