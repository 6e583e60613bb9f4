//! Fails when a hot path executes more instructions than its limit.
//!
//! Each limit is about 5 % above a measurement, for a hundred operations. A commit that improves
//! the code lowers it; a commit that raises it explains why.

use std::future::Future;
use std::hint::black_box;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use rewheel::{
    Attempt, Backoff, CircuitBreaker, KeyedRateLimiter, ManualClock, Pipeline, Random, RateLimiter,
    Retry, RetryBudget, Retryable, millis, seconds,
};

/// Enough that one-time costs do not matter.
const OPERATIONS: u32 = 100;

/// Fails the run when the measured function executes more than `count` instructions.
fn instructions_max(count: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, count)]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

/// Runs the operations, and returns the object, so that freeing it is not counted.
fn repeat<T>(object: T, operation: impl Fn(&T, u32)) -> T {
    for index in 0..OPERATIONS {
        operation(black_box(&object), index);
    }
    object
}

/// Runs a future that is ready at once, without an executor, which would be counted too.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}

fn answer_at_once() -> io::Result<u64> {
    Ok(black_box(42))
}

async fn answer() -> io::Result<u64> {
    Ok(black_box(42))
}

async fn answer_attempt(_: Attempt) -> io::Result<u64> {
    Ok(black_box(42))
}

fn succeed(breaker: &CircuitBreaker, _: u32) {
    let _ = black_box(breaker.call_blocking(answer_at_once));
}

fn consecutive() -> CircuitBreaker {
    repeat(CircuitBreaker::consecutive(5).build(), succeed)
}

fn count_window() -> CircuitBreaker {
    repeat(CircuitBreaker::count_window(100).build(), succeed)
}

fn time_window() -> CircuitBreaker {
    repeat(CircuitBreaker::time_window(seconds(10)).clock(ManualClock::new()).build(), succeed)
}

fn open() -> CircuitBreaker {
    let breaker = CircuitBreaker::consecutive(5).clock(ManualClock::new()).build();
    breaker.force_open();
    repeat(breaker, succeed)
}

#[library_benchmark]
#[bench::consecutive(args = (), setup = consecutive, config = instructions_max(6_850))]
#[bench::count_window(args = (), setup = count_window, config = instructions_max(9_400))]
#[bench::time_window(args = (), setup = time_window, config = instructions_max(12_550))]
#[bench::open(args = (), setup = open, config = instructions_max(27_900))]
fn breaker(breaker: CircuitBreaker) -> CircuitBreaker {
    repeat(breaker, succeed)
}

fn retry_once(retry: &Retry, _: u32) {
    let _ = black_box(ready(answer.retry(*retry).into_future()));
}

fn retry_policy() -> Retry {
    repeat(Retry::exponential(millis(100)), retry_once)
}

// Two of 53 instructions since an outer retry may allow the ones inside to retry.
#[library_benchmark]
#[bench::first_attempt(args = (), setup = retry_policy, config = instructions_max(5_400))]
fn retry(retry: Retry) -> Retry {
    repeat(retry, retry_once)
}

fn check(limiter: &RateLimiter, _: u32) {
    let _ = black_box(limiter.check());
}

fn plenty() -> RateLimiter {
    repeat(RateLimiter::per_second(1_000_000).clock(ManualClock::new()).build(), check)
}

fn used_up() -> RateLimiter {
    repeat(RateLimiter::per_second(1).clock(ManualClock::new()).build(), check)
}

// One call is 55 instructions, two of them since observers hear of every admission, whatever the features of the crate. A refused one is 75:
// six more since its path is no longer part of the path of admitted calls.
#[library_benchmark]
#[bench::admitted(args = (), setup = plenty, config = instructions_max(5_800))]
#[bench::refused(args = (), setup = used_up, config = instructions_max(7_900))]
fn limiter(limiter: RateLimiter) -> RateLimiter {
    repeat(limiter, check)
}

fn check_key(limiter: &KeyedRateLimiter<u64>, index: u32) {
    let _ = black_box(limiter.check(&u64::from(index)));
}

fn keyed() -> KeyedRateLimiter<u64> {
    let limiter = RateLimiter::per_second(1_000_000).clock(ManualClock::new()).keyed(10_000);
    repeat(limiter, check_key)
}

// One call is 137 instructions, eight of them since callers of a key can wait.
#[library_benchmark]
#[bench::hundred_keys(args = (), setup = keyed, config = instructions_max(14_400))]
fn keyed_limiter(limiter: KeyedRateLimiter<u64>) -> KeyedRateLimiter<u64> {
    repeat(limiter, check_key)
}

fn next_delay((backoff, random): &(Backoff, Random), index: u32) {
    black_box(backoff.delay(index % 10 + 1, random));
}

fn exponential() -> (Backoff, Random) {
    repeat((Backoff::exponential(millis(100)), Random::seeded(1)), next_delay)
}

// One delay is 142 instructions, one or two of them since custom backoffs may hold state.
#[library_benchmark]
#[bench::exponential(args = (), setup = exponential, config = instructions_max(14_300))]
fn backoff(schedule: (Backoff, Random)) -> (Backoff, Random) {
    repeat(schedule, next_delay)
}

fn deposit_and_withdraw(budget: &RetryBudget, _: u32) {
    budget.deposit();
    let _ = black_box(budget.withdraw());
}

fn savings() -> RetryBudget {
    let budget = RetryBudget::ratio(0.2).burst(1_000).clock(ManualClock::new()).build();
    repeat(budget, deposit_and_withdraw)
}

#[library_benchmark]
#[bench::deposit_and_withdraw(args = (), setup = savings, config = instructions_max(4_450))]
fn budget(budget: RetryBudget) -> RetryBudget {
    repeat(budget, deposit_and_withdraw)
}

fn run(pipeline: &Pipeline, _: u32) {
    let _ = black_box(ready(pipeline.run(answer_attempt).into_future()));
}

fn five_policies() -> Pipeline {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(1_000_000).clock(&clock).build();
    let breaker = CircuitBreaker::consecutive(5).clock(&clock).build();
    let pipeline = Pipeline::new()
        .timeout(seconds(10))
        .retry(Retry::exponential(millis(100)))
        .rate_limiter(&limiter)
        .circuit_breaker(&breaker)
        .attempt_timeout(seconds(1))
        .clock(&clock);
    repeat(pipeline, run)
}

#[library_benchmark]
#[bench::five_policies(args = (), setup = five_policies, config = instructions_max(157_800))]
fn pipeline(pipeline: Pipeline) -> Pipeline {
    repeat(pipeline, run)
}

library_benchmark_group!(
    name = hot_paths,
    benchmarks = [breaker, retry, limiter, keyed_limiter, backoff, budget, pipeline]
);
main!(library_benchmark_groups = hot_paths);
