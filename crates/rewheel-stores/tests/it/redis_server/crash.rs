//! Tests that nothing acknowledged is lost by a killed server.

use super::server::{SAFE, Server, holder, jobs, visit};
use rewheel::Random;
use rewheel_core::store::{
    Claim, Filter, Insert, Inserted, PageRequest, ReadStore, Sent, Settled, Settlement, StoreError,
    SubmitStore, WorkStore,
};
use rewheel_core::{HolderId, JobId};
use rewheel_stores::RedisStore;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the store has acknowledged.
#[derive(Default)]
struct Acknowledged {
    stored: HashSet<JobId>,
    settled: HashSet<JobId>,
}

/// Submits and settles until the server is gone.
async fn work(store: RedisStore, holder: HolderId, known: Arc<Mutex<Acknowledged>>) {
    let random = Random::thread();
    loop {
        let batch = jobs(&random, 50, 200);
        let Ok(answers) = store.insert(&Insert::new(&batch)).await else { return };
        assert!(answers.iter().all(|answer| matches!(answer, Inserted::Created { .. })));
        known.lock().expect("no task panicked").stored.extend(batch.iter().map(|job| job.id));
        let visits = [visit(40)];
        let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 40 };
        let Ok(claimed) = store.claim(&claim).await else { return };
        let done: Vec<Settlement> =
            claimed.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
        let Ok(settled) = store.settle(holder, &done).await else { return };
        assert!(settled.iter().all(|answer| matches!(answer, Settled::Applied(_))));
        known
            .lock()
            .expect("no task panicked")
            .settled
            .extend(done.iter().map(|one| one.lease.job));
    }
}

async fn all_ids(store: &RedisStore) -> HashSet<JobId> {
    let mut found = HashSet::new();
    let mut page = PageRequest::first(1_000);
    loop {
        let answer = store.list(&Filter::default(), &page).await.expect("a page");
        found.extend(answer.items.iter().map(|job| job.id));
        match answer.next {
            Some(cursor) => page = PageRequest::behind(cursor, 1_000),
            None => return found,
        }
    }
}

/// Waits until this many jobs are acknowledged.
async fn reach(known: &Mutex<Acknowledged>, stored: usize) {
    for _ in 0..3_000 {
        if known.lock().expect("no task panicked").stored.len() >= stored {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the store is too slow to test");
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_killed_server() {
    let mut server = Server::start(SAFE).await;
    let known = Arc::new(Mutex::new(Acknowledged::default()));
    let random = Random::thread();
    for round in 1..=4 {
        let store = server.open().await.unwrap();
        let holder = holder(&store, &random).await;
        let works: Vec<_> = (0..3)
            .map(|_| work(store.clone(), holder, Arc::clone(&known)))
            .map(|work| Box::pin(work) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>)
            .collect();
        let all = futures_util::future::join_all(works);
        let killed = async {
            reach(&known, round * 2_000).await;
            server.kill();
        };
        futures_util::future::join(all, killed).await;
        server.restart().await;

        let found = all_ids(&store).await;
        let (stored, settled) = {
            let known = known.lock().unwrap();
            (known.stored.clone(), known.settled.clone())
        };
        let lost = stored.difference(&found).count();
        assert_eq!(lost, 0, "acknowledged jobs are missing");
        for id in &settled {
            let job = store.get(*id).await.unwrap().expect("a settled job is kept");
            assert!(job.state().is_final(), "{id} was settled, and is {}", job.state());
        }
        assert_eq!(store.books().await.unwrap().missing(), 0, "the books balance after a crash");
    }
}

/// The same store works on after its server was restarted: it connects again and sends the scripts again.
#[tokio::test]
async fn a_store_works_on_after_a_restart() {
    let mut server = Server::start(SAFE).await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let batch = jobs(&random, 3, 10);
    store.insert(&Insert::new(&batch)).await.unwrap();
    server.kill();
    let error = store.books().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let more = jobs(&random, 2, 10);
    let error = store.insert(&Insert::new(&more)).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    server.restart().await;
    let again = Insert { sent: Sent::Again, ..Insert::new(&more) };
    store.insert(&again).await.unwrap();
    assert_eq!(store.books().await.unwrap().live, 5);
    server.command::<()>(&["SCRIPT", "FLUSH"]);
    assert_eq!(store.books().await.unwrap().live, 5);
}
