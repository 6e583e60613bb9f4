//! Tests of the clocks.

use super::{Clock, ManualClock, Moment};
use crate::duration::{millis, seconds};
use std::future::Future;
use std::time::Duration;

#[test]
fn the_system_clock_never_goes_back() {
    for clock in [Clock::system(), Clock::coarse()] {
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last, "{clock:?} went back from {last:?} to {now:?}");
            last = now;
        }
    }
}

#[test]
fn moments_saturate_at_both_ends() {
    assert_eq!(Moment::ZERO.since(Moment::NEVER), Duration::ZERO);
    assert_eq!(Moment::NEVER.plus(seconds(1)), Moment::NEVER);
    assert_eq!(Moment::ZERO.plus(Duration::MAX), Moment::NEVER);
}

#[tokio::test]
async fn a_manual_clock_wakes_sleepers_in_the_order_of_their_moments() {
    let clock = ManualClock::new();
    let order = std::sync::Mutex::new(Vec::new());
    let sleeper = async |delay: Duration| {
        Clock::from(&clock).sleep(delay).await;
        order.lock().unwrap().push((delay, clock.elapsed()));
    };
    let all = async { tokio::join!(sleeper(millis(30)), sleeper(millis(10)), sleeper(millis(20))) };

    clock.drive(all).await;

    let expected: Vec<_> = [10, 20, 30].map(|delay| (millis(delay), millis(delay))).into();
    assert_eq!(*order.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_dropped_sleep_is_no_longer_waited_for() {
    let clock = ManualClock::new();
    {
        let mut sleep = std::pin::pin!(Clock::from(&clock).sleep(seconds(1)));
        assert!(
            std::future::poll_fn(|cx| std::task::Poll::Ready(sleep.as_mut().poll(cx).is_pending()))
                .await
        );
    }
    assert!(!clock.advance_to_next(), "the clock still waits for a sleep that was dropped");
}

#[tokio::test]
async fn a_simulation_stops_at_its_own_event_or_at_an_earlier_sleeper() {
    let clock = ManualClock::new();
    let mut sleep = std::pin::pin!(Clock::from(&clock).sleep(seconds(5)));
    let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(sleep.as_mut().poll(cx)));
    assert!(poll.await.is_pending());
    assert!(!clock.advance_to_next_within(seconds(4)));
    assert_eq!(clock.elapsed(), seconds(4));
    assert!(clock.advance_to_next_within(seconds(4)));
    assert_eq!(clock.elapsed(), seconds(5), "at the sleeper, not after it");
}

#[tokio::test]
async fn work_that_is_ready_comes_before_the_passing_of_time() {
    let clock = ManualClock::new();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let work = async {
        tokio::task::yield_now().await;
        sender.send(clock.elapsed()).unwrap();
    };
    let timeout = async {
        tokio::select! {
            sent = receiver => sent.ok(),
            () = Clock::from(&clock).sleep(seconds(5)) => None,
        }
    };
    let (answer, ()) = clock.drive(async { tokio::join!(timeout, work) }).await;
    assert_eq!(answer, Some(Duration::ZERO));
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn the_system_clock_follows_a_paused_runtime() {
    let clock = Clock::system();
    let before = clock.now();
    clock.sleep(seconds(3_600)).await;
    assert!(clock.now().since(before) >= seconds(3_600));
}

/// The thread that waits is the one that would advance the time of the runtime.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn a_blocking_wait_ends_inside_a_paused_runtime() {
    use super::Waited;
    use crate::cancel::CancelToken;

    let cancel = CancelToken::new();
    let waited = Clock::system().wait_blocking(millis(1), Some(&cancel));
    assert_eq!(waited, Waited::Fully);
    cancel.cancel();
    assert_eq!(Clock::system().wait_blocking(millis(1), Some(&cancel)), Waited::Cancelled);
}

#[test]
fn sleeping_needs_no_tokio_runtime() {
    let waker = super::ThreadWaker::current();
    let mut cx = std::task::Context::from_waker(&waker);
    let mut sleep = std::pin::pin!(Clock::system().sleep(millis(2)));
    while sleep.as_mut().poll(&mut cx).is_pending() {
        std::thread::park();
    }
}

#[cfg(feature = "tokio")]
#[test]
fn a_paused_runtime_far_ahead_does_not_stop_the_clock_for_others() {
    let runtime = |is_paused| {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(is_paused)
            .build()
            .unwrap()
    };
    let clock = Clock::system();
    runtime(true).block_on(async {
        tokio::time::advance(seconds(3_600)).await;
        clock.now()
    });
    // Readings before the first reading of the clock are still distinct.
    let (first, second) = runtime(false).block_on(async {
        let first = clock.now();
        let later = (0..10_000_000).map(|_| clock.now()).find(|now| *now > first);
        (first, later.expect("the clock does not advance"))
    });
    assert!(second > first && second.since(first) < seconds(60));
}

#[test]
fn a_bucket_that_fills_within_a_few_steps_of_a_clock_goes_by_an_exact_one() {
    let resolution = crate::duration::nanos(Clock::coarse().resolution());
    let exact = Clock::coarse().fine_enough_for(resolution);
    assert_eq!(exact.resolution(), Duration::ZERO);
    let coarse = Clock::coarse().fine_enough_for(100 * resolution);
    assert_eq!(coarse.resolution(), Clock::coarse().resolution());
}
