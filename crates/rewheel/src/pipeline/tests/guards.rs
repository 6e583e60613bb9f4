//! Checks the steps that limit what reaches the dependency, alone and for each key.

use super::*;
use crate::pipeline::Warning;
use crate::{AdaptiveLimit, ClientThrottle, Random, RetryBudget};

fn adaptive(clock: &ManualClock, queue_max: usize) -> AdaptiveLimit {
    let limit = AdaptiveLimit::between(1, 1).queue_max(queue_max).wait_max(seconds(1));
    limit.named("search").clock(clock).random(&Random::seeded(1)).build()
}

#[test]
fn an_adaptive_limit_frees_its_slot_however_the_call_ends() {
    let clock = ManualClock::new();
    let limit = adaptive(&clock, 0);
    let pipeline = Pipeline::new().attempt_timeout(seconds(1)).adaptive_limit(&limit).clock(&clock);
    assert_eq!(finish(pipeline.run(|_| std::future::ready(Ok::<_, Failure>(7)))).unwrap(), 7);
    assert_eq!(limit.in_use(), 0);
    let hangs = || pipeline.run(|_| std::future::pending::<std::result::Result<u32, Failure>>());
    assert_eq!(finish(clock.drive(hangs())).unwrap_err().reason(), GiveUpReason::Timeout);
    assert_eq!(limit.in_use(), 0);
    let mut dropped = Box::pin(hangs().into_future());
    assert!(poll(dropped.as_mut()).is_pending());
    assert_eq!(limit.in_use(), 1);
    let refused = finish(pipeline.run(|_| std::future::ready(Ok::<u32, Failure>(7))));
    assert_eq!(refused.unwrap_err().reason(), GiveUpReason::ConcurrencyLimited);
    drop(dropped);
    assert_eq!(limit.in_use(), 0);
}

#[test]
fn a_call_waits_for_the_adaptive_limit_and_leaves_its_queue() {
    let clock = ManualClock::new();
    let limit = adaptive(&clock, 2);
    let pipeline = Pipeline::new().adaptive_limit(&limit).clock(&clock);
    let permit = limit.try_acquire().unwrap();
    let call =
        || Box::pin(pipeline.run(|_| std::future::ready(Ok::<u32, Failure>(7))).into_future());
    let (mut first, mut second) = (call(), call());
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    assert_eq!(limit.waiting(), 2);
    drop(first);
    assert_eq!(limit.waiting(), 1);
    permit.success();
    assert_eq!(finish(second).unwrap(), 7);
    let _permit = limit.try_acquire().unwrap();
    let blocked = pipeline.run_blocking(|_| Ok::<u32, Failure>(7)).call();
    assert_eq!(blocked.unwrap_err().reason(), GiveUpReason::ConcurrencyLimited);
    assert_eq!((limit.waiting(), clock.elapsed()), (0, seconds(1)));
}

#[test]
fn a_pipeline_teaches_the_adaptive_limit_how_long_calls_take() {
    let clock = ManualClock::new();
    let limit = AdaptiveLimit::between(1, 10).clock(&clock).build();
    let pipeline = Pipeline::new().adaptive_limit(&limit).clock(&clock);
    for _ in 0..40 {
        let call = pipeline.run_blocking(|_| {
            clock.advance(millis(30));
            Ok::<u32, Failure>(7)
        });
        assert_eq!(call.call().unwrap(), 7);
    }
    assert_eq!(limit.baseline(), Some(millis(30)));
}

#[test]
fn a_client_throttle_rejects_without_a_retry_and_hears_the_results() {
    let clock = ManualClock::new();
    let throttle = ClientThrottle::accepts_times(2.0).floor_per_second(0).clock(&clock);
    let throttle = throttle.random(&Random::seeded(1)).build();
    let pipeline = Pipeline::new().retry(FIVE).client_throttle(&throttle).clock(&clock);
    let fails = || pipeline.run(|_| std::future::ready(Err::<u32, _>(Failure::Busy)));
    let mut rejected = 0;
    for _ in 0..50 {
        let error = finish(clock.drive(fails())).unwrap_err();
        rejected += u32::from(error.reason() == GiveUpReason::ClientThrottled);
    }
    assert!(rejected > 40, "{rejected}");
    assert!(throttle.rejects() > 0.9);
    // An error of the caller is an answer of a dependency that works.
    let throttle = ClientThrottle::accepts_times(1.0).floor_per_second(0).clock(&clock).build();
    let pipeline = Pipeline::new().client_throttle(&throttle).clock(&clock);
    for _ in 0..50 {
        let gone = pipeline.run(|_| std::future::ready(Err::<u32, _>(Failure::Gone)));
        assert_eq!(finish(gone).unwrap_err().reason(), GiveUpReason::Stopped);
    }
    assert_eq!(throttle.rejects(), 0.0);
}

#[test]
fn a_keyed_bulkhead_makes_calls_of_one_key_wait_and_not_those_of_another() {
    let clock = ManualClock::new();
    let bulkheads = Bulkhead::concurrency(1).queue_max(1).wait_max(seconds(1)).clock(&clock);
    let bulkheads = bulkheads.keyed::<String>(10);
    let pipeline = Pipeline::keyed().bulkhead_keyed(&bulkheads).clock(&clock);
    let place = bulkheads.try_acquire("a").unwrap();
    let call = |key: &'static str| {
        let call = pipeline.run(|_| std::future::ready(Ok::<u32, Failure>(7)));
        Box::pin(call.key(key).into_future())
    };
    assert_eq!(finish(call("b")).unwrap(), 7);
    let mut waits = call("a");
    assert!(poll(waits.as_mut()).is_pending());
    assert_eq!(finish(call("a")).unwrap_err().reason(), GiveUpReason::BulkheadFull);
    drop(place);
    assert_eq!(finish(waits).unwrap(), 7);
    let place = bulkheads.try_acquire("a").unwrap();
    let refused = finish(clock.drive(call("a"))).unwrap_err();
    assert_eq!((refused.reason(), clock.elapsed()), (GiveUpReason::BulkheadFull, seconds(1)));
    drop(place);
    assert_eq!((bulkheads.get("a").free(), bulkheads.get("a").waiting()), (1, 0));
}

#[test]
fn a_call_waits_for_the_rate_limit_of_its_key() {
    let clock = ManualClock::new();
    let limits = RateLimiter::per_second(10).burst(1).wait_max(seconds(1)).clock(&clock);
    let limits = limits.keyed::<String>(10);
    let pipeline = Pipeline::keyed().rate_limiter_keyed_waiting(&limits).clock(&clock);
    let call = |key: &'static str| {
        let call = pipeline.run(|_| std::future::ready(Ok::<u32, Failure>(7)));
        finish(clock.drive(call.key(key)))
    };
    for _ in 0..3 {
        assert_eq!(call("a").unwrap(), 7);
    }
    assert_eq!(clock.elapsed(), millis(200));
    assert_eq!(call("b").unwrap(), 7);
    assert_eq!(clock.elapsed(), millis(200), "another key waited");
    let explained = pipeline.explain();
    assert!(explained.steps[0].contains("for each key"), "{explained}");
    let timed = Pipeline::keyed().rate_limiter_keyed_waiting(&limits).timeout(seconds(2));
    assert_eq!(timed.explain().time_max, Some(seconds(3)));
}

#[test]
fn each_key_has_its_own_retry_budget_in_a_pipeline() {
    let clock = ManualClock::new();
    let budgets = RetryBudget::ratio(0.0).floor_per_second(0).burst(2).keyed::<String>(10);
    let pipeline = Pipeline::keyed().retry(FIVE).retry_budget_keyed(&budgets).clock(&clock);
    let call = |key: &'static str| {
        let call = pipeline.run(|_| std::future::ready(Err::<u32, _>(Failure::Busy))).key(key);
        let error = finish(clock.drive(call)).unwrap_err();
        (error.reason(), error.attempts())
    };
    assert_eq!(call("a"), (GiveUpReason::BudgetExhausted, 3));
    assert_eq!(call("a"), (GiveUpReason::BudgetExhausted, 1));
    assert_eq!(call("b"), (GiveUpReason::BudgetExhausted, 3));
    assert!(pipeline.explain().to_string().contains("for each key"));
}

#[test]
fn each_key_has_its_own_throttle_in_a_pipeline() {
    let clock = ManualClock::new();
    let throttles = ClientThrottle::accepts_times(2.0).floor_per_second(0).clock(&clock);
    let throttles = throttles.random(&Random::seeded(1)).keyed::<String>(10);
    let pipeline = Pipeline::keyed().client_throttle_keyed(&throttles).clock(&clock);
    for _ in 0..50 {
        let call = pipeline.run(|_| std::future::ready(Err::<u32, _>(Failure::Busy)));
        assert!(finish(call.key("down")).is_err());
    }
    assert!(throttles.get("down").rejects() > 0.5);
    let call = pipeline.run(|_| std::future::ready(Ok::<u32, Failure>(7)));
    assert_eq!(finish(call.key("up")).unwrap(), 7);
}

#[test]
fn guards_outside_of_a_retry_are_warned_about_and_explained() {
    let clock = ManualClock::new();
    let throttle = ClientThrottle::accepts_times(2.0).named("search").build();
    let wrong = Pipeline::new()
        .timeout(seconds(60))
        .client_throttle(&throttle)
        .adaptive_limit(&adaptive(&clock, 5))
        .retry(Retry::EXTERNAL_API);
    let explained = wrong.explain();
    let expected = [Warning::ThrottleOutsideRetry, Warning::AdaptiveLimitOutsideRetry];
    assert_eq!(explained.warnings, expected);
    assert_eq!(explained.time_max, Some(seconds(31)), "{explained}");
    let text = explained.to_string();
    for part in [
        "client throttle \"search\": requests are at most 2 times the accepts of 30s, but 1 per 1s always pass",
        "adaptive limit \"search\": 1 to 1 concurrent calls, 5 more can wait up to 1s",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
