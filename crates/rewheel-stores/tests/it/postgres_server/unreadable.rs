//! Runs the tests of unreadable rows on PostgreSQL.

use super::support::Node;
use crate::unreadable;
use rewheel_stores::PostgresOptions;
use rewheel_testkit::{Schema, Subject};

/// A store whose rows are changed by hand.
struct Damaged {
    schema: Schema,
    subject: Subject,
}

impl Damaged {
    async fn open() -> Damaged {
        let schema = Schema::fresh();
        let subject = Node::of(&schema).await.subject;
        Damaged { schema, subject }
    }

    async fn run(&self, sql: &str) {
        let sql = sql.replace("s.", &format!("{}.", self.schema.name()));
        self.schema.connect().await.batch_execute(&sql).await.expect("a change");
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

/// A large claim writes a list: an unreadable job must not stay on it, where nothing finds it.
#[tokio::test]
async fn a_claim_of_many_passes_over_it() {
    let schema = Schema::fresh();
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    options.listed_min = 1;
    let subject = Node::with(options).await.subject;
    let store = Damaged { schema, subject };
    unreadable::a_claim_passes_over_it(&store.subject, async |sql| store.run(sql).await).await;
}
