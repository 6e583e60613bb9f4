//! Checks every interleaving of a limit that changes with calls that start, end and wait.

use crate::bulkhead::{Bulkhead, Entry, Waiting};
use crate::clock::ManualClock;
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

fn slots(count: usize) -> Bulkhead {
    Bulkhead::concurrency(count).queue_max(10).clock(ManualClock::new()).build()
}

fn change(slots: &Bulkhead, to: usize) {
    if let Some(waker) = slots.set_slots(to) {
        waker.wake();
    }
}

#[test]
fn loom_a_slot_of_a_larger_limit_is_given_or_announced() {
    loom::model(|| {
        let slots = slots(1);
        assert_eq!(slots.try_enter(), Ok(1));
        let grows = {
            let slots = slots.clone();
            thread::spawn(move || change(&slots, 2))
        };
        let woken = Arc::new(Woken::default());
        let mut waiting = Waiting::default();
        let entry = waiting.poll(&slots, &Waker::from(Arc::clone(&woken)));
        grows.join().unwrap();
        if entry != Entry::Entered(2) {
            assert!(woken.0.load(Ordering::Relaxed) > 0, "it sleeps beside a free slot");
            assert_eq!(waiting.poll(&slots, Waker::noop()), Entry::Entered(2));
        }
        assert_eq!((slots.in_use(), slots.waiting()), (2, 0));
    });
}

#[test]
fn loom_a_limit_that_falls_below_its_calls_admits_none_until_they_end() {
    loom::model(|| {
        let slots = slots(2);
        assert_eq!((slots.try_enter(), slots.try_enter()), (Ok(1), Ok(2)));
        let falls = {
            let slots = slots.clone();
            thread::spawn(move || change(&slots, 1))
        };
        slots.release();
        let early = slots.try_enter().is_ok();
        falls.join().unwrap();
        assert!(slots.in_use() == 1 + usize::from(early));
        assert!(slots.try_enter().is_err(), "more calls than slots");
        (0..slots.in_use()).for_each(|_| slots.release());
        assert_eq!(slots.try_enter(), Ok(1));
    });
}

#[test]
fn loom_a_waiter_survives_a_limit_that_falls_and_grows() {
    loom::model(|| {
        let slots = slots(1);
        assert_eq!(slots.try_enter(), Ok(1));
        let woken = Arc::new(Woken::default());
        let mut waiting = Waiting::default();
        let waker = Waker::from(Arc::clone(&woken));
        assert!(matches!(waiting.poll(&slots, &waker), Entry::Later(_)));
        let changes = {
            let slots = slots.clone();
            thread::spawn(move || {
                change(&slots, 3);
                change(&slots, 1);
            })
        };
        slots.release();
        changes.join().unwrap();
        assert!(woken.0.load(Ordering::Relaxed) > 0, "it sleeps beside a free slot");
        assert_eq!(waiting.poll(&slots, &waker), Entry::Entered(1));
    });
}
