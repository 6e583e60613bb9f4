//! Tests of `explain`.

use super::*;
use crate::{Backoff, Jitter, RetryBudget, Warning};

/// As `FIVE`, spread as it should be.
const SPREAD: Retry = FIVE.jitter(Jitter::proportional(0.3));

fn breaker() -> CircuitBreaker {
    CircuitBreaker::consecutive(10).named("pages").build()
}

/// The pipeline that the documentation recommends.
fn recommended() -> Pipeline {
    Pipeline::new()
        .timeout(seconds(30))
        .retry(Retry::EXTERNAL_API)
        .rate_limiter(&RateLimiter::per_second(10).wait_max(seconds(1)).build())
        .circuit_breaker(&breaker())
        .bulkhead(&Bulkhead::concurrency(10).build())
        .attempt_timeout(seconds(2))
}

#[track_caller]
fn check(pipeline: Pipeline, expected: &[Warning]) {
    assert_eq!(pipeline.explain().warnings, expected, "{}", pipeline.explain());
}

#[test]
fn nothing_is_said_against_the_recommended_stack() {
    check(recommended(), &[]);
    check(Pipeline::new(), &[]);
    check(Pipeline::new().retry(SPREAD.attempt_timeout(seconds(2))), &[]);
    check(Pipeline::new().retry(SPREAD).attempt_timeout(seconds(2)), &[]);
    check(Pipeline::new().timeout(seconds(9)).circuit_breaker(&breaker()), &[]);
    check(Pipeline::new().retry(SPREAD.attempts_max(1)), &[]);
}

#[test]
fn every_order_that_defeats_itself_is_named() {
    let retry = SPREAD.attempt_timeout(seconds(1));
    let limiter = RateLimiter::per_second(1).wait_max(seconds(1)).build();
    let bulkhead = Bulkhead::concurrency(1).build();
    let new = Pipeline::new;
    check(new().circuit_breaker(&breaker()).retry(retry), &[Warning::BreakerOutsideRetry]);
    check(new().rate_limiter(&limiter).retry(retry), &[Warning::LimiterOutsideRetry]);
    check(new().bulkhead(&bulkhead).retry(retry), &[Warning::BulkheadOutsideRetry]);
    check(new().retry(retry).timeout(seconds(1)), &[Warning::TimeoutInsideRetry]);
    check(new().retry(retry).retry(retry), &[Warning::RetryInsideRetry]);
    check(new().attempt_timeout(seconds(9)).retry(retry), &[Warning::AttemptTimeoutOutsideRetry]);
    check(new().circuit_breaker(&breaker()), &[Warning::NothingEndsAnAttempt]);
    check(
        new().timeout(seconds(2)).retry(SPREAD).attempt_timeout(seconds(2)),
        &[Warning::AttemptTimeoutNotBelowTimeout],
    );
    check(
        new().retry(SPREAD.deadline(seconds(1))).attempt_timeout(seconds(2)),
        &[Warning::AttemptTimeoutNotBelowTimeout],
    );
    check(new().retry(SPREAD), &[Warning::NothingEndsAnAttempt, Warning::NoTotalLimit]);
    check(new().timeout(seconds(9)).retry(SPREAD), &[Warning::NothingEndsAnAttempt]);
    let adaptive = Retry::new(Backoff::adaptive(millis(100))).attempt_timeout(seconds(1));
    check(new().retry(adaptive), &[Warning::AdaptiveWithoutStatistics]);
    check(new().retry(adaptive).statistics(&Statistics::new()), &[]);
}

#[test]
fn a_fixed_delay_without_jitter_is_named() {
    let each = |retry: Retry| Pipeline::new().retry(retry.attempt_timeout(seconds(1)));
    check(each(FIVE), &[Warning::FixedDelayWithoutJitter]);
    check(each(FIVE.attempts_max(1)), &[]);
    check(each(Retry::exponential(seconds(1)).jitter(Jitter::NONE)), &[]);
}

#[test]
fn very_many_attempts_are_named() {
    let each =
        |attempts| Pipeline::new().retry(SPREAD.attempts_max(attempts).attempt_timeout(seconds(1)));
    check(each(Pipeline::ATTEMPTS_WARN), &[]);
    check(each(Pipeline::ATTEMPTS_WARN + 1), &[Warning::ManyAttempts]);
    assert!(Warning::ManyAttempts.to_string().contains(&Pipeline::ATTEMPTS_WARN.to_string()));
}

#[test]
fn a_call_with_retries_that_may_take_for_ever_is_named() {
    let endless = RateLimiter::per_second(1).build();
    let waiting = Pipeline::new().retry(SPREAD).rate_limiter(&endless).attempt_timeout(seconds(1));
    check(waiting, &[Warning::NoTotalLimit]);
    let within = Pipeline::new().timeout(seconds(9)).retry(SPREAD).rate_limiter(&endless);
    check(within.attempt_timeout(seconds(1)), &[]);
    let deadline = SPREAD.deadline(seconds(9));
    check(Pipeline::new().retry(deadline).rate_limiter(&endless).attempt_timeout(seconds(1)), &[]);
    check(Pipeline::new().rate_limiter(&endless).timeout(seconds(1)), &[]);
}

#[test]
fn a_breaker_that_one_call_opens_is_named() {
    let timed = Pipeline::new().retry(SPREAD).attempt_timeout(seconds(1));
    let with =
        |breaker: crate::CircuitBreakerBuilder| timed.clone().circuit_breaker(&breaker.build());
    let (found, nothing) = (&[Warning::OneCallOpensBreaker][..], &[][..]);
    check(with(CircuitBreaker::consecutive(5)), found);
    check(with(CircuitBreaker::consecutive(6)), nothing);
    let window = || CircuitBreaker::time_window(seconds(30));
    check(with(window().failures(5)), found);
    check(with(window().failures(6)), nothing);
    check(with(window().failure_ratio(0.5).calls_min(10)), found);
    check(with(window().failure_ratio(0.5).calls_min(11)), nothing);
    check(with(window().failure_ratio(0.01).calls_min(20)), found);
    let alone = Pipeline::new()
        .timeout(seconds(1))
        .circuit_breaker(&CircuitBreaker::consecutive(1).build());
    check(alone, nothing);

    let keyed = CircuitBreaker::consecutive(5).keyed::<String>(10);
    let keyed =
        Pipeline::keyed().retry(SPREAD).circuit_breaker_keyed(&keyed).attempt_timeout(seconds(1));
    assert_eq!(keyed.explain().warnings, found);
}

#[test]
fn a_probe_that_can_outlive_its_slot_is_named() {
    let slot = CircuitBreaker::consecutive(10).probe_timeout(seconds(60)).build();
    let each = |limit| Pipeline::new().retry(SPREAD).circuit_breaker(&slot).attempt_timeout(limit);
    check(each(seconds(60)), &[Warning::ProbeTimeoutNotAboveAttemptTimeout]);
    check(each(seconds(59)), &[]);
    let by_retry = SPREAD.attempt_timeout(seconds(61));
    check(
        Pipeline::new().retry(by_retry).circuit_breaker(&slot),
        &[Warning::ProbeTimeoutNotAboveAttemptTimeout],
    );
    let within = Pipeline::new().timeout(seconds(30)).retry(by_retry).circuit_breaker(&slot);
    check(within, &[Warning::AttemptTimeoutNotBelowTimeout]);
}

#[test]
fn the_retry_budget_is_shown() {
    let shown = |budget: RetryBudget| {
        let explanation = Pipeline::new().retry_budget(&budget).explain();
        assert!(explanation.to_string().contains(explanation.retry_budget.as_deref().unwrap()));
        explanation.retry_budget.unwrap()
    };
    assert_eq!(
        shown(RetryBudget::ratio(0.2).named("pages").build()),
        "retry budget \"pages\": retries are at most 20% of the calls, but 10 per 1s are always allowed",
    );
    assert_eq!(
        shown(RetryBudget::ratio(0.125).floor_per_second(0).build()),
        "retry budget: retries are at most 12.5% of the calls",
    );
    assert_eq!(
        shown(RetryBudget::per_second(50).build()),
        "retry budget: at most 50 retries per 1s",
    );
    assert_eq!(Pipeline::new().explain().retry_budget, None);
}

#[test]
fn every_warning_has_words_of_its_own() {
    let all = [
        Warning::BreakerOutsideRetry,
        Warning::BulkheadOutsideRetry,
        Warning::LimiterOutsideRetry,
        Warning::RetryInsideRetry,
        Warning::TimeoutInsideRetry,
        Warning::AttemptTimeoutOutsideRetry,
        Warning::AttemptTimeoutNotBelowTimeout,
        Warning::NothingEndsAnAttempt,
        Warning::AdaptiveWithoutStatistics,
        Warning::FixedDelayWithoutJitter,
        Warning::ManyAttempts,
        Warning::NoTotalLimit,
        Warning::OneCallOpensBreaker,
        Warning::ProbeTimeoutNotAboveAttemptTimeout,
    ];
    let texts: std::collections::HashSet<_> = all.iter().map(Warning::to_string).collect();
    assert_eq!(texts.len(), all.len());
    assert!(texts.iter().all(|text| !text.contains("  ") && !text.ends_with('.')));
}

#[track_caller]
fn check_bounds(pipeline: Pipeline, time_max: Option<Duration>, amplification_max: u64) {
    let explanation = pipeline.explain();
    let seen = (explanation.time_max, explanation.amplification_max);
    assert_eq!(seen, (time_max, amplification_max), "{explanation}");
}

#[test]
fn the_longest_time_and_the_worst_amplification_are_known() {
    let new = Pipeline::new;
    let retry = FIVE.retry_after_max(seconds(1));
    check_bounds(new(), None, 1);
    check_bounds(new().timeout(seconds(3)), Some(seconds(3)), 1);
    check_bounds(new().circuit_breaker(&breaker()), None, 1);
    check_bounds(new().retry(retry), None, 5);
    check_bounds(new().retry(retry.deadline(seconds(7))), Some(seconds(7)), 5);
    check_bounds(new().timeout(seconds(3)).retry(retry), Some(seconds(3)), 5);
    let each = new().retry(retry).attempt_timeout(seconds(2));
    check_bounds(each.clone(), Some(seconds(5 * 2 + 4 + 4)), 5);
    check_bounds(
        new().timeout(seconds(60)).retry(retry).attempt_timeout(seconds(2)),
        Some(seconds(18)),
        5,
    );
    check_bounds(new().retry(retry).retry(retry.attempts_max(3)), None, 15);
    check_bounds((0..8).fold(new(), |p, _| p.retry(retry.attempts_max(u32::MAX))), None, u64::MAX);

    let limiter = RateLimiter::per_second(1);
    let patient = limiter.clone().wait_max(seconds(4)).build();
    check_bounds(new().rate_limiter(&patient).timeout(seconds(3)), Some(seconds(7)), 1);
    check_bounds(new().timeout(seconds(3)).rate_limiter(&patient), Some(seconds(3)), 1);
    check_bounds(new().rate_limiter(&limiter.build()).timeout(seconds(3)), None, 1);
    let bulkhead = Bulkhead::concurrency(1);
    let without_a_line = bulkhead.clone().build();
    check_bounds(new().bulkhead(&without_a_line).timeout(seconds(3)), Some(seconds(3)), 1);
    let waiting = bulkhead.clone().queue_max(1).wait_max(seconds(2)).build();
    check_bounds(new().bulkhead(&waiting).timeout(seconds(3)), Some(seconds(5)), 1);
    let endless = bulkhead.queue_max(1).build();
    check_bounds(new().bulkhead(&endless).timeout(seconds(3)), None, 1);
    check_bounds(
        new().retry(retry).bulkhead(&waiting).attempt_timeout(seconds(3)),
        Some(seconds(5 * 5 + 4 + 4)),
        5,
    );
}

#[test]
fn prints_a_small_report() {
    let report = "\
timeout 30s
└─ retry: 5 attempts, exponential 100ms x2 max 10s jitter 30%, deadline 30s, attempt_timeout 5s
   └─ rate limiter: 10 per 1s, burst 10
      └─ circuit breaker \"pages\": opens at 10 failures in a row, for 30s
         └─ bulkhead: at most 10 concurrent calls
            └─ attempt timeout 2s
               └─ the call
takes at most 30s
one call becomes at most 5 calls";
    assert_eq!(recommended().explain().to_string(), report);

    let report = "\
circuit breaker \"pages\": opens at 10 failures in a row, for 30s
└─ retry: 3 attempts, fixed 1s jitter none
   └─ the call
may take forever: no timeout ends it
one call becomes at most 3 calls
warning: circuit breaker outside of retry: it counts one failure for a whole series of attempts \
and cannot stop the series; move it inside the retry
warning: fixed delay without jitter: clients that fail together retry together; add jitter
warning: no attempt timeout: a call that hangs never fails, so no retry repeats it and no breaker counts it; add attempt_timeout
warning: no total limit: a call with its retries may take forever; add timeout as the outermost step";
    let wrong = Pipeline::new().circuit_breaker(&breaker()).retry(Retry::fixed(seconds(1)));
    assert_eq!(wrong.explain().to_string(), report);

    let report = "the call\nmay take forever: no timeout ends it\none call becomes at most 1 call";
    assert_eq!(Pipeline::new().explain().to_string(), report);
}
