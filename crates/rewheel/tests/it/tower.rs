//! Tests of a service inside a pipeline.

#![expect(clippy::unwrap_used, reason = "test code")]

mod scripted;
mod readiness;
mod keyed;
mod spill;

use self::scripted::{Answer, Script, Scripted, poll_once, retrying};
use rewheel::tower::{PipelineLayer, PipelineService, ResponseFuture};
use rewheel::{
    Bulkhead, Category, CircuitBreaker, Class, Error, GiveUpReason, ManualClock, Pipeline, Retry,
    seconds,
};
use std::error::Error as _;
use std::io::{self, ErrorKind};
use tower::buffer::Buffer;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

#[tokio::test]
async fn a_failing_service_is_retried_until_it_responds() {
    let clock = ManualClock::new();
    let script = Script::answers([reset(), reset(), Answer::Ok(200)]);
    let mut service = retrying(&clock, 5).layer().layer(script.service());

    let response = service.ready().await.unwrap().call(7);

    assert_eq!(clock.drive(response).await.unwrap(), 200);
    assert_eq!((script.requests(), clock.elapsed()), (vec![7, 7, 7], seconds(20)));
}

#[tokio::test]
async fn a_layer_applied_again_shares_the_breaker() {
    let breaker = CircuitBreaker::consecutive(2).build();
    let layer = Pipeline::new().circuit_breaker(&breaker).layer();
    let script = Script::answers([reset(), reset()]);

    // Like a framework that applies the layer for each request.
    let mut whys = Vec::new();
    for _ in 0..3 {
        let service = layer.clone().layer(script.service());
        whys.push(service.oneshot(1).await.unwrap_err().reason());
    }

    assert_eq!(whys, [GiveUpReason::Stopped, GiveUpReason::Stopped, GiveUpReason::CircuitOpen]);
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test]
async fn a_response_that_is_judged_a_failure_is_retried() {
    #[track_caller]
    fn check(response: Result<u16, Error<io::Error>>, script: &Script, status: u16, calls: usize) {
        assert_eq!((response.unwrap(), script.requests().len()), (status, calls));
    }
    let clock = ManualClock::new();
    let layer = retrying(&clock, 3).layer().judge(|result: &Result<u16, io::Error>| match result {
        Ok(503) => Class::retry(Category::Transient),
        Ok(404) => Class::stop(Category::Rejected),
        Ok(_) => Class::DONE,
        Err(_) => Class::stop(Category::Unknown),
    });
    let cases: [(&[u16], u16, usize); 3] =
        [(&[503, 503, 200], 200, 3), (&[503, 503, 503, 200], 503, 3), (&[404, 200], 404, 1)];
    for (answers, status, calls) in cases {
        let script = Script::answers(answers.iter().copied().map(Answer::Ok));
        let response = clock.drive(layer.layer(script.service()).oneshot(1)).await;
        check(response, &script, status, calls);
    }
}

#[tokio::test]
async fn an_error_of_the_pipeline_has_the_last_error_as_its_source() {
    let clock = ManualClock::new();
    let script = Script::answers([reset(), Answer::Err(ErrorKind::BrokenPipe)]);
    let service = retrying(&clock, 2).layer().layer(script.service());

    let error = clock.drive(service.oneshot(1)).await.unwrap_err();

    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 2));
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.unwrap().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn it_works_under_a_buffer_and_over_one() {
    let clock = ManualClock::new();
    let script = Script::answers([reset(), Answer::Ok(200), reset(), reset()]);
    let judge = |result: &Result<u16, BoxError>| match result {
        Ok(_) => Class::DONE,
        Err(error) if error.is::<io::Error>() => Class::retry(Category::Io),
        Err(_) => Class::stop(Category::Unknown),
    };
    let over = ServiceBuilder::new()
        .layer(retrying(&clock, 2).layer().judge(judge))
        .buffer(1)
        .service(script.service());
    assert_eq!(clock.drive(over.oneshot(1)).await.unwrap(), 200);

    let under = Buffer::new(retrying(&clock, 2).layer().layer(script.service()), 1);
    let error = clock.drive(under.oneshot(1)).await.unwrap_err();
    assert_eq!(error.downcast::<Error<io::Error>>().unwrap().attempts(), 2);
}

#[tokio::test]
async fn a_layer_inside_of_a_layer_does_not_multiply_the_attempts() {
    let clock = ManualClock::new();
    let script = Script::answers(std::iter::repeat_with(reset).take(9));
    let service = ServiceBuilder::new()
        .layer(retrying(&clock, 3).layer())
        .layer(retrying(&clock, 3).layer())
        .service(script.service());

    let error = clock.drive(service.oneshot(1)).await.unwrap_err();

    assert_eq!((error.attempts(), script.requests().len()), (3, 3));
}

#[test]
fn an_attempt_ends_before_its_place_is_free() {
    let clock = ManualClock::new();
    let bulkhead = Bulkhead::concurrency(1).build();
    let policies = Pipeline::new().bulkhead(&bulkhead).clock(&clock);
    let script = Script::answers([Answer::Hang, Answer::Hang]);
    let free_at_end = {
        let bulkhead = bulkhead.clone();
        script.when_a_call_ends(move || bulkhead.free())
    };

    let mut response =
        Box::pin(policies.clone().timeout(seconds(1)).layer().layer(script.service()).oneshot(1));
    assert!(poll_once(response.as_mut()).is_pending());
    clock.advance(seconds(1));
    assert!(poll_once(response.as_mut()).is_ready());

    let mut response = Box::pin(policies.layer().layer(script.service()).oneshot(1));
    assert!(poll_once(response.as_mut()).is_pending());
    drop(response);

    assert_eq!(*free_at_end.lock().unwrap(), [0, 0]);
    assert_eq!(bulkhead.free(), 1);
}

#[test]
fn a_service_and_its_future_can_be_sent_if_the_service_inside_can() {
    fn anywhere<T: Clone + Send + Sync + 'static>() {}
    fn sent<T: Send + 'static>() {}
    anywhere::<PipelineLayer>();
    anywhere::<PipelineService<Scripted>>();
    sent::<ResponseFuture<Scripted, u32>>();
}

fn reset() -> Answer {
    Answer::Err(ErrorKind::ConnectionReset)
}

/// Ten seconds between attempts, without jitter.
fn steady(attempts_max: u32) -> Retry {
    Retry::fixed(seconds(10)).attempts_max(attempts_max)
}
