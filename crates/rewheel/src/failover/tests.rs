//! Tests of failover.

#![expect(clippy::unwrap_used, reason = "test code")]

mod ejecting;
mod single;

use super::Failover;
use crate::{
    BreakerState, Category, CircuitBreaker, Class, Classify, Event, GiveUpReason, ManualClock,
    Observer, Pipeline, Retry, RetryBudget, millis, seconds,
};
use std::cell::RefCell;
use std::future::ready;
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Busy,
    NoSuchPage,
    Garbled,
    Throttle,
}

impl Classify for Failure {
    fn classify(&self) -> Class {
        match self {
            Failure::Busy => Class::retry(Category::Transient),
            Failure::NoSuchPage => Class::stop(Category::Rejected),
            Failure::Garbled => Class::stop(Category::Unknown),
            Failure::Throttle => crate::Refused::new(GiveUpReason::RateLimited, None).classify(),
        }
    }
}

type Reply = Result<u32, Failure>;
const BUSY: Reply = Err(Failure::Busy);

/// Replies in turn, and notes which target was called.
struct Script {
    called: RefCell<Vec<&'static str>>,
    replies: RefCell<Vec<Reply>>,
}

impl Script {
    fn new(replies: &[Reply]) -> Script {
        let replies = replies.iter().rev().copied().collect();
        Script { called: RefCell::default(), replies: RefCell::new(replies) }
    }

    fn reply(&self, target: &&'static str) -> Reply {
        self.called.borrow_mut().push(*target);
        self.replies.borrow_mut().pop().unwrap()
    }
}

fn three() -> super::FailoverBuilder<&'static str> {
    Failover::over(["a", "b", "c"])
}

#[tokio::test]
async fn the_first_target_gets_all_calls_while_it_works() {
    let (failover, script) = (three().build(), Script::new(&[Ok(1), Ok(2)]));
    assert_eq!(failover.call(|target| ready(script.reply(target))).await, Ok(1));
    assert_eq!(failover.call_blocking(|target| script.reply(target)), Ok(2));
    assert_eq!(*script.called.borrow(), ["a", "a"]);
}

#[tokio::test]
async fn a_failure_goes_to_the_next_target() {
    let (failover, script) = (three().build(), Script::new(&[BUSY, BUSY, Ok(3)]));
    assert_eq!(failover.call(|target| ready(script.reply(target))).await, Ok(3));
    assert_eq!(*script.called.borrow(), ["a", "b", "c"]);
}

#[test]
fn each_target_is_called_once_at_most() {
    let (failover, script) = (three().build(), Script::new(&[BUSY; 3]));
    let error = failover.call_blocking(|target| script.reply(target)).unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::TargetsExhausted, 3));
    assert_eq!((error.last(), error.category()), (Some(&Failure::Busy), Category::Transient));
    let (failover, script) = (three().tries_max(2).build(), Script::new(&[BUSY; 2]));
    let error = failover.call_blocking(|target| script.reply(target)).unwrap_err();
    assert_eq!((error.attempts(), script.called.borrow().len()), (2, 2));
}

#[test]
fn what_may_not_be_repeated_ends_the_call() {
    for failure in [Failure::NoSuchPage, Failure::Garbled] {
        let (failover, script) = (three().build(), Script::new(&[Err(failure)]));
        let error = failover.call_blocking(|target| script.reply(target)).unwrap_err();
        assert_eq!((error.reason(), error.last()), (GiveUpReason::Stopped, Some(&failure)));
        assert_eq!(*script.called.borrow(), ["a"]);
    }
}

#[test]
fn a_target_whose_breaker_is_open_is_passed() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(9)).clock(&clock);
    let failover = three().circuit_breaker(breaker).clock(&clock).named("regions").build();
    let script = Script::new(&[BUSY, Ok(2), Ok(3), Ok(4)]);
    let call = || failover.call_blocking(|target| script.reply(target));
    assert_eq!((call(), call()), (Ok(2), Ok(3)));
    assert_eq!(failover.breaker(0).unwrap().state(), BreakerState::Open);
    assert_eq!(failover.breaker(0).unwrap().name(), "regions/0");
    assert!(failover.breaker(3).is_none());
    clock.advance(seconds(9));
    assert_eq!(call(), Ok(4));
    assert_eq!(*script.called.borrow(), ["a", "b", "b", "a"]);
}

#[test]
fn if_all_breakers_are_open_the_call_is_refused_until_the_first_is_not() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(9)).clock(&clock);
    let failover = three().circuit_breaker(breaker).clock(&clock).build();
    failover.breaker(0).unwrap().force_open();
    clock.advance(seconds(4));
    failover.breaker(1).unwrap().force_open();
    failover.breaker(2).unwrap().isolate();
    let error = failover.call_blocking(|_| BUSY).unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::CircuitOpen, 0));
    assert_eq!(error.retry_in(), Some(seconds(5)));
}

#[test]
fn a_refusal_of_a_policy_inside_neither_counts_nor_replaces_a_failure() {
    let breaker = CircuitBreaker::consecutive(1);
    let failover = three().circuit_breaker(breaker).build();
    let script = Script::new(&[Err(Failure::Throttle), BUSY, Err(Failure::Throttle)]);
    let error = failover.call_blocking(|target| script.reply(target)).unwrap_err();
    assert_eq!((error.last(), error.attempts()), (Some(&Failure::Busy), 1));
    let states = [0, 1, 2].map(|index| failover.breaker(index).unwrap().state());
    assert_eq!(states, [BreakerState::Closed, BreakerState::Open, BreakerState::Closed]);
}

#[test]
fn calls_in_turns_start_at_the_next_target() {
    let failover = three().round_robin().build();
    let script = Script::new(&[Ok(1), BUSY, Ok(3), Ok(4)]);
    for _ in 0..3 {
        failover.call_blocking(|target| script.reply(target)).unwrap();
    }
    assert_eq!(*script.called.borrow(), ["a", "b", "c", "c"]);
}

#[test]
fn the_calls_of_a_target_that_is_down_are_spread_over_the_others() {
    let failover = Failover::over(["a", "b", "c", "d", "e"]).round_robin().build();
    failover.breaker(1).unwrap().isolate();
    let called = RefCell::new(Vec::new());
    for _ in 0..20 {
        let note = |target: &&'static str| {
            called.borrow_mut().push(*target);
            Ok::<_, Failure>(1)
        };
        failover.call_blocking(note).unwrap();
    }
    let count = |name| called.borrow().iter().filter(|target| **target == name).count();
    assert_eq!(["a", "b", "c", "d", "e"].map(count), [5, 0, 5, 5, 5]);
}

#[test]
fn other_targets_are_paid_from_the_budget() {
    let budget = RetryBudget::ratio(0.0).floor_per_second(0).burst(1).build();
    let failover = three().retry_budget(&budget).build();
    let script = Script::new(&[BUSY, BUSY, BUSY]);
    let call = || failover.call_blocking(|target| script.reply(target)).unwrap_err();
    let error = call();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::BudgetExhausted, 2));
    assert_eq!(error.last(), Some(&Failure::Busy));
    assert_eq!(call().attempts(), 1, "the first call is free");
}

#[tokio::test]
async fn a_call_with_retries_counts_as_one_at_its_target() {
    let clock = ManualClock::new();
    let failover = three().circuit_breaker(CircuitBreaker::consecutive(2)).clock(&clock).build();
    let fetch = Pipeline::new().clock(&clock).retry(Retry::fixed(millis(1)).attempts_max(2));
    let script = Script::new(&[BUSY, BUSY, BUSY, Ok(4)]);
    let script = &script;
    let call = failover.run(|target| fetch.run(move |_| ready(script.reply(target))));
    assert_eq!(clock.drive(Box::pin(call)).await, Ok(4));
    assert_eq!(*script.called.borrow(), ["a", "a", "b", "b"]);
    assert_eq!(failover.breaker(0).unwrap().state(), BreakerState::Closed);
    let script = Script::new(&[BUSY; 6]);
    let script = &script;
    let run = |target| fetch.run_blocking(|_| script.reply(target)).call();
    let error = failover.run_blocking(run).unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::TargetsExhausted, 6));
    assert_eq!(failover.breaker(0).unwrap().state(), BreakerState::Open);
}

#[test]
fn a_retry_around_it_goes_to_all_targets_again() {
    let clock = ManualClock::new();
    let failover = three().clock(&clock).build();
    let script = Script::new(&[BUSY, BUSY, BUSY, BUSY, Ok(5)]);
    let rounds = Pipeline::new().clock(&clock).retry(Retry::fixed(seconds(1)).attempts_max(2));
    let call = rounds.run_blocking(|_| failover.call_blocking(|target| script.reply(target)));
    assert_eq!(call.call().unwrap(), 5);
    assert_eq!(*script.called.borrow(), ["a", "b", "c", "a", "b"]);
    assert_eq!(clock.elapsed(), seconds(1));
}

#[test]
fn a_retry_at_a_target_leaves_the_repeating_to_the_outer_one() {
    let clock = ManualClock::new();
    let failover = three().clock(&clock).build();
    let retry = Pipeline::new().clock(&clock).retry(Retry::fixed(seconds(1)).attempts_max(2));
    let script = Script::new(&[BUSY, BUSY, BUSY, Ok(4)]);
    let at = |target| retry.run_blocking(|_| script.reply(target)).call();
    assert_eq!(retry.run_blocking(|_| failover.run_blocking(at)).call().unwrap(), 4);
    assert_eq!(*script.called.borrow(), ["a", "b", "c", "a"]);
}

#[tokio::test]
async fn a_dropped_call_gives_its_probe_back() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(1)).clock(&clock);
    let failover = three().circuit_breaker(breaker).build();
    failover.breaker(0).unwrap().force_open();
    clock.advance(seconds(1));
    let mut call = Box::pin(failover.call(|_| std::future::pending::<Reply>()));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    assert_eq!(failover.breaker(0).unwrap().snapshot().probes, 1);
    drop(call);
    assert_eq!(failover.breaker(0).unwrap().snapshot().probes, 0);
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn observe(&self, event: &Event<'_>) {
        let line = if let Event::FailedOver { name, target, category } = event {
            format!("{name}: {target} {category}")
        } else if let Event::TargetEjected { name, target, ejected_for } = event {
            format!("{name}: {target} out for {ejected_for:?}")
        } else {
            return;
        };
        self.0.lock().unwrap().push(line);
    }
}

#[test]
fn observers_hear_which_target_failed() {
    let heard = Arc::new(Heard::default());
    let failover = three().named("regions").observer(heard.clone()).build();
    let script = Script::new(&[BUSY, Err(Failure::Throttle), Ok(3)]);
    failover.call_blocking(|target| script.reply(target)).unwrap();
    assert_eq!(*heard.0.lock().unwrap(), ["regions: 0 transient", "regions: 1 throttled"]);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    assert_eq!(Failover::<u32>::try_over([]).unwrap_err().setting(), "targets");
    let error = Failover::try_over(0..65).unwrap_err();
    assert_eq!(error.to_string(), "invalid targets `65`: use 1 to 64 targets");
    assert!(Failover::try_over(0..64).is_ok());
    assert_eq!(three().try_tries_max(0).unwrap_err().setting(), "tries_max");
    assert!(three().try_tries_max(99).is_ok());
}
