//! Tests of traps of the server and of its client that a prototype has met.

use super::server::{SAFE, Server, holder, jobs, visit};
use rewheel::Random;
use rewheel_core::Fence;
use rewheel_core::store::{
    Claim, Insert, ReadStore, Settled, Settlement, StoreError, SubmitStore, WorkStore,
};
use std::time::Duration;

/// Lua's `tostring` prints 14 digits of a number; fences of a late epoch have more.
#[tokio::test]
async fn large_fences_keep_all_their_digits() {
    const FLOOR: u64 = 8_007_199_254_740_123;
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let _: i64 = server.command(&["HSET", "{rewheel}:meta", "floor", &FLOOR.to_string()]);
    let random = Random::thread();
    let holder = holder(&store, &random).await;
    store.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap();
    let visits = [visit(1)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 1 };
    for next in 1..=3 {
        let leased = store.claim(&claim).await.unwrap();
        let lease = leased[0].lease();
        assert_eq!(lease.fence, Fence::new(FLOOR + next));
        let back = store.give_back(holder, &[lease], Default::default()).await.unwrap();
        assert!(matches!(back[..], [Settled::Applied(_)]), "{back:?}");
    }
}

/// The client gives up after 500 ms unless it is told otherwise.
#[tokio::test]
async fn an_answer_may_take_longer_than_the_default_of_the_client() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let holder = holder(&store, &random).await;
    let _: String = server.command(&["CLIENT", "PAUSE", "1200", "ALL"]);
    store.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap();
    let visits = [visit(1)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 1 };
    let leased = store.claim(&claim).await.unwrap();
    let settled = store.settle(holder, &[Settlement::succeed(leased[0].lease())]).await.unwrap();
    assert!(matches!(settled[..], [Settled::Applied(_)]), "{settled:?}");
}

/// A restarted server answers `LOADING` until it has read its file, and knows no script: both mean that the call may be repeated.
#[tokio::test]
async fn a_server_that_reads_its_file_is_unavailable_for_a_while() {
    /// Other keys in the file, each of which takes this long to load.
    const KEYS: usize = 150;
    const KEY_MICROS: &str = "20000";
    let mut server = Server::start(SAFE).await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    store.insert(&Insert::new(&jobs(&random, 3, 10))).await.unwrap();
    for n in 0..KEYS {
        let _: String = server.command(&["SET", &format!("other-{n}"), "x"]);
    }
    // The delay is for keys of a snapshot.
    let _: String = server.command(&["SAVE"]);
    server.kill();
    let slow =
        format!("--key-load-delay {KEY_MICROS} --loading-process-events-interval-bytes 1024");
    server.begin_restart(&slow);
    let mut loading = 0;
    let books = loop {
        match store.books().await {
            Ok(books) => break books,
            Err(StoreError::Unavailable(why)) => {
                loading += usize::from(why.to_string().contains("loading"));
            }
            Err(error) => panic!("{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(loading > 0, "the server has read its file before the first call");
    assert_eq!((books.live, books.missing()), (3, 0));
    store.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap();
    assert_eq!(store.books().await.unwrap().live, 4);
}
