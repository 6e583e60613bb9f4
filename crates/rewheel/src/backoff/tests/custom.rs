//! Backoffs that are code, with and without state.

use crate::{
    Backoff, Backoffs, CustomBackoff, Error, Jitter, ManualClock, NameError, Past, Random, Retry,
    Retryable, seconds,
};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Waits as many seconds as it was asked times, and remembers what it was told.
#[derive(Clone, Default)]
struct Counting {
    asked: Arc<AtomicU64>,
    told: Arc<Mutex<Vec<Past>>>,
}

impl CustomBackoff for Counting {
    fn delay(&self, past: &Past) -> Duration {
        self.told.lock().unwrap().push(*past);
        seconds(1 + self.asked.fetch_add(1, Ordering::Relaxed))
    }
}

fn registered(counting: &Counting) -> (Backoffs, Backoff) {
    let mut backoffs = Backoffs::new();
    let backoff = backoffs.register_custom("counting", counting.clone()).unwrap();
    (backoffs, backoff.jitter(Jitter::NONE))
}

#[test]
fn state_lives_on_between_calls() {
    let counting = Counting::default();
    let (_, backoff) = registered(&counting);
    let random = Random::seeded(1);
    let delays: Vec<_> = (0..3).map(|_| backoff.delay(1, &random)).collect();
    assert_eq!(delays, [seconds(1), seconds(2), seconds(3)]);
    assert_eq!(backoff.max(seconds(2)).delay(1, &random), seconds(2), "bounds hold for it, too");
}

#[tokio::test]
async fn a_retry_tells_it_what_happened_so_far() {
    let counting = Counting::default();
    let (_, backoff) = registered(&counting);
    let clock = ManualClock::new();
    let fails = || async { Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)) };
    let call = fails.retry(Retry::new(backoff).attempts_max(3)).clock(&clock);
    let error: Error<io::Error> = clock.drive(call).await.unwrap_err();
    assert_eq!((error.attempts(), clock.elapsed()), (3, seconds(1 + 2)));
    let told: Vec<_> =
        counting.told.lock().unwrap().iter().map(|past| (past.attempt, past.previous)).collect();
    assert_eq!(told, [(1, None), (2, Some(seconds(1)))]);
}

#[test]
fn looking_at_its_range_does_not_ask_it() {
    let counting = Counting::default();
    let (_, backoff) = registered(&counting);
    let backoff = backoff.min(seconds(1)).max(seconds(9));
    assert_eq!(backoff.delay_range(5), seconds(1)..=seconds(9));
    assert_eq!(backoff.time_max(2), seconds(18));
    let spread = backoff.jitter(Jitter::FULL);
    assert_eq!(spread.delay_range(5), seconds(1)..=seconds(9));
    assert_eq!(counting.asked.load(Ordering::Relaxed), 0);
}

#[test]
fn its_name_is_read_back_with_bounds_of_its_own() {
    let counting = Counting::default();
    let (backoffs, backoff) = registered(&counting);
    assert_eq!(backoff.to_string(), "counting max 30s jitter none");
    assert_eq!(backoffs.parse(&backoff.to_string()), Ok(backoff));
    let read = backoffs.parse("counting max 2s jitter none").unwrap();
    counting.asked.store(50, Ordering::Relaxed);
    assert_eq!(read.delay(1, &Random::seeded(1)), seconds(2));
    assert!(Backoffs::new().parse("counting").is_err(), "another registry does not know it");
}

#[test]
fn a_closure_is_a_custom_backoff() {
    let base = Arc::new(AtomicU64::new(3));
    let shared = Arc::clone(&base);
    let mut backoffs = Backoffs::new();
    let delay =
        move |past: &Past| seconds(shared.load(Ordering::Relaxed)).saturating_mul(past.attempt);
    let backoff = backoffs.register_custom("shared", delay).unwrap().jitter(Jitter::NONE);
    assert_eq!(backoff.delay(2, &Random::seeded(1)), seconds(6));
    base.store(4, Ordering::Relaxed);
    assert_eq!(backoff.delay(2, &Random::seeded(1)), seconds(8));
}

#[test]
fn a_bad_name_is_refused_and_the_last_one_of_a_name_counts() {
    let mut backoffs = Backoffs::new();
    for name in ["", "Pay day", "fixed"] {
        let refused = backoffs.register_custom(name, |_: &Past| Duration::ZERO);
        assert_eq!(refused, Err(NameError::Invalid(name.to_owned())));
    }
    backoffs.register_custom("payday", |_: &Past| seconds(1)).unwrap();
    backoffs.register_custom("payday", |_: &Past| seconds(2)).unwrap();
    let read = backoffs.parse("payday jitter none").unwrap();
    assert_eq!(read.delay(1, &Random::seeded(1)), seconds(2));
}

#[test]
fn a_policy_stays_small_enough_to_copy() {
    assert!(size_of::<Backoff>() <= 64, "{} bytes", size_of::<Backoff>());
}
