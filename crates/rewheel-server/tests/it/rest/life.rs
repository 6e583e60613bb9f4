//! Tests start and shutdown of the server.

use super::served::{config, served};
use rewheel_server::{ServeError, Server, ServerEvent};
use std::net::SocketAddr;

#[tokio::test]
async fn a_server_that_runs_is_live_and_ready() {
    served(config(), async |api| {
        assert_eq!(api.get("/livez").await.status, 200);
        assert_eq!(api.get("/readyz").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn no_other_machine_can_reach_it() {
    for address in [[0, 0, 0, 0], [192, 168, 0, 1]] {
        let mut config = config();
        config.server.listen = SocketAddr::from((address, 0));
        let error = Server::bind(config).await.unwrap_err();
        assert!(matches!(error, ServeError::BeyondLoopback(_)), "{error}");
        assert!(error.to_string().contains("without tokens"));
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let first = Server::bind(config()).await.unwrap();
    let mut second = config();
    second.server.listen = first.address();
    let error = Server::bind(second).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {}", first.address()));
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_ends_it() {
    let mut config = config();
    config.store.url = "mongodb://somewhere".to_owned();
    let server = Server::bind(config).await.unwrap();
    let error = server.run(std::future::pending(), |_: &ServerEvent| {}).await.unwrap_err();
    assert!(error.to_string().contains("sqlite://rewheel.db"), "{error}");
}

#[tokio::test]
async fn jobs_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    config.store.url = format!("sqlite://{}", folder.path().join("rewheel.db").display());
    let id = std::cell::RefCell::new(String::new());
    served(config.clone(), async |api| {
        *id.borrow_mut() = api.submit(r#","key":"k""#).await;
    })
    .await;
    served(config, async |api| {
        let shown = api.get(&format!("/v1/jobs/{}", id.borrow())).await;
        assert_eq!((shown.status, &shown.body["state"]), (200, &"scheduled".into()));
    })
    .await;
}
