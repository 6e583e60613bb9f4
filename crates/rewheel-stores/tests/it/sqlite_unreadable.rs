//! Runs the tests of unreadable rows on SQLite.

use crate::unreadable;
use rewheel_core::store::ClockOffset;
use rewheel_stores::{SqliteOptions, SqliteStore, Synchronous};
use rewheel_testkit::Subject;
use std::path::PathBuf;
use std::sync::Arc;

/// A store whose rows are changed by hand.
struct Damaged {
    file: PathBuf,
    subject: Subject,
}

impl Damaged {
    async fn open() -> Damaged {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("rewheel.db");
        let mut options = SqliteOptions::default();
        options.synchronous = Synchronous::Normal;
        options.clock = ClockOffset::default();
        let clock = options.clock.clone();
        let store = SqliteStore::open_with(&file, options).await.expect("a fresh file opens");
        Damaged { file, subject: Subject::new(Arc::new(store), clock).keeping(folder) }
    }

    async fn run(&self, sql: &str) {
        let connection = rusqlite::Connection::open(&self.file).expect("the file");
        connection.busy_timeout(std::time::Duration::from_secs(10)).expect("a limit");
        connection.execute_batch(&sql.replace("s.", "")).expect("a change");
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
