//! Tests that nodes learn at once about changes by other nodes.

use super::support::{Node, named, soon, until};
use rewheel_core::store::{Store, StoreChange, Watch};
use rewheel_testkit::{Schema, lane, millis};
use tokio_postgres::Client;

/// Waits until so many nodes listen, and one of them has received all notifications so far.
pub(crate) async fn listening(
    schema: &Schema,
    node: &Node,
    visitor: &Client,
    nodes: i64,
) -> Box<dyn Watch> {
    // The last statement of such a connection.
    let listens = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE (query = 'LISTEN \"{0}\"' OR query LIKE 'NOTIFY \"{0}\"%') \
         AND state = 'idle'",
        schema.name()
    );
    until(visitor, &listens, nodes).await;
    let mut watch = node.store.watch();
    while tokio::time::timeout(millis(100), watch.changed()).await.is_ok() {}
    watch
}

#[tokio::test]
async fn a_job_of_one_node_wakes_another() {
    let schema = Schema::fresh();
    let one = Node::of(&schema).await;
    one.kinds(&["a"]).await;
    let other = Node::of(&schema).await;
    let visitor = schema.connect().await;
    let mut watch = listening(&schema, &other, &visitor, 2).await;
    one.submit("a").await;
    let change = soon("the other hears of the job", watch.changed()).await;
    // Only of its lane: the other reads nothing else.
    assert_eq!(change, StoreChange::from(&lane("a")));
    let unreported = other.store.unreported_changes().await.unwrap();
    one.submit("a").await;
    assert_eq!(other.store.unreported_changes().await.unwrap(), unreported, "it listens");
}

#[tokio::test]
async fn a_word_in_sql_wakes() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let visitor = schema.connect().await;
    let mut watch = listening(&schema, &node, &visitor, 1).await;
    let wake = format!("SELECT {}.rewheel_wake()", schema.name());
    visitor.batch_execute(&wake).await.expect("told");
    let change = soon("it hears of that", watch.changed()).await;
    assert_eq!(change, StoreChange::AnyLane, "the call named no lane");
}

#[tokio::test]
async fn a_listener_whose_connection_was_ended_hears_again() {
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "")).await;
    let visitor = schema.connect().await;
    let mut watch = listening(&schema, &node, &visitor, 1).await;

    let end = format!(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = '{}' \
         AND query LIKE 'LISTEN%'",
        schema.name()
    );
    until(&visitor, &end, 1).await;
    soon("it looks, since it may have missed something", watch.changed()).await;
    let mut watch = listening(&schema, &node, &visitor, 1).await;
    let wake = format!("SELECT {}.rewheel_wake()", schema.name());
    visitor.batch_execute(&wake).await.expect("told");
    soon("it hears again", watch.changed()).await;
}

#[tokio::test]
async fn a_closed_store_listens_no_more() {
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "")).await;
    let visitor = schema.connect().await;
    listening(&schema, &node, &visitor, 1).await;
    node.store.close().await.expect("it closes");
    let connections = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'",
        schema.name()
    );
    until(&visitor, &connections, 0).await;
}
