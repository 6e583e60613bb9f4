//! Tests of which results count as failures.

use crate::breaker::{BreakerState, CircuitBreaker};
use crate::classify::{Category, Class, Classify};
use crate::clock::ManualClock;
use crate::duration::seconds;
use crate::error::GiveUpReason;
use std::future::pending;
use std::task::{Context, Waker};

#[derive(Debug, PartialEq, Eq)]
struct Said(Category);

impl Classify for Said {
    fn classify(&self) -> Class {
        Class::retry(self.0)
    }
}

const DOWN: Said = Said(Category::Io);

#[tokio::test]
async fn a_call_is_counted_and_its_error_is_handed_on() {
    let breaker = CircuitBreaker::consecutive(2).build();
    assert_eq!(breaker.call(async || Ok::<_, Said>(7)).await.unwrap(), 7);
    for _ in 0..2 {
        let error = breaker.call(async || Err::<(), _>(DOWN)).await.unwrap_err();
        assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 1));
        assert_eq!(error.into_last(), Some(DOWN));
    }
    let mut called = false;
    let call = breaker.call(async || {
        called = true;
        Ok::<_, Said>(())
    });
    let refused = call.await.unwrap_err();
    assert_eq!((refused.reason(), refused.attempts()), (GiveUpReason::CircuitOpen, 0));
    assert!(refused.retry_in().is_some_and(|rest| rest <= seconds(30)));
    assert!(!called, "an open breaker made the call");
}

#[test]
fn a_blocking_call_is_counted_the_same() {
    let breaker = CircuitBreaker::consecutive(2).build();
    assert_eq!(breaker.call_blocking(|| Ok::<_, Said>(7)).unwrap(), 7);
    for _ in 0..2 {
        let error = breaker.call_blocking(|| Err::<(), _>(DOWN)).unwrap_err();
        assert_eq!((error.reason(), error.into_last()), (GiveUpReason::Stopped, Some(DOWN)));
    }
    let refused = breaker.call_blocking(|| -> Result<(), Said> { panic!("called") }).unwrap_err();
    assert_eq!((refused.reason(), refused.attempts()), (GiveUpReason::CircuitOpen, 0));
}

#[test]
fn an_owned_permit_outlives_its_handle() {
    let breaker = CircuitBreaker::consecutive(1).build();
    let permit = {
        let handle = breaker.clone();
        handle.acquire_owned().unwrap()
    };
    std::thread::spawn(move || permit.failure()).join().unwrap();
    assert_eq!(breaker.state(), BreakerState::Open);
    assert_eq!(breaker.acquire_owned().unwrap_err().why, GiveUpReason::CircuitOpen);
}

/// An error of the dependency is a failure, a proper error response is a success, any other does
/// not count.
#[test]
fn errors_count_by_whom_they_blame() {
    for &category in Category::ALL {
        let breaker = CircuitBreaker::count_window(100).build();
        let _ = breaker.call_blocking(|| Err::<(), _>(Said(category)));
        let snapshot = breaker.snapshot();
        let expected = match category {
            Category::Timeout
            | Category::Io
            | Category::Throttled
            | Category::Transient
            | Category::Deadline
            | Category::Panic
            | Category::Unknown => (1, 1),
            Category::Rejected => (1, 0),
            Category::CircuitOpen
            | Category::BulkheadFull
            | Category::Cancelled
            | Category::NoHandler
            | Category::BadPayload => (0, 0),
        };
        assert_eq!((snapshot.calls, snapshot.failures), expected, "{category}");
    }
}

#[test]
fn a_rejection_ends_a_row_of_failures() {
    let breaker = CircuitBreaker::consecutive(2).build();
    breaker.acquire().unwrap().failure();
    breaker.acquire().unwrap().record(&Err::<(), _>(Said(Category::Rejected)));
    breaker.acquire().unwrap().failure();
    breaker.acquire().unwrap().record(&Err::<(), _>(Said(Category::Cancelled)));
    assert_eq!((breaker.state(), breaker.snapshot().failures), (BreakerState::Closed, 1));
    breaker.acquire().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_call_that_is_dropped_counts_as_neither() {
    let clock = ManualClock::new();
    for builder in [CircuitBreaker::consecutive(1), CircuitBreaker::count_window(1)] {
        let breaker = builder.clock(&clock).build();
        let start_and_drop = || {
            let mut call = Box::pin(breaker.call(pending::<Result<(), Said>>));
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        };
        start_and_drop();
        let snapshot = breaker.snapshot();
        assert_eq!((snapshot.state, snapshot.calls), (BreakerState::Closed, 0));

        breaker.force_open();
        clock.advance(seconds(30));
        start_and_drop();
        let snapshot = breaker.snapshot();
        assert_eq!((snapshot.state, snapshot.probes), (BreakerState::HalfOpen, 0));
    }
}

#[test]
fn results_of_calls_from_before_a_change_are_ignored() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).clock(&clock).build();
    let late: Vec<_> = (0..3).map(|_| breaker.acquire().unwrap()).collect();
    breaker.acquire().unwrap().failure();
    clock.advance(seconds(30));
    let probe = breaker.acquire().unwrap();
    let mut late = late.into_iter();
    late.next().unwrap().success();
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "a late success closed it");
    late.next().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "a late failure opened it");
    probe.success();
    late.next().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::Closed, "a late failure opened it");
}
