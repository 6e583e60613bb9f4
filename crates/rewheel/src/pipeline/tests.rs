//! Tests of policies that are combined in a pipeline.

#![expect(clippy::unwrap_used, reason = "test code")]

mod calls;
mod keyed;
mod guards;
mod order;
mod giving_back;
mod lines;
mod times;
mod nesting;
mod blocking;
mod explaining;
mod observing;
mod spilling;
mod model;

use super::Pipeline;
use crate::{
    Attempt, BreakerState, Bulkhead, Category, CircuitBreaker, Class, Classify, Clock,
    GiveUpReason, ManualClock, RateLimiter, Retry, Statistics, millis, seconds,
};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Busy,
    Gone,
}

impl Classify for Failure {
    fn classify(&self) -> Class {
        match self {
            Failure::Busy => Class::retry(Category::Transient),
            Failure::Gone => Class::stop(Category::Rejected),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

type Result<T = u32, E = crate::Error<Failure>> = std::result::Result<T, E>;

/// Polls to the end. Everything here waits only for the manual clock.
#[track_caller]
fn finish<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    for _ in 0..1_000_000 {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return output;
        }
    }
    panic!("a future never ends");
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs a pipeline around an operation that always returns `result` after `takes`; also returns the
/// number of calls.
fn run(
    pipeline: &Pipeline,
    clock: &ManualClock,
    takes: Duration,
    result: Result<u32, Failure>,
) -> (Result, u32) {
    let calls = Cell::new(0);
    let operation = |_: Attempt| {
        calls.set(calls.get() + 1);
        async {
            if !takes.is_zero() {
                Clock::from(clock).sleep(takes).await;
            }
            result
        }
    };
    let result = finish(clock.drive(pipeline.run(operation)));
    (result, calls.get())
}

fn fail(pipeline: &Pipeline, clock: &ManualClock) -> (crate::Error<Failure>, u32) {
    let (result, calls) = run(pipeline, clock, Duration::ZERO, Err(Failure::Busy));
    (result.unwrap_err(), calls)
}

/// Five attempts, a second apart.
const FIVE: Retry = Retry::fixed(seconds(1)).attempts_max(5);

const HOUR: Duration = seconds(3_600);

#[test]
fn without_a_policy_a_call_is_just_made() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().clock(&clock);
    assert_eq!(run(&pipeline, &clock, seconds(1), Ok(7)), (Ok(7), 1));
    let (error, calls) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), error.attempts(), calls), (GiveUpReason::Stopped, 1, 1));
    assert_eq!(error.into_last(), Some(Failure::Busy));
}

#[test]
fn has_at_most_eight_steps() {
    let eight = (0..8).fold(Pipeline::new(), |pipeline, _| pipeline.timeout(seconds(1)));
    assert_eq!(eight.explain().steps.len(), Pipeline::STEPS_MAX);
    let ninth = std::panic::AssertUnwindSafe(|| eight.clone().retry(FIVE));
    let panic = std::panic::catch_unwind(ninth).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a pipeline has at most 8 steps"));
    let clock = ManualClock::new();
    assert_eq!(run(&eight.clock(&clock), &clock, Duration::ZERO, Ok(1)), (Ok(1), 1));
}

#[test]
fn timeouts_of_zero_are_refused() {
    for build in [(|| Pipeline::new().timeout(Duration::ZERO)) as fn() -> Pipeline, || {
        Pipeline::new().attempt_timeout(Duration::ZERO)
    }] {
        assert!(std::panic::catch_unwind(build).is_err());
    }
}

#[test]
fn fits_a_struct_and_any_thread() {
    #[derive(Clone, Debug)]
    struct Client {
        fetch: Pipeline,
    }
    fn assert_shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    let client = Client { fetch: Pipeline::new().retry(FIVE).timeout(seconds(1)) };
    assert_shared(&client);
    let call = assert_send(client.fetch.run(|_| async { Ok::<_, Failure>(1) }).into_future());
    assert_eq!(finish(call), Ok(1));

    let not_send = std::rc::Rc::new(2);
    assert_eq!(finish(client.fetch.run(|_| async { Ok::<_, Failure>(*not_send) })), Ok(2));
}

#[test]
fn clones_share_state_and_changes_do_not_reach_back() {
    let breaker = CircuitBreaker::consecutive(1).build();
    let clock = ManualClock::new();
    let one = Pipeline::new().circuit_breaker(&breaker).clock(&clock);
    let other = one.clone().timeout(seconds(1));
    fail(&one, &clock);
    assert_eq!(fail(&other, &clock).0.reason(), GiveUpReason::CircuitOpen);
    assert_eq!((one.explain().steps.len(), other.explain().steps.len()), (1, 2));
}

#[test]
fn a_judge_decides_about_foreign_errors_and_about_successes() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(FIVE).clock(&clock);
    let judge = |result: &Result<u32, &str>| match result {
        Ok(0) => Class::retry(Category::Transient),
        Ok(_) => Class::DONE,
        Err(text) if text.contains("busy") => Class::retry(Category::Io),
        Err(_) => Class::stop(Category::Unknown),
    };
    let judged = |script: &[Result<u32, &'static str>]| {
        let mut turns = script.iter().copied().cycle();
        let call = pipeline.run(|_| std::future::ready(turns.next().unwrap())).judge(judge);
        finish(clock.drive(call)).map_err(|error| (error.reason(), error.attempts()))
    };
    assert_eq!(judged(&[Err("busy"), Ok(0), Ok(3)]), Ok(3));
    assert_eq!(judged(&[Ok(0)]), Ok(0), "the best there is");
    assert_eq!(judged(&[Err("busy"), Err("lost")]), Err((GiveUpReason::Stopped, 2)));
    assert_eq!(judged(&[Err("busy")]), Err((GiveUpReason::AttemptsExhausted, 5)));
}

#[test]
fn a_budget_bounds_the_retries_of_all_calls() {
    let clock = ManualClock::new();
    let budget = crate::RetryBudget::ratio(0.0).floor_per_second(0).burst(3).build();
    let pipeline = Pipeline::new().retry(FIVE).retry_budget(&budget).clock(&clock);
    let (error, calls) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), calls), (GiveUpReason::BudgetExhausted, 4));
    let (error, calls) = fail(&pipeline, &clock);
    assert_eq!(
        (error.reason(), calls),
        (GiveUpReason::BudgetExhausted, 1),
        "a first attempt is never blocked"
    );
}
