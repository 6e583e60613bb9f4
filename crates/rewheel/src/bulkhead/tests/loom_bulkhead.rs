//! Checks every interleaving of callers that enter, leave and give up.

use crate::bulkhead::{Bulkhead, Entry, Waiting};
use crate::clock::ManualClock;
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

impl Woken {
    fn waker(self: &Arc<Woken>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    fn was_woken(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) > 0
    }
}

fn full() -> Bulkhead {
    let bulkhead = Bulkhead::concurrency(1).queue_max(10).clock(ManualClock::new()).build();
    assert_eq!(Waiting::default().poll(&bulkhead, Waker::noop()), Entry::Entered(1));
    bulkhead
}

#[test]
fn loom_a_place_that_comes_free_is_given_or_announced() {
    loom::model(|| {
        let bulkhead = full();
        let leaver = {
            let bulkhead = bulkhead.clone();
            thread::spawn(move || bulkhead.release())
        };
        let woken = Arc::new(Woken::default());
        let mut waiting = Waiting::default();
        let entry = waiting.poll(&bulkhead, &woken.waker());
        leaver.join().unwrap();
        if entry != Entry::Entered(1) {
            assert!(woken.was_woken(), "it sleeps beside a free place");
            assert_eq!(waiting.poll(&bulkhead, Waker::noop()), Entry::Entered(1));
        }
        assert_eq!((bulkhead.free(), bulkhead.waiting()), (0, 0));
    });
}

/// The first in the queue is dropped while a slot becomes free: the wake-up must reach the second.
#[test]
fn loom_a_caller_that_gives_up_passes_the_news_on() {
    loom::model(|| {
        let bulkhead = full();
        let woken = Arc::new(Woken::default());
        let (mut first, mut second) = (Waiting::default(), Waiting::default());
        assert!(matches!(first.poll(&bulkhead, Waker::noop()), Entry::Later(_)));
        assert!(matches!(second.poll(&bulkhead, &woken.waker()), Entry::Later(_)));
        let leaver = {
            let bulkhead = bulkhead.clone();
            thread::spawn(move || bulkhead.release())
        };
        let quitter = {
            let bulkhead = bulkhead.clone();
            thread::spawn(move || first.leave(&bulkhead))
        };
        leaver.join().unwrap();
        quitter.join().unwrap();
        assert!(woken.was_woken(), "it sleeps beside a free place");
        assert_eq!(second.poll(&bulkhead, Waker::noop()), Entry::Entered(1));
        assert_eq!((bulkhead.free(), bulkhead.waiting()), (0, 0));
    });
}

#[test]
fn loom_a_place_is_never_given_twice() {
    loom::model(|| {
        let bulkhead = Bulkhead::concurrency(1).build();
        let inside = Arc::new(AtomicUsize::new(0));
        let threads = [(); 2].map(|()| {
            let (bulkhead, inside) = (bulkhead.clone(), Arc::clone(&inside));
            thread::spawn(move || {
                let Ok(place) = bulkhead.try_acquire() else { return };
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two in one place");
                thread::yield_now();
                inside.fetch_sub(1, Ordering::Relaxed);
                drop(place);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(bulkhead.free(), 1);
    });
}

/// The first in the queue is not polled: the second passes it, while the first may come back.
#[test]
fn loom_a_caller_that_is_not_polled_blocks_no_other() {
    loom::model(|| {
        let clock = ManualClock::new();
        let bulkhead = Bulkhead::concurrency(1).queue_max(10).clock(&clock).build();
        assert_eq!(Waiting::default().poll(&bulkhead, Waker::noop()), Entry::Entered(1));
        let (mut first, mut second) = (Waiting::default(), Waiting::default());
        assert!(matches!(first.poll(&bulkhead, Waker::noop()), Entry::Later(_)));
        assert!(matches!(second.poll(&bulkhead, Waker::noop()), Entry::Later(_)));
        bulkhead.release();
        assert!(matches!(second.poll(&bulkhead, Waker::noop()), Entry::Later(_)));
        clock.advance(TURN_MAX);
        let back = {
            let bulkhead = bulkhead.clone();
            thread::spawn(move || (first.poll(&bulkhead, Waker::noop()), first))
        };
        let passed = second.poll(&bulkhead, Waker::noop());
        let (answer, mut first) = back.join().unwrap();
        let entered = [&passed, &answer];
        let entered = entered.into_iter().filter(|entry| matches!(entry, Entry::Entered(_)));
        assert_eq!(entered.count(), 1, "{passed:?} {answer:?}");
        first.leave(&bulkhead);
        second.leave(&bulkhead);
        assert_eq!((bulkhead.free(), bulkhead.waiting()), (0, 0));
    });
}
