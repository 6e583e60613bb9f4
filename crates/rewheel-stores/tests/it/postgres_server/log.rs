//! Says in the log why a connection was lost.

use super::support::{Node, counted, named, soon};
use rewheel_testkit::{Schema, ThreadLog};

#[tokio::test]
async fn a_connection_that_the_server_ends_is_logged_with_the_cause() {
    ThreadLog::install(tracing::Level::WARN);
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "pool_max=3")).await;
    node.subject.store.books().await.expect("it works");
    let visitor = schema.connect().await;
    let end = format!(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = '{}'",
        schema.name()
    );
    assert!(counted(&visitor, &end).await >= 1, "there was nothing to end");
    let told = async {
        while ThreadLog::is_empty() {
            tokio::task::yield_now().await;
        }
    };
    soon("a line in the log", told).await;
    let lines = ThreadLog::take();
    assert!(lines.contains("connection to PostgreSQL lost"), "{lines}");
    assert!(lines.contains("FATAL: terminating connection"), "{lines}");
    assert!(lines.contains("(SQLSTATE 57P01)"), "{lines}");
    assert!(!lines.contains("db error"), "{lines}");
}
