//! Tests that dead rows of a busy node are removed without autovacuum.

use super::support::{Database, Node, counted, until};
use rewheel_core::HolderId;
use rewheel_core::store::Settlement;
use rewheel_stores::PostgresOptions;

/// Counts the vacuums of the table of live jobs.
const VACUUMS: &str = "SELECT pg_stat_get_vacuum_count('rewheel.jobs'::regclass)";

/// Returns a node in a database of its own: transactions of other tests would keep the dead rows.
async fn node(database: &Database, vacuumed_after: Option<u64>) -> (Node, HolderId) {
    let mut options = PostgresOptions::parse(&database.url()).expect("a URL");
    options.vacuumed_after = vacuumed_after;
    let node = Node::with(options).await;
    node.kinds(&["a"]).await;
    let holder = node.holder().await;
    let off = "ALTER TABLE rewheel.jobs SET (autovacuum_enabled = off)";
    database.connect().await.batch_execute(off).await.expect("autovacuum is off");
    (node, holder)
}

async fn run(node: &Node, holder: HolderId, jobs: usize) {
    node.insert(&node.jobs("a", jobs)).await;
    let leased = node.claim(holder, &["a"], jobs).await;
    assert_eq!(leased.len(), jobs);
    let settlements: Vec<Settlement> =
        leased.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    node.subject.store.settle(holder, &settlements).await.expect("settled");
}

#[tokio::test]
async fn a_busy_node_vacuums_the_table_of_live_jobs() {
    let database = Database::fresh("").await;
    let (busy, holder) = node(&database, Some(1_000)).await;
    let client = database.connect().await;
    run(&busy, holder, 499).await;
    assert_eq!(counted(&client, VACUUMS).await, 0, "998 rows are not enough");
    run(&busy, holder, 1).await;
    let vacuumed = "SELECT least(1, pg_stat_get_vacuum_count('rewheel.jobs'::regclass))";
    until(&client, vacuumed, 1).await;
    // The claim and the result of each job left a row.
    let few = "SELECT (pg_stat_get_dead_tuples('rewheel.jobs'::regclass) < 100)::int::bigint";
    until(&client, few, 1).await;
    drop((busy, client));
    database.drop().await;
}

#[tokio::test]
async fn a_node_that_must_not_vacuum_leaves_the_table_to_autovacuum() {
    let database = Database::fresh("").await;
    let (quiet, holder) = node(&database, None).await;
    run(&quiet, holder, 1_000).await;
    let (busy, other) = node(&database, Some(1)).await;
    let client = database.connect().await;
    assert_eq!(counted(&client, VACUUMS).await, 0);
    // The first vacuum is that of the other node; one of this node would have begun before.
    run(&busy, other, 1).await;
    until(&client, VACUUMS, 1).await;
    drop((quiet, busy, client));
    database.drop().await;
}

/// A store of a schema of its own vacuums its own table.
#[tokio::test]
async fn the_table_of_the_own_schema_is_vacuumed() {
    let database = Database::fresh("").await;
    let url = format!(
        "{}{}schema=other",
        database.url(),
        if database.url().contains('?') { '&' } else { '?' }
    );
    let mut options = PostgresOptions::parse(&url).expect("a URL");
    options.vacuumed_after = Some(1);
    let node = Node::with(options).await;
    node.kinds(&["a"]).await;
    let holder = node.holder().await;
    run(&node, holder, 1).await;
    let client = database.connect().await;
    let vacuumed = "SELECT least(1, pg_stat_get_vacuum_count('other.jobs'::regclass))";
    until(&client, vacuumed, 1).await;
    drop((node, client));
    database.drop().await;
}
