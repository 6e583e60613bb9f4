//! Tests of transactions that keep a bin of finished jobs in use.

use super::bins::{MINUTE, SHORT, Scene};
use super::support::{Database, Node, counted, soon, until};
use rewheel_core::Retain;
use rewheel_core::store::{Settlement, Store};
use rewheel_stores::PostgresOptions;
use rewheel_testkit::{Schema, seconds};

/// An operator learns which transaction keeps a bin for too long.
#[tokio::test]
async fn a_bin_that_stays_in_use_is_a_risk() {
    let scene = Scene::new().await;
    let node = &scene.node;
    let risk = async || {
        let risks = node.store.risks().await.expect("risks");
        risks.into_iter().find(|risk| risk.name == "finished_bins").map(|risk| risk.message)
    };
    scene.fill(20, SHORT).await;
    let reader = scene.schema.connect().await;
    let read = format!(
        "SET application_name = 'report'; BEGIN; SELECT count(*) FROM {}.finished",
        scene.schema.name()
    );
    reader.batch_execute(&read).await.expect("a report");
    let pid = counted(&reader, "SELECT pg_backend_pid()::bigint").await;
    scene.wait(SHORT + 2 * MINUTE);
    node.prune_all().await;
    assert_eq!(risk().await, None, "a report may take some minutes");
    scene.wait(15 * MINUTE);
    node.prune_all().await;
    let message = risk().await.expect("a risk");
    let who = format!("process {pid} (report, idle in transaction) keeps it in use");
    assert!(message.contains(&who), "{message}");
    reader.batch_execute("COMMIT").await.expect("the report ends");
    let message = risk().await.expect("a risk");
    assert!(message.contains("no transaction uses it now"), "{message}");
    node.prune_all().await;
    assert_eq!(risk().await, None);
}

/// All connections are busy: a settle that has committed does not wait for one to open a bin. The next settle opens it.
#[tokio::test]
async fn a_settle_does_not_wait_for_a_connection_to_open_a_bin() {
    let schema = Schema::fresh();
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    (options.binned_min, options.pool_max) = (1, 1);
    // Longer than the patience of this test.
    options.statement_timeout = seconds(600);
    let node = Node::with(options).await;
    let (holder, visitor) = (node.holder().await, schema.connect().await);
    let keep = Retain { job: SHORT, key: SHORT };
    let bins = format!("SELECT count(*) FROM {}.bins", schema.name());
    node.submit("a").await;
    node.submit("a").await;
    let leased = node.claim(holder, &["a"], 2).await;
    let ended: Vec<Settlement> = leased
        .iter()
        .map(|leased| Settlement { keep, ..Settlement::succeed(leased.lease()) })
        .collect();

    let lock = format!("BEGIN; LOCK TABLE {}.tokens", schema.name());
    visitor.batch_execute(&lock).await.expect("a lock");
    // It gets the connection after the settle, and keeps it.
    let busy = async { node.subject.store.tokens().await.expect("tokens") };
    let settle = async {
        soon("a settle", node.settle(holder, &ended[0])).await;
        assert_eq!(counted(&visitor, &bins).await, 0);
        visitor.batch_execute("COMMIT").await.expect("the lock ends");
    };
    tokio::join!(biased; settle, busy);
    node.settle(holder, &ended[1]).await;
    assert!(counted(&visitor, &bins).await >= 1);
}

/// A database that was made with this one as its template has tables with the same OIDs.
#[tokio::test]
async fn a_reader_of_another_database_does_not_keep_a_bin() {
    let database = Database::fresh("").await;
    let mut options = PostgresOptions::parse(&database.url()).expect("a URL");
    options.binned_min = 1;
    let node = Node::with(options.clone()).await;
    node.kinds(&["a"]).await;
    let holder = node.holder().await;
    // The first one opens the bin for the other.
    for _ in 0..2 {
        node.submit("a").await;
        let lease = node.claim_only(holder, "a").await.lease();
        let keep = Retain { job: SHORT, key: SHORT };
        node.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
    }
    drop(node);
    let server = Schema::fresh();
    let name = database.name();
    let (visitor, users) = (server.connect().await, "FROM pg_stat_activity WHERE datname");
    let end = format!("SELECT pg_terminate_backend(pid) {users} = '{name}'");
    visitor.batch_execute(&end).await.expect("ended");
    until(&visitor, &format!("SELECT count(*) {users} = '{name}'"), 0).await;
    let copy = Database::fresh(&format!("TEMPLATE {name}")).await;
    let reader = copy.connect().await;
    let read = "BEGIN; SELECT count(*) FROM rewheel.finished";
    reader.batch_execute(read).await.expect("a report");

    let node = Node::with(options).await;
    node.clock.advance(SHORT + 2 * MINUTE);
    assert_eq!(soon("a prune", node.prune_all()).await.finished, 2);
    drop((node, reader));
    copy.drop().await;
    database.drop().await;
}
