//! Tests URLs with several hosts, and servers that accept no writes.

use super::proxy::Proxy;
use super::support::{Database, Node, address, soon, told, url_by};
use rewheel_core::store::{Insert, StoreError};
use rewheel_stores::PostgresStore;
use rewheel_testkit::{Schema, millis};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Returns the URL of a schema on several hosts and ports.
fn url_on(schema: &Schema, ports: &[u16]) -> String {
    let url = url_by(schema, "HOSTS", 1, "pool_max=2");
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    url.replace("HOSTS:1", &hosts.join(","))
}

/// Returns a port where nothing listens.
async fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn hosts_that_refuse_or_never_answer_are_passed_over() {
    let schema = Schema::fresh();
    // It accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = silent.local_addr().map(|at| (at.port(), silent)).expect("an address");
    let (_, port) = address();
    let url = url_on(&schema, &[closed_port().await, silent.0, port]);
    let node = soon("it opens", Node::open(&url)).await;
    let holder = node.holder().await;
    let job = node.submit("a").await;
    assert_eq!(node.claim_only(holder, "a").await.job.id, job);
}

/// The path to the first host breaks without a word. As soon as one call has found the second, no call waits for the first any more.
#[tokio::test]
async fn calls_that_wait_for_a_lost_host_end_when_another_one_is_found() {
    let schema = Schema::fresh();
    let (host, port) = address();
    let proxy = Proxy::start(&host, port).await;
    let node = Node::open(&url_on(&schema, &[proxy.port, port])).await;
    let (holder, store) = (node.holder().await, &node.subject.store);
    store.books().await.expect("by the first host");
    proxy.silence();
    proxy.refuse();
    let lost = async {
        let lost = soon("the lost call ends", store.books()).await;
        assert!(lost.expect_err("the path is broken").is_transient());
    };
    let found = async {
        // The heartbeat gives up first.
        let beat = timeout(millis(200), store.renew(holder)).await;
        assert!(beat.is_err(), "it was answered: {beat:?}");
        soon("a heartbeat", store.renew(holder)).await.expect("by the second host");
    };
    tokio::join!(lost, found);
    soon("books", store.books()).await.expect("by the second host");
}

#[tokio::test]
async fn the_error_names_every_host() {
    let schema = Schema::fresh();
    let ports = [closed_port().await, closed_port().await];
    let error = PostgresStore::open(&url_on(&schema, &ports)).await.expect_err("no server");
    assert!(error.is_transient(), "{error:?}");
    let text = told(&error);
    for port in ports {
        assert!(text.contains(&format!("127.0.0.1:{port}: Connection refused")), "{text}");
    }
    assert!(text.contains("hosts and ports in the store's URL"), "{text}");
}

/// As a standby does, the database refuses writes: a connection that was made then is not kept.
#[tokio::test]
async fn a_connection_to_a_server_that_accepts_no_writes_is_not_used_again() {
    let database = Database::fresh("").await;
    let node = Node::open(&database.url()).await;
    node.submit("a").await;
    let person = database.connect().await;
    let set = |value: &str| format!("ALTER DATABASE {} {value}", database.name());
    person.batch_execute(&set("SET default_transaction_read_only = on")).await.expect("set");
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    person.batch_execute(end).await.expect("ended");
    let error = first_refused(&node).await;
    assert!(
        told(&error).contains("SQLSTATE 25006): the server is a standby, or read-only"),
        "{error}"
    );
    person.batch_execute(&set("RESET default_transaction_read_only")).await.expect("reset");
    node.insert(&[node.job("a")]).await;
    drop(node);
    database.drop().await;
}

/// With several hosts, such a server is not even connected to.
#[tokio::test]
async fn a_server_that_accepts_no_writes_is_not_the_primary() {
    let database = Database::fresh("").await;
    Node::open(&database.url()).await;
    let person = database.connect().await;
    let set = format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name());
    person.batch_execute(&set).await.expect("set");
    let url = database.url();
    let at = address();
    let both = url.replace(&format!("{}:{}", at.0, at.1), &format!("{0}:{1},{0}:{1}", at.0, at.1));
    let error = PostgresStore::open(&both).await.expect_err("no writes");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let text = told(&error);
    assert_eq!(text.matches(": a standby, or read-only").count(), 2, "{text}");
    database.drop().await;
}

/// Returns the error of the first write that is refused.
async fn first_refused(node: &Node) -> StoreError {
    for _ in 0..20 {
        let jobs = [node.job("a")];
        let answer = node.subject.store.insert(&Insert::new(&jobs)).await;
        if let Err(error) = answer
            && told(&error).contains("25006")
        {
            return error;
        }
    }
    panic!("writes are not refused");
}
