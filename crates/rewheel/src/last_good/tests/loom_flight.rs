//! Checks every interleaving of callers that lead, wait and go away.

use crate::clock::{Clock, ManualClock};
use crate::last_good::flight::{Flights, Joined};
use crate::{Bulkhead, CircuitBreaker, seconds};
use loom::thread;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

type Numbers = Flights<u32, u32>;

fn flights() -> Arc<Numbers> {
    Arc::new(Flights::new(Clock::from(ManualClock::new()), seconds(30)))
}

/// What a caller does when it leads.
#[derive(Clone, Copy)]
enum Leading {
    Lands,
    GoesAway,
}

/// Takes part once. A caller that has to wait asks again only if it was woken; it goes away if it was not.
fn take_part(flights: &Numbers, leading: Leading) -> Option<u32> {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut joining = pin!(flights.join(&7));
    loop {
        match joining.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(Joined::Landed(number)) => return Some(number),
            Poll::Ready(Joined::Leads(lead)) => {
                return match leading {
                    Leading::Lands => {
                        lead.land(1);
                        Some(1)
                    }
                    Leading::GoesAway => None,
                };
            }
            Poll::Pending => {
                while woken.0.swap(0, Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
            }
        }
    }
}

#[test]
fn loom_those_who_wait_get_the_result() {
    loom::model(|| {
        let flights = flights();
        let other = {
            let flights = Arc::clone(&flights);
            thread::spawn(move || take_part(&flights, Leading::Lands))
        };
        assert_eq!(take_part(&flights, Leading::Lands), Some(1));
        assert_eq!(other.join().unwrap(), Some(1));
        assert_eq!(flights.len(), 0);
    });
}

#[test]
fn loom_a_leader_that_goes_away_is_replaced() {
    loom::model(|| {
        let flights = flights();
        let other = {
            let flights = Arc::clone(&flights);
            thread::spawn(move || take_part(&flights, Leading::GoesAway))
        };
        assert_eq!(take_part(&flights, Leading::Lands), Some(1));
        let result = other.join().unwrap();
        assert!(matches!(result, None | Some(1)));
        assert_eq!(flights.len(), 0);
    });
}

#[test]
fn loom_waiters_that_go_away_leave_nothing_behind() {
    loom::model(|| {
        let flights = flights();
        let other = {
            let flights = Arc::clone(&flights);
            thread::spawn(move || {
                let mut joining = pin!(flights.join(&7));
                let polled = joining.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                drop(polled);
            })
        };
        take_part(&flights, Leading::Lands);
        other.join().unwrap();
        assert_eq!(flights.len(), 0);
    });
}

/// A fetch under a breaker and a bulkhead, of which one caller goes away while it fetches.
#[test]
fn loom_a_fetch_that_is_cancelled_gives_its_permits_back() {
    loom::model(|| {
        let flights = flights();
        let clock = ManualClock::new();
        let breaker = CircuitBreaker::consecutive(1).open_for(seconds(1)).clock(&clock).build();
        breaker.force_open();
        clock.advance(seconds(1));
        let bulkhead = Bulkhead::concurrency(1).clock(&clock).build();
        let fetch = {
            let (flights, breaker, bulkhead) = (flights.clone(), breaker.clone(), bulkhead.clone());
            move |leading| {
                let mut joining = pin!(flights.join(&7));
                let polled = joining.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                let Poll::Ready(Joined::Leads(lead)) = polled else { return };
                let (Ok(permit), Ok(_slot)) = (breaker.acquire(), bulkhead.try_acquire()) else {
                    return;
                };
                match leading {
                    Leading::Lands => {
                        permit.success();
                        lead.land(1);
                    }
                    Leading::GoesAway => drop(permit),
                }
            }
        };
        let other = thread::spawn({
            let fetch = fetch.clone();
            move || fetch(Leading::GoesAway)
        });
        fetch(Leading::Lands);
        other.join().unwrap();
        assert_eq!((flights.len(), bulkhead.free(), breaker.snapshot().probes), (0, 1, 0));
    });
}
