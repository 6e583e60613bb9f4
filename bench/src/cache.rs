//! Compares caches where the value of a key is fresh.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rewheel::{Clock, LastGood};

use crate::correctness::allocations;
use crate::goal::Limit::Times;
use crate::harness::{Comparison, Group, Pace, Subject};

const KEYS: u64 = 1_000;
/// Twice the keys, so that none is evicted.
const KEYS_MAX: usize = 2_000;
const TTL: Duration = Duration::from_secs(3_600);

/// Like ours, it looks at the clock for each value.
const MOKA: &str = "moka, time to live";
/// Values live until they are evicted.
const QUICK_CACHE: &str = "quick_cache, no time to live";

pub fn compare(pace: &Pace) -> Vec<Group> {
    let subjects = vec![
        ours("rewheel, system clock", Clock::system())
            .versus(&[MOKA], &[(1, Times(1.0)), (2, Times(1.0))]),
        ours("rewheel, coarse clock", Clock::coarse()).versus(&[QUICK_CACHE], &[]),
        moka(),
        quick_cache(),
    ];
    vec![Comparison { name: "cached value", threads: &[1, 2], subjects }.measure(pace)]
}

fn ours(name: &'static str, clock: Clock) -> Subject {
    let cache = LastGood::ttl(TTL).keys_max(KEYS_MAX).clock(clock);
    let cache = cache.build::<u64, u64, io::Error>();
    (0..KEYS).for_each(|key| cache.insert(key, key));
    let check = allocations::none(|| {
        black_box(cache.get(&7));
    });
    Subject::new(name, cache, |cache, index| cache.get(&(index % KEYS))).checked(check)
}

fn moka() -> Subject {
    let cache =
        moka::sync::Cache::builder().max_capacity(KEYS_MAX as u64).time_to_live(TTL).build();
    (0..KEYS).for_each(|key| cache.insert(key, Arc::new(key)));
    Subject::new(MOKA, cache, |cache, index| cache.get(&(index % KEYS)))
}

fn quick_cache() -> Subject {
    let cache = quick_cache::sync::Cache::new(KEYS_MAX);
    (0..KEYS).for_each(|key| cache.insert(key, Arc::new(key)));
    Subject::new(QUICK_CACHE, cache, |cache, index| cache.get(&(index % KEYS)))
}
