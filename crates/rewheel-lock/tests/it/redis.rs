//! Runs the conformance suite on Redis, and tests of what only a Redis server can do to locks.

mod server;

use self::server::Server;
use crate::subject::{LEASE, LONG, Subject, eventually, in_time, name};
use rewheel::{ManualClock, Random, millis};
use rewheel_core::store::ClockOffset;
use rewheel_lock::{
    Ask, EarlierCalls, IfHeld, LockBackend, LockError, Locks, PLACE_TTL, RedisBackend, Renewal,
    RequestId, Turn,
};
use rewheel_stores::RedisOptions;
use rewheel_testkit::Prefix;
use tokio::task::JoinSet;

async fn connect(url: &str, clock: &ClockOffset) -> RedisBackend {
    let mut options = RedisOptions::parse(url).expect("a URL");
    options.clock = clock.clone();
    RedisBackend::open(options).await.expect("the server answers")
}

async fn open() -> Subject {
    let (prefix, clock) = (Prefix::fresh(), ClockOffset::default());
    let one = connect(prefix.url(), &clock).await;
    let other = connect(prefix.url(), &clock).await;
    Subject::new(one, other, clock, prefix)
}

lock_conformance!(open);

#[tokio::test]
async fn locks_and_waiting_requests_survive_a_killed_server() {
    let mut server = Server::start("--appendonly yes --appendfsync always").await;
    let timer = ManualClock::new();
    let locks = Locks::connect(&server.url()).await.unwrap();
    let holder = Locks::connect(&server.url()).await.unwrap().clock(&timer);
    let guard = holder.lock("a").lease(LEASE).acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    let request = locks.lock("a").wait(LONG).lease(LEASE);
    waiting.spawn(request.acquire());
    eventually(async || locks.inspect("a").await.unwrap().waiting == 1).await;

    server.kill();
    server.restart().await;
    // The lock is still held, by the same holder.
    eventually(async || locks.inspect("a").await.is_ok()).await;
    let state = locks.inspect("a").await.unwrap();
    assert_eq!(state.holder.map(|holder| holder.token), Some(guard.token()));
    let token = guard.token();
    // The connection of the holder is broken: the first attempt may fail, and is repeated in the background.
    let released = guard.release().await;
    assert!(matches!(released, Ok(()) | Err(LockError::Unavailable(_))), "{released:?}");
    let next = async {
        loop {
            timer.advance(millis(100));
            if let Ok(next) = tokio::time::timeout(millis(20), waiting.join_next()).await {
                return next.unwrap().unwrap().unwrap();
            }
        }
    };
    assert!(in_time(next).await.token() > token);
}

#[tokio::test]
async fn a_server_that_has_lost_its_data_gives_larger_tokens_and_tells_the_holder() {
    let mut server = Server::start("--appendonly no").await;
    let timer = ManualClock::new();
    let holder = Locks::connect(&server.url()).await.unwrap().clock(&timer);
    let locks = Locks::connect(&server.url()).await.unwrap();
    let guard = holder.lock("a").lease(LEASE).acquire().await.unwrap();
    server.kill();
    server.restart().await;
    eventually(async || locks.inspect("a").await.is_ok()).await;
    let new = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    assert!(new.token() > guard.token());
    timer.advance(LEASE / 3);
    let told = async {
        while !guard.is_lost() {
            // Its first renewal meets a broken connection.
            timer.advance(millis(50));
            tokio::time::sleep(millis(5)).await;
        }
    };
    in_time(told).await;
    assert!(timer.elapsed() < LEASE, "the server told it, not the end of the lease");
    new.release().await.unwrap();
}

#[tokio::test]
async fn scripts_and_subscriptions_come_back() {
    let server = Server::start("").await;
    let backend = connect(&server.url(), &ClockOffset::default()).await;
    let locks = Locks::new(backend.clone());
    locks.try_lock("a").await.unwrap().release().await.unwrap();
    server.command::<String>(&["SCRIPT", "FLUSH"]);
    locks.try_lock("a").await.unwrap().release().await.unwrap();
    eventually(async || backend.wakeups().is_listening()).await;
    server.command::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    eventually(async || !backend.wakeups().is_listening()).await;
    eventually(async || backend.wakeups().is_listening()).await;
}

/// The ids of the connections that have run a script.
fn connections(server: &Server) -> Vec<String> {
    let clients: String = server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
    let scripted = clients.lines().filter(|client| client.contains(" cmd=evalsha "));
    scripted.filter_map(|client| client.split(' ').next().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_is_left_for_a_new_connection() {
    let server = Server::start("").await;
    let locks = Locks::connect(&server.url()).await.unwrap();
    locks.try_lock("a").await.unwrap().release().await.unwrap();
    let before = connections(&server);
    assert_eq!(before.len(), 1, "{before:?}");

    server.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let error = locks.try_lock("a").await.unwrap_err().to_string();
    assert!(error.contains("the server is a replica"), "{error}");
    server.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    locks.lock("a").wait(LONG).lease(LEASE).acquire().await.unwrap().release().await.unwrap();
    eventually(async || {
        let after = connections(&server);
        !after.is_empty() && after.iter().all(|id| !before.contains(id))
    })
    .await;
}

#[tokio::test]
async fn a_user_who_may_not_publish_can_release() {
    let server = Server::start("").await;
    let user = ["on", "nopass", "~*", "+@all", "resetchannels"];
    server.command::<()>(&[&["ACL", "SETUSER", "locker"], &user[..]].concat());
    let url = server.url().replace("redis://", "redis://locker:any@");
    let locks = Locks::connect(&url).await.unwrap();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    waiting.spawn(locks.lock("a").wait(LONG).lease(LEASE).acquire());
    eventually(async || locks.inspect("a").await.unwrap().waiting == 1).await;
    guard.release().await.unwrap();
    in_time(waiting.join_next()).await.unwrap().unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_call_that_arrives_after_its_release_gets_nothing() {
    let server = Server::start("").await;
    let backend = connect(&server.url(), &ClockOffset::default()).await;
    let (name, id) = (name("a"), RequestId::new(&Random::thread()));
    let late = Ask { name: &name, id, owner: "late", lease: LEASE, if_held: IfHeld::Wait };
    backend.release(&name, id, EarlierCalls::Unanswered).await.unwrap();
    assert_eq!(backend.acquire(&late).await.unwrap(), Turn::Busy { holder: None });
    // It gets no place in line either.
    let guard = Locks::new(backend.clone()).lock("a").lease(LEASE).acquire().await.unwrap();
    let turn = backend.acquire(&late).await.unwrap();
    assert!(matches!(turn, Turn::Busy { holder: Some(_) }), "{turn:?}");
    assert_eq!(backend.inspect(&name).await.unwrap().waiting, 0);
    guard.release().await.unwrap();
    let left: i64 = server.command(&["PTTL", &format!("{{rewheel}}:lock-refused:{id}")]);
    assert!((1..=120_000).contains(&left), "{left}");
}

/// Before, a release only deleted, which a full server permits.
#[tokio::test]
async fn a_lock_is_released_on_a_server_without_free_memory() {
    let server = Server::start("").await;
    let backend = connect(&server.url(), &ClockOffset::default()).await;
    let (name, id) = (name("a"), RequestId::new(&Random::thread()));
    let ask = Ask { name: &name, id, owner: "one", lease: LEASE, if_held: IfHeld::Wait };
    assert!(matches!(backend.acquire(&ask).await.unwrap(), Turn::Acquired { .. }));
    let _: String = server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let next = RequestId::new(&Random::thread());
    let refused = backend.acquire(&Ask { id: next, ..ask }).await;
    assert!(refused.is_err(), "{refused:?}");
    // It may or may not have a place in line.
    let released = backend.release(&name, next, EarlierCalls::Unanswered).await.unwrap();
    assert!(!released.was_held);
    assert!(backend.release(&name, id, EarlierCalls::Unanswered).await.unwrap().was_held);
    assert!(backend.inspect(&name).await.unwrap().holder.is_none());
}

/// A full server must not end leases: their locks would be lost while their holders work.
#[tokio::test]
async fn a_server_without_free_memory_renews_locks_and_places_in_line() {
    let server = Server::start("").await;
    let clock = ClockOffset::default();
    let backend = connect(&server.url(), &clock).await;
    let (name, id) = (name("a"), RequestId::new(&Random::thread()));
    let ask = Ask { name: &name, id, owner: "one", lease: PLACE_TTL * 2, if_held: IfHeld::Wait };
    assert!(matches!(backend.acquire(&ask).await.unwrap(), Turn::Acquired { .. }));
    let next = Ask { id: RequestId::new(&Random::thread()), owner: "two", ..ask };
    assert!(matches!(backend.acquire(&next).await.unwrap(), Turn::Waiting { .. }));
    let _: String = server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    // Longer than a lease, and than a place in line.
    for _ in 0..20 {
        clock.advance(PLACE_TTL / 2);
        assert_eq!(backend.renew(&name, id, ask.lease).await.unwrap(), Renewal::Renewed);
        // Another request keeps its place, and this one gets its lost answer again.
        assert!(matches!(backend.acquire(&next).await.unwrap(), Turn::Waiting { .. }));
        assert!(matches!(backend.acquire(&ask).await.unwrap(), Turn::Acquired { .. }));
    }
    assert_eq!(backend.inspect(&name).await.unwrap().holder.unwrap().owner, "one");
    // It can still be handed over.
    assert!(backend.release(&name, id, EarlierCalls::Unanswered).await.unwrap().was_held);
    assert!(matches!(backend.acquire(&next).await.unwrap(), Turn::Acquired { .. }));
}

#[tokio::test]
async fn a_released_lock_leaves_no_key_but_the_last_token() {
    let server = Server::start("").await;
    let locks = Locks::connect(&server.url()).await.unwrap();
    locks.try_lock("a").await.unwrap().release().await.unwrap();
    assert_eq!(server.command::<Vec<String>>(&["KEYS", "*"]), ["{rewheel}:lock-token"]);
}

#[tokio::test]
async fn a_server_that_evicts_keys_is_refused() {
    let server = Server::start("--maxmemory-policy allkeys-lru").await;
    let text = Locks::connect(&server.url()).await.unwrap_err().to_string();
    assert!(text.contains("maxmemory-policy allkeys-lru") && text.contains("CONFIG SET"), "{text}");
}

#[tokio::test]
async fn a_server_that_is_down_is_named_without_the_password() {
    let text = Locks::connect("redis://ops:hunter2@127.0.0.1:1").await.unwrap_err().to_string();
    assert!(text.starts_with("the lock server is unavailable: Redis at 127.0.0.1:1: "), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let text = Locks::connect("redis://ops:hunter2@h?prefx=a").await.unwrap_err().to_string();
    assert!(text.starts_with("invalid `url`: ") && !text.contains("hunter2"), "{text}");
}
