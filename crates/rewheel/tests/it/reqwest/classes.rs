//! How errors of reqwest are classified, each produced by a real connection.

use crate::net::{Fault, Proxy, Server, nowhere};
use axum::Router;
use axum::routing::get;
use rewheel::{Category, Class, Classify};
use std::time::Duration;

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap()
}

async fn server() -> Server {
    let app = Router::new()
        .route("/", get(|| async { "x".repeat(1_000) }))
        .route("/circle", get(|| async { axum::response::Redirect::to("/circle") }));
    Server::start(app).await
}

/// Returns the class of the error of a request through a proxy with this fault.
async fn behind(
    fault: Fault,
    change: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
) -> Class {
    let server = server().await;
    let proxy = Proxy::to(server.address, &[fault]).await;
    let request = change(http().get(proxy.url("/")));
    let result = async { request.send().await?.error_for_status()?.json::<u32>().await }.await;
    result.unwrap_err().classify()
}

#[tokio::test]
async fn a_port_without_a_server_is_a_failed_connection() {
    let error = http().get(format!("http://{}/", nowhere())).send().await.unwrap_err();
    assert_eq!(error.classify(), Class::retry(Category::Io).with_code("connect"));
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_response_is_a_failed_request() {
    let broken = Class::retry(Category::Io).with_code("request");
    assert_eq!(behind(Fault::CutAfter(0), |request| request).await, broken);
    assert_eq!(behind(Fault::CutAfter(10), |request| request).await, broken);
    assert_eq!(behind(Fault::Garble, |request| request).await, broken);
}

#[tokio::test]
async fn a_body_that_breaks_off_and_a_body_that_is_not_json_are_told_apart() {
    let cut = behind(Fault::CutAfter(200), |request| request).await;
    assert_eq!(cut, Class::retry(Category::Io).with_code("body"));
    let not_json = behind(Fault::None, |request| request).await;
    assert_eq!(not_json, Class::stop(Category::Rejected).with_code("decode"));
}

#[tokio::test]
async fn no_answer_in_time_is_a_timeout() {
    let class = behind(Fault::Hang, |request| request.timeout(Duration::from_millis(1))).await;
    assert_eq!(class.category, Category::Timeout);
}

#[tokio::test]
async fn a_circle_of_redirects_and_a_wrong_url_are_not_retried() {
    let server = server().await;
    let error = http().get(server.url("/circle")).send().await.unwrap_err();
    assert_eq!(error.classify(), Class::stop(Category::Rejected).with_code("redirect"));
    let error = http().get("http://").send().await.unwrap_err();
    assert_eq!(error.classify(), Class::stop(Category::Rejected).with_code("builder"));
}

#[tokio::test]
async fn a_status_is_classified_as_a_status() {
    let server = server().await;
    let error = http().get(server.url("/none")).send().await.unwrap().error_for_status();
    assert_eq!(error.unwrap_err().classify(), Class::of_status(404));
}
