//! Compares the page of the library with the library.

use rewheel::{
    Bulkhead, CircuitBreaker, Pipeline, RateLimiter, Retry, RetryBudget, millis, seconds,
};

const PAGE: &str = include_str!("../../../../docs/library.md");

#[test]
fn the_explanation_on_the_page_is_what_is_printed() {
    let breaker = CircuitBreaker::consecutive(10).open_for(seconds(30)).named("pages").build();
    let limiter = RateLimiter::per_second(100).burst(20).wait_max(seconds(1)).build();
    let bulkhead = Bulkhead::concurrency(64).queue_max(100).wait_max(millis(500)).build();
    let fetch = Pipeline::new()
        .timeout(seconds(10))
        .retry(Retry::EXTERNAL_API)
        .retry_budget(&RetryBudget::ratio(0.2).build())
        .rate_limiter(&limiter)
        .circuit_breaker(&breaker)
        .bulkhead(&bulkhead)
        .attempt_timeout(seconds(2));

    let explanation = fetch.explain().to_string();

    assert!(PAGE.contains(&explanation), "docs/library.md does not show:\n{explanation}");
}

#[test]
fn the_policy_text_on_the_page_is_the_constant_beside_it() {
    let gently = Retry::exponential(millis(100)).attempts_max(5).deadline(seconds(10));
    assert!(PAGE.contains(&format!("`{gently}`")), "docs/library.md does not show `{gently}`");
}

#[test]
fn a_policy_is_as_small_as_its_decision_record_says() {
    assert!(size_of::<Retry>() <= 96, "{} bytes", size_of::<Retry>());
}
