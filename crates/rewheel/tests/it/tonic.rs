//! gRPC calls over a real connection, behind a proxy with faults.

#![expect(clippy::unwrap_used, reason = "test code")]

use crate::net::{Fault, Proxy, Server};
use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::HeaderMap;
use axum::routing::post;
use rewheel::http::{CallContextLayer, HttpPipelineLayer};
use rewheel::{
    CallContext, Category, Class, Classify, ManualClock, Pipeline, Retries, Retry, millis, seconds,
};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{Layer, service_fn};

type Seen = Arc<Mutex<Vec<HeaderMap>>>;

/// A server that fails with these statuses, and then answers with what it got.
async fn server(failures: Vec<Status>) -> (Server, Seen) {
    let seen = Seen::default();
    let failures = Arc::new(failures);
    let echo = async move |State(seen): State<Seen>, request: HttpRequest| {
        let call = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.headers().clone());
            seen.len() - 1
        };
        let failure = failures.get(call).cloned();
        let answer = service_fn(move |request: Request<String>| {
            let answer = match failure.clone() {
                Some(failure) => Err(failure),
                None => Ok(Response::new(request.into_inner())),
            };
            async move { answer }
        });
        let codec = ProstCodec::<String, String>::default();
        tonic::server::Grpc::new(codec).unary(answer, request).await.map(axum::body::Body::new)
    };
    let app = Router::new().route("/test.Echo/Echo", post(echo)).with_state(Arc::clone(&seen));
    (Server::start(app.layer(CallContextLayer::new())).await, seen)
}

fn policies() -> Pipeline {
    Pipeline::new()
        .timeout(seconds(300))
        .retry(Retry::fixed(millis(1)).attempts_max(3))
        .attempt_timeout(seconds(60))
}

async fn call(url: String, layer: HttpPipelineLayer, text: &str) -> Result<String, Status> {
    let channel = Channel::from_shared(url).unwrap().connect_lazy();
    let mut client = tonic::client::Grpc::new(layer.layer(channel));
    client.ready().await.unwrap();
    let path = "/test.Echo/Echo".parse().unwrap();
    let codec = ProstCodec::<String, String>::default();
    client.unary(Request::new(text.to_owned()), path, codec).await.map(Response::into_inner)
}

#[tokio::test]
async fn a_call_is_repeated_with_the_same_message() {
    let (server, seen) = server(vec![Status::unavailable("a"), Status::aborted("b")]).await;
    let answer = call(server.url(""), rewheel::tonic::layer(&policies()), "hello").await;
    assert_eq!(answer.unwrap(), "hello");
    let seen = seen.lock().unwrap();
    let attempts: Vec<_> = seen.iter().map(|headers| &headers["rewheel-attempt"]).collect();
    assert_eq!(attempts, ["1", "2", "3"]);
    assert!(seen.iter().all(|headers| headers["rewheel-retry"] == "caller"));
    assert!(seen.iter().all(|headers| headers.contains_key("grpc-timeout")));
}

#[tokio::test]
async fn the_last_status_is_returned() {
    let (server, seen) = server(vec![Status::unavailable("down"); 9]).await;
    let status = call(server.url(""), rewheel::tonic::layer(&policies()), "").await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "down"));
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_push_back_without_a_delay_ends_the_call() {
    let mut status = Status::unavailable("do not come back");
    let stop = MetadataValue::from_static("-1");
    status.metadata_mut().insert("grpc-retry-pushback-ms", stop);
    assert_eq!(status.classify(), Class::stop(Category::Transient).with_code("unavailable"));
    let (server, seen) = server(vec![status; 9]).await;
    call(server.url(""), rewheel::tonic::layer(&policies()), "").await.unwrap_err();
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_above_the_limit_arrives_and_is_not_repeated() {
    let (server, seen) = server(vec![Status::unavailable("down")]).await;
    let layer = rewheel::tonic::layer(&policies()).body_bytes_max(100);
    let long = "x".repeat(10_000);
    let status = call(server.url(""), layer.clone(), &long).await.unwrap_err();
    assert_eq!((status.code(), seen.lock().unwrap().len()), (Code::Unavailable, 1));
    assert_eq!(call(server.url(""), layer, &long).await.unwrap(), long);
}

#[tokio::test]
async fn faults_of_the_network_are_repeated() {
    let (server, _) = server(Vec::new()).await;
    for fault in [Fault::Reset, Fault::CutAfter(0), Fault::Garble] {
        let proxy = Proxy::to(server.address, &[fault]).await;
        let answer = call(proxy.url(""), rewheel::tonic::layer(&policies()), "hello").await;
        assert_eq!(answer.unwrap(), "hello", "{fault:?}");
        assert_eq!(proxy.connections(), 2, "{fault:?}");
    }
}

#[tokio::test]
async fn a_call_that_hangs_is_cut() {
    let (server, _) = server(Vec::new()).await;
    let mut proxy = Proxy::to(server.address, &[Fault::Hang]).await;
    let clock = ManualClock::new();
    let once = Pipeline::new().attempt_timeout(seconds(60)).clock(&clock);
    let call = call(proxy.url(""), rewheel::tonic::layer(&once), "hello");
    let time = async {
        proxy.wait_for(1).await;
        clock.advance(seconds(60));
    };
    let (answer, ()) = tokio::join!(call, time);
    assert!(format!("{:?}", answer.unwrap_err()).contains("Timeout"));
}

#[tokio::test]
async fn a_server_rejects_a_call_after_its_deadline() {
    let (server, seen) = server(Vec::new()).await;
    let late = CallContext::new(1, Retries::Callee).with_deadline(SystemTime::UNIX_EPOCH);
    let channel = Channel::from_shared(server.url("")).unwrap().connect_lazy();
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let mut request = Request::new(String::new());
    for (name, value) in late.headers() {
        request.metadata_mut().insert(name, value.parse().unwrap());
    }
    let path = "/test.Echo/Echo".parse().unwrap();
    let codec = ProstCodec::<String, String>::default();
    let status = client.unary(request, path, codec).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(seen.lock().unwrap().is_empty());
}
