//! Tests of the readiness of the inner service.

use super::scripted::{Answer, Script, Scripted, Seen, poll_once, retrying};
use super::{reset, steady};
use rewheel::tower::PipelineService;
use rewheel::{CircuitBreaker, GiveUpReason, ManualClock, Pipeline, seconds};
use std::error::Error as _;
use std::io::ErrorKind;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

type Limited = PipelineService<ConcurrencyLimit<Scripted>>;

/// A service that only one call may use at a time.
fn limited(policies: &Pipeline, script: &Script) -> (Limited, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(1));
    let inner = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    (policies.layer().layer(inner), permits)
}

fn take(permits: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(permits).try_acquire_owned().unwrap()
}

#[tokio::test]
async fn each_attempt_calls_the_very_instance_that_was_ready() {
    let clock = ManualClock::new();
    let script = Script::answers([reset(), reset(), Answer::Ok(200), Answer::Ok(200)]);
    let mut service = retrying(&clock, 3).layer().layer(script.service());

    for _ in 0..2 {
        let response = service.ready().await.unwrap().call(7);
        clock.drive(response).await.unwrap();
    }

    let seen = script.seen();
    let pairs: Vec<_> = seen.chunks(2).collect();
    let of_one_instance = |pair: &&[Seen]| matches!(pair, [Seen::Ready(ready), Seen::Called(called)] if ready == called);
    assert_eq!(pairs.len(), 4, "{seen:?}");
    assert!(pairs.iter().all(of_one_instance), "{seen:?}");
    // The instance that was made ready first, not a copy of it.
    assert_eq!(seen[0], Seen::Ready(1));
}

#[tokio::test]
async fn a_reserved_permit_is_used_once_and_given_back() {
    let clock = ManualClock::new();
    let script = Script::answers([reset(), Answer::Ok(200)]);
    let (mut service, permits) = limited(&retrying(&clock, 2), &script);

    let response = service.ready().await.unwrap().call(7);
    assert_eq!(permits.available_permits(), 0);

    // If the first attempt or the retry needed a second permit, this would hang.
    assert_eq!(clock.drive(response).await.unwrap(), 200);
    assert_eq!(permits.available_permits(), 1);
    // The service that was called last still works.
    assert!(service.ready().await.is_ok());
}

#[tokio::test]
async fn a_ready_service_that_is_dropped_gives_back_its_permit() {
    let (mut service, permits) = limited(&Pipeline::new(), &Script::default());
    service.ready().await.unwrap();
    assert_eq!(permits.available_permits(), 0);

    drop(service);

    assert_eq!(permits.available_permits(), 1);
}

#[tokio::test]
async fn a_response_that_is_dropped_gives_back_its_permit() {
    /// The progress of the call when it is dropped.
    #[derive(Debug, PartialEq)]
    enum At {
        Start,
        FirstAttempt,
        Rest,
        ReadinessOfRetry,
        Retry,
    }
    for at in [At::Start, At::FirstAttempt, At::Rest, At::ReadinessOfRetry, At::Retry] {
        let first = if at == At::FirstAttempt { Answer::Hang } else { reset() };
        let clock = ManualClock::new();
        let script = Script::answers([first, Answer::Hang]);
        let (mut service, permits) = limited(&retrying(&clock, 2), &script);
        let mut response = Box::pin(service.ready().await.unwrap().call(7));
        let mut other = None;

        if at != At::Start {
            assert!(poll_once(response.as_mut()).is_pending());
        }
        if at == At::ReadinessOfRetry {
            other = Some(take(&permits));
        }
        if matches!(at, At::ReadinessOfRetry | At::Retry) {
            clock.advance(seconds(10));
            assert!(poll_once(response.as_mut()).is_pending());
        }
        let free = usize::from(at == At::Rest);
        assert_eq!(permits.available_permits(), free, "{at:?}");
        drop(response);
        drop(other);

        assert_eq!(permits.available_permits(), 1, "{at:?}");
    }
}

#[tokio::test]
async fn a_refused_request_gives_back_its_permit_at_once() {
    let breaker = CircuitBreaker::consecutive(1).build();
    let (mut service, permits) =
        limited(&Pipeline::new().circuit_breaker(&breaker), &Script::default());
    breaker.isolate();

    let mut response = Box::pin(service.ready().await.unwrap().call(7));
    let refused = response.as_mut().await.unwrap_err();

    assert_eq!((refused.reason(), refused.attempts()), (GiveUpReason::CircuitOpen, 0));
    // While the future still exists.
    assert_eq!(permits.available_permits(), 1);
    drop(response);
}

#[tokio::test]
async fn a_retry_waits_until_the_service_is_ready() {
    let clock = ManualClock::new();
    let script = Script::answers([reset(), Answer::Ok(200)]);
    let (mut service, permits) = limited(&retrying(&clock, 2), &script);
    let mut response = Box::pin(service.ready().await.unwrap().call(7));
    assert!(poll_once(response.as_mut()).is_pending());
    let other = take(&permits);

    clock.advance(seconds(10));
    assert!(poll_once(response.as_mut()).is_pending());
    assert_eq!(script.requests(), [7]);

    drop(other);
    assert!(matches!(poll_once(response.as_mut()), Poll::Ready(Ok(200))));
    assert_eq!(script.requests(), [7, 7]);
}

#[tokio::test]
async fn the_wait_for_readiness_counts_towards_the_attempt_timeout() {
    let clock = ManualClock::new();
    let script = Script::answers([reset()]);
    let policies = Pipeline::new().retry(steady(2)).attempt_timeout(seconds(1)).clock(&clock);
    let (mut service, permits) = limited(&policies, &script);
    let mut response = Box::pin(service.ready().await.unwrap().call(7));
    assert!(poll_once(response.as_mut()).is_pending());
    let other = take(&permits);

    let error = clock.drive(response).await.unwrap_err();

    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 2));
    assert_eq!(clock.elapsed(), seconds(11));
    drop(other);
    assert_eq!(permits.available_permits(), 1);
}

#[tokio::test]
async fn an_error_while_a_retry_becomes_ready_is_judged_as_one_of_the_attempt() {
    let clock = ManualClock::new();
    let unready = |kind| [Ok(()), Err(kind)];

    let script = Script::answers([reset(), Answer::Ok(200)])
        .readiness(unready(ErrorKind::ConnectionRefused));
    let service = retrying(&clock, 3).layer().layer(script.service());
    assert_eq!(clock.drive(service.oneshot(7)).await.unwrap(), 200);
    assert_eq!((script.requests(), clock.elapsed()), (vec![7, 7], seconds(20)));

    let script = Script::answers([reset()]).readiness(unready(ErrorKind::PermissionDenied));
    let service = retrying(&clock, 3).layer().layer(script.service());
    let error = clock.drive(service.oneshot(7)).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 2));
    assert_eq!(error.last().unwrap().kind(), ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn an_error_before_there_is_a_request_is_returned_as_it_is() {
    let script = Script::default().readiness([Err(ErrorKind::ConnectionRefused)]);
    let mut service = retrying(&ManualClock::new(), 3).layer().layer(script.service());

    let error = service.ready().await.err().unwrap();

    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 0));
    assert!(error.source().unwrap().is::<std::io::Error>());
    assert_eq!(error.to_string(), "not attempted: connection refused");
}
