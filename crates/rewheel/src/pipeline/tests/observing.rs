//! Tests of the events of a pipeline and their order.

use super::*;
use crate::{Event, Observer};
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Observer for Recorder {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::AttemptFailed { name, attempt, class } => {
                format!("{name} {attempt} failed: {}", class.category)
            }
            Event::Retrying { name, attempt, delay } => {
                format!("{name} retrying {attempt} in {}s", delay.as_secs())
            }
            Event::Succeeded { name, attempts, elapsed } => {
                format!("{name} succeeded after {attempts} in {}s", elapsed.as_secs())
            }
            Event::GaveUp { name, why, attempts, elapsed } => {
                let why = why.as_str();
                format!("{name} gave up after {attempts} in {}s: {why}", elapsed.as_secs())
            }
            Event::RetrySuppressed { name } => format!("{name} suppressed"),
            Event::Refused { name, why, .. } => format!("{name} refused: {}", why.as_str()),
            Event::Admitted { name, .. } => format!("{name} admitted"),
            Event::BreakerBuilt { .. }
            | Event::LimitChanged { .. }
            | Event::ChaosInjected { .. } => return,
            Event::BreakerChanged { name, from, to, .. } => format!("{name} {from} to {to}"),
            Event::HedgeStarted { .. }
            | Event::HedgeWon { .. }
            | Event::FallbackUsed { .. }
            | Event::FallbackFailed { .. }
            | Event::LastGoodServed { .. }
            | Event::FailedOver { .. }
            | Event::TargetEjected { .. } => format!("{event:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

#[test]
fn events_come_in_the_order_in_which_things_happen() {
    let (clock, recorder) = (ManualClock::new(), Arc::new(Recorder::default()));
    let breaker = CircuitBreaker::consecutive(2)
        .open_for(seconds(9))
        .named("breaker")
        .clock(&clock)
        .observer(recorder.clone())
        .build();
    let pipeline = Pipeline::new()
        .named("fetch")
        .retry(FIVE)
        .circuit_breaker(&breaker)
        .attempt_timeout(seconds(2))
        .clock(&clock)
        .observer(recorder.clone());

    let (_, calls) = run(&pipeline, &clock, HOUR, Ok(1));
    assert_eq!(calls, 2);
    assert_eq!(
        recorder.take(),
        [
            "fetch 1 failed: timeout",
            "fetch retrying 1 in 1s",
            "fetch 2 failed: timeout",
            "breaker closed to open",
            "fetch retrying 2 in 1s",
            "breaker refused: circuit_open",
            "fetch gave up after 2 in 6s: circuit_open",
        ],
    );
    clock.advance(seconds(9));
    run(&pipeline, &clock, seconds(1), Ok(1)).0.unwrap();
    assert_eq!(
        recorder.take(),
        [
            "breaker open to half_open",
            "breaker half_open to closed",
            "fetch succeeded after 1 in 1s"
        ],
    );
}

#[test]
fn no_event_reports_an_attempt_that_was_not_made() {
    let (clock, recorder) = (ManualClock::new(), Arc::new(Recorder::default()));
    let bulkhead = Bulkhead::concurrency(1).queue_max(1).clock(&clock).build();
    let _place = bulkhead.try_acquire().unwrap();
    let pipeline = Pipeline::new()
        .named("fetch")
        .timeout(seconds(2))
        .bulkhead(&bulkhead)
        .clock(&clock)
        .observer(recorder.clone());
    let _ = run(&pipeline, &clock, Duration::ZERO, Ok(1));
    assert_eq!(recorder.take(), ["fetch gave up after 0 in 2s: timeout"]);
}

#[test]
fn statistics_count_the_calls_of_a_pipeline() {
    let clock = ManualClock::new();
    let statistics = Statistics::with_clock(&clock);
    let pipeline = Pipeline::new()
        .retry(FIVE.attempts_max(2))
        .attempt_timeout(seconds(2))
        .statistics(&statistics)
        .clock(&clock);
    run(&pipeline, &clock, HOUR, Ok(1)).0.unwrap_err();
    run(&pipeline, &clock, Duration::ZERO, Ok(1)).0.unwrap();
    let summary = statistics.summary();
    assert_eq!((summary.calls, summary.successes), (2, 1));
    assert_eq!((summary.attempts, summary.retries), (3, 1));
    assert_eq!((summary.waited, summary.last_failure), (seconds(1), Some(Duration::ZERO)));
}
