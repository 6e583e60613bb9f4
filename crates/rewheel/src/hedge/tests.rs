//! Tests of hedged calls.

#![expect(clippy::unwrap_used, reason = "test code")]

mod delays;
mod model;
mod policies;

use super::{Hedge, HedgeBuilder, SafeToRepeat};
use crate::observer::{Event, Observer};
use crate::{Category, Class, Classify, Clock, ManualClock, RetryBudget, millis};
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Busy(u32),
    NoSuchPage,
    Refused,
}

impl Classify for Failure {
    fn classify(&self) -> Class {
        match self {
            Failure::Busy(_) => Class::retry(Category::Transient),
            Failure::NoSuchPage => Class::stop(Category::Rejected),
            Failure::Refused => {
                crate::Refused::new(crate::GiveUpReason::BulkheadFull, None).classify()
            }
        }
    }
}

type Reply = Result<u32, Failure>;

/// What each attempt does: after how many milliseconds it returns what.
#[derive(Clone, Debug)]
struct Plan {
    clock: ManualClock,
    attempts: Rc<[(u64, Reply)]>,
    started: Rc<Cell<u32>>,
    running: Rc<Cell<u32>>,
}

/// Counts an attempt as running until it is dropped.
struct Running(Rc<Cell<u32>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Plan {
    fn new(clock: &ManualClock, attempts: &[(u64, Reply)]) -> Plan {
        let (started, running) = Default::default();
        Plan { clock: clock.clone(), attempts: attempts.into(), started, running }
    }

    fn attempt(&self) -> impl Future<Output = Reply> + use<> {
        let number = self.started.get();
        self.started.set(number + 1);
        self.running.set(self.running.get() + 1);
        let running = Running(Rc::clone(&self.running));
        let (wait, reply) = self.attempts[usize::try_from(number).unwrap()];
        let clock = Clock::from(&self.clock);
        async move {
            let _running = running;
            if wait > 0 {
                clock.sleep(millis(wait)).await;
            }
            reply
        }
    }
}

fn hedge(clock: &ManualClock) -> HedgeBuilder {
    let unlimited = RetryBudget::ratio(1.0).burst(1_000).build();
    Hedge::after(millis(10)).clock(clock).retry_budget(&unlimited)
}

/// Makes one call. Returns the result, its time in milliseconds, and the number of attempts.
async fn call(hedge: &Hedge, clock: &ManualClock, attempts: &[(u64, Reply)]) -> (Reply, u128, u32) {
    let plan = Plan::new(clock, attempts);
    let before = clock.elapsed();
    let reply = clock.drive(hedge.call(SafeToRepeat, || plan.attempt())).await;
    assert_eq!(plan.running.get(), 0, "an attempt that lost was not dropped");
    (reply, (clock.elapsed() - before).as_millis(), plan.started.get())
}

const BUSY: Reply = Err(Failure::Busy(0));

#[tokio::test]
async fn a_call_that_is_fast_enough_is_made_once() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).build();
    assert_eq!(call(&hedge, &clock, &[(0, Ok(1))]).await, (Ok(1), 0, 1));
    assert_eq!(call(&hedge, &clock, &[(9, Ok(1))]).await, (Ok(1), 9, 1));
}

#[tokio::test]
async fn a_slow_call_is_made_again_and_the_first_success_wins() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).build();
    assert_eq!(call(&hedge, &clock, &[(90, Ok(1)), (5, Ok(2))]).await, (Ok(2), 15, 2));
    assert_eq!(call(&hedge, &clock, &[(20, Ok(1)), (50, Ok(2))]).await, (Ok(1), 20, 2));
}

#[tokio::test]
async fn no_more_than_the_allowed_extra_attempts_are_made() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).extra_max(2).build();
    let slow = [(90, Ok(1)), (90, Ok(2)), (50, Ok(3)), (1, Ok(4))];
    assert_eq!(call(&hedge, &clock, &slow).await, (Ok(3), 70, 3));
}

#[tokio::test]
async fn an_error_does_not_end_the_call_while_another_attempt_runs() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).build();
    assert_eq!(call(&hedge, &clock, &[(20, BUSY), (50, Ok(2))]).await, (Ok(2), 60, 2));
    assert_eq!(call(&hedge, &clock, &[(50, Ok(1)), (5, BUSY)]).await, (Ok(1), 50, 2));
}

#[tokio::test]
async fn a_call_that_fails_before_the_delay_is_left_to_a_retry() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).build();
    assert_eq!(call(&hedge, &clock, &[(9, BUSY), (1, Ok(2))]).await, (BUSY, 9, 1));
}

#[tokio::test]
async fn if_all_attempts_fail_the_last_failure_of_the_service_is_returned() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).build();
    let second = Err(Failure::Busy(2));
    assert_eq!(call(&hedge, &clock, &[(20, BUSY), (50, second)]).await, (second, 60, 2));
    let refused = Err(Failure::Refused);
    assert_eq!(call(&hedge, &clock, &[(20, BUSY), (50, refused)]).await, (BUSY, 60, 2));
    assert_eq!(call(&hedge, &clock, &[(20, BUSY), (0, refused)]).await, (BUSY, 20, 2));
    assert_eq!(call(&hedge, &clock, &[(20, refused), (0, refused)]).await, (refused, 20, 2));
}

#[tokio::test]
async fn an_answer_that_is_no_success_ends_the_call_at_once() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).build();
    let answer = Err(Failure::NoSuchPage);
    assert_eq!(call(&hedge, &clock, &[(90, Ok(1)), (5, answer)]).await, (answer, 15, 2));
}

#[tokio::test]
async fn a_value_that_the_judge_rejects_is_no_success() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).build();
    let plan = Plan::new(&clock, &[(12, Ok(503)), (5, Ok(200))]);
    let judge = |reply: &Reply| match reply {
        Ok(503) => Class::retry(Category::Transient),
        Ok(_) => Class::DONE,
        Err(failure) => failure.classify(),
    };
    let call = hedge.call_judged(SafeToRepeat, judge, || plan.attempt());
    assert_eq!(clock.drive(call).await, Ok(200));
    assert_eq!(clock.elapsed(), millis(15));
}

#[tokio::test]
async fn dropping_the_call_drops_every_attempt() {
    let clock = ManualClock::new();
    let hedge = hedge(&clock).build();
    let plan = Plan::new(&clock, &[(90, Ok(1)), (90, Ok(2))]);
    let mut call = Box::pin(hedge.call(SafeToRepeat, || plan.attempt()));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    clock.advance(millis(10));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    assert_eq!(plan.running.get(), 2);
    drop(call);
    assert_eq!(plan.running.get(), 0);
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn observe(&self, event: &Event<'_>) {
        let line = if let Event::HedgeStarted { name, extra, after } = event {
            format!("{name}: {extra} after {after:?}")
        } else if let Event::HedgeWon { name, extra } = event {
            format!("{name}: {extra} won")
        } else {
            format!("{event:?}")
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test]
async fn observers_hear_of_extra_attempts() {
    let clock = ManualClock::new();
    let heard = std::sync::Arc::new(Heard::default());
    let hedge = hedge(&clock).extra_max(2).named("pages").observer(heard.clone()).build();
    let _ = call(&hedge, &clock, &[(90, Ok(1)), (90, Ok(2)), (1, Ok(3))]).await;
    let _ = call(&hedge, &clock, &[(15, Ok(1)), (90, Ok(2))]).await;
    let expected =
        ["pages: 1 after 10ms", "pages: 2 after 20ms", "pages: 2 won", "pages: 1 after 10ms"];
    assert_eq!(*heard.0.lock().unwrap(), expected);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for percentile in [0.0, 1.0, -0.5, 1.5, f64::NAN, 0.999_999_9, 0.000_000_1] {
        let error = Hedge::try_percentile(percentile).unwrap_err();
        assert_eq!(error.setting(), "percentile", "{percentile}");
    }
    assert!(Hedge::try_percentile(0.99999).unwrap().try_window(99_999).is_err());
    assert!(Hedge::try_percentile(0.5).unwrap().try_window(19).is_err());
    assert!(Hedge::try_percentile(0.5).unwrap().try_window(20).is_ok());
    assert!(Hedge::try_percentile(0.5).unwrap().try_delay_min(millis(0)).is_err());
    for extra in [0, Hedge::EXTRA_MAX + 1] {
        assert_eq!(
            Hedge::after(millis(1)).try_extra_max(extra).unwrap_err().setting(),
            "extra_max"
        );
    }
    let error = Hedge::after(millis(1)).try_window(100).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid window `100`: only a hedge at a percentile has this setting"
    );
    assert!(Hedge::after(millis(1)).try_delay_min(millis(1)).is_err());
}
