//! Tests of waiting for a limiter: order of arrival, limits, cleanup.

use crate::clock::ManualClock;
use crate::duration::{millis, seconds};
use crate::error::{GiveUpReason, Refused};
use crate::limiter::{Admission, RateLimiter, RateLimiterBuilder, Waiting};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet, yield_now};

/// Callers that wait for one limiter, with their results. The executor polls only tasks that were
/// woken, so a lost wake-up fails the test.
struct Line {
    limiter: RateLimiter,
    clock: ManualClock,
    tasks: JoinSet<()>,
    served: Arc<Mutex<Vec<Served>>>,
}

/// Caller, time, result.
type Served = (usize, Duration, Result<(), Refused>);

impl Line {
    fn new(limiter: RateLimiterBuilder) -> Line {
        let clock = ManualClock::new();
        let limiter = limiter.clock(&clock).build();
        Line { limiter, clock, tasks: JoinSet::new(), served: Arc::default() }
    }

    /// Starts a caller; returns when it was served or waits.
    async fn comes(&mut self, name: usize, n: u32) -> AbortHandle {
        let (limiter, clock) = (self.limiter.clone(), self.clock.clone());
        let served = Arc::clone(&self.served);
        let task = self.tasks.spawn(async move {
            let result = limiter.acquire_n(n).await;
            served.lock().unwrap().push((name, clock.elapsed(), result));
        });
        settle().await;
        task
    }

    async fn cancel(&self, task: AbortHandle) {
        task.abort();
        settle().await;
    }

    /// Advances the clock in small steps.
    async fn pass(&self, time: Duration) {
        let end = self.clock.elapsed() + time;
        while self.clock.elapsed() < end {
            self.clock.advance(millis(1));
            settle().await;
        }
    }

    /// Returns the callers served so far, with their times.
    fn served(&self) -> Vec<(usize, u128)> {
        let served = self.served.lock().unwrap();
        let admitted = served.iter().filter(|(_, _, result)| result.is_ok());
        admitted.map(|(name, at, _)| (*name, at.as_millis())).collect()
    }

    fn refused(&self) -> Vec<(usize, Refused)> {
        let served = self.served.lock().unwrap();
        served.iter().filter_map(|(name, _, result)| Some((*name, result.err()?))).collect()
    }

    /// Asserts that no caller waits any more, and that nothing remains of earlier ones.
    async fn assert_empty(&self) {
        assert!(!self.clock.advance_to_next(), "a caller still waits for the clock");
        self.clock.advance(seconds(3_600));
        assert_eq!(self.limiter.check(), Ok(()), "the line is not empty");
    }
}

async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

fn one_a_tenth() -> RateLimiterBuilder {
    RateLimiter::per_second(10).burst(5)
}

#[tokio::test]
async fn callers_are_served_in_the_order_in_which_they_came() {
    let mut line = Line::new(one_a_tenth());
    for (name, n) in [5, 5, 1, 3, 1, 2].into_iter().enumerate() {
        line.comes(name, n).await;
    }
    assert_eq!(line.served(), [(0, 0)], "more than the burst at once");
    line.pass(seconds(2)).await;
    // A light call after a heavy one could be served earlier, but must not be.
    let expected = [(0, 0), (1, 500), (2, 600), (3, 900), (4, 1_000), (5, 1_200)];
    assert_eq!(line.served(), expected);
    line.assert_empty().await;
}

#[tokio::test]
async fn a_window_is_waited_for_in_order_too() {
    let mut line = Line::new(RateLimiter::sliding_window(2, millis(320)));
    for name in 0..6 {
        line.comes(name, 1).await;
    }
    line.pass(seconds(2)).await;
    assert_eq!(line.served(), [(0, 0), (1, 0), (2, 330), (3, 330), (4, 660), (5, 660)]);
    line.assert_empty().await;
}

#[tokio::test]
async fn who_does_not_wait_does_not_overtake_those_who_do() {
    let mut line = Line::new(one_a_tenth());
    line.comes(0, 5).await;
    line.comes(1, 5).await;
    line.pass(millis(200)).await;
    let refused = line.limiter.check().unwrap_err();
    assert_eq!((refused.why, refused.retry_in), (GiveUpReason::RateLimited, None));
    line.pass(millis(300)).await;
    assert_eq!(line.served(), [(0, 0), (1, 500)]);
    line.pass(millis(100)).await;
    assert_eq!(line.limiter.check(), Ok(()));
}

#[tokio::test]
async fn cancelled_callers_give_way_and_take_nothing() {
    // Which of the four waiting callers are cancelled: the others are served as if those had never
    // come.
    let cases: [&[usize]; 5] = [&[1], &[2], &[4], &[1, 2, 3], &[4, 3, 2, 1]];
    for cancelled in cases {
        let others = (1..=4).filter(|name| !cancelled.contains(name));
        let expected: Vec<_> = others.zip([200, 400, 600, 800]).collect();
        let mut line = Line::new(one_a_tenth());
        line.limiter.check_n(5).unwrap();
        let mut tasks = Vec::new();
        for name in 1..=4 {
            tasks.push(line.comes(name, 2).await);
        }
        line.pass(millis(100)).await;
        for name in cancelled {
            line.cancel(tasks[name - 1].clone()).await;
        }
        line.pass(seconds(1)).await;
        assert_eq!(line.served(), expected, "cancelled: {cancelled:?}");
        line.assert_empty().await;
    }
}

#[tokio::test]
async fn only_so_many_wait() {
    let mut line = Line::new(one_a_tenth().queue_max(2));
    line.limiter.check_n(5).unwrap();
    for name in 1..=4 {
        line.comes(name, 1).await;
    }
    assert_eq!(line.refused().iter().map(|(name, _)| *name).collect::<Vec<_>>(), [3, 4]);
    assert!(line.refused().iter().all(|(_, refused)| refused.why == GiveUpReason::RateLimited));
    line.pass(millis(100)).await;
    line.comes(5, 1).await;
    line.pass(seconds(1)).await;
    assert_eq!(line.served(), [(1, 100), (2, 200), (5, 300)]);
    line.assert_empty().await;
}

#[tokio::test]
async fn without_room_to_wait_a_caller_learns_when_to_ask_again() {
    let mut line = Line::new(one_a_tenth().queue_max(0));
    line.limiter.check_n(5).unwrap();
    line.comes(1, 2).await;
    assert_eq!(line.refused(), [(1, Refused::new(GiveUpReason::RateLimited, Some(millis(200))))]);
    line.assert_empty().await;
}

#[tokio::test]
async fn a_wait_that_is_known_to_be_too_long_is_refused_at_once() {
    let mut line = Line::new(one_a_tenth().wait_max(millis(250)));
    line.limiter.check_n(5).unwrap();
    line.comes(1, 3).await;
    assert_eq!(line.refused(), [(1, Refused::new(GiveUpReason::RateLimited, Some(millis(300))))]);
    line.comes(2, 2).await;
    line.comes(3, 5).await;
    line.pass(millis(200)).await;
    // The third has 50 ms left when it becomes the first, and knows that it needs 500.
    assert_eq!(line.served(), [(2, 200)]);
    assert_eq!(line.refused()[1], (3, Refused::new(GiveUpReason::RateLimited, Some(millis(500)))));
    line.assert_empty().await;
}

#[tokio::test]
async fn a_wait_that_turns_out_too_long_ends_on_time() {
    let mut line = Line::new(one_a_tenth().wait_max(millis(500)));
    line.limiter.check_n(5).unwrap();
    line.comes(1, 5).await;
    line.comes(2, 1).await;
    line.pass(millis(499)).await;
    assert_eq!((line.served(), line.refused()), (vec![], vec![]));
    line.pass(millis(1)).await;
    assert_eq!(line.served(), [(1, 500)]);
    let refused = line.refused();
    assert_eq!((refused[0].0, refused[0].1.why), (2, GiveUpReason::RateLimited));
    line.assert_empty().await;
}

#[tokio::test]
async fn what_can_never_be_served_does_not_join_the_line() {
    let mut line = Line::new(one_a_tenth());
    line.limiter.check_n(5).unwrap();
    line.comes(1, 6).await;
    assert_eq!(line.refused(), [(1, Refused::new(GiveUpReason::AboveBurst, None))]);
    line.assert_empty().await;
}

/// A caller whose future no task polls any more, as inside a `buffer_unordered` whose consumer is busy.
struct Unpolled {
    waiting: Waiting,
}

impl Unpolled {
    fn comes(limiter: &RateLimiter) -> Unpolled {
        let mut waiting = Waiting::default();
        let admission = waiting.poll(limiter, 1, std::task::Waker::noop());
        assert!(matches!(admission, Admission::Later(_)));
        Unpolled { waiting }
    }
}

#[tokio::test]
async fn callers_pass_those_before_them_that_do_not_take_their_turn() {
    let mut line = Line::new(one_a_tenth());
    line.limiter.check_n(5).unwrap();
    let unpolled = [(); 40].map(|()| Unpolled::comes(&line.limiter));
    for name in 1..=3 {
        line.comes(name, 1).await;
    }
    line.pass(seconds(3)).await;
    assert_eq!(line.served().iter().map(|(name, _)| *name).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(line.limiter.check(), Ok(()), "who does not wait passes them too");

    let [mut first, ..] = unpolled;
    assert_eq!(first.waiting.poll(&line.limiter, 1, std::task::Waker::noop()), Admission::Admitted);
}

#[tokio::test]
async fn who_does_not_wait_is_not_refused_for_ever_because_of_a_caller_that_is_not_polled() {
    let line = Line::new(one_a_tenth());
    line.limiter.check_n(5).unwrap();
    let _unpolled = Unpolled::comes(&line.limiter);
    line.pass(seconds(1)).await;
    assert!(line.limiter.check().is_err(), "the one before has a moment to answer");
    line.pass(crate::queue::TURN_MAX).await;
    assert_eq!(line.limiter.check(), Ok(()));
}

#[tokio::test]
async fn callers_that_waited_too_long_make_room_for_others() {
    let mut line = Line::new(one_a_tenth().queue_max(2).wait_max(millis(400)));
    line.limiter.check_n(5).unwrap();
    let _unpolled = [(); 2].map(|()| Unpolled::comes(&line.limiter));
    line.comes(1, 1).await;
    assert_eq!(line.refused().len(), 1, "the line was not full");
    line.limiter.take(4, line.limiter.clock().now()).unwrap_err();
    line.pass(millis(400)).await;
    // Empty again, so that the next one has to wait.
    line.limiter.take(4, line.limiter.clock().now()).unwrap();
    line.comes(2, 1).await;
    line.pass(seconds(1)).await;
    assert_eq!(line.served().iter().map(|(name, _)| *name).collect::<Vec<_>>(), [2]);
}
