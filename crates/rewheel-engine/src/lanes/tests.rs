//! Tests when lanes are read.

use super::{LANES_READ, LaneCache};
use rewheel::{Clock, Random};
use rewheel_core::store::{Insert, Store, StoreChange, SubmitStore};
use rewheel_core::{Actor, JobId, KindName, Lane, NewJob, NewKind, Tenant, Timestamp};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

fn kinds() -> Vec<KindName> {
    vec![KindName::parse("mail").unwrap()]
}

fn job(tenant: usize) -> NewJob {
    let id = JobId::new(Timestamp::from_millis(1_000), &Random::thread());
    let tenant = Tenant::parse(&format!("{tenant:05}")).ok();
    NewJob { tenant, ..NewJob::new(id, kinds().remove(0), b"1".to_vec()) }
}

async fn store_with(tenants: usize) -> FaultyStore {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let kind = NewKind {
        name: kinds().remove(0),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    store.put_kinds(&[kind], &Actor::new("test")).await.unwrap();
    let jobs: Vec<NewJob> = (0..tenants).map(job).collect();
    for jobs in jobs.chunks(1_000) {
        store.insert(&Insert::new(jobs)).await.unwrap();
    }
    FaultyStore::new(store)
}

/// Returns all due lanes, in turns.
fn due(cache: &mut LaneCache) -> Vec<Lane> {
    let mut lanes = Vec::new();
    loop {
        let (next, is_end) = cache.due(Duration::ZERO);
        assert!(next.len() <= LANES_READ);
        lanes.extend(next.into_iter().map(|one| one.lane));
        if is_end {
            return lanes;
        }
    }
}

#[tokio::test]
async fn a_listing_is_not_cut_short_by_changes() {
    let store = store_with(2_500).await;
    let mut cache = LaneCache::new(Clock::system(), HOUR);
    for page in 1..=3 {
        cache.hear(StoreChange::AnyLane);
        cache.refresh(&store, kinds()).await.unwrap();
        assert_eq!(due(&mut cache).len(), (page * LANES_READ).min(2_500));
    }
    assert!(
        cache.refresh(&store, kinds()).await.unwrap(),
        "and once more, for what changed meanwhile"
    );
}

#[tokio::test]
async fn a_lane_that_changed_is_read_before_it_is_offered() {
    let store = store_with(3).await;
    let mut cache = LaneCache::new(Clock::system(), HOUR);
    assert!(!cache.refresh(&store, kinds()).await.unwrap());
    assert_eq!(due(&mut cache).len(), 3);
    let new = job(7);
    store.insert(&Insert::new(std::slice::from_ref(&new))).await.unwrap();
    cache.hear(StoreChange::from(&new.lane()));
    store.fail_next(Verb::LaneHeads, Fault::Before);
    assert!(cache.refresh(&store, kinds()).await.is_err());
    assert_eq!(due(&mut cache).len(), 3);
    assert!(!cache.refresh(&store, kinds()).await.unwrap());
    assert_eq!(due(&mut cache).last(), Some(&new.lane()));
    // A lane without jobs is offered until a claim has found it empty.
    let empty = job(9).lane();
    cache.emptied(&empty);
    cache.refresh(&store, kinds()).await.unwrap();
    assert!(!due(&mut cache).contains(&empty));
}

#[tokio::test]
async fn lanes_of_other_kinds_are_not_read() {
    let store = store_with(3).await;
    let mut cache = LaneCache::new(Clock::system(), HOUR);
    cache.refresh(&store, Vec::new()).await.unwrap();
    cache.hear(StoreChange::from(&job(0).lane()));
    assert!(!cache.refresh(&store, Vec::new()).await.unwrap());
    assert_eq!(due(&mut cache), []);
    cache.refresh(&store, kinds()).await.unwrap();
    assert_eq!(due(&mut cache).len(), 3);
}
