//! Runs the tests of unreadable rows on MySQL.

use super::support::open;
use crate::unreadable;
use mysql_async::prelude::Queryable;
use rewheel_testkit::{Database, Subject};

/// A store whose rows are changed by hand.
struct Damaged {
    database: Database,
    subject: Subject,
}

impl Damaged {
    async fn open() -> Damaged {
        let database = Database::fresh();
        let subject = open(&database).await;
        Damaged { database, subject }
    }

    /// Runs a statement in the names and types of this store: what a user wants is a number here, and a tenant is too long for its column
    /// before it is too long for a tenant.
    async fn run(&self, sql: &str) {
        let sql = sql.replace("s.", "rewheel_").replace("'freeze'", "77");
        let sql = sql.replace("wanted = NULL", "wanted = 0").replace(&"t".repeat(129), "t\t");
        let mut connection = self.database.connect().await;
        connection.query_drop(&sql).await.expect("a change");
        assert!(connection.affected_rows() > 0, "{sql}");
    }
}

#[tokio::test]
async fn a_claim_passes_over_it() {
    let store = Damaged::open().await;
    unreadable::a_claim_passes_over_it(&store.subject, async |sql| store.run(sql).await).await;
}

#[tokio::test]
async fn a_sweep_passes_over_it() {
    let store = Damaged::open().await;
    unreadable::a_sweep_passes_over_it(&store.subject, async |sql| store.run(sql).await).await;
}

#[tokio::test]
async fn a_sweep_passes_over_a_job_without_a_lane() {
    let store = Damaged::open().await;
    unreadable::a_sweep_passes_over_a_job_without_a_lane(&store.subject, async |sql| {
        store.run(sql).await
    })
    .await;
}

#[tokio::test]
async fn deadlines_pass_over_it() {
    let store = Damaged::open().await;
    unreadable::deadlines_pass_over_it(&store.subject, async |sql| store.run(sql).await).await;
}

#[tokio::test]
async fn a_settle_passes_over_it() {
    let store = Damaged::open().await;
    unreadable::a_settle_passes_over_it(&store.subject, async |sql| store.run(sql).await).await;
}

#[tokio::test]
async fn a_lane_hides_no_lanes_behind_it() {
    let store = Damaged::open().await;
    unreadable::a_lane_hides_no_lanes_behind_it(&store.subject, async |sql| store.run(sql).await)
        .await;
}

#[tokio::test]
async fn a_dead_letter_is_announced_without_it() {
    let store = Damaged::open().await;
    unreadable::a_dead_letter_is_announced_without_it(&store.subject, async |sql| {
        store.run(sql).await
    })
    .await;
}
