//! Tests on SQLite that lines of groups recover from jobs that a process without groups has ended.

use rewheel_core::store::{OperateStore, ReadStore};
use rewheel_core::{GroupKey, NewJob};
use rewheel_stores::SqliteStore;
use rewheel_testkit::Subject;
use std::sync::Arc;

#[tokio::test]
async fn a_line_whose_head_and_next_member_are_no_jobs_any_more_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("rewheel.db");
    let store = SqliteStore::open(&file).await.expect("a fresh file opens");
    let subject = Subject::new(Arc::new(store.clone()), Default::default());
    subject.kinds(&["mail"]).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let group_key = GroupKey::parse("customer-17").ok();
        jobs.push(subject.put(NewJob { group_key, ..subject.job("mail") }).await);
    }
    {
        let connection = rusqlite::Connection::open(&file).expect("the file");
        connection.busy_timeout(std::time::Duration::from_secs(10)).expect("a limit");
        for job in &jobs[..2] {
            let gone = connection.execute("DELETE FROM jobs WHERE id = ?1", [job.to_bytes()]);
            assert_eq!(gone.expect("a row"), 1);
        }
    }
    assert_eq!(store.stuck_groups(10).await.expect("a list").len(), 1);
    assert_eq!(store.release_groups(10).await.expect("released").released, 1);
    assert_eq!(store.stuck_groups(10).await.expect("a list").len(), 0);
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["mail"], 10).await[0].job.id, jobs[2]);
}
