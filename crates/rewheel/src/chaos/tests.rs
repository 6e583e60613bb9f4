//! Tests of the chaos policy: that it is off unless a test runs, and that it is seen as a failure of the dependency.

#![expect(clippy::unwrap_used, reason = "test code")]

use super::{Chaos, ChaosBuilder};
use crate::clock::ManualClock;
use crate::duration::{millis, minutes, seconds};
use crate::error::GiveUpReason;
use crate::observer::{Event, Observer};
use crate::pipeline::Pipeline;
use crate::{BreakerState, CircuitBreaker, Retry, RetryBudget, Warning};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn chaos(clock: &ManualClock) -> ChaosBuilder {
    Chaos::seeded(1).clock(clock).named("test")
}

async fn answer() -> io::Result<u32> {
    Ok(7)
}

#[tokio::test]
async fn it_does_nothing_until_it_is_switched_on_and_after_its_switch_is_dropped() {
    let clock = ManualClock::new();
    let chaos = chaos(&clock).fail(1.0).build();
    let pipeline = Pipeline::new().chaos(&chaos).clock(&clock);
    for _ in 0..100 {
        assert_eq!(pipeline.run(|_| answer()).await.unwrap(), 7);
    }
    let switch = chaos.switch_on(minutes(1));
    let error = pipeline.run(|_| answer()).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Chaos, 1));
    assert!(chaos.is_on());
    drop(switch);
    assert!(!chaos.is_on());
    assert_eq!(pipeline.run(|_| answer()).await.unwrap(), 7);
    assert_eq!(chaos.changed(), 1);
}

#[test]
fn it_ends_by_itself_even_if_its_switch_is_never_dropped() {
    let clock = ManualClock::new();
    let chaos = chaos(&clock).fail(1.0).build();
    let _held_for_ever = std::mem::ManuallyDrop::new(chaos.switch_on(Chaos::ON_MAX));
    clock.advance(Chaos::ON_MAX - millis(1));
    assert!(chaos.is_on());
    clock.advance(millis(1));
    assert!(!chaos.is_on() && chaos.draw().is_none());
}

#[test]
fn an_old_switch_does_not_end_a_new_one() {
    let clock = ManualClock::new();
    let chaos = chaos(&clock).fail(1.0).build();
    let first = chaos.switch_on(minutes(1));
    let _second = chaos.switch_on(minutes(2));
    drop(first);
    clock.advance(seconds(90));
    assert!(chaos.is_on());
}

#[test]
fn a_time_without_end_and_impossible_shares_are_refused() {
    let clock = ManualClock::new();
    let policy = chaos(&clock).build();
    for time in [Duration::ZERO, Chaos::ON_MAX + millis(1), Duration::MAX] {
        let error = policy.try_switch_on(time).unwrap_err();
        assert_eq!(error.allowed(), "use a time above zero, at most 1h");
    }
    assert!(!policy.is_on());
    for shares in [[0.5, 0.6, 0.0], [1.1, 0.0, 0.0], [0.0, f64::NAN, 0.0], [0.5, 0.0, -0.1]] {
        let [fail, delay, hang] = shares;
        let build = || chaos(&clock).fail(fail).delay(delay, seconds(1)).hang(hang);
        assert!(catch_unwind(AssertUnwindSafe(build)).is_err(), "{shares:?}");
    }
}

/// Records what was injected.
#[derive(Debug, Default)]
struct Faults(Mutex<Vec<&'static str>>);

impl Observer for Faults {
    fn observe(&self, event: &Event<'_>) {
        if let Event::ChaosInjected { fault, .. } = event {
            self.0.lock().unwrap().push(fault);
        }
    }
}

fn faults(seed: u64) -> Vec<&'static str> {
    let faults = Arc::new(Faults::default());
    let chaos = Chaos::seeded(seed).fail(0.1).delay(0.2, seconds(1)).hang(0.05);
    let chaos = chaos.observer(faults.clone()).build();
    let _switch = chaos.switch_on(minutes(1));
    (0..10_000).for_each(|_| {
        chaos.draw();
    });
    let faults = faults.0.lock().unwrap();
    faults.clone()
}

#[test]
fn the_shares_are_kept_and_a_seed_repeats_its_faults() {
    let seen = faults(3);
    for (fault, expected) in [("fail", 1_000), ("delay", 2_000), ("hang", 500)] {
        let count = seen.iter().filter(|seen| **seen == fault).count();
        assert!(count.abs_diff(expected) < expected / 5, "{fault}: {count}");
    }
    assert_eq!(seen, faults(3));
    assert_ne!(seen, faults(4));
}

#[tokio::test]
async fn a_failure_is_repeated_costs_budget_and_opens_the_breaker() {
    let clock = ManualClock::new();
    let chaos = chaos(&clock).fail(1.0).build();
    let breaker = CircuitBreaker::consecutive(3).clock(&clock).build();
    let budget = RetryBudget::ratio(0.0).floor_per_second(0).burst(1).build();
    let pipeline = Pipeline::new()
        .retry(Retry::fixed(seconds(1)).attempts_max(5))
        .retry_budget(&budget)
        .circuit_breaker(&breaker)
        .chaos(&chaos)
        .clock(&clock);
    assert!(pipeline.explain().warnings.contains(&Warning::HasChaos));
    let _switch = chaos.switch_on(minutes(1));
    let error = clock.drive(pipeline.run(|_| answer())).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::BudgetExhausted, 2));
    assert!(clock.drive(pipeline.run(|_| answer())).await.is_err());
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[tokio::test]
async fn a_delay_and_a_hang_are_cut_by_the_attempt_timeout_and_count_as_failures() {
    for is_hang in [false, true] {
        let clock = ManualClock::new();
        let chaos = chaos(&clock);
        let chaos = if is_hang { chaos.hang(1.0) } else { chaos.delay(1.0, seconds(30)) }.build();
        let breaker = CircuitBreaker::consecutive(2).clock(&clock).build();
        let pipeline = Pipeline::new()
            .retry(Retry::fixed(seconds(1)).attempts_max(2))
            .circuit_breaker(&breaker)
            .attempt_timeout(seconds(2))
            .chaos(&chaos)
            .clock(&clock);
        let _switch = chaos.switch_on(minutes(10));
        let error = clock.drive(pipeline.run(|_| answer())).await.unwrap_err();
        assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 2));
        assert_eq!((clock.elapsed(), breaker.state()), (seconds(5), BreakerState::Open));
    }
}

#[tokio::test]
async fn a_delayed_call_is_made_and_a_hang_ends_with_the_test() {
    let clock = ManualClock::new();
    let delayed = chaos(&clock).delay(1.0, seconds(3)).build();
    let _switch = delayed.switch_on(minutes(10));
    let pipeline = Pipeline::new().chaos(&delayed).clock(&clock);
    assert_eq!(clock.drive(pipeline.run(|_| answer())).await.unwrap(), 7);
    assert_eq!(clock.elapsed(), seconds(3));
    assert_eq!(pipeline.run_blocking(|_| Ok::<_, io::Error>(8)).call().unwrap(), 8);
    assert_eq!(clock.elapsed(), seconds(6));

    let hangs = chaos(&clock).hang(1.0).build();
    let _switch = hangs.switch_on(minutes(1));
    let pipeline = Pipeline::new().chaos(&hangs).clock(&clock);
    assert_eq!(clock.drive(pipeline.run(|_| answer())).await.unwrap(), 7);
    assert_eq!(clock.elapsed(), seconds(66));
}
