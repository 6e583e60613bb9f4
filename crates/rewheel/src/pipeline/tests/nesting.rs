//! Tests of pipelines around retries and retries around pipelines.

use super::*;
use crate::Retryable;
use crate::retry::Nested;

const TWO: Retry = Retry::fixed(seconds(1)).attempts_max(2);
const THREE: Retry = Retry::fixed(seconds(1)).attempts_max(3);

/// Counts the calls that a pipeline makes inside an outer retry.
fn calls_inside_of_a_retry(pipeline: Pipeline, takes: Duration) -> u32 {
    let (clock, calls) = (ManualClock::new(), Cell::new(0));
    let pipeline = pipeline.clock(&clock);
    let inner = || {
        let call = pipeline.run(|_| {
            calls.set(calls.get() + 1);
            async {
                Clock::from(&clock).sleep(takes).await;
                Err::<u32, _>(Failure::Busy)
            }
        });
        call.into_future()
    };
    let _ = finish(clock.drive(inner.retry(THREE).clock(&clock)));
    calls.get()
}

#[test]
fn a_pipeline_inside_of_a_retry_leaves_the_repeating_to_it() {
    assert_eq!(calls_inside_of_a_retry(Pipeline::new().retry(TWO), millis(1)), 3);
    assert_eq!(calls_inside_of_a_retry(Pipeline::new(), millis(1)), 3);
    let insists = TWO.nested(Nested::Retry);
    assert_eq!(calls_inside_of_a_retry(Pipeline::new().retry(insists), millis(1)), 2);
}

#[test]
fn what_times_out_in_there_is_repeated_too() {
    let slow = HOUR;
    let inside = Pipeline::new().retry(TWO).attempt_timeout(seconds(1));
    assert_eq!(calls_inside_of_a_retry(inside, slow), 3);
    let own = Pipeline::new().retry(TWO.attempt_timeout(seconds(1)));
    assert_eq!(calls_inside_of_a_retry(own, slow), 3);
}

fn calls_inside_of(pipeline: Pipeline) -> u32 {
    let (clock, calls) = (ManualClock::new(), Cell::new(0));
    let pipeline = pipeline.clock(&clock);
    let call = pipeline.run(|_| async {
        Clock::from(&clock).sleep(millis(1)).await;
        let innermost = || {
            calls.set(calls.get() + 1);
            std::future::ready(Err::<u32, _>(Failure::Busy))
        };
        innermost.retry(TWO).clock(&clock).await
    });
    let _ = finish(clock.drive(call));
    calls.get()
}

#[test]
fn a_retry_inside_of_a_pipeline_leaves_the_repeating_to_it() {
    assert_eq!(calls_inside_of(Pipeline::new().retry(THREE)), 3);
    assert_eq!(calls_inside_of(Pipeline::new().timeout(HOUR)), 2, "no outer retry repeats it");
}

#[test]
fn a_sibling_on_the_same_thread_is_not_suppressed() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(THREE).clock(&clock);
    let mut hanging =
        Box::pin(pipeline.run(|_| std::future::pending::<Result<u32, Failure>>()).into_future());
    assert!(poll(hanging.as_mut()).is_pending());
    assert_eq!(fail(&pipeline, &clock).1, 3);
    drop(hanging);
    assert_eq!(fail(&pipeline, &clock).1, 3);
}
