//! Checks that clients that fail together do not retry together.

use crate::backoff::{Backoff, Jitter, Past};
use crate::{Random, millis, seconds};
use std::collections::HashSet;
use std::time::Duration;

/// Far beyond the point where every growing shape has reached its maximum delay.
const HIGH_ATTEMPT: u32 = 1_000;
const SAMPLES: usize = 10_000;
const BUCKETS: usize = 10;

#[track_caller]
fn check_spread(backoff: Backoff, mut draw: impl FnMut() -> Duration) {
    let range = backoff.delay_range(HIGH_ATTEMPT);
    assert_eq!(*range.end(), seconds(30), "{backoff} is not at its cap");
    let width = (*range.end() - *range.start()).as_secs_f64();
    let mut buckets = [0_u32; BUCKETS];
    let mut at_the_cap = 0;
    for _ in 0..SAMPLES {
        let delay = draw();
        at_the_cap += u32::from(delay == *range.end());
        let share = (delay - *range.start()).as_secs_f64() / width;
        buckets[((share * BUCKETS as f64) as usize).min(BUCKETS - 1)] += 1;
    }
    assert!(at_the_cap <= 100, "{backoff}: {at_the_cap} of {SAMPLES} at exactly the cap");
    // Five standard deviations to either side of one thousand.
    let even = buckets.iter().all(|count| (850..1_150).contains(count));
    assert!(even, "{backoff} is uneven: {buckets:?}");
}

#[test]
fn delays_at_the_cap_stay_spread_evenly() {
    let shapes = [
        Backoff::fixed(seconds(30)).max(seconds(30)),
        Backoff::linear(seconds(1)),
        Backoff::exponential(millis(100)),
        Backoff::exponential(millis(100)).factor(1.5),
        Backoff::fibonacci(millis(100)),
        Backoff::adaptive(millis(100)),
        Backoff::custom("far", |_| Duration::MAX),
    ];
    let jitters = [Jitter::FULL, Jitter::EQUAL, Jitter::proportional(0.1)];
    for (seed, shape) in (1..).zip(shapes) {
        for jitter in jitters {
            let (backoff, random) = (shape.jitter(jitter), Random::seeded(seed));
            check_spread(backoff, || backoff.delay(HIGH_ATTEMPT, &random));
        }
    }
}

#[test]
fn decorrelated_delays_at_the_cap_stay_spread_evenly() {
    let (backoff, random) = (Backoff::decorrelated(millis(100)), Random::seeded(1));
    let previous = Some(seconds(30));
    let past = Past { attempt: HIGH_ATTEMPT, previous, failure_ratio: 1.0 };
    check_spread(backoff, || backoff.delay_after(&past, &random));
}

#[test]
fn delays_at_the_lower_bound_do_not_pile_up_either() {
    let backoff = Backoff::exponential(seconds(10)).min(seconds(9));
    let random = Random::seeded(1);
    let at_the_bound = (0..SAMPLES).filter(|_| backoff.delay(1, &random) == seconds(9)).count();
    assert!(at_the_bound <= 100, "{at_the_bound} of {SAMPLES} at exactly the lower bound");
}

fn sequence(random: &Random) -> Vec<Duration> {
    let backoff = Backoff::exponential(millis(100));
    (1..=8).map(|attempt| backoff.delay(attempt, random)).collect()
}

#[test]
fn no_two_clients_draw_the_same_sequence() {
    let seeds = (0..1_000).map(|seed| sequence(&Random::seeded(seed)));
    assert_eq!(seeds.collect::<HashSet<_>>().len(), 1_000, "neighbouring seeds agree");

    let shared = Random::seeded(7);
    let clones = (0..1_000).map(|_| sequence(&shared.clone()));
    assert_eq!(clones.collect::<HashSet<_>>().len(), 1_000, "clones of one handle agree");

    let threads: Vec<_> =
        (0..8).map(|_| std::thread::spawn(|| sequence(&Random::thread()))).collect();
    let drawn = threads.into_iter().map(|thread| thread.join().unwrap());
    assert_eq!(drawn.collect::<HashSet<_>>().len(), 8, "threads agree");
}

#[test]
fn the_same_seed_replays_the_same_sequence() {
    assert_eq!(sequence(&Random::seeded(42)), sequence(&Random::seeded(42)));
}
