//! Measures whole pipelines; there is no peer to compare with.

use std::hint::black_box;
use std::io;

use rewheel::{
    Attempt, CircuitBreaker, Clock, ManualClock, Pipeline, RateLimiter, Retry, millis, seconds,
};

use crate::correctness::allocations;
use crate::harness::{Comparison, Group, Pace, Subject};
use crate::retry::{awaited, runtime};

pub fn compare(pace: &Pace) -> Vec<Group> {
    let subjects = vec![
        subject("rewheel, no policy", Pipeline::new()),
        subject("rewheel, retry", Pipeline::new().retry(RETRY)),
        subject("rewheel, five, system clock", five(&Clock::system())),
        subject("rewheel, five, coarse clock", five(&Clock::coarse())),
        subject("rewheel, five, clock for tests", five(&ManualClock::new().into())),
    ];
    vec![Comparison { name: "pipeline, ready call", threads: &[1], subjects }.measure(pace)]
}

const RETRY: Retry = Retry::exponential(millis(100));

fn five(clock: &Clock) -> Pipeline {
    let limiter = RateLimiter::per_second(1_000_000_000).clock(clock).build();
    let breaker = CircuitBreaker::consecutive(5).clock(clock).build();
    Pipeline::new()
        .timeout(seconds(10))
        .retry(RETRY)
        .rate_limiter(&limiter)
        .circuit_breaker(&breaker)
        .attempt_timeout(seconds(1))
        .clock(clock)
}

fn subject(name: &'static str, pipeline: Pipeline) -> Subject {
    let check = allocations::none(|| {
        let _ = black_box(runtime().block_on(pipeline.run(answer).into_future()));
    });
    awaited!(name, pipeline.run(answer)).checked(check)
}

async fn answer(_: Attempt) -> io::Result<u64> {
    Ok(black_box(42))
}
