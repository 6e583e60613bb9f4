//! Tests with a publication of all tables, as logical replication needs it.

use super::support::{Database, Node};
use rewheel_core::Retain;
use rewheel_core::store::{Settled, Settlement, Store};
use rewheel_testkit::seconds;
use std::time::Duration;

/// PostgreSQL refuses updates and deletes in a published table whose rows it cannot identify.
#[tokio::test]
async fn a_publication_of_all_tables_refuses_nothing() {
    let database = Database::fresh("").await;
    let node = Node::open(&database.url()).await;
    let visitor = database.connect().await;
    visitor.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES").await.expect("published");
    let without = "SELECT coalesce(string_agg(relname, ', '), '') FROM pg_class
                    WHERE relnamespace = 'rewheel'::regnamespace AND relkind = 'r' AND relreplident <> 'f'
                      AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary)";
    let without: String = visitor.query_one(without, &[]).await.expect("tables").get(0);
    assert_eq!(without, "");

    node.kinds(&["a"]).await;
    let holder = node.holder().await;
    let fail_once = async || {
        node.submit("a").await;
        let lease = node.claim_only(holder, "a").await.lease();
        node.settle(holder, &node.retry(lease, Duration::ZERO, false)).await;
        node.claim_only(holder, "a").await.lease()
    };
    let gone = Retain { job: Duration::ZERO, key: Duration::ZERO };
    let dropped = Settlement { keep: gone, ..Settlement::succeed(fail_once().await) };
    assert!(matches!(node.settle(holder, &dropped).await, Settled::Applied(_)));
    let kept = Retain { job: seconds(60), key: seconds(60) };
    let kept = Settlement { keep: kept, ..Settlement::succeed(fail_once().await) };
    assert!(matches!(node.settle(holder, &kept).await, Settled::Applied(_)));
    node.clock.advance(seconds(61));
    assert_eq!(node.prune_all().await.finished, 1);
    node.balance().await;
    node.store.close().await.expect("it closes");
    drop((node, visitor));
    database.drop().await;
}
