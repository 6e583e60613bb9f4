//! Tests when lanes are read.

use super::{LANES_READ, LaneCache};
use rewheel::{Clock, ManualClock, Random};
use rewheel_core::store::{
    Capabilities, Change, ChangeVerb, Insert, OperateStore, Store, StoreChange, SubmitStore,
};
use rewheel_core::{Actor, JobId, KindName, Lane, NewJob, NewKind, Retain, Tenant, Timestamp};
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
    let mut cache = LaneCache::new(Clock::system(), HOUR, None);
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
    let mut cache = LaneCache::new(Clock::system(), HOUR, None);
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
    let mut cache = LaneCache::new(Clock::system(), HOUR, None);
    cache.refresh(&store, Vec::new()).await.unwrap();
    cache.hear(StoreChange::from(&job(0).lane()));
    assert!(!cache.refresh(&store, Vec::new()).await.unwrap());
    assert_eq!(due(&mut cache), []);
    cache.refresh(&store, kinds()).await.unwrap();
    assert_eq!(due(&mut cache).len(), 3);
}

/// What a store says of itself that several processes share, and that does not report what others do.
fn shared_store(store: &FaultyStore) -> Capabilities {
    Capabilities { shared: true, ..store.capabilities() }
}

/// Looks until a lane is due or the time is over, as an idle node does. Returns the number of looks, and how long it waited.
async fn look_until(
    cache: &mut LaneCache,
    store: &FaultyStore,
    clock: &ManualClock,
    most: Duration,
) -> (usize, Duration) {
    let (began, mut looks) = (clock.elapsed(), 0);
    loop {
        let rest = cache.rest();
        let waited = clock.elapsed() - began;
        if waited + rest > most {
            clock.advance(most - waited);
            return (looks, most);
        }
        clock.advance(rest);
        cache.refresh(store, kinds()).await.unwrap();
        looks += 1;
        if !due(cache).is_empty() {
            return (looks, clock.elapsed() - began);
        }
    }
}

/// Another process stores a job after some idle time. Returns how long it waits, and lets a claim take it.
async fn wait_of_a_job_after(
    cache: &mut LaneCache,
    store: &FaultyStore,
    clock: &ManualClock,
    idle: Duration,
) -> Duration {
    look_until(cache, store, clock, idle).await;
    let new = job(1);
    store.insert(&Insert::new(std::slice::from_ref(&new))).await.unwrap();
    let (_, waited) = look_until(cache, store, clock, HOUR).await;
    cancel(store, &new).await;
    cache.emptied(&new.lane());
    waited
}

async fn cancel(store: &FaultyStore, job: &NewJob) {
    let cancel = Change::new(job.id, ChangeVerb::Cancel);
    let keep = Retain::default();
    store.change(&[cancel], &Actor::new("test"), keep).await.unwrap();
}

#[tokio::test]
async fn a_job_of_another_process_waits_for_a_quarter_of_the_idle_time_before_it() {
    let (store, clock) = (store_with(0).await, ManualClock::new());
    let poll = Duration::from_secs(1);
    let mut cache = LaneCache::new(Clock::from(&clock), poll, Some(&shared_store(&store)));
    cache.refresh(&store, kinds()).await.unwrap();
    // The first one waits for the configured interval.
    let waited = wait_of_a_job_after(&mut cache, &store, &clock, Duration::from_millis(100)).await;
    assert_eq!(waited, Duration::from_millis(900));
    for (idle, most) in [(0, 5), (12, 5), (100, 25), (333, 84), (2_000, 500), (60_000, 1_000)] {
        let idle = Duration::from_millis(idle);
        let waited = wait_of_a_job_after(&mut cache, &store, &clock, idle).await;
        assert!(waited <= Duration::from_millis(most), "after {idle:?}: {waited:?}");
    }
}

#[tokio::test]
async fn an_idle_node_looks_as_configured_soon_after_its_last_job() {
    let (store, clock) = (store_with(0).await, ManualClock::new());
    let poll = Duration::from_secs(1);
    let mut cache = LaneCache::new(Clock::from(&clock), poll, Some(&shared_store(&store)));
    cache.refresh(&store, kinds()).await.unwrap();
    let (idle, _) = look_until(&mut cache, &store, &clock, Duration::from_secs(10)).await;
    assert_eq!(idle, 10);
    wait_of_a_job_after(&mut cache, &store, &clock, Duration::ZERO).await;
    let (looks, _) = look_until(&mut cache, &store, &clock, Duration::from_secs(4)).await;
    assert!((15..30).contains(&looks), "{looks} looks after the last job");
    let (idle, _) = look_until(&mut cache, &store, &clock, Duration::from_secs(60)).await;
    assert!(idle <= 61, "{idle} looks in a minute");
}

/// A watcher reports what this process itself does, and a kind may be closed: neither says that others store jobs.
#[tokio::test]
async fn only_jobs_of_other_processes_shorten_the_interval() {
    let (store, clock) = (store_with(0).await, ManualClock::new());
    let poll = Duration::from_secs(1);
    let mut cache = LaneCache::new(Clock::from(&clock), poll, Some(&shared_store(&store)));
    cache.refresh(&store, kinds()).await.unwrap();
    let new = job(1);
    store.insert(&Insert::new(std::slice::from_ref(&new))).await.unwrap();
    // It is reported while the page is read.
    clock.advance(poll);
    cache.refresh(&store, kinds()).await.unwrap();
    cache.hear(StoreChange::from(&new.lane()));
    assert_eq!(cache.rest(), poll);
    for _ in 0..3 {
        cache.gave_nothing(&new.lane());
        cache.refresh(&store, kinds()).await.unwrap();
        assert_eq!(cache.rest(), poll, "it cannot be claimed");
    }
    cache.emptied(&new.lane());
    cache.refresh(&store, kinds()).await.unwrap();
    assert_eq!(cache.rest(), Duration::from_millis(5), "another job followed");
}
