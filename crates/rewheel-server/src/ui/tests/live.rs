//! Tests the stream that tells open pages about changes.

use super::browser::{ADMIN, Site};
use axum::body::{Body, BodyDataStream};
use axum::http::{Method, Request};
use axum::response::Response;
use futures_util::StreamExt;
use tower::ServiceExt;

async fn listen(site: &Site, session: &str) -> Response {
    let request = Request::get("/ui/live").header("cookie", format!("rewheel_session={session}"));
    let request = request.body(Body::empty()).unwrap();
    site.router.clone().oneshot(request).await.unwrap()
}

async fn next(stream: &mut BodyDataStream) -> Option<String> {
    let bytes = stream.next().await?.unwrap();
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn pages_hear_of_changes_and_of_the_end_of_the_server() {
    let site = Site::closed().await;
    let session = site.signed_in(ADMIN).await.cookies["rewheel_session"].clone();
    let response = listen(&site, &session).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut stream = response.into_body().into_data_stream();
    let body = r#"{"kind":"mail","payload":{}}"#;
    site.rest(ADMIN, Method::POST, "/v1/jobs", body).await;
    assert!(next(&mut stream).await.unwrap().contains("event: changed"));
    assert!(next(&mut stream).await.unwrap().contains("event: tick"));
    // Also without an event of this node, the page is loaded again: other nodes and kinds change, too.
    assert!(next(&mut stream).await.unwrap().contains("event: changed"));
    assert!(next(&mut stream).await.unwrap().contains("event: tick"));
    site.app.stop();
    assert!(next(&mut stream).await.unwrap().contains("event: bye"));
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_has_three_streams_that_end_with_it() {
    let site = Site::closed().await;
    let token = site.token(r#"{"name":"ops","roles":["read"]}"#).await;
    let session = site.signed_in(&token).await.cookies["rewheel_session"].clone();
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(listen(&site, &session).await.into_body().into_data_stream());
    }
    assert_eq!(listen(&site, &session).await.status(), 204);
    streams.pop();
    assert_eq!(listen(&site, &session).await.status(), 200);
    site.rest(ADMIN, Method::POST, "/v1/tokens/ops/revoke", "").await;
    assert!(next(&mut streams[0]).await.unwrap().contains("event: signed-out"));
    assert_eq!(next(&mut streams[0]).await, None);
}
