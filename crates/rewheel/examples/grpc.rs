//! Calls an unreliable gRPC service over a channel with a retry.
//!
//! Run it with `cargo run -p rewheel --example grpc --features axum,tonic`.

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use rewheel::http::CallContextLayer;
use rewheel::{Pipeline, Retry, millis, seconds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{ServiceBuilder, service_fn};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example prints its result")]
async fn main() -> Result<(), Failure> {
    println!("{}", run().await?);
    Ok(())
}

/// Makes a call; returns the answer.
pub async fn run() -> Result<String, Failure> {
    let mut server = JoinSet::new();
    let url = start(&mut server).await?;
    let policies = Pipeline::new()
        .timeout(seconds(30))
        .retry(Retry::exponential(millis(1)).attempts_max(4))
        .attempt_timeout(seconds(10));
    let channel = Channel::from_shared(url)?.connect().await?;
    let channel = ServiceBuilder::new().layer(rewheel::tonic::layer(&policies)).service(channel);

    // A generated client does the same: `OrdersClient::new(channel).find(…)`.
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let path = "/shop.Orders/Find".parse()?;
    let codec = ProstCodec::<String, String>::default();
    let response = client.unary(Request::new("order 17".to_owned()), path, codec).await?;
    Ok(response.into_inner())
}

/// Starts a server whose first two answers are failures.
async fn start(tasks: &mut JoinSet<()>) -> Result<String, Failure> {
    let calls = Arc::new(AtomicU32::new(0));
    // A generated server makes these routes: `Routes::new(OrdersServer::new(…)).into_axum_router()`.
    let find = async |State(calls): State<Arc<AtomicU32>>, request: axum::extract::Request| {
        let answer = service_fn(move |request: Request<String>| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            async move {
                match call {
                    0 | 1 => Err(Status::unavailable("the server starts")),
                    _ => Ok(Response::new(format!("found {}", request.into_inner()))),
                }
            }
        });
        let codec = ProstCodec::<String, String>::default();
        tonic::server::Grpc::new(codec).unary(answer, request).await.map(axum::body::Body::new)
    };
    let app = Router::new()
        .route("/shop.Orders/Find", post(find))
        .with_state(calls)
        .layer(CallContextLayer::new());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tasks.spawn(async move { axum::serve(listener, app).await.expect("a server runs for ever") });
    Ok(url)
}
