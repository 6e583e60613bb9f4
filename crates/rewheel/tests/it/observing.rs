//! Checks that observers are notified of every refusal.

#![expect(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "test code")]

use rewheel::{
    Bulkhead, CircuitBreaker, Event, GiveUpReason, ManualClock, Observer, RateLimiter, RetryBudget,
    millis,
};
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Admitted { .. } | Event::BreakerBuilt { .. } = event {
            return;
        }
        let said = match event {
            Event::Refused { name, why, retry_in } => format!("{name}: {why:?}, {retry_in:?}"),
            Event::BreakerChanged { name, to, .. } => format!("{name}: {to}"),
            _ => "something else".to_owned(),
        };
        self.0.lock().unwrap().push(said);
    }
}

#[test]
fn every_refusal_is_reported_once_with_the_name_of_the_policy() {
    let (clock, heard) = (ManualClock::new(), Arc::new(Heard::default()));
    let limiter = RateLimiter::per_second(10).burst(1).clock(&clock).named("limiter");
    let limiter = limiter.observer(heard.clone());
    let per_key = limiter.clone().named("per key").keyed::<u32>(10);
    let limiter = limiter.build();
    let bulkhead = Bulkhead::concurrency(1).named("bulkhead").observer(heard.clone()).build();
    let breaker = CircuitBreaker::consecutive(1).named("breaker").observer(heard.clone()).build();
    let budget = RetryBudget::ratio(0.1).floor_per_second(0).burst(1).named("budget");
    let budget = budget.observer(heard.clone()).build();

    let _place = bulkhead.try_acquire().unwrap();
    breaker.isolate();
    for _ in 0..2 {
        let _ = limiter.check();
        let _ = per_key.check(&7);
        let _ = budget.withdraw();
    }
    assert_eq!(bulkhead.try_acquire().unwrap_err().why, GiveUpReason::BulkheadFull);
    assert!(breaker.acquire().is_err());

    let wait = Some(millis(100));
    let expected = [
        "breaker: open".to_owned(),
        format!("limiter: RateLimited, {wait:?}"),
        format!("per key: RateLimited, {wait:?}"),
        "budget: BudgetExhausted, None".to_owned(),
        "bulkhead: BulkheadFull, None".to_owned(),
        "breaker: CircuitOpen, None".to_owned(),
    ];
    assert_eq!(*heard.0.lock().unwrap(), expected);
}

#[derive(Debug, Default)]
struct Admissions(Mutex<Vec<String>>);

impl Observer for Admissions {
    fn observe(&self, event: &Event<'_>) {
        let said = match event {
            Event::Admitted { name, by, waited } => format!("{name}: {by:?}, {waited:?}"),
            Event::BreakerBuilt { name, state, .. } => format!("{name}: built {state}"),
            _ => "something else".to_owned(),
        };
        self.0.lock().unwrap().push(said);
    }
}

/// It is compiled and runs whatever the features: events do not depend on them.
#[test]
fn admissions_and_new_breakers_are_heard_without_any_feature() {
    let (clock, heard) = (ManualClock::new(), Arc::new(Admissions::default()));
    let limiter = RateLimiter::per_second(10).clock(&clock).named("limiter");
    let limiter = limiter.observer(heard.clone());
    limiter.clone().named("per key").keyed::<u32>(10).check(&7).unwrap();
    limiter.build().check().unwrap();
    let bulkhead = Bulkhead::concurrency(1).named("bulkhead").observer(heard.clone()).build();
    drop(bulkhead.try_acquire().unwrap());
    let breaker = CircuitBreaker::consecutive(1).named("breaker").observer(heard.clone());
    breaker.clone().build();
    breaker.keyed::<u32>(9).get(&7);
    let expected = [
        "per key: RateLimited, 0ns",
        "limiter: RateLimited, 0ns",
        "bulkhead: BulkheadFull, 0ns",
        "breaker: built closed",
    ];
    assert_eq!(*heard.0.lock().unwrap(), expected);
}
