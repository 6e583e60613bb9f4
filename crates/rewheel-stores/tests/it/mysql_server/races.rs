//! Claimers and submitters at the same time: no job is lost or leased twice, and none of them meets a deadlock.

use futures_util::future::{join, join_all};
use rewheel_core::store::{
    Claim, ClockOffset, Insert, Settled, Settlement, SubmitStore, Visit, WorkStore,
};
use rewheel_core::{HolderId, JobId, NewJob};
use rewheel_stores::{MysqlOptions, MysqlStore};
use rewheel_testkit::{Database, Subject, ThreadLog, lane};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SUBMITTERS: usize = 3;
const CLAIMERS: usize = 3;
/// Batches of each submitter, and jobs of each batch.
const BATCHES: usize = 20;
const JOBS: usize = 25;
const WANTED: usize = SUBMITTERS * BATCHES * JOBS;

async fn store(database: &Database) -> MysqlStore {
    let options = MysqlOptions::parse(database.url()).expect("a URL");
    MysqlStore::open_with(options).await.expect("a database opens")
}

async fn submit(store: MysqlStore, batches: Vec<Vec<NewJob>>) {
    for batch in batches {
        store.insert(&Insert::new(&batch)).await.expect("an insert is stored");
    }
}

/// Claims and settles until all jobs are settled. Returns the jobs that it settled.
async fn work(
    store: MysqlStore,
    holder: HolderId,
    visit: Visit,
    settled: &AtomicUsize,
) -> Vec<JobId> {
    let mut ended = Vec::new();
    while settled.load(Ordering::Relaxed) < WANTED {
        let (visits, horizon) = (std::slice::from_ref(&visit), Duration::ZERO);
        let claim = Claim { holder, visits, horizon, limit: 50 };
        let leased = store.claim(&claim).await.expect("a claim succeeds");
        let leases = leased.iter().map(|leased| leased.lease());
        let settlements: Vec<Settlement> = leases.map(Settlement::succeed).collect();
        let answers = store.settle(holder, &settlements).await.expect("a settle succeeds");
        assert!(answers.iter().all(|answer| matches!(answer, Settled::Applied(_))), "{answers:?}");
        settled.fetch_add(answers.len(), Ordering::Relaxed);
        ended.extend(leased.into_iter().map(|leased| leased.job.id));
    }
    ended
}

#[tokio::test]
async fn three_claimers_and_three_submitters_neither_lose_nor_repeat_a_job() {
    // The store repeats a transaction that met a deadlock, and says so.
    ThreadLog::install(tracing::Level::DEBUG);
    let database = Database::fresh();
    let subject = Subject::new(Arc::new(store(&database).await), ClockOffset::default());
    subject.kinds(&["charge"]).await;
    let settled = AtomicUsize::new(0);
    let (mut submitters, mut claimers) = (Vec::new(), Vec::new());
    for _ in 0..SUBMITTERS {
        let batches = (0..BATCHES).map(|_| subject.jobs("charge", JOBS)).collect();
        submitters.push(submit(store(&database).await, batches));
    }
    for _ in 0..CLAIMERS {
        let (holder, visit) = (subject.holder().await, subject.visit(lane("charge"), 50));
        claimers.push(work(store(&database).await, holder, visit, &settled));
    }
    let (_, ended) = join(join_all(submitters), join_all(claimers)).await;
    let ended: Vec<JobId> = ended.into_iter().flatten().collect();
    let unique: HashSet<JobId> = ended.iter().copied().collect();
    assert_eq!((ended.len(), unique.len()), (WANTED, WANTED));
    subject.balance().await;
    assert_eq!(subject.store.books().await.expect("books").live, 0);
    let log = ThreadLog::take();
    assert!(!log.contains("code=1213"), "{log}");
}
