//! Tests that a store follows its slot: to a replica that takes over, and to another primary.

use crate::redis_server::server::{jobs, kind};
use rewheel::Random;
use rewheel_core::store::{Insert, Inserted, KindStore, ReadStore, Sent, StoreError, SubmitStore};
use rewheel_core::{Actor, NewJob, NewKind};
use rewheel_stores::{RedisOptions, RedisStore};
use rewheel_testkit::{RedisCluster, RedisProcess};
use std::path::Path;
use std::time::Duration;

/// All keys of the store begin with this.
const PREFIX: &str = "{rewheel}:";

/// Tries of a call, 20 ms apart. Only a failing test uses all of them.
const TRIES_MAX: usize = 3_000;

async fn open(cluster: &RedisCluster) -> RedisStore {
    let store = RedisStore::open(&cluster.url()).await.expect("the cluster works");
    let new = NewKind {
        name: kind(),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    store.put_kinds(&[new], &Actor::new("test")).await.expect("a kind");
    store
}

/// Inserts as the engine does: it repeats the call until it is known what happened.
async fn insert(store: &RedisStore, batch: &[NewJob]) -> Vec<StoreError> {
    let mut errors = Vec::new();
    let mut insert = Insert::new(batch);
    for _ in 0..TRIES_MAX {
        match store.insert(&insert).await {
            Ok(answers) => {
                let is_stored = |answer: &Inserted| {
                    matches!(answer, Inserted::Created { .. } | Inserted::Duplicate { .. })
                };
                assert!(answers.iter().all(is_stored), "{answers:?}");
                return errors;
            }
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                insert.sent = Sent::Again;
                errors.push(error);
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no answer: {:?}", errors.last());
}

/// Counts as the engine reads: it repeats a read that failed because of the failover.
async fn live(store: &RedisStore) -> u64 {
    for _ in 0..TRIES_MAX {
        match store.books().await {
            Ok(books) => {
                assert_eq!(books.missing(), 0);
                return books.live;
            }
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no answer");
}

#[tokio::test]
async fn a_store_works_on_after_a_replica_took_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = RedisCluster::start(folder.path());
    let store = open(&cluster).await;
    let random = Random::thread();
    insert(&store, &jobs(&random, 10, 10)).await;
    let old = cluster.primary_of(PREFIX).unwrap();
    // Replication is asynchronous: only what the replica has is promised to survive.
    assert_eq!(cluster.node(old).command::<i64>(&["WAIT", "1", "10000"]), 1);
    cluster.node_mut(old).kill();
    let error = store.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    let new = cluster.take_over(PREFIX, old);
    insert(&store, &jobs(&random, 5, 10)).await;
    assert_eq!(live(&store).await, 15);
    // A node that starts meanwhile finds it too, although the first servers of its URL are gone.
    assert_eq!(live(&open(&cluster).await).await, 15);

    // The old primary comes back as a replica of the new one, and gets the slot again by a planned failover.
    cluster.node_mut(old).restart();
    cluster.wait_until_whole();
    assert_eq!(cluster.primary_of(PREFIX), Some(new));
    cluster.hand_over(PREFIX, old);
    insert(&store, &jobs(&random, 5, 10)).await;
    assert_eq!(live(&store).await, 20);
}

/// Starts a node of a cluster that does not notice when the others are gone.
fn slow_node(folder: &Path, name: &str, slots: Option<&str>) -> RedisProcess {
    let folder = folder.join(name);
    std::fs::create_dir(&folder).expect("a new folder");
    let settings = "--cluster-enabled yes --cluster-node-timeout 600000 \
                    --appendonly yes --appendfsync always";
    let node = RedisProcess::start(&folder, settings);
    if let Some(slots) = slots {
        let range: Vec<&str> = slots.split(' ').collect();
        node.command::<()>(&[&["CLUSTER", "ADDSLOTSRANGE"], range.as_slice()].concat());
    }
    node
}

/// The nodes of a cluster learn of a failover one after the other: the first that is asked may still name the primary that is gone.
#[tokio::test]
async fn a_store_asks_the_next_node_when_one_names_a_primary_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (late, new) =
        (slow_node(folder.path(), "late", None), slow_node(folder.path(), "new", Some("0 16383")));
    let mut gone = slow_node(folder.path(), "gone", Some("0 16383"));
    let port = |node: &RedisProcess| node.port().to_string();
    late.command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port(&gone)]);
    let works = |node: &RedisProcess| {
        node.command::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
    };
    for _ in 0..TRIES_MAX {
        if works(&late) && works(&new) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gone.kill();

    let url = |nodes: [&RedisProcess; 2]| {
        format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", port(nodes[0]), port(nodes[1]))
    };
    let store = RedisStore::open(&url([&late, &new])).await.expect("the new primary is asked");
    assert_eq!(live(&store).await, 0);
    let error = RedisStore::open(&url([&late, &late])).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(error.to_string().contains(&port(&gone)), "{error}");
}

/// While a slot moves, some keys are on the old node and some on the new one. A script there would see half of the store.
#[tokio::test]
async fn nothing_is_written_while_the_slot_moves() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = RedisCluster::start(folder.path());
    let store = open(&cluster).await;
    let random = Random::thread();
    insert(&store, &jobs(&random, 700, 2_000)).await;
    let from = cluster.primary_of(PREFIX).unwrap();
    let to = (from + 1) % 3;
    cluster.begin_move(PREFIX, to);
    let more = jobs(&random, 3, 10);
    for _ in 0..3 {
        let error = store.insert(&Insert::new(&more)).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(error.to_string().contains("the slot of this store moves"), "{error}");
        let error = store.books().await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    let keys = cluster.node(to).command::<Vec<Vec<u8>>>(&["KEYS", "*"]);
    assert!(keys.is_empty(), "written to the node that gets the slot");
    cluster.end_move(PREFIX, from, to);
    // The first call follows: the old node says where the slot is now.
    assert_eq!(store.books().await.unwrap().live, 700);
    assert_eq!(insert(&store, &more).await.len(), 0);
    assert_eq!(live(&store).await, 703);
    assert_eq!(cluster.primary_of(PREFIX), Some(to));
}

#[tokio::test]
async fn a_wrong_url_says_which_one_to_use() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = RedisCluster::start(folder.path());
    let other = (cluster.primary_of(PREFIX).unwrap() + 1) % 3;
    let store = RedisStore::open(&cluster.node(other).url()).await.unwrap();
    let error = store.books().await.unwrap_err();
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    assert!(error.to_string().contains("use redis+cluster://"), "{error}");

    let server = rewheel_testkit::Prefix::fresh().server().replace("redis://", "redis+cluster://");
    let error = RedisStore::open(&server).await.unwrap_err();
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    assert!(error.to_string().contains("is not a node of a Redis Cluster"), "{error}");
    let options = RedisOptions::parse("redis+cluster://127.0.0.1:1,127.0.0.1:2").unwrap();
    let error = RedisStore::open_with(options).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}
