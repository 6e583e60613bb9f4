//! Tests a store whose database is published for logical replication.

use super::support::{Database, Node};
use rewheel_core::store::{Settled, Settlement, Store};
use rewheel_core::{Retain, State};
use rewheel_testkit::seconds;
use std::time::Duration;

/// The server rejects updates and deletes in a published table whose rows it cannot identify.
/// Of a partitioned table, the partitions are published.
#[tokio::test]
async fn every_table_has_a_replica_identity() {
    let database = Database::fresh("").await;
    let node = Node::open(&database.url()).await;
    let visitor = database.connect().await;
    let without = "SELECT relname::text FROM pg_class
         WHERE relnamespace = 'rewheel'::regnamespace AND relkind = 'r' AND relreplident <> 'f'
           AND NOT EXISTS (SELECT FROM pg_index
                            WHERE indrelid = pg_class.oid
                              AND CASE relreplident WHEN 'd' THEN indisprimary WHEN 'i' THEN indisreplident END)";
    let rows = visitor.query(without, &[]).await.expect("tables");
    let without: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(without, Vec::<String>::new());
    drop((node, visitor));
    database.drop().await;
}

#[tokio::test]
async fn jobs_run_while_every_table_is_published() {
    let database = Database::fresh("").await;
    let node = Node::open(&database.url()).await;
    let publish = "CREATE PUBLICATION everything FOR ALL TABLES";
    database.connect().await.batch_execute(publish).await.expect("a publication");
    node.kinds(&["a"]).await;
    node.insert(&node.jobs("a", 3)).await;
    let holder = node.holder().await;
    // Each fails once, which leaves a record. Then one is kept, one is not, and one becomes a dead letter.
    for leased in node.claim(holder, &["a"], 10).await {
        let settled = node.settle(holder, &node.retry(leased.lease(), Duration::ZERO, false)).await;
        assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
    }
    let leased = node.claim(holder, &["a"], 10).await;
    let [kept, gone, dead] = [0, 1, 2].map(|nth| leased[nth].lease());
    let keep = Retain { job: seconds(10), key: Duration::ZERO };
    let nothing = Retain { job: Duration::ZERO, key: Duration::ZERO };
    let settlements = [
        Settlement { keep, ..Settlement::succeed(kept) },
        Settlement { keep: nothing, ..Settlement::succeed(gone) },
        node.dead(dead),
    ];
    let settled = node.subject.store.settle(holder, &settlements).await.expect("settled");
    assert!(settled.iter().all(|one| matches!(one, Settled::Applied(_))), "{settled:?}");
    node.clock.advance(seconds(11));
    assert_eq!(node.prune_all().await.finished, 1);
    assert_eq!(node.get(dead.job).await.state(), State::Dead);
    node.balance().await;
    node.store.close().await.expect("it closes");
    drop(node);
    database.drop().await;
}
