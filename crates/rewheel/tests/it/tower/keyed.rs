//! Checks layers whose breakers and limits are different for each key of a request.

use super::scripted::{Answer, Script, Scripted};
use super::{reset, steady};
use rewheel::call::ByClassify;
use rewheel::tower::{ByKey, PipelineService};
use rewheel::{
    CircuitBreaker, GiveUpReason, KeyedCircuitBreaker, ManualClock, Pipeline, RateLimiter, Retry,
    seconds,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tower::{Layer, Service, ServiceExt};

fn breakers(clock: &ManualClock) -> KeyedCircuitBreaker<String> {
    CircuitBreaker::consecutive(2).open_for(seconds(3_600)).clock(clock).named("hosts").keyed(100)
}

/// Requests below 10 go to host `a`, others to the host without a name.
fn host(request: &u32) -> String {
    if *request < 10 { "a".to_owned() } else { String::new() }
}

#[tokio::test]
async fn the_breaker_of_one_key_does_not_refuse_requests_of_another() {
    let clock = ManualClock::new();
    let breakers = breakers(&clock);
    let pipeline = Pipeline::keyed().retry(steady(5)).circuit_breaker_keyed(&breakers);
    let layer = pipeline.clock(&clock).layer_keyed(host);
    let script = Script::answers([reset(), reset(), Answer::Ok(200), reset(), reset()]);
    let mut ends = Vec::new();
    for request in [1, 2, 10, 11, 12] {
        // Each service comes from its own layer: what they share is the state of the breakers.
        let response = clock.drive(layer.clone().layer(script.service()).oneshot(request)).await;
        ends.push(response.map_err(|error| (error.reason(), error.attempts())));
    }
    let open = |attempts| Err((GiveUpReason::CircuitOpen, attempts));
    assert_eq!(ends, [open(2), open(0), Ok(200), open(2), open(0)], "an empty key is a key");
    assert_eq!(script.requests(), [1, 1, 10, 11, 11]);
}

#[tokio::test]
async fn a_key_at_its_limit_is_refused_and_inside_of_a_retry_comes_back_in_time() {
    let clock = ManualClock::new();
    let limits = RateLimiter::per(1, seconds(3)).clock(&clock).keyed::<String>(100);
    let bare = Pipeline::keyed().rate_limiter_keyed(&limits).clock(&clock);
    // It waits for the limit, which takes longer than its own delay.
    let retry = Retry::fixed(seconds(1)).attempts_max(5);
    let retried = Pipeline::keyed().retry(retry).rate_limiter_keyed(&limits).clock(&clock);
    let script = Script::answers([200, 201, 202].map(Answer::Ok));
    let service = |pipeline: &Pipeline<String>| pipeline.layer_keyed(host).layer(script.service());

    assert_eq!(service(&bare).oneshot(1).await.unwrap(), 200);
    let error = service(&bare).oneshot(2).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::RateLimited, 0));
    assert_eq!(error.retry_in(), Some(seconds(3)));
    assert_eq!(service(&bare).oneshot(10).await.unwrap(), 201, "another key");

    assert_eq!(clock.drive(service(&retried).oneshot(3)).await.unwrap(), 202);
    assert_eq!(clock.elapsed(), seconds(3));
}

#[tokio::test]
async fn the_key_of_a_request_is_read_once() {
    let (clock, reads) = (ManualClock::new(), Cell::new(0));
    let pipeline = Pipeline::keyed().retry(steady(3)).circuit_breaker_keyed(&breakers(&clock));
    let layer = pipeline.clock(&clock).layer_keyed(|request: &u32| {
        reads.set(reads.get() + 1);
        format!("{request} read {} times", reads.get())
    });
    let script = Script::answers([reset(), Answer::Ok(200)]);
    let response = clock.drive(layer.layer(script.service()).oneshot(7)).await;
    assert_eq!((response.unwrap(), reads.get()), (200, 1));
}

#[tokio::test]
async fn a_key_that_cannot_be_read_makes_no_attempt() {
    let clock = ManualClock::new();
    let breakers = breakers(&clock);
    let layer = Pipeline::keyed().circuit_breaker_keyed(&breakers).layer_keyed(|request: &u32| {
        assert!(*request != 7, "seven has no key");
        host(request)
    });
    let script = Script::answers([Answer::Ok(200)]);
    let mut service = layer.layer(script.service());
    service.ready().await.unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(service.call(7)))).is_err());
    assert!(script.requests().is_empty());
    // The service keeps what it has reserved, and serves the next request.
    assert_eq!(service.call(8).await.unwrap(), 200);
}

#[tokio::test]
async fn a_request_with_a_key_is_handed_over_when_it_is_given_up() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::keyed().retry(steady(5)).circuit_breaker_keyed(&breakers(&clock));
    let later = super::spill::Later::default();
    let layer =
        pipeline.clock(&clock).layer_keyed(host).or_spill_to(later.clone(), |n: u32| n.to_string());
    let script = Script::answers([reset(), reset()]);
    assert!(clock.drive(layer.layer(script.service()).oneshot(7)).await.is_ok());
    assert_eq!(*later.taken.lock().unwrap(), [("7".to_owned(), 2)]);
}

#[test]
fn a_service_with_keys_and_its_future_can_be_sent() {
    type Key = fn(&u32) -> String;
    fn anywhere<T: Clone + Send + Sync + 'static>() {}
    fn sent<T: Send + 'static>(_: Option<T>) {}
    fn future<S: Service<u32>>(_: S) -> Option<S::Future> {
        None
    }
    anywhere::<PipelineService<Scripted, ByClassify, ByKey<String, Key>>>();
    let layer = Pipeline::keyed::<String>().layer_keyed(host);
    sent(future(layer.layer(Script::default().service())));
}
