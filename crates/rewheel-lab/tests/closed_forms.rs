//! Compares simulations with the formulas of queueing theory and of probability.

use rewheel::{Pipeline, Retry, millis, seconds};
use rewheel_lab::{Dependency, Latency, Outcome, Storm};

/// The mean wait in the queue M/M/c, relative to the mean service time (Erlang C).
fn mm_c_wait(servers: u32, load: f64) -> f64 {
    let offered = load * f64::from(servers);
    // The blocking probability of Erlang B, by its recursion; then that of waiting.
    let blocked = (1..=servers).fold(1.0, |blocked, n| {
        let busy = offered * blocked;
        busy / (f64::from(n) + busy)
    });
    let waits = blocked / (1.0 - load * (1.0 - blocked));
    waits / (f64::from(servers) * (1.0 - load))
}

#[test]
fn the_formula_is_that_of_the_textbook() {
    // M/M/1: ρ / (1 - ρ). Two servers: ρ² / (1 - ρ²).
    assert!((mm_c_wait(1, 0.8) - 4.0).abs() < 1e-9);
    assert!((mm_c_wait(2, 0.8) - 0.64 / 0.36).abs() < 1e-9);
}

#[track_caller]
fn check_queue(servers: u32, load: f64, latency: Latency, variation: f64) {
    // Each server serves 100 requests per second. Without a timeout, no call is lost.
    let capacity = servers * 100;
    let rate = (f64::from(capacity) * load).round() as u32;
    let lasts = seconds(u64::from(400_000 / rate));
    let storm = Storm::new(Dependency::new(capacity, latency), rate).lasts(lasts).seed(5);
    let outcome = storm.run(|_| Pipeline::new());
    assert_eq!(outcome.succeeded(), outcome.offered());
    let service = 0.010;
    let wait = outcome.latency_mean().as_secs_f64() - service;
    // For one server and any service time, the formula of Pollaczek and Khinchine is exact.
    let expected = mm_c_wait(servers, load) * service * (1.0 + variation) / 2.0;
    assert!(
        (wait / expected - 1.0).abs() < 0.1,
        "{servers} servers at {load}: calls wait {wait}s, not {expected}s"
    );
}

#[test]
fn waits_in_the_queue_are_those_of_the_formula() {
    let exponential = || Latency::exponential(millis(10));
    check_queue(1, 0.5, exponential(), 1.0);
    check_queue(1, 0.8, exponential(), 1.0);
    check_queue(4, 0.8, exponential(), 1.0);
    check_queue(20, 0.9, exponential(), 1.0);
    // Constant service times halve the wait of one server.
    check_queue(1, 0.8, Latency::fixed(millis(10)), 0.0);
    // Evenly spread between half and one and a half: the squared variation is 1/12.
    check_queue(1, 0.8, Latency::spread(millis(10)), 1.0 / 12.0);
}

#[test]
fn calls_to_an_idle_dependency_take_as_long_as_their_service() {
    let storm = Storm::new(Dependency::new(10_000, Latency::exponential(millis(10))), 100);
    let outcome = storm.lasts(seconds(1_000)).run(|_| Pipeline::new());
    for (share, factor) in [(0.5, 2_f64.ln()), (0.9, 10_f64.ln()), (0.99, 100_f64.ln())] {
        let found = outcome.quantile(share).unwrap().as_secs_f64() * 100.0;
        assert!((found / factor - 1.0).abs() < 0.03, "quantile {share}: {found}, not {factor}");
    }
}

fn flaky(failure_ratio: f64, attempts: u32) -> Outcome {
    let dependency = Dependency::new(10_000, millis(5)).failure_ratio(failure_ratio);
    let retry = Retry::fixed(millis(10)).attempts_max(attempts);
    let storm = Storm::new(dependency, 1_000).lasts(seconds(100)).seed(9);
    storm.run(|_| Pipeline::new().retry(retry).attempt_timeout(seconds(1)))
}

/// A call with n attempts fails with probability pⁿ, and makes (1 - pⁿ) / (1 - p) requests.
#[test]
fn retries_of_independent_failures_are_binomial() {
    for (p, attempts) in [(0.1, 1), (0.1, 2), (0.5, 3), (0.9, 10)] {
        let outcome = flaky(p, attempts);
        let (calls, n) = (outcome.offered() as f64, f64::from(attempts));
        let fails = p.powf(n);
        // Five standard deviations of the number of failures.
        let allowed = 5.0 * (calls * fails * (1.0 - fails)).sqrt() + 1.0;
        let failed = (outcome.offered() - outcome.succeeded()) as f64;
        assert!((failed - calls * fails).abs() < allowed, "p {p}, {attempts}: {failed} failed");
        let expected = (1.0 - fails) / (1.0 - p);
        let found = outcome.amplification();
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "p {p}, {attempts}: {found}, not {expected}"
        );
    }
}

#[test]
fn as_many_calls_arrive_as_are_expected_also_in_a_surge() {
    let storm = Storm::new(Dependency::new(100_000, millis(1)), 500).lasts(seconds(60));
    let outcome = storm.surge(seconds(10)..seconds(30), 3.0).unwrap().run(|_| Pipeline::new());
    let of = |range: std::ops::Range<usize>| {
        let seconds = &outcome.seconds()[range.clone()];
        seconds.iter().map(|second| second.offered).sum::<u64>() as f64 / range.len() as f64
    };
    for (range, rate) in [(0..10, 500.0), (10..30, 1_500.0), (30..60, 500.0)] {
        let found = of(range.clone());
        assert!((found / rate - 1.0).abs() < 0.05, "{range:?}: {found} calls per second");
    }
    // A Poisson process: the variance of the counts is their mean.
    let counts = outcome.seconds()[30..60].iter().map(|second| second.offered as f64);
    let variance = counts.map(|count| (count - 500.0).powi(2)).sum::<f64>() / 30.0;
    assert!((200.0..1_000.0).contains(&variance), "{variance}");
}
