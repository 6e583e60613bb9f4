//! Delays that are too long, or make clients retry at the same time.

use super::refused;
use rewheel::{Backoff, Jitter, ManualClock, Random, Retry, Retryable, millis, seconds};
use std::collections::HashSet;
use std::time::Duration;

/// Makes a call that always fails, and returns its delays.
fn waits(policy: Retry) -> Vec<Duration> {
    let mut waits = Vec::new();
    let _ = (|| Err::<(), _>(refused()))
        .retry(policy)
        .clock(ManualClock::new())
        .on_retry(|retrying| waits.push(retrying.delay))
        .call();
    waits
}

/// backon 1.6: jitter added after the cap gave 6.87 s with a maximum of 4 s.
#[test]
fn jittered_delay_never_exceeds_max() {
    let backoff = Backoff::exponential(seconds(1)).max(seconds(4));
    for jitter in [Jitter::FULL, Jitter::EQUAL, Jitter::proportional(1.0)] {
        let random = Random::seeded(1);
        let backoff = backoff.jitter(jitter);
        let longest = (0..10_000).map(|i| backoff.delay(i % 20, &random)).max().unwrap();
        assert!(longest <= seconds(4), "{backoff} waited {longest:?}");
        assert!(longest > millis(3_990), "{backoff} never comes near its maximum: {longest:?}");
    }
}

/// tower's exponential backoff: no jitter is left once the delay has reached the cap.
#[test]
fn jitter_survives_the_cap() {
    let random = Random::seeded(1);
    for jitter in [Jitter::FULL, Jitter::EQUAL, Jitter::proportional(0.1)] {
        let backoff = Backoff::exponential(millis(100)).max(seconds(2)).jitter(jitter);
        let drawn: HashSet<_> = (0..1_000).map(|_| backoff.delay(60, &random)).collect();
        assert!(drawn.len() > 990, "{backoff}: only {} different delays", drawn.len());
    }
}

/// tower's exponential backoff maker: every session replays the same jitter.
#[test]
fn two_sessions_never_share_jitter() {
    const POLICY: Retry = Retry::exponential(millis(100)).attempts_max(5);
    let sessions: HashSet<_> = (0..1_000).map(|_| waits(POLICY)).collect();
    assert_eq!(sessions.len(), 1_000);
}

/// backon 1.6 without std: a fixed seed gives every device the same delays.
#[test]
fn seedless_randomness_differs_between_threads() {
    const POLICY: Retry = Retry::exponential(millis(100)).attempts_max(5);
    let threads = super::race(8, || waits(POLICY));
    assert_eq!(threads.into_iter().collect::<HashSet<_>>().len(), 8);
}

/// backon 1.6: no jitter by default.
#[test]
fn jitter_is_on_by_default_for_every_shape_that_grows() {
    let random = Random::seeded(1);
    for backoff in [
        Backoff::linear(seconds(1)),
        Backoff::exponential(seconds(1)),
        Backoff::fibonacci(seconds(1)),
        Backoff::decorrelated(seconds(1)),
        Backoff::adaptive(seconds(1)),
        Backoff::custom("own", |_| seconds(1)),
    ] {
        let drawn: HashSet<_> = (0..100).map(|_| backoff.delay(3, &random)).collect();
        assert!(drawn.len() > 90, "{backoff}");
    }
}

/// reqwest 0.13: retries without any delay.
#[test]
fn every_preset_waits_between_attempts() {
    for name in ["external_api", "internal_service", "database", "non_critical"] {
        let policy = Retry::preset(name).unwrap();
        let total: Duration = (0..20).flat_map(|_| waits(policy)).sum();
        assert!(total > Duration::ZERO, "{name} does not wait");
    }
}

/// tokio-retry 0.3: the base is the multiplier, so that 10 ms becomes 10 s at the fourth delay.
#[test]
fn exponential_base_is_the_first_delay() {
    let policy = Retry::exponential(millis(10)).jitter(Jitter::NONE).attempts_max(5);
    assert_eq!(waits(policy), [10, 20, 40, 80].map(millis));
}

/// Polly before 8.4: two to the power of 1,024 is infinite, and later values are negative.
#[test]
fn the_ten_thousandth_attempt_waits_as_long_as_the_hundredth() {
    let random = Random::seeded(1);
    for text in ["exponential 1s jitter none", "exponential 1s x1.5 jitter none"] {
        let backoff: Backoff = text.parse().unwrap();
        for attempt in [100, 1_023, 1_024, 1_025, 10_000, u32::MAX] {
            assert_eq!(backoff.delay(attempt, &random), Backoff::DELAY_MAX, "{attempt}");
        }
    }
}
