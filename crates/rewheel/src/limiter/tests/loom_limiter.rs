//! Checks every interleaving of threads that use one limiter.

use crate::clock::{ManualClock, Moment};
use crate::duration::millis;
use crate::limiter::gcra::Gcra;
use crate::limiter::{Admission, RateLimiter, Waiting};
use crate::queue::TURN_MAX;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn loom_a_bucket_admits_its_burst_and_no_more() {
    loom::model(|| {
        let gcra = Arc::new(Gcra::new(1_000, 3));
        let now = Moment::from_nanos(1_000_000);
        let ask = move |gcra: &Gcra| usize::from(gcra.take(1, now).is_ok());
        let threads = [(); 2].map(|()| {
            let gcra = Arc::clone(&gcra);
            thread::spawn(move || ask(&gcra) + ask(&gcra))
        });
        let here = ask(&gcra);
        let admitted = threads.map(|thread| thread.join().unwrap()).iter().sum::<usize>() + here;
        assert_eq!(admitted, 3, "five asked for the three there are");
    });
}

/// One thread's clock reading is one interval behind the other's.
#[test]
fn loom_a_late_reading_admits_no_more() {
    loom::model(|| {
        let gcra = Arc::new(Gcra::new(1_000, 2));
        let threads = [1_000_000, 1_001_000].map(|now| {
            let gcra = Arc::clone(&gcra);
            thread::spawn(move || {
                (0..3).filter(|_| gcra.take(1, Moment::from_nanos(now)).is_ok()).count()
            })
        });
        let admitted: usize = threads.map(|thread| thread.join().unwrap()).iter().sum();
        assert!((2..=3).contains(&admitted), "{admitted} of the burst and one interval");
    });
}

/// The answer to a caller that is not first: it relies on being woken, or asks again later.
fn behind(limiter: &RateLimiter) -> Admission {
    Admission::Later(limiter.clock().now().plus(TURN_MAX))
}

/// Waits like a task: sleeps until woken, or until the given time.
fn is_asleep_at_the_front(limiter: &RateLimiter, waiting: &mut Waiting) -> bool {
    let woken = Arc::new(Woken::default());
    let admission = waiting.poll(limiter, 1, &Waker::from(Arc::clone(&woken)));
    admission == behind(limiter) && woken.0.load(Ordering::Relaxed) == 0
}

/// The only waiting caller leaves while another one joins: the new first caller must know that it
/// is first, since no other caller can wake it.
#[test]
fn loom_the_first_in_line_is_woken_or_knows_when_to_ask() {
    loom::model(|| {
        let clock = ManualClock::new();
        let limiter = RateLimiter::per_second(10).burst(1).clock(&clock).build();
        limiter.check().unwrap();
        let mut first = Waiting::default();
        assert!(!is_asleep_at_the_front(&limiter, &mut first));

        let leaver = {
            let limiter = limiter.clone();
            thread::spawn(move || first.leave(&limiter))
        };
        let woken = Arc::new(Woken::default());
        let mut second = Waiting::default();
        let admission = second.poll(&limiter, 1, &Waker::from(Arc::clone(&woken)));
        leaver.join().unwrap();

        if admission == behind(&limiter) {
            assert!(woken.0.load(Ordering::Relaxed) > 0, "the first in line is never woken");
        }
        assert!(!is_asleep_at_the_front(&limiter, &mut second));
        clock.advance(millis(100));
        assert_eq!(second.poll(&limiter, 1, Waker::noop()), Admission::Admitted);
        assert!(limiter.check().is_err());
        clock.advance(millis(100));
        assert_eq!(limiter.check(), Ok(()), "the line is not empty");
    });
}

/// Two callers wait; the first is served or gives up while a third one comes.
#[test]
fn loom_leaving_wakes_exactly_the_next_in_line() {
    loom::model(|| {
        let clock = ManualClock::new();
        let limiter = RateLimiter::per_second(10).burst(1).clock(&clock).build();
        limiter.check().unwrap();
        let wakers = [(); 3].map(|()| Arc::new(Woken::default()));
        let waker = |caller: usize| Waker::from(Arc::clone(&wakers[caller]));
        let mut waiting = [(); 3].map(|()| Waiting::default());
        for (caller, waiting) in waiting.iter_mut().take(2).enumerate() {
            let admission = waiting.poll(&limiter, 1, &waker(caller));
            assert!(matches!(admission, Admission::Later(_)));
        }
        let [mut first, mut second, mut third] = waiting;
        let leaver = {
            let limiter = limiter.clone();
            thread::spawn(move || first.leave(&limiter))
        };
        let third_waker = waker(2);
        let admission = third.poll(&limiter, 1, &third_waker);
        leaver.join().unwrap();

        assert_eq!(wakers[1].0.load(Ordering::Relaxed), 1, "the second sleeps for ever");
        assert_eq!(admission, behind(&limiter), "the third overtook the second");
        second.leave(&limiter);
        assert_eq!(wakers[2].0.load(Ordering::Relaxed), 1, "the third sleeps for ever");
    });
}

/// A caller that does not wait, while another one joins: together they take no more than there is.
#[test]
fn loom_checking_while_another_joins_admits_no_more() {
    loom::model(|| {
        let clock = ManualClock::new();
        let limiter = RateLimiter::per_second(10).burst(2).clock(&clock).build();
        limiter.check().unwrap();
        let checker = {
            let limiter = limiter.clone();
            thread::spawn(move || limiter.check().is_ok())
        };
        let mut waiting = Waiting::default();
        let admitted = waiting.poll(&limiter, 1, Waker::noop()) == Admission::Admitted;
        let checked = checker.join().unwrap();
        assert_eq!(usize::from(checked) + usize::from(admitted), 1, "one token was left");
        clock.advance(millis(100));
        if !admitted {
            assert_eq!(waiting.poll(&limiter, 1, Waker::noop()), Admission::Admitted);
        }
        clock.advance(millis(200));
        assert_eq!(limiter.check_n(2), Ok(()), "the line is not empty");
    });
}

/// A heavy call waits, and a light one comes: the light one must not overtake it.
#[test]
fn loom_a_heavy_call_keeps_its_place() {
    loom::model(|| {
        let clock = ManualClock::new();
        let limiter = RateLimiter::per_second(10).burst(3).clock(&clock).build();
        limiter.check_n(2).unwrap();
        let mut heavy = Waiting::default();
        assert!(matches!(heavy.poll(&limiter, 3, Waker::noop()), Admission::Later(_)));
        let light = {
            let limiter = limiter.clone();
            thread::spawn(move || {
                let mut light = Waiting::default();
                let admission = light.poll(&limiter, 1, Waker::noop());
                light.leave(&limiter);
                admission
            })
        };
        let checked = limiter.check();
        assert!(matches!(light.join().unwrap(), Admission::Later(_)), "it overtook");
        assert!(checked.is_err(), "it overtook without waiting");
        clock.advance(millis(200));
        assert_eq!(heavy.poll(&limiter, 3, Waker::noop()), Admission::Admitted);
    });
}

/// The first in the queue is not polled: the second passes it, while the first may come back.
#[test]
fn loom_a_caller_that_is_not_polled_blocks_no_other() {
    loom::model(|| {
        let clock = ManualClock::new();
        let limiter = RateLimiter::per_second(1).burst(1).clock(&clock).build();
        limiter.check().unwrap();
        let (mut first, mut second) = (Waiting::default(), Waiting::default());
        assert!(matches!(first.poll(&limiter, 1, Waker::noop()), Admission::Later(_)));
        assert!(matches!(second.poll(&limiter, 1, Waker::noop()), Admission::Later(_)));
        clock.advance(millis(1_000));
        assert_eq!(second.poll(&limiter, 1, Waker::noop()), behind(&limiter));
        clock.advance(TURN_MAX);
        let back = {
            let limiter = limiter.clone();
            thread::spawn(move || (first.poll(&limiter, 1, Waker::noop()), first))
        };
        let passed = second.poll(&limiter, 1, Waker::noop());
        let (answer, mut first) = back.join().unwrap();
        let admitted = [&passed, &answer].into_iter().filter(|a| **a == Admission::Admitted);
        assert_eq!(admitted.count(), 1, "{passed:?} {answer:?}");
        first.leave(&limiter);
        second.leave(&limiter);
    });
}
