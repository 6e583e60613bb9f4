//! Tests of the clocks and wakers that a waiting pipeline uses.

use rewheel::{Bulkhead, ManualClock, Pipeline, RateLimiter, seconds};
use std::future::{Future, pending, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, wakes: &Arc<Wakes>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(wakes))))
}

#[test]
fn a_wait_by_the_clock_of_a_limiter_is_as_long_by_the_clock_of_the_pipeline() {
    let (clock, its_clock) = (ManualClock::new(), ManualClock::new());
    // Clocks have different origins: the coarse one the start of the machine, the system's the
    // start of the process.
    its_clock.advance(seconds(1_000_000));
    let limiter = RateLimiter::per_second(1).burst(1).clock(&its_clock).build();
    limiter.check().unwrap();
    let policies = Pipeline::new().rate_limiter(&limiter).clock(&clock);
    let wakes = Arc::new(Wakes::default());
    let mut call = Box::pin(policies.run(|_| ready(Ok::<_, io::Error>(7))).into_future());
    assert!(poll(call.as_mut(), &wakes).is_pending());

    its_clock.advance(seconds(1));
    clock.advance(seconds(1));

    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert!(matches!(poll(call.as_mut(), &wakes), Poll::Ready(Ok(7))));
}

#[test]
fn nothing_is_left_of_a_wait_that_ended_early() {
    let clock = ManualClock::new();
    let bulkhead =
        Bulkhead::concurrency(1).queue_max(1).wait_max(seconds(60)).clock(&clock).build();
    let policies = Pipeline::new().bulkhead(&bulkhead).clock(&clock);
    let place = bulkhead.try_acquire().unwrap();
    let wakes = Arc::new(Wakes::default());
    let mut call = Box::pin(policies.run(|_| pending::<io::Result<()>>()).into_future());
    assert!(poll(call.as_mut(), &wakes).is_pending());

    drop(place);
    assert!(poll(call.as_mut(), &wakes).is_pending());

    assert_eq!((bulkhead.free(), wakes.0.load(Ordering::Relaxed)), (0, 1));
    assert!(!clock.advance_to_next(), "the call that runs has no limit to wait for");
}
