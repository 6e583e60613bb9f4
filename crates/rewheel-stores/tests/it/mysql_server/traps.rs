//! Tests of traps of the server that a prototype has met.

use super::node::{Node, begin, user};
use super::support::number;
use futures_util::future::join;
use mysql_async::prelude::Queryable;
use rewheel_core::JobId;
use rewheel_core::store::{ChangeVerb, Insert, Settled, SubmitStore, WorkStore};
use rewheel_testkit::Database;

/// Trap 15: the server does not count rows that a write matches and leaves as they are.
#[tokio::test]
async fn a_write_that_changes_nothing_has_matched_its_row() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    let (holder, lease) = node.leased("charge").await;
    for _ in 0..2 {
        let started = node.mysql.start(holder, &[lease]).await.expect("an answer");
        assert_eq!(started, [true]);
    }
}

/// Trap 12: at READ COMMITTED, `INSERT … SELECT` locks no row that it reads.
#[tokio::test]
async fn a_job_that_is_settled_and_swept_at_once_exists_once() {
    const ROUNDS: usize = 40;
    let database = Database::fresh();
    let (node, other) = (Node::start(&database).await, Node::start(&database).await);
    node.kinds(&["charge"]).await;
    let sweeper = other.holder().await;
    let mut connection = database.connect().await;
    for _ in 0..ROUNDS {
        let (holder, lease) = node.leased("charge").await;
        node.store.leave(holder).await.expect("it left");
        let (settled, _) = join(node.succeed(holder, lease), other.sweep(sweeper)).await;
        let id: String = lease.job.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let count = |table| format!("(SELECT COUNT(*) FROM {table} WHERE id = x'{id}')");
        let both = format!("SELECT 2 * {} + {}", count("rewheel_finished"), count("rewheel_jobs"));
        let expected = if matches!(settled, Settled::Applied(_)) { 2 } else { 1 };
        assert_eq!(number(&mut connection, &both).await, expected, "{settled:?}");
        if expected == 1 {
            cancel(&node, lease.job).await;
        }
    }
    node.balance().await;
}

async fn cancel(node: &Node, job: JobId) {
    node.change(job, ChangeVerb::Cancel).await;
}

/// Trap 16: in text, `SUBSTR` counts characters. A list of ids is bytes, among them those that begin characters of several bytes.
#[tokio::test]
async fn ids_whose_bytes_look_like_text_are_found_in_lists() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["charge"]).await;
    let mut jobs = node.jobs("charge", 6);
    for (n, job) in jobs.iter_mut().enumerate() {
        let mut bytes = job.id.to_bytes();
        // "ä", "€", a NUL, a quote and a backslash, and bytes that are no text at all.
        bytes[8..].copy_from_slice(&[0xc3, 0xa4, 0xe2, 0x82, 0xac, 0x00, b'\'', b'\\']);
        bytes[15] = bytes[15].wrapping_add(u8::try_from(n).expect("few jobs"));
        job.id = JobId::from_bytes(bytes);
    }
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    node.insert(&jobs).await;
    let holder = node.holder().await;
    let claimed = node.claim(holder, &["charge"], 10).await;
    assert_eq!(claimed.len(), ids.len());
    node.store.leave(holder).await.expect("it left");
    let by = node.holder().await;
    let mut swept: Vec<JobId> = node.sweep(by).await.iter().map(|event| event.job).collect();
    swept.sort_unstable();
    let mut expected = ids.clone();
    expected.sort_unstable();
    assert_eq!(swept, expected);
    assert_eq!(node.store.live(&ids).await.expect("jobs").len(), ids.len());
}

/// Trap 17: at REPEATABLE READ, a claim of an empty lane locks the gap, and blocks submits into it.
#[tokio::test]
async fn a_submit_does_not_wait_for_a_claim_that_found_nothing() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["charge"]).await;
    // The lane exists, and is empty again.
    let (holder, lease) = node.leased("charge").await;
    node.succeed(holder, lease).await;
    let mut user = user(&database).await;
    let mut claim = begin(&mut user).await;
    let sql = "SELECT id FROM rewheel_jobs FORCE INDEX (PRIMARY) WHERE lane = 1 AND place <= 9223372036854775807 AND state = 0 \
               ORDER BY place LIMIT 10 FOR UPDATE SKIP LOCKED";
    let found: Vec<Vec<u8>> = claim.query(sql).await.expect("an empty lane");
    assert!(found.is_empty());
    let jobs = node.jobs("charge", 2);
    node.mysql.insert(&Insert::new(&jobs)).await.expect("it does not wait");
    assert_eq!(node.claim(node.holder().await, &["charge"], 10).await.len(), 2);
    claim.rollback().await.expect("rolled back");
}
