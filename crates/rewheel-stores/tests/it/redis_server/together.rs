//! Tests batches that are stored together or not at all, and are too large for one script.

use super::server::{Server, holder, jobs, visit};
use rewheel::Random;
use rewheel_core::store::{
    Claim, ClockOffset, IfRefused, Insert, Inserted, LeaseStore, ReadStore, Sent, Settlement,
    StoreError, SubmitStore, Sweep, WorkStore,
};
use rewheel_core::{Duplicates, Key, KindName, NewJob, OnDuplicate, Retain};
use rewheel_stores::RedisStore;
use std::collections::BTreeSet;
use std::task::Poll;
use std::time::Duration;

fn keyed(random: &Random, count: usize, name: &str) -> Vec<NewJob> {
    let mut batch = jobs(random, count, 10);
    for (nth, job) in batch.iter_mut().enumerate() {
        job.key = Key::parse(&format!("{name}-{nth}")).ok();
    }
    batch
}

fn together(batch: &[NewJob]) -> Insert<'_> {
    Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(batch) }
}

/// The keys of staged batches in Redis.
fn staged(server: &Server) -> BTreeSet<Vec<u8>> {
    let mut keys: BTreeSet<Vec<u8>> = server.command(&["KEYS", "*staged*"]);
    keys.extend(server.command::<BTreeSet<Vec<u8>>>(&["KEYS", "*decided*"]));
    keys
}

async fn count(store: &RedisStore) -> (u64, u64) {
    let books = store.books().await.expect("the books");
    assert_eq!(books.missing(), 0);
    (books.submitted, books.live)
}

#[tokio::test]
async fn a_refused_job_in_the_last_part_stores_nothing() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let mut batch = keyed(&random, 1_000, "a");
    batch[990].kind = KindName::parse("unknown").unwrap();
    batch[3].kind = KindName::parse("unknown").unwrap();
    let answers = store.insert(&together(&batch)).await.unwrap();
    let is_refused = |at: &usize| matches!(answers[*at], Inserted::Refused(_));
    assert_eq!((0..1_000).filter(is_refused).collect::<Vec<_>>(), [3, 990]);
    assert!(matches!(answers[0], Inserted::LeftOut));
    assert_eq!(count(&store).await, (0, 0));
    assert_eq!(staged(&server), BTreeSet::new());

    // Two jobs far apart with one key and different payloads.
    let mut batch = keyed(&random, 1_000, "a");
    batch[999].key = batch[0].key.clone();
    batch[999].payload = vec![1];
    let answers = store.insert(&together(&batch)).await.unwrap();
    assert!(matches!(answers[999], Inserted::Refused(_)), "{:?}", answers[999]);
    assert_eq!(count(&store).await, (0, 0));
    // The same payload: a duplicate of the first.
    batch[999].payload = batch[0].payload.clone();
    let answers = store.insert(&together(&batch)).await.unwrap();
    assert!(matches!(answers[999], Inserted::Duplicate { job, .. } if job == batch[0].id));
    assert_eq!(count(&store).await, (999, 999));
    assert_eq!(staged(&server), BTreeSet::new());
}

#[tokio::test]
async fn a_known_id_stores_nothing() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let batch = keyed(&random, 600, "a");
    store.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap();
    let mut bad = jobs(&random, 600, 10);
    bad[599].id = batch[0].id;
    store.insert(&Insert::new(&batch[..1])).await.unwrap();
    let error = store.insert(&together(&bad)).await.unwrap_err();
    assert!(matches!(error, StoreError::Rejected(_)), "{error:?}");
    bad[599].id = bad[0].id;
    let error = store.insert(&together(&bad)).await.unwrap_err();
    assert!(matches!(error, StoreError::Rejected(_)), "{error:?}");
    assert_eq!(count(&store).await, (2, 2));
    assert_eq!(staged(&server), BTreeSet::new());
}

/// Polls a call until it has waited this often, and then drops it, as a node that dies would.
async fn cut_off<F: Future>(call: F, waits: usize) -> Option<F::Output> {
    let mut call = Box::pin(call);
    let mut waited = 0;
    std::future::poll_fn(move |context| match call.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if waited == waits => Poll::Ready(None),
        Poll::Pending => {
            waited += 1;
            Poll::Pending
        }
    })
    .await
}

/// A node that dies leaves a batch behind: undecided, it is deleted; decided, it is stored.
#[tokio::test]
async fn a_batch_that_its_node_has_left_is_ended_by_another() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let clock = ClockOffset::default();
    let other = server.open_with(clock.clone()).await.unwrap();
    let random = Random::thread();
    let by = holder(&other, &random).await;
    let (mut seen, mut stored) = (BTreeSet::new(), 0);
    for waits in 0..1_000 {
        let batch = keyed(&random, 300, &format!("batch-{waits}"));
        let answer = cut_off(store.insert(&together(&batch)), waits).await;
        // On the same connection, so that the last script has run.
        store.insert(&Insert::new(&[])).await.unwrap();
        if answer.is_some() {
            assert_eq!(seen.len(), 3, "undecided, decided, and partly stored: {seen:?}");
            return;
        }
        let is_decided = !server.command::<BTreeSet<String>>(&["KEYS", "*decided*"]).is_empty();
        let before = count(&store).await.0 - stored;
        let is_whole = before == 300;
        clock.advance(Duration::from_secs(30));
        other.renew(by).await.unwrap();
        other.sweep(&Sweep::new(by, 100, Retain::default())).await.unwrap();
        let expected = if is_decided || is_whole { 300 } else { 0 };
        assert_eq!(count(&store).await.0, stored + expected, "{before} were stored before");
        assert_eq!(staged(&server), BTreeSet::new());
        seen.insert((is_decided, before > 0));
        // The client sends it again: each job exists once.
        let again = Insert { sent: Sent::Again, ..together(&batch) };
        assert_eq!(store.insert(&again).await.unwrap().len(), 300);
        stored += 300;
        assert_eq!(count(&store).await, (stored, stored));
    }
    panic!("the insert never ends");
}

/// What was decided is stored, also if a job that it replaces was claimed since, or another job wants one of its keys.
#[tokio::test]
async fn nothing_of_a_decided_batch_is_refused() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let by = holder(&store, &random).await;
    let mut seen = BTreeSet::new();
    for waits in 0..1_000 {
        let name = format!("batch-{waits}");
        let old = keyed(&random, 1, &name);
        store.insert(&Insert::new(&old)).await.unwrap();
        let mut batch = keyed(&random, 300, &name);
        for job in &mut batch {
            job.duplicates = Duplicates::new(None, Some(OnDuplicate::Replace), None).unwrap();
            job.payload = vec![1];
        }
        let answer = cut_off(store.insert(&together(&batch)), waits).await;
        store.insert(&Insert::new(&[])).await.unwrap();
        if answer.is_some() {
            assert!(seen.contains(&true), "no batch was decided and not stored");
            return;
        }
        let is_decided = !server.command::<BTreeSet<String>>(&["KEYS", "*decided*"]).is_empty();
        seen.insert(is_decided);
        let visits = [visit(1_000)];
        let claim = Claim { holder: by, visits: &visits, horizon: Duration::ZERO, limit: 1_000 };
        let claimed = store.claim(&claim).await.unwrap();
        // One of them submits a job with a key of the batch.
        let follow_up = keyed(&random, 2, &name).remove(1);
        let mut done: Vec<_> =
            claimed.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
        done[0].follow_ups.push(follow_up);
        store.settle(by, &done).await.unwrap();
        let again = Insert { sent: Sent::Again, ..together(&batch) };
        let answers = store.insert(&again).await.unwrap();
        if is_decided {
            let refused = answers.iter().filter(|answer| matches!(answer, Inserted::Refused(_)));
            assert_eq!(refused.count(), 0);
        }
        assert_eq!(staged(&server), BTreeSet::new());
        assert_eq!(store.books().await.unwrap().missing(), 0);
    }
    panic!("the insert never ends");
}

/// A part that comes late does not decide a batch whose first parts are gone.
#[tokio::test]
async fn a_batch_that_was_given_up_is_not_decided() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let clock = ClockOffset::default();
    let other = server.open_with(clock.clone()).await.unwrap();
    let random = Random::thread();
    let by = holder(&other, &random).await;
    let batch = keyed(&random, 300, "a");
    let together = together(&batch);
    let mut insert = Box::pin(store.insert(&together));
    // Its first part is staged; then its node is paused.
    while staged(&server).is_empty() {
        let polled = std::future::poll_fn(|context| Poll::Ready(insert.as_mut().poll(context)));
        assert!(polled.await.is_pending());
        tokio::task::yield_now().await;
    }
    clock.advance(Duration::from_secs(30));
    other.renew(by).await.unwrap();
    other.sweep(&Sweep::new(by, 100, Retain::default())).await.unwrap();
    let error = insert.await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(error.to_string().contains("send the batch again"), "{error}");
    assert_eq!(count(&store).await, (0, 0));
    assert_eq!(staged(&server), BTreeSet::new());
}

/// While a batch is staged, no other submit gets one of its keys.
#[tokio::test]
async fn the_keys_of_a_staged_batch_are_reserved() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let batch = keyed(&random, 300, "a");
    // Cut off before it is decided.
    assert!(cut_off(store.insert(&together(&batch)), 2).await.is_none());
    store.insert(&Insert::new(&[])).await.unwrap();
    let error = store.insert(&Insert::new(&keyed(&random, 1, "a"))).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(error.to_string().contains("with the same keys is being stored"), "{error}");
    store.insert(&Insert::new(&keyed(&random, 1, "b"))).await.unwrap();
    assert_eq!(count(&store).await, (1, 1));
    let again = Insert { sent: Sent::Again, ..together(&batch) };
    store.insert(&again).await.unwrap();
    assert_eq!(count(&store).await, (301, 301));
}

/// Other clients wait for one script at most.
#[tokio::test]
async fn no_script_handles_the_whole_of_a_large_batch() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let batch = keyed(&random, 5_000, "a");
    let _: () = server.command(&["CONFIG", "RESETSTAT"]);
    store.insert(&together(&batch)).await.unwrap();
    let stats: String = server.command(&["INFO", "commandstats"]);
    let calls = |name: &str| -> usize {
        let line =
            stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    };
    assert!(calls("evalsha") + calls("eval") >= 2 * 5_000 / 84, "{stats}");
    assert_eq!(count(&store).await, (5_000, 5_000));
}
