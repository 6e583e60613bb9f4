//! Tests that jobs of one lane and one due time find free places, however many of them are taken.

use super::support::{number, open};
use mysql_async::prelude::Queryable;
use rewheel_core::{NewJob, When};
use rewheel_testkit::{Database, seconds};

/// Places that another node has taken, one after the other.
const TAKEN: u32 = 5_000;

/// Another node has stored a block of jobs that are due at the same time, just behind the places of this one.
#[tokio::test]
async fn a_submit_gets_past_the_block_of_another_node() {
    let database = Database::fresh();
    let subject = open(&database).await;
    subject.kinds(&["charge"]).await;
    let due = When::At(subject.now().await.plus(seconds(60)));
    let job = || NewJob { due, ..subject.job("charge") };
    subject.insert(&[job()]).await;
    let mut connection = database.connect().await;
    let place = number(&mut connection, "SELECT MAX(place) FROM rewheel_jobs").await;
    for sql in [
        format!("SET SESSION max_recursive_iterations = {TAKEN}"),
        format!(
            "INSERT INTO rewheel_jobs (lane, place, id, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                                       takeovers_counted, created_ms, payload)
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {TAKEN})
             SELECT lane, {place} + n, UNHEX(LPAD(HEX(n), 32, '0')), 0, due_ms, because, 0, 1, 0, 0, 0, 0, 0, '' FROM n, rewheel_jobs"
        ),
    ] {
        connection.query_drop(sql).await.expect("done");
    }
    let jobs: Vec<NewJob> = (0..20).map(|_| job()).collect();
    subject.insert(&jobs[..1]).await;
    subject.insert(&jobs[1..]).await;
    let order: Vec<Vec<u8>> = connection
        .query("SELECT id FROM rewheel_jobs WHERE created_ms > 0 ORDER BY place")
        .await
        .expect("ids");
    let batch: Vec<Vec<u8>> = jobs[1..].iter().map(|job| job.id.to_bytes().to_vec()).collect();
    assert!(order.windows(batch.len()).any(|ids| ids == batch), "a batch keeps its order");
}
