//! Tests submitting jobs and storing responses inside the user's own transaction.

use super::node::{begin, user};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Transaction};
use rewheel::idempotency::{
    AfterCrash, Begin, Begun, Fingerprint, Finished, IdempotencyStore, RunId, Ticket,
};
use rewheel::{IdempotencyKey, Random};
use rewheel_core::store::{Insert, Inserted, KindStore, ReadStore};
use rewheel_core::{Actor, JobId, Key, KindName, NewJob, NewKind, OnDead};
use rewheel_stores::MysqlStore;
use rewheel_testkit::{Database, seconds};

/// A store with a kind, and a table of the user.
async fn shop(database: &Database) -> MysqlStore {
    let store = MysqlStore::open(database.url()).await.expect("a fresh database opens");
    let (name, settings) = (charge(), "{}".to_owned());
    let kind = NewKind { name, settings, takeovers_max: 3, on_dead: OnDead::default() };
    store.put_kinds(&[kind], &Actor::new("test")).await.expect("a kind");
    let mut user = database.connect().await;
    user.query_drop("CREATE TABLE orders (id INT) ENGINE = InnoDB").await.expect("a table");
    store
}

fn charge() -> KindName {
    KindName::parse("charge").expect("a name")
}

async fn job(store: &MysqlStore, key: &str) -> NewJob {
    let now = store.now().await.expect("a time");
    let id = JobId::new(now, &Random::thread());
    let key = Some(Key::parse(key).expect("a key"));
    NewJob { key, ..NewJob::new(id, charge(), b"{}".to_vec()) }
}

async fn order(user: &mut Conn) -> Transaction<'_> {
    let mut transaction = begin(user).await;
    transaction.query_drop("INSERT INTO orders VALUES (17)").await.expect("an order");
    transaction
}

async fn orders(database: &Database) -> Option<u64> {
    database.connect().await.query_first("SELECT COUNT(*) FROM orders").await.expect("a number")
}

#[tokio::test]
async fn jobs_of_a_transaction_that_is_rolled_back_never_were() {
    let database = Database::fresh();
    let store = shop(&database).await;
    let jobs = [job(&store, "order-17").await];
    let mut user = user(&database).await;
    let mut transaction = order(&mut user).await;
    let answers = store.insert_in(&mut transaction, &Insert::new(&jobs)).await.expect("stored");
    assert!(matches!(answers[..], [Inserted::Created { leased: None, .. }]), "{answers:?}");
    transaction.rollback().await.expect("rolled back");

    assert!(store.get(jobs[0].id).await.expect("an answer").is_none());
    assert_eq!(store.books().await.expect("books").submitted, 0);
    assert_eq!(orders(&database).await, Some(0));
}

#[tokio::test]
async fn jobs_of_a_transaction_that_commits_are_stored_with_it() {
    let database = Database::fresh();
    let store = shop(&database).await;
    let jobs = [job(&store, "order-17").await];
    let mut user = user(&database).await;
    let mut transaction = order(&mut user).await;
    store.insert_in(&mut transaction, &Insert::new(&jobs)).await.expect("stored");
    assert!(store.get(jobs[0].id).await.expect("an answer").is_none(), "it is not committed yet");
    transaction.commit().await.expect("committed");

    assert!(store.get(jobs[0].id).await.expect("an answer").is_some());
    let books = store.books().await.expect("books");
    assert_eq!((books.submitted, books.missing(), orders(&database).await), (1, 0, Some(1)));
    let again = [job(&store, "order-17").await];
    let mut transaction = order(&mut user).await;
    let answers = store.insert_in(&mut transaction, &Insert::new(&again)).await.expect("an answer");
    assert!(!matches!(answers[..], [Inserted::Created { .. }]), "one key, two jobs: {answers:?}");
    transaction.rollback().await.expect("rolled back");
}

fn ask(run: RunId) -> Begin {
    Begin {
        key: IdempotencyKey::new("acme", "order-17").expect("a key"),
        fingerprint: Fingerprint::of(&[b"charge 4200"]),
        run,
        lease: seconds(60),
        keep: seconds(3_600),
        after_crash: AfterCrash::RunAgain,
    }
}

#[tokio::test]
async fn a_response_commits_with_the_handlers_changes() {
    let database = Database::fresh();
    let store = shop(&database).await;
    let [one, other] = [1, 2].map(|seed| RunId::new(&Random::seeded(seed)));
    let begin = ask(one);
    assert_eq!(store.begin(&begin).await.expect("an answer"), Begun::Run);
    let ticket = Ticket { key: begin.key, run: one, keep: seconds(3_600) };
    let mut user = user(&database).await;
    for commits in [false, true] {
        let mut transaction = order(&mut user).await;
        let stored = store.finish_in(&mut transaction, &ticket, b"charged").await;
        assert_eq!(stored.expect("stored"), Finished::Stored);
        // Another request does not wait for the transaction, whose row is locked.
        let meanwhile = store.begin(&ask(other)).await.expect("an answer");
        assert!(matches!(meanwhile, Begun::InFlight { .. }), "{meanwhile:?}");
        match commits {
            true => transaction.commit().await.expect("committed"),
            false => transaction.rollback().await.expect("rolled back"),
        }
    }
    assert_eq!(orders(&database).await, Some(1));
    let repeated = store.begin(&ask(other)).await.expect("an answer");
    assert_eq!(repeated, Begun::Done(b"charged".to_vec()));
    let late = Ticket { run: other, ..ticket };
    let mut transaction = order(&mut user).await;
    let lost = store.finish_in(&mut transaction, &late, b"again").await.expect("an answer");
    assert_eq!(lost, Finished::Lost);
    transaction.rollback().await.expect("rolled back");
}
