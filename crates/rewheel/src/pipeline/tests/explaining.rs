//! Tests of `explain`.

use super::*;
use crate::{Backoff, Warning};

fn breaker() -> CircuitBreaker {
    CircuitBreaker::consecutive(5).named("pages").build()
}

/// The pipeline that the documentation recommends.
fn recommended() -> Pipeline {
    Pipeline::new()
        .timeout(seconds(30))
        .retry(Retry::EXTERNAL_API)
        .rate_limiter(&RateLimiter::per_second(10).wait_max(seconds(1)).build())
        .circuit_breaker(&breaker())
        .bulkhead(&Bulkhead::places(10).build())
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
    check(Pipeline::new().retry(FIVE.attempt_timeout(seconds(2))), &[]);
    check(Pipeline::new().retry(FIVE).attempt_timeout(seconds(2)), &[]);
    check(Pipeline::new().timeout(seconds(9)).circuit_breaker(&breaker()), &[]);
    check(Pipeline::new().retry(FIVE.attempts_max(1)), &[]);
}

#[test]
fn every_order_that_defeats_itself_is_named() {
    let retry = FIVE.attempt_timeout(seconds(1));
    let limiter = RateLimiter::per_second(1).build();
    let bulkhead = Bulkhead::places(1).build();
    let new = Pipeline::new;
    check(new().circuit_breaker(&breaker()).retry(retry), &[Warning::BreakerOutsideRetry]);
    check(new().rate_limiter(&limiter).retry(retry), &[Warning::LimiterOutsideRetry]);
    check(new().bulkhead(&bulkhead).retry(retry), &[Warning::BulkheadOutsideRetry]);
    check(new().retry(retry).timeout(seconds(1)), &[Warning::TimeoutInsideRetry]);
    check(new().retry(retry).retry(retry), &[Warning::RetryInsideRetry]);
    check(new().attempt_timeout(seconds(9)).retry(retry), &[Warning::AttemptTimeoutOutsideRetry]);
    check(new().circuit_breaker(&breaker()), &[Warning::NothingEndsAnAttempt]);
    check(
        new().timeout(seconds(2)).retry(FIVE).attempt_timeout(seconds(2)),
        &[Warning::AttemptTimeoutNotBelowTimeout],
    );
    check(
        new().retry(FIVE.deadline(seconds(1))).attempt_timeout(seconds(2)),
        &[Warning::AttemptTimeoutNotBelowTimeout],
    );
    check(new().retry(FIVE), &[Warning::NothingEndsAnAttempt]);
    check(new().timeout(seconds(9)).retry(FIVE), &[Warning::NothingEndsAnAttempt]);
    let adaptive = Retry::new(Backoff::adaptive(millis(100))).attempt_timeout(seconds(1));
    check(new().retry(adaptive), &[Warning::AdaptiveWithoutStatistics]);
    check(new().retry(adaptive).statistics(&Statistics::new()), &[]);
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
    let bulkhead = Bulkhead::places(1);
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
└─ retry: 5 attempts, exponential 100ms x2 max 10s jitter 30%, deadline 30s
   └─ rate limiter: 10 per 1s, burst 10
      └─ circuit breaker \"pages\": opens at 5 failures in a row, for 30s
         └─ bulkhead: 10 at once
            └─ attempt timeout 2s
               └─ the call
takes at most 30s
one call becomes at most 5 calls";
    assert_eq!(recommended().explain().to_string(), report);

    let report = "\
circuit breaker \"pages\": opens at 5 failures in a row, for 30s
└─ retry: 3 attempts, fixed 1s jitter none
   └─ the call
may take for ever: nothing ends it
one call becomes at most 3 calls
warning: circuit breaker outside of retry: it counts one failure for a whole series of attempts \
and cannot stop the series; put it inside
warning: no timeout ends an attempt: a call that hangs never fails, so it is neither retried nor seen by a breaker; add attempt_timeout";
    let wrong = Pipeline::new().circuit_breaker(&breaker()).retry(Retry::fixed(seconds(1)));
    assert_eq!(wrong.explain().to_string(), report);

    let report = "the call\nmay take for ever: nothing ends it\none call becomes at most 1 call";
    assert_eq!(Pipeline::new().explain().to_string(), report);
}
