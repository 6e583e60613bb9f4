//! Tests the rows that fleet-wide limits leave in the tables.

use super::support::{Node, counted};
use rewheel_core::KindName;
use rewheel_core::store::{FleetLimit, LimitOf, LimitedClaim, WorkStore};
use rewheel_stores::PostgresOptions;
use rewheel_testkit::{Schema, lane, seconds};

/// Claims up to ten jobs of the kind `charge`, of which five may be leased at once.
async fn claim(node: &Node, interval: Option<u64>) -> usize {
    let of = LimitOf::Kind(KindName::parse("charge").expect("a kind"));
    let limits = [FleetLimit { of, concurrency_max: Some(5), interval: interval.map(seconds) }];
    let visits = [node.visit(lane("charge"), 10)];
    let holder = node.holder().await;
    let claim = LimitedClaim { holder, visits: &visits, limit: 10, limits: &limits };
    node.store.claim_limited(&claim).await.expect("a claim").leased.len()
}

/// Listed jobs stay on the shelf `due`, where a count must find them, too.
#[tokio::test]
async fn a_limited_claim_is_never_listed() {
    let schema = Schema::fresh();
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    options.listed_min = 1;
    let node = Node::with(options).await;
    node.kinds(&["charge"]).await;
    node.insert(&node.jobs("charge", 9)).await;
    assert_eq!(claim(&node, None).await, 5);
    let visitor = schema.connect().await;
    let listed = format!("SELECT count(*) FROM {}.claims", schema.name());
    assert_eq!(counted(&visitor, &listed).await, 0);
    let held = format!("SELECT count(*) FROM {}.jobs WHERE shelf = 'held'", schema.name());
    assert_eq!(counted(&visitor, &held).await, 5);
}

#[tokio::test]
async fn unused_limits_are_pruned() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["charge"]).await;
    let visitor = schema.connect().await;
    let rows = format!("SELECT count(*) FROM {}.limits", schema.name());
    // A row without a start is also kept for a while: a claim must find the row that it has created.
    assert_eq!(claim(&node, None).await, 0);
    node.prune(100).await;
    assert_eq!(counted(&visitor, &rows).await, 1);
    node.insert(&node.jobs("charge", 9)).await;
    assert_eq!(claim(&node, None).await, 5);
    node.clock.advance(seconds(47 * 3_600));
    node.prune(100).await;
    assert_eq!(counted(&visitor, &rows).await, 1);
    node.clock.advance(seconds(2 * 3_600));
    node.prune(100).await;
    assert_eq!(counted(&visitor, &rows).await, 0);
}

/// Other claims wait for the lock of a limit until its transaction ends, which takes longer if it writes to the disk.
#[tokio::test]
async fn a_claim_without_a_job_commits_nothing() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["charge"]).await;
    node.insert(&node.jobs("charge", 9)).await;
    assert_eq!(claim(&node, Some(600)).await, 1);
    assert_eq!(claim(&node, Some(600)).await, 0);
    // The transaction that locked the row last.
    let undone = format!(
        "SELECT count(*) FROM {}.limits WHERE pg_xact_status(nullif(xmax::text, '0')::xid8) = 'aborted'",
        schema.name()
    );
    let visitor = schema.connect().await;
    assert_eq!(counted(&visitor, &undone).await, 1);
}
