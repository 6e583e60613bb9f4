//! Tests that batches take a constant number of round trips, however many jobs or kinds they have.

use super::proxy::Proxy;
use super::support::{Node, address, url_by};
use rewheel_core::store::{Change, ChangeVerb, Changed, Settlement};
use rewheel_core::{Actor, JobId, KindName, NewKind, Retain, State};
use rewheel_testkit::Schema;

/// Number of jobs in a batch of a bulk operation.
const JOBS: usize = 500;

async fn node(schema: &Schema) -> (Proxy, Node) {
    let (host, port) = address();
    let proxy = Proxy::start(&host, port).await;
    let node = Node::open(&url_by(schema, "127.0.0.1", proxy.port, "pool_max=2")).await;
    (proxy, node)
}

async fn dead_letters(node: &Node) -> Vec<JobId> {
    node.insert(&node.jobs("charge", JOBS)).await;
    let holder = node.holder().await;
    let leased = node.claim(holder, &["charge"], JOBS).await;
    let dead: Vec<Settlement> = leased.iter().map(|leased| node.dead(leased.lease())).collect();
    node.subject.store.settle(holder, &dead).await.expect("settled");
    leased.iter().map(|leased| leased.job.id).collect()
}

/// Every verb of a bulk operation takes a few round trips per batch: at 5 ms each, a redrive moves thousands of jobs per second.
#[tokio::test]
async fn a_batch_of_changes_takes_a_few_round_trips() {
    let schema = Schema::fresh();
    let (proxy, node) = node(&schema).await;
    node.kinds(&["charge"]).await;
    let jobs = dead_letters(&node).await;
    let by = Actor::new("suite");
    let steps = [
        (ChangeVerb::Redrive { deadline: None }, State::Scheduled),
        (ChangeVerb::Pause, State::Paused),
        (ChangeVerb::Resume, State::Scheduled),
        (ChangeVerb::Retry, State::Scheduled),
        (ChangeVerb::Cancel, State::Cancelled),
    ];
    for (what, state) in steps {
        let changes: Vec<Change> = jobs.iter().map(|job| Change::new(*job, what.clone())).collect();
        let before = proxy.asked();
        let answers =
            node.subject.store.change(&changes, &by, Retain::default()).await.expect("done");
        let asked = proxy.asked() - before;
        let is_done =
            |answer: &Changed| matches!(answer, Changed::Applied { state: to, .. } if *to == state);
        assert!(answers.iter().all(is_done), "{what:?}: {:?}", answers[0]);
        assert!(asked * 25 <= JOBS, "{what:?}: {asked} round trips");
    }
    let before = proxy.asked();
    assert_eq!(node.subject.store.find(&jobs).await.expect("jobs").len(), JOBS);
    assert!(proxy.asked() - before <= 5);
    node.balance().await;
}

/// Fences are large after a failover, but the histories of jobs are as short as before: none is searched for records to drop.
#[tokio::test]
async fn a_failed_attempt_takes_as_many_round_trips_in_a_later_epoch() {
    let schema = Schema::fresh();
    let (proxy, node) = node(&schema).await;
    let visitor = schema.connect().await;
    node.kinds(&["charge"]).await;
    let holder = node.holder().await;
    // The least of some, because a connection prepares its statements first.
    let asked = async || {
        let mut least = usize::MAX;
        for _ in 0..6 {
            node.submit("charge").await;
            let lease = node.claim_only(holder, "charge").await.lease();
            let before = proxy.asked();
            node.settle(holder, &node.dead(lease)).await;
            least = least.min(proxy.asked() - before);
        }
        least
    };
    let in_the_first = asked().await;
    let promote = format!("UPDATE {}.epochs SET timeline = timeline - 1", schema.name());
    visitor.batch_execute(&promote).await.expect("a promotion");
    node.submit("charge").await;
    node.try_claim(holder, &["charge"], 1).await.expect_err("an old epoch");
    let lease = node.claim_only(holder, "charge").await.lease();
    assert!(lease.fence.get() > 1 << 32);
    assert_eq!(asked().await, in_the_first);
}

/// A node that starts with thousands of kinds writes them with a few statements, and reads them with one if nothing changed.
#[tokio::test]
async fn a_batch_of_kinds_takes_a_few_round_trips() {
    let schema = Schema::fresh();
    let (proxy, node) = node(&schema).await;
    let kind = |n: usize| NewKind {
        name: KindName::parse(&format!("kind-{n}")).expect("a name"),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    let kinds: Vec<NewKind> = (0..1_000).map(kind).collect();
    let by = Actor::new("suite");
    for most in [20, 5] {
        let before = proxy.asked();
        node.subject.store.put_kinds(&kinds, &by).await.expect("written");
        let asked = proxy.asked() - before;
        assert!(asked <= most, "{asked} round trips");
    }
    assert_eq!(node.subject.store.kinds().await.expect("kinds").len(), 1_000);
    assert_eq!(node.subject.store.audit(None, None, 1_000).await.expect("entries").len(), 1_000);
}

/// A change of a kind is not missed if its transaction commits after a later change was read.
#[tokio::test]
async fn a_kind_that_changes_late_is_read() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["late", "other"]).await;
    let slow = schema.connect().await;
    let update = format!(
        "BEGIN; UPDATE {name}.kinds SET paused = true, changed = {name}.change_number() WHERE name = 'late'",
        name = schema.name()
    );
    slow.batch_execute(&update).await.expect("a change");
    let store = &node.subject.store;
    let first = store.kinds_since(0).await.expect("kinds");
    node.kinds(&["another"]).await;
    let second = store.kinds_since(first.at).await.expect("kinds");
    assert!(second.kinds.iter().all(|kind| kind.name.as_str() != "late" || !kind.paused));
    slow.batch_execute("COMMIT").await.expect("it commits");
    let third = store.kinds_since(second.at).await.expect("kinds");
    assert!(third.kinds.iter().any(|kind| kind.name.as_str() == "late" && kind.paused));
}
