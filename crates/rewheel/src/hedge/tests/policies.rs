//! Hedges together with the policies of a pipeline.

use super::{BUSY, Failure, Plan, Reply, hedge};
use crate::{
    BreakerState, Bulkhead, CancelToken, Category, CircuitBreaker, Class, Classify, GiveUpReason,
    ManualClock, Pipeline, Retry, RetryBudget, SafeToRepeat, millis, seconds,
};

#[tokio::test]
async fn each_attempt_has_its_own_slot_and_gives_it_back() {
    let clock = ManualClock::new();
    let bulkhead = Bulkhead::concurrency(2).clock(&clock).build();
    let fetch = Pipeline::new().clock(&clock).bulkhead(&bulkhead);
    let hedge = hedge(&clock).extra_max(4).build();
    let plan = Plan::new(&clock, &[(90, Ok(1)), (50, Ok(2))]);
    let run = fetch.run(|_| plan.attempt()).hedge(&hedge, SafeToRepeat);
    // The third attempt finds no slot. Its refusal ends only itself.
    assert_eq!(clock.drive(run).await.unwrap(), 2);
    assert_eq!((clock.elapsed(), bulkhead.free()), (millis(60), 2));
}

#[tokio::test]
async fn a_refusal_is_returned_only_if_no_attempt_was_made() {
    let clock = ManualClock::new();
    let bulkhead = Bulkhead::concurrency(1).clock(&clock).build();
    let fetch = Pipeline::new().clock(&clock).bulkhead(&bulkhead);
    let hedge = hedge(&clock).build();
    let plan = Plan::new(&clock, &[(90, BUSY)]);
    let error = clock.drive(fetch.run(|_| plan.attempt()).hedge(&hedge, SafeToRepeat)).await;
    assert_eq!(error.unwrap_err().last(), Some(&Failure::Busy(0)));
    let _slot = bulkhead.try_acquire().unwrap();
    let error = clock.drive(fetch.run(|_| plan.attempt()).hedge(&hedge, SafeToRepeat)).await;
    assert_eq!(error.unwrap_err().reason(), GiveUpReason::BulkheadFull);
}

#[tokio::test]
async fn an_attempt_that_lost_does_not_count_in_the_breaker() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).clock(&clock).build();
    let fetch = Pipeline::new().clock(&clock).circuit_breaker(&breaker);
    let hedge = hedge(&clock).build();
    let plan = Plan::new(&clock, &[(90, BUSY), (5, Ok(2))]);
    let run = fetch.run(|_| plan.attempt()).hedge(&hedge, SafeToRepeat);
    assert_eq!(clock.drive(run).await.unwrap(), 2);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_probe_that_lost_gives_its_slot_back() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(1)).probes_max(2).clock(&clock);
    let breaker = breaker.build();
    breaker.force_open();
    clock.advance(seconds(1));
    let fetch = Pipeline::new().clock(&clock).circuit_breaker(&breaker);
    let hedge = hedge(&clock).build();
    let plan = Plan::new(&clock, &[(90, BUSY), (5, BUSY)]);
    let mut run = Box::pin(fetch.run(|_| plan.attempt()).hedge(&hedge, SafeToRepeat));
    assert!(futures_util::poll!(run.as_mut()).is_pending());
    clock.advance(millis(10));
    assert!(futures_util::poll!(run.as_mut()).is_pending());
    assert_eq!(breaker.snapshot().probes, 2);
    drop(run);
    assert_eq!(breaker.snapshot().probes, 0);
}

#[tokio::test]
async fn an_attempt_with_retries_repeats_while_the_other_runs() {
    let clock = ManualClock::new();
    let retry = Retry::fixed(millis(1)).attempts_max(2);
    let fetch = Pipeline::new().clock(&clock).retry(retry);
    let hedge = hedge(&clock).build();
    let plan = Plan::new(&clock, &[(90, Ok(1)), (5, BUSY), (5, Ok(3))]);
    let run = fetch.run(|_| plan.attempt()).hedge(&hedge, SafeToRepeat);
    assert_eq!(clock.drive(run).await.unwrap(), 3);
    assert_eq!(clock.elapsed(), millis(10 + 5 + 1 + 5));
}

#[tokio::test]
async fn a_shared_budget_counts_each_call_once() {
    let clock = ManualClock::new();
    let budget = RetryBudget::ratio(0.5).floor_per_second(0).burst(9).clock(&clock).build();
    while budget.withdraw().is_ok() {}
    let fetch = Pipeline::new().clock(&clock).retry_budget(&budget);
    let hedge = hedge(&clock).retry_budget(&budget).build();
    for _ in 0..10 {
        let plan = Plan::new(&clock, &[(5, Ok(1))]);
        let run = fetch.run(|_| plan.attempt()).hedge(&hedge, SafeToRepeat);
        clock.drive(run).await.unwrap();
    }
    assert_eq!(budget.balance(), 5);
    let plan = Plan::new(&clock, &[(50, Ok(1)), (50, Ok(2))]);
    clock.drive(fetch.run(|_| plan.attempt()).hedge(&hedge, SafeToRepeat)).await.unwrap();
    // The call earned a half, the extra attempt cost one, and is no call of its own.
    assert_eq!(budget.balance(), 4);
}

#[tokio::test]
async fn a_cancelled_call_ends_all_attempts() {
    let clock = ManualClock::new();
    let token = CancelToken::new();
    let fetch = Pipeline::new().clock(&clock);
    let hedge = hedge(&clock).build();
    let plan = Plan::new(&clock, &[(90, Ok(1)), (90, Ok(2))]);
    let run = fetch.run(|_| plan.attempt()).cancel(&token).hedge(&hedge, SafeToRepeat);
    let mut run = Box::pin(run);
    assert!(futures_util::poll!(run.as_mut()).is_pending());
    clock.advance(millis(10));
    assert!(futures_util::poll!(run.as_mut()).is_pending());
    token.cancel();
    let error = run.await.unwrap_err();
    assert_eq!((error.reason(), plan.running.get()), (GiveUpReason::Cancelled, 0));
}

#[tokio::test]
async fn a_value_that_the_judge_rejects_waits_for_the_other_attempt() {
    let clock = ManualClock::new();
    let fetch = Pipeline::new().clock(&clock);
    let hedge = hedge(&clock).build();
    let judge = |reply: &Reply| match reply {
        Ok(503) => Class::retry(Category::Transient),
        Ok(_) => Class::DONE,
        Err(failure) => failure.classify(),
    };
    let plan = Plan::new(&clock, &[(12, Ok(503)), (50, Ok(200))]);
    let run = fetch.run(|_| plan.attempt()).judge(judge).hedge(&hedge, SafeToRepeat);
    assert_eq!(clock.drive(run).await.unwrap(), 200);
    let plan = Plan::new(&clock, &[(12, Ok(503)), (50, BUSY)]);
    let run = fetch.run(|_| plan.attempt()).judge(judge).hedge(&hedge, SafeToRepeat);
    assert!(clock.drive(run).await.is_err());
}

#[tokio::test]
async fn a_retry_around_a_hedge_counts_its_attempts_as_one() {
    let clock = ManualClock::new();
    let fetch = Pipeline::new().clock(&clock).retry(Retry::fixed(millis(1)).attempts_max(2));
    let hedge = hedge(&clock).build();
    let plan = Plan::new(&clock, &[(20, BUSY), (20, BUSY), (1, Ok(3))]);
    let reply = clock.drive(fetch.run(|_| hedge.call(SafeToRepeat, || plan.attempt()))).await;
    assert_eq!((reply.unwrap(), plan.started.get()), (3, 3));
}
