//! Tests the errors when a store cannot be opened.

use super::support::{address, told, url_by};
use rewheel_core::store::StoreError;
use rewheel_stores::PostgresStore;
use rewheel_testkit::Schema;
use tokio::net::TcpListener;

async fn refused(url: &str) -> StoreError {
    PostgresStore::open(url).await.expect_err(url)
}

#[tokio::test]
async fn a_database_that_does_not_exist() {
    let schema = Schema::fresh();
    let (host, port) = address();
    let url = url_by(&schema, &host, port, "");
    let (base, settings) = url.split_once('?').expect("settings");
    let (server, _) = base.rsplit_once('/').expect("a database");
    let error = refused(&format!("{server}/no_such_database?{settings}")).await;
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    let text = told(&error);
    assert!(text.contains("create it") && text.contains("no_such_database"), "{text}");
}

#[tokio::test]
async fn a_port_without_a_listener() {
    let schema = Schema::fresh();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let error = refused(&url_by(&schema, "127.0.0.1", port, "")).await;
    assert!(error.is_transient(), "{error:?}");
    let text = told(&error);
    assert!(text.contains("host and port") && text.contains("refused"), "{text}");
}

#[tokio::test]
async fn a_host_that_does_not_answer() {
    let schema = Schema::fresh();
    // This server accepts connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let error = refused(&url_by(&schema, "127.0.0.1", port, "")).await;
    assert!(error.is_transient(), "{error:?}");
    let text = told(&error);
    assert!(text.contains("in time") && text.contains("reachable"), "{text}");
}

#[tokio::test]
async fn a_host_whose_name_is_not_known() {
    let schema = Schema::fresh();
    let error = refused(&url_by(&schema, "no-such-host.invalid", 5432, "")).await;
    assert!(error.is_transient(), "{error:?}");
    assert!(told(&error).contains("host and port"), "{}", told(&error));
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a test that did not run must not look as if it had")]
async fn a_password_that_is_wrong() {
    let schema = Schema::fresh();
    let (host, port) = address();
    let url = url_by(&schema, &host, port, "");
    let at = url.find('@').expect("a user");
    let user = url["postgres://".len()..at].split(':').next().expect("a user").to_owned();
    let url = format!("postgres://{user}:wrong{}", &url[at..]);
    match PostgresStore::open(&url).await {
        Ok(_) => eprintln!("skipped: the server lets everybody in"),
        Err(error) => {
            assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
            assert!(told(&error).contains("password"), "{}", told(&error));
        }
    }
}

#[tokio::test]
async fn a_user_that_does_not_exist() {
    let schema = Schema::fresh();
    let (host, port) = address();
    let url = url_by(&schema, &host, port, "");
    let at = url.find('@').expect("a user");
    let error = refused(&format!("postgres://unknown_user{}", &url[at..])).await;
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    assert!(told(&error).contains("check user"), "{}", told(&error));
}
