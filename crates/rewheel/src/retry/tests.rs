//! Tests of async and blocking retries, on a clock that advances by itself.

#![expect(clippy::unwrap_used, reason = "test code")]

mod plain;
mod time;
mod retry_after;
mod judging;
mod hooks;
mod cancelling;
mod nesting;
mod budget;
mod errors;
mod text;

use super::{Attempt, Retry, Retryable};
use crate::{Category, Class, Classify, Clock, Error, GiveUpReason, ManualClock, millis, seconds};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How a scripted operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// Temporary.
    Busy,
    /// Temporary, and asks for this delay.
    BusyFor(Duration),
    /// Permanent.
    Gone,
}

impl Classify for Failure {
    fn classify(&self) -> Class {
        match *self {
            Failure::Busy => Class::retry(Category::Transient),
            Failure::BusyFor(delay) => Class::retry_after(Category::Throttled, delay),
            Failure::Gone => Class::stop(Category::Rejected),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Busy => "busy",
            Failure::BusyFor(_) => "busy for a while",
            Failure::Gone => "gone",
        })
    }
}

impl std::error::Error for Failure {}

/// One attempt of a script: takes its time, then returns.
#[derive(Clone, Copy, Debug)]
struct Turn {
    takes: Duration,
    gives: Result<u32, Failure>,
}

const BUSY: Turn = Turn { takes: Duration::ZERO, gives: Err(Failure::Busy) };
const GONE: Turn = Turn { takes: Duration::ZERO, gives: Err(Failure::Gone) };
const DONE: Turn = Turn { takes: Duration::ZERO, gives: Ok(7) };

impl Turn {
    const fn taking(self, takes: Duration) -> Turn {
        Turn { takes, ..self }
    }
}

const fn busy_for(delay: Duration) -> Turn {
    Turn { takes: Duration::ZERO, gives: Err(Failure::BusyFor(delay)) }
}

/// An operation that follows a script; the last turn repeats.
struct Script {
    clock: ManualClock,
    turns: Vec<Turn>,
    /// When each attempt started, and its `Attempt`.
    starts: RefCell<Vec<(Duration, Attempt)>>,
}

impl Script {
    fn new(turns: &[Turn]) -> Script {
        let starts = RefCell::new(Vec::new());
        Script { clock: ManualClock::new(), turns: turns.to_vec(), starts }
    }

    fn start(&self, attempt: Attempt) -> Turn {
        let mut starts = self.starts.borrow_mut();
        starts.push((self.clock.elapsed(), attempt));
        self.turns[(starts.len() - 1).min(self.turns.len() - 1)]
    }

    fn blocking(&self, attempt: Attempt) -> Result<u32, Failure> {
        let turn = self.start(attempt);
        self.clock.advance(turn.takes);
        turn.gives
    }

    async fn patient(&self, attempt: Attempt) -> Result<u32, Failure> {
        let turn = self.start(attempt);
        if !turn.takes.is_zero() {
            Clock::from(&self.clock).sleep(turn.takes).await;
        }
        turn.gives
    }

    fn calls(&self) -> usize {
        self.starts.borrow().len()
    }

    fn start_times(&self) -> Vec<Duration> {
        self.starts.borrow().iter().map(|(at, _)| *at).collect()
    }
}

/// The result of a call.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    result: Result<u32, Error<Failure>>,
    starts: Vec<Duration>,
}

impl Seen {
    #[track_caller]
    fn gave_up(&self) -> (GiveUpReason, u32, Duration, Option<Failure>) {
        let error = self.result.as_ref().unwrap_err();
        (error.reason(), error.attempts(), error.elapsed(), error.last().copied())
    }
}

fn run_async(policy: Retry, turns: &[Turn]) -> Seen {
    let script = Script::new(turns);
    let call = (|attempt| script.patient(attempt)).retry(policy).clock(&script.clock);
    let result = finish(script.clock.drive(call));
    Seen { result, starts: script.start_times() }
}

fn run_blocking(policy: Retry, turns: &[Turn]) -> Seen {
    let script = Script::new(turns);
    let call = (|attempt| script.blocking(attempt)).retry(policy).clock(&script.clock);
    let result = call.call();
    Seen { result, starts: script.start_times() }
}

/// Runs a script async and blocking, which must give the same result.
#[track_caller]
fn run_both(policy: Retry, turns: &[Turn]) -> Seen {
    let (patient, blocking) = (run_async(policy, turns), run_blocking(policy, turns));
    assert_eq!(patient, blocking, "async and blocking differ");
    patient
}

/// Polls to the end. Everything here waits only for the manual clock.
#[track_caller]
fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
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

/// A policy that waits for a second between any number of attempts.
const EVERY_SECOND: Retry = Retry::fixed(seconds(1)).attempts_max(u32::MAX);

#[test]
fn makes_as_many_attempts_as_allowed_and_no_more() {
    for attempts_max in [1, 2, 3, 10] {
        let seen = run_both(Retry::fixed(seconds(1)).attempts_max(attempts_max), &[BUSY]);
        let expected: Vec<_> = (0..u64::from(attempts_max)).map(seconds).collect();
        assert_eq!(seen.starts, expected);
        let elapsed = seconds(u64::from(attempts_max) - 1);
        let expected =
            (GiveUpReason::AttemptsExhausted, attempts_max, elapsed, Some(Failure::Busy));
        assert_eq!(seen.gave_up(), expected);
    }
}

#[test]
fn returns_the_first_success() {
    let seen = run_both(EVERY_SECOND, &[BUSY, BUSY, DONE, BUSY]);
    assert_eq!((seen.result, seen.starts.len()), (Ok(7), 3));

    let mut turns = vec![BUSY; 1_000];
    turns.push(DONE);
    assert_eq!(run_both(EVERY_SECOND, &turns).starts.len(), 1_001);
}

#[test]
fn stops_at_once_when_another_attempt_cannot_help() {
    let seen = run_both(EVERY_SECOND, &[BUSY, GONE, DONE]);
    assert_eq!(seen.gave_up(), (GiveUpReason::Stopped, 2, seconds(1), Some(Failure::Gone)));
    assert_eq!(run_both(EVERY_SECOND, &[GONE]).gave_up().2, Duration::ZERO);
}

#[test]
fn the_last_of_all_attempts_is_number_u32_max() {
    let policy = Retry::exponential(millis(1)).attempts_max(u32::MAX);
    let script = Script::new(&[BUSY]);
    let call = (|attempt| script.blocking(attempt)).retry(policy).clock(&script.clock);
    let error = call.starting_at(u32::MAX - 2).call().unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, u32::MAX));
    assert_eq!(script.calls(), 3);
}

#[test]
fn goes_on_where_an_earlier_process_left_off() {
    let policy = "5 attempts, exponential 100ms jitter none".parse::<Retry>().unwrap();
    for (first, numbers, times) in [
        (0, vec![1, 2, 3, 4, 5], vec![0, 100, 300, 700, 1_500]),
        (1, vec![1, 2, 3, 4, 5], vec![0, 100, 300, 700, 1_500]),
        (4, vec![4, 5], vec![0, 800]),
        (5, vec![5], vec![0]),
        (9, vec![9], vec![0]),
    ] {
        let script = Script::new(&[BUSY]);
        let call = (|attempt| script.patient(attempt)).retry(policy).clock(&script.clock);
        let error = finish(script.clock.drive(call.starting_at(first))).unwrap_err();
        let seen: Vec<_> = script.starts.borrow().iter().map(|(_, a)| a.number()).collect();
        assert_eq!((seen, error.attempts()), (numbers.clone(), *numbers.last().unwrap()));
        assert_eq!(script.start_times(), times.into_iter().map(millis).collect::<Vec<_>>());
    }
}

#[test]
fn tells_the_operation_which_attempt_it_is() {
    let script = Script::new(&[BUSY]);
    let call = (|attempt| script.blocking(attempt)).retry(Retry::fixed(seconds(1)));
    call.clock(&script.clock).call().unwrap_err();
    let starts = script.starts.borrow();
    let told: Vec<_> =
        starts.iter().map(|(_, a)| (a.number(), a.is_retry(), a.is_last())).collect();
    assert_eq!(told, [(1, false, false), (2, true, false), (3, true, true)]);
    assert!(starts.iter().all(|(_, attempt)| attempt.time_left().is_none()));
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn the_future_is_send_when_the_operation_is() {
    let operation = || async { Ok::<_, Failure>(1) };
    let call = operation.retry(EVERY_SECOND).when_ok(|value| *value > 1).on_retry(|_| {});
    assert_eq!(finish(assert_send(call.into_future())), Ok(1));
}

#[test]
fn an_operation_need_not_be_send() {
    let count = std::rc::Rc::new(RefCell::new(0));
    let operation = || async {
        tokio::task::yield_now().await;
        *count.borrow_mut() += 1;
        if *count.borrow() < 3 { Err(Failure::Busy) } else { Ok(std::rc::Rc::clone(&count)) }
    };
    let clock = ManualClock::new();
    let value = finish(clock.drive(operation.retry(EVERY_SECOND).clock(&clock))).unwrap();
    assert_eq!(*value.borrow(), 3);
}

#[test]
fn dropping_the_future_drops_the_attempt() {
    struct Attempting<'a>(&'a RefCell<u32>);
    impl Drop for Attempting<'_> {
        fn drop(&mut self) {
            *self.0.borrow_mut() += 1;
        }
    }
    let dropped = RefCell::new(0);
    let operation = || async {
        let _attempting = Attempting(&dropped);
        std::future::pending::<Result<(), Failure>>().await
    };
    let mut call = Box::pin(operation.retry(EVERY_SECOND).into_future());
    assert!(poll(call.as_mut()).is_pending());
    assert_eq!(*dropped.borrow(), 0);
    drop(call);
    assert_eq!(*dropped.borrow(), 1);
}

#[test]
fn the_longest_time_of_a_policy_is_known_to_the_compiler() {
    const fn longest(policy: Retry) -> Option<Duration> {
        policy.time_max()
    }
    const FIXED: Retry = Retry::fixed(seconds(1)).retry_after_max(Duration::ZERO);
    const _: () = assert!(longest(FIXED).is_none(), "nothing ends an attempt");
    let check = |policy: Retry, expected| assert_eq!(policy.time_max(), Some(expected), "{policy}");
    check(FIXED.attempt_timeout(seconds(2)), seconds(3 * 2 + 2));
    check(FIXED.attempt_timeout(seconds(2)).attempts_max(1), seconds(2));
    check(FIXED.attempt_timeout(seconds(2)).deadline(seconds(5)), seconds(5));
    check(FIXED.attempt_timeout(seconds(2)).retry_after_max(seconds(4)), seconds(3 * 2 + 2 + 8));
    check(FIXED.deadline(seconds(5)), seconds(5));
    let endless = FIXED.attempt_timeout(Duration::from_secs(1 << 33)).attempts_max(u32::MAX);
    assert_eq!(endless.time_max(), None, "584 years are for ever");
}
