//! Checks that a bulkhead hands out its slots in order.

use crate::bulkhead::{Bulkhead, BulkheadBuilder, BulkheadPermit, Entry, Waiting};
use crate::clock::ManualClock;
use crate::duration::millis;
use crate::error::GiveUpReason;
use crate::queue::TURN_MAX;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use tokio::task::{AbortHandle, JoinSet, yield_now};

/// Callers of one bulkhead. The executor polls only tasks that were woken, so a lost wake-up fails
/// the test.
struct Crowd {
    bulkhead: Bulkhead,
    clock: ManualClock,
    tasks: JoinSet<()>,
    inside: Arc<Mutex<Vec<(usize, BulkheadPermit)>>>,
    refused: Arc<Mutex<Vec<usize>>>,
}

impl Crowd {
    fn new(bulkhead: BulkheadBuilder) -> Crowd {
        let clock = ManualClock::new();
        Crowd {
            bulkhead: bulkhead.clock(&clock).build(),
            clock,
            tasks: JoinSet::new(),
            inside: Arc::default(),
            refused: Arc::default(),
        }
    }

    /// Starts a caller; returns when it is inside, refused or waiting.
    async fn comes(&mut self, name: usize) -> AbortHandle {
        let bulkhead = self.bulkhead.clone();
        let (inside, refused) = (Arc::clone(&self.inside), Arc::clone(&self.refused));
        let task = self.tasks.spawn(async move {
            match bulkhead.acquire().await {
                Ok(place) => inside.lock().unwrap().push((name, place)),
                Err(error) => {
                    assert_eq!((error.why, error.retry_in), (GiveUpReason::BulkheadFull, None));
                    refused.lock().unwrap().push(name);
                }
            }
        });
        settle().await;
        task
    }

    async fn goes(&self, name: usize) {
        let place = {
            let mut inside = self.inside.lock().unwrap();
            let index = inside.iter().position(|(other, _)| *other == name);
            inside.remove(index.unwrap_or_else(|| panic!("{name} is not inside")))
        };
        drop(place);
        settle().await;
    }

    async fn cancel(&self, task: &AbortHandle) {
        task.abort();
        settle().await;
    }

    async fn pass(&self, time: std::time::Duration) {
        self.clock.advance(time);
        settle().await;
    }

    #[track_caller]
    fn check(&self, inside: &[usize], waiting: usize, refused: &[usize]) {
        let names: Vec<_> = self.inside.lock().unwrap().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, inside, "inside");
        assert_eq!(self.bulkhead.waiting(), waiting, "waiting");
        assert_eq!(*self.refused.lock().unwrap(), refused, "refused");
    }
}

async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

#[tokio::test]
async fn places_are_given_in_the_order_in_which_callers_came() {
    let mut crowd = Crowd::new(Bulkhead::concurrency(2).queue_max(10));
    for name in 0..6 {
        crowd.comes(name).await;
    }
    crowd.check(&[0, 1], 4, &[]);
    crowd.goes(1).await;
    crowd.check(&[0, 2], 3, &[]);
    crowd.goes(0).await;
    crowd.goes(2).await;
    crowd.check(&[3, 4], 1, &[]);
    crowd.goes(4).await;
    crowd.goes(3).await;
    crowd.check(&[5], 0, &[]);
    assert_eq!(crowd.bulkhead.free(), 1);
}

#[tokio::test]
async fn two_places_that_come_free_at_once_go_to_two() {
    let mut crowd = Crowd::new(Bulkhead::concurrency(2).queue_max(10));
    for name in 0..5 {
        crowd.comes(name).await;
    }
    let places: Vec<_> = crowd.inside.lock().unwrap().drain(..).collect();
    drop(places);
    settle().await;
    crowd.check(&[2, 3], 1, &[]);
}

#[tokio::test]
async fn only_so_many_wait() {
    let mut crowd = Crowd::new(Bulkhead::concurrency(1).queue_max(2));
    for name in 0..5 {
        crowd.comes(name).await;
    }
    crowd.check(&[0], 2, &[3, 4]);
    crowd.goes(0).await;
    crowd.comes(5).await;
    crowd.check(&[1], 2, &[3, 4]);
}

#[tokio::test]
async fn no_call_waits_by_default() {
    let mut crowd = Crowd::new(Bulkhead::concurrency(1));
    crowd.comes(0).await;
    crowd.comes(1).await;
    crowd.check(&[0], 0, &[1]);
}

#[tokio::test]
async fn a_wait_that_is_too_long_ends_on_time() {
    let mut crowd = Crowd::new(Bulkhead::concurrency(1).queue_max(10).wait_max(millis(100)));
    crowd.comes(0).await;
    crowd.comes(1).await;
    crowd.pass(millis(50)).await;
    crowd.comes(2).await;
    crowd.pass(millis(49)).await;
    crowd.check(&[0], 2, &[]);
    crowd.pass(millis(1)).await;
    crowd.check(&[0], 1, &[1]);
    crowd.goes(0).await;
    crowd.check(&[2], 0, &[1]);
    assert!(!crowd.clock.advance_to_next(), "a caller still waits for the clock");
}

#[tokio::test]
async fn callers_that_are_dropped_leave_the_line() {
    // Which of the three waiting callers are dropped, and which get the slot when it is free.
    let cases: [(&[usize], &[usize]); 5] =
        [(&[1], &[2]), (&[2], &[1]), (&[3], &[1]), (&[1, 2], &[3]), (&[3, 1, 2], &[])];
    for (dropped, inside) in cases {
        let mut crowd = Crowd::new(Bulkhead::concurrency(1).queue_max(10));
        let mut tasks = Vec::new();
        for name in 0..4 {
            tasks.push(crowd.comes(name).await);
        }
        for name in dropped {
            crowd.cancel(&tasks[*name]).await;
        }
        crowd.check(&[0], 3 - dropped.len(), &[]);
        crowd.goes(0).await;
        crowd.check(inside, (3 - dropped.len()).saturating_sub(1), &[]);
    }
}

/// The slot was freed for the caller, and it had been woken, when it was dropped.
#[tokio::test]
async fn a_woken_caller_that_is_dropped_wakes_the_next() {
    let mut crowd = Crowd::new(Bulkhead::concurrency(1).queue_max(10));
    crowd.comes(0).await;
    let first = crowd.comes(1).await;
    crowd.comes(2).await;
    crowd.inside.lock().unwrap().clear();
    first.abort();
    settle().await;
    crowd.check(&[2], 0, &[]);
}

#[tokio::test]
async fn who_does_not_wait_does_not_overtake_those_who_do() {
    let mut crowd = Crowd::new(Bulkhead::concurrency(1).queue_max(10));
    crowd.comes(0).await;
    crowd.comes(1).await;
    crowd.inside.lock().unwrap().clear();
    assert_eq!(crowd.bulkhead.free(), 1);
    assert_eq!(crowd.bulkhead.try_acquire().unwrap_err().why, GiveUpReason::BulkheadFull);
    settle().await;
    crowd.check(&[1], 0, &[]);
}

#[tokio::test]
async fn a_call_has_a_place_for_as_long_as_it_runs() {
    let bulkhead = Bulkhead::concurrency(1).build();
    let failing = bulkhead.call(async || {
        assert_eq!(bulkhead.free(), 0);
        Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut))
    });
    let error = failing.await.unwrap_err();
    assert_eq!((error.reason(), error.attempts(), bulkhead.free()), (GiveUpReason::Stopped, 1, 1));

    let place = bulkhead.try_acquire().unwrap();
    let refused = bulkhead.call(async || Ok::<_, io::Error>(())).await.unwrap_err();
    assert_eq!((refused.reason(), refused.attempts()), (GiveUpReason::BulkheadFull, 0));
    drop(place);
    assert!(bulkhead.call(async || Ok::<_, io::Error>(())).await.is_ok());
}

#[tokio::test]
async fn a_panic_frees_the_place() {
    let bulkhead = Bulkhead::concurrency(1).queue_max(1).build();
    let mut tasks = JoinSet::new();
    let inside = bulkhead.clone();
    tasks.spawn(async move {
        let _ = inside.call(async || -> io::Result<()> { panic!("on purpose") }).await;
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    assert_eq!((bulkhead.free(), bulkhead.waiting()), (1, 0));
}

#[test]
fn threads_never_get_more_places_than_there_are() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let bulkhead = Bulkhead::concurrency(1).build();
    let inside = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let Ok(_place) = bulkhead.try_acquire() else { continue };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two in one place");
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(bulkhead.free(), 1);
}

#[tokio::test]
async fn callers_pass_those_before_them_that_do_not_take_their_turn() {
    let mut crowd = Crowd::new(Bulkhead::concurrency(1).queue_max(10));
    crowd.comes(1).await;
    // No task polls these any more, as inside a `buffer_unordered` whose consumer is busy.
    let mut unpolled = [(); 3].map(|()| Waiting::default());
    for waiting in &mut unpolled {
        assert!(matches!(waiting.poll(&crowd.bulkhead, Waker::noop()), Entry::Later(_)));
    }
    crowd.comes(2).await;
    crowd.comes(3).await;
    crowd.goes(1).await;
    crowd.check(&[], 5, &[]);
    for _ in 0..3 {
        crowd.pass(TURN_MAX).await;
    }
    crowd.check(&[2], 4, &[]);
    // From here on they delay no other caller.
    crowd.goes(2).await;
    crowd.check(&[3], 3, &[]);
    crowd.goes(3).await;
    assert!(crowd.bulkhead.try_acquire().is_ok(), "who does not wait passes them too");
    assert_eq!(unpolled[0].poll(&crowd.bulkhead, Waker::noop()), Entry::Entered(1));
}

#[tokio::test]
async fn who_does_not_wait_is_not_refused_for_ever_because_of_a_caller_that_is_not_polled() {
    let crowd = Crowd::new(Bulkhead::concurrency(1).queue_max(10));
    let place = crowd.bulkhead.try_acquire().unwrap();
    assert!(matches!(Waiting::default().poll(&crowd.bulkhead, Waker::noop()), Entry::Later(_)));
    drop(place);
    assert!(crowd.bulkhead.try_acquire().is_err(), "the one before has a moment to answer");
    crowd.pass(TURN_MAX).await;
    assert!(crowd.bulkhead.try_acquire().is_ok());
}

/// A waker may own a task, and the task a permit.
#[test]
fn a_waker_may_use_the_bulkhead_when_it_is_dropped() {
    struct Owner(Mutex<Option<Bulkhead>>);
    impl std::task::Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            if let Some(bulkhead) = self.0.lock().unwrap().take() {
                assert_eq!(bulkhead.free(), 0);
            }
        }
    }
    let bulkhead = Bulkhead::concurrency(1).queue_max(10).clock(ManualClock::new()).build();
    let place = bulkhead.try_acquire().unwrap();
    let owning = || Waker::from(Arc::new(Owner(Mutex::new(Some(bulkhead.clone())))));
    let mut waiting = Waiting::default();
    for _ in 0..3 {
        assert!(matches!(waiting.poll(&bulkhead, &owning()), Entry::Later(_)));
    }
    waiting.leave(&bulkhead);
    drop(place);
}
