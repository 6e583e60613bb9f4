//! Checks what can be said at the call: which results are retried, hooks, and cancelling.

use super::*;
use crate::{CancelToken, Event, Matcher, Observer, RetryBudget};
use std::sync::{Arc, mpsc};

/// An error that says nothing about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("foreign {0}")]
struct Foreign(u32);

type Turns<T> = RefCell<std::vec::IntoIter<T>>;

fn turns<T: Clone>(script: &[T]) -> Turns<T> {
    RefCell::new(Vec::from(script).into_iter())
}

/// Makes the same call without blocking and by blocking; both must come to the same.
macro_rules! both_ways {
    ($pipeline:expr, $clock:expr, $script:expr, $($option:tt)*) => {{
        let script = turns($script);
        let call = $pipeline.run(|_| std::future::ready(script.borrow_mut().next().unwrap()));
        let patient = finish($clock.drive(call $($option)*));
        let script = turns($script);
        let call = $pipeline.run_blocking(|_| script.borrow_mut().next().unwrap());
        let blocking = call $($option)* .call();
        let outcome = |result: std::result::Result<_, crate::Error<_>>| {
            result.map_err(|error| (error.reason(), error.attempts(), error.into_last()))
        };
        let (patient, blocking) = (outcome(patient), outcome(blocking));
        assert_eq!(patient, blocking, "async and blocking differ");
        patient
    }};
}

#[test]
fn when_picks_the_errors_that_are_retried() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(FIVE).clock(&clock);
    let script = [Err(Foreign(1)), Err(Foreign(1)), Ok(7)];
    assert_eq!(both_ways!(pipeline, clock, &script, .when(|error| error.0 == 1)), Ok(7));
    let script = [Err::<u32, _>(Foreign(1)), Err(Foreign(2))];
    let stopped = both_ways!(pipeline, clock, &script, .when(|error| error.0 == 1));
    assert_eq!(stopped, Err((GiveUpReason::Stopped, 2, Some(Foreign(2)))));
}

#[test]
fn a_matcher_picks_the_errors_that_are_retried() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(FIVE).clock(&clock);
    let ones = Matcher::text("foreign 1");
    let script = [Err(Foreign(1)), Ok(7)];
    assert_eq!(both_ways!(pipeline, clock, &script, .when_matches(&ones)), Ok(7));
    let script = [Err::<u32, _>(Foreign(2))];
    let stopped = both_ways!(pipeline, clock, &script, .when_matches(&ones));
    assert_eq!(stopped, Err((GiveUpReason::Stopped, 1, Some(Foreign(2)))));
}

#[test]
fn a_success_that_is_not_good_enough_is_retried_and_else_the_best_there_is() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(FIVE.attempts_max(3)).clock(&clock);
    let script = [Ok(0), Err(Failure::Busy), Ok(3)];
    assert_eq!(both_ways!(pipeline, clock, &script, .when_ok(|value| *value == 0)), Ok(3));
    let script = [Ok::<_, Failure>(0), Ok(0), Ok(0)];
    assert_eq!(both_ways!(pipeline, clock, &script, .when_ok(|value| *value == 0)), Ok(0));
    let script = [Err(Foreign(1)), Ok(0), Ok(3)];
    let both = both_ways!(pipeline, clock, &script, .when(|_| true).when_ok(|value| *value == 0));
    assert_eq!(both, Ok(3));
}

#[test]
fn a_judge_decides_about_each_result_of_a_blocking_call() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(2).clock(&clock).build();
    let pipeline = Pipeline::new().retry(FIVE).circuit_breaker(&breaker).clock(&clock);
    let error = pipeline
        .run_blocking(|_| Ok::<u32, Foreign>(503))
        .judge(|_| Class::retry(Category::Transient))
        .call()
        .unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts()),
        (GiveUpReason::CircuitOpen, 2),
        "the breaker heard of it"
    );
}

/// Runs a script with every hook set, both ways; returns what the hooks heard.
fn heard(pipeline: &Pipeline, clock: &ManualClock, script: &[Result<u32, Failure>]) -> Vec<String> {
    let log = RefCell::new(Vec::new());
    let say = |text: String| log.borrow_mut().push(text);
    let logs: [Vec<String>; 2] = [false, true].map(|blocks| {
        let script = turns(script);
        let next = || script.borrow_mut().next().unwrap();
        macro_rules! hooked {
            ($call:expr) => {
                $call
                    .when_ok(|value| *value == 0)
                    .on_retry(|r| {
                        let error = r.error.map_or("nothing".to_owned(), Failure::to_string);
                        let delay = r.delay.as_millis();
                        say(format!("retry {} in {delay}: {} {error}", r.attempt, r.category));
                    })
                    .on_success(|value, attempts| say(format!("success {value} after {attempts}")))
                    .on_give_up(|error| say(format!("give up: {error}")))
            };
        }
        if blocks {
            let _ = hooked!(pipeline.run_blocking(|_| next())).call();
        } else {
            let call = hooked!(pipeline.run(|_| std::future::ready(next())));
            let _ = finish(clock.drive(call));
        }
        log.take()
    });
    let [patient, blocking] = logs;
    assert_eq!(patient, blocking, "async and blocking differ");
    patient
}

#[test]
fn hooks_hear_of_retries_and_of_the_end() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(FIVE.attempts_max(3)).clock(&clock);
    assert_eq!(heard(&pipeline, &clock, &[Ok(7)]), ["success 7 after 1"]);
    assert_eq!(
        heard(&pipeline, &clock, &[Err(Failure::Busy), Ok(0), Ok(7)]),
        [
            "retry 1 in 1000: transient Busy",
            "retry 2 in 1000: transient nothing",
            "success 7 after 3",
        ],
    );
    assert_eq!(
        heard(&pipeline, &clock, &[Err(Failure::Busy), Err(Failure::Gone)]),
        [
            "retry 1 in 1000: transient Busy",
            "give up: gave up after 2 attempts in 1s: the failure is not retryable: Gone",
        ],
    );
    let best = heard(&pipeline, &clock, &[Ok(0), Ok(0), Ok(0)]);
    assert_eq!(
        best[2..],
        [
            "give up: gave up after 3 attempts in 2s: no attempts are left: the last result was classified as a failure"
        ],
    );
}

#[test]
fn hooks_hear_of_attempts_that_were_refused_or_cut() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per(1, seconds(3)).wait_max(Duration::ZERO).clock(&clock).build();
    let pipeline = Pipeline::new().retry(FIVE).rate_limiter(&limiter).clock(&clock);
    limiter.check().unwrap();
    assert_eq!(
        heard(&pipeline, &clock, &[Ok(7)])[..2],
        ["retry 1 in 3000: throttled nothing", "success 7 after 1"],
    );

    let pipeline =
        Pipeline::new().retry(FIVE.attempts_max(2)).attempt_timeout(seconds(1)).clock(&clock);
    let retries = RefCell::new(Vec::new());
    let call = pipeline
        .run(|_| std::future::pending::<Result<u32, Failure>>())
        .on_retry(|r| retries.borrow_mut().push((r.attempt, r.category, r.error.copied())));
    let error = finish(clock.drive(call)).unwrap_err();
    assert_eq!(error.attempts(), 2);
    assert_eq!(*retries.borrow(), [(1, Category::Timeout, None)]);
}

#[test]
fn a_token_that_is_cancelled_already_prevents_the_first_attempt() {
    let (clock, token) = (ManualClock::new(), CancelToken::new());
    token.cancel();
    let pipeline = Pipeline::new().retry(FIVE).clock(&clock);
    let cancelled = both_ways!(pipeline, clock, &[Ok::<u32, Failure>(1)], .cancel(&token));
    assert_eq!(cancelled, Err((GiveUpReason::Cancelled, 0, None)));
}

#[test]
fn a_running_attempt_ends_and_gives_everything_back_when_the_token_is_cancelled() {
    let (clock, token) = (ManualClock::new(), CancelToken::new());
    let bulkhead = Bulkhead::concurrency(1).build();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(1)).clock(&clock).build();
    breaker.force_open();
    clock.advance(seconds(1));
    let pipeline =
        Pipeline::new().retry(FIVE).bulkhead(&bulkhead).circuit_breaker(&breaker).clock(&clock);
    let mut gave_up = 0;
    {
        let call = pipeline
            .run(|_| std::future::pending::<Result<u32, Failure>>())
            .on_give_up(|error| gave_up += u32::from(error.reason() == GiveUpReason::Cancelled))
            .cancel(&token);
        let mut call = pin!(call.into_future());
        assert!(poll(call.as_mut()).is_pending());
        assert_eq!((bulkhead.free(), breaker.snapshot().probes), (0, 1));
        token.cancel();
        let Poll::Ready(Err(error)) = poll(call.as_mut()) else { panic!("it goes on") };
        assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Cancelled, 1));
        assert_eq!(error.category(), Category::Cancelled);
        assert_eq!((bulkhead.free(), breaker.snapshot().probes), (1, 0), "before it is dropped");
    }
    assert_eq!(gave_up, 1);
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "neither success nor failure");
}

#[test]
fn waits_of_a_retry_and_in_a_line_end_when_the_token_is_cancelled() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per(1, HOUR).clock(&clock).build();
    limiter.check().unwrap();
    let in_line = Pipeline::new().rate_limiter(&limiter).clock(&clock);
    let resting = Pipeline::new().retry(FIVE).clock(&clock);
    for (pipeline, attempts) in [(in_line, 0), (resting, 1)] {
        let token = CancelToken::new();
        let call = pipeline.run(|_| std::future::ready(Err::<u32, _>(Failure::Busy)));
        let mut call = pin!(call.cancel(&token).into_future());
        assert!(poll(call.as_mut()).is_pending());
        token.cancel();
        let Poll::Ready(Err(error)) = poll(call.as_mut()) else { panic!("it goes on") };
        assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Cancelled, attempts));
    }
    clock.advance(HOUR);
    limiter.check().expect("a ghost waits in the limiter's line");
}

#[test]
fn a_blocked_thread_is_woken_by_the_token() {
    let bulkhead = Bulkhead::concurrency(1).queue_max(1).build();
    let _place = bulkhead.try_acquire().unwrap();
    let pipelines = [
        Pipeline::new().bulkhead(&bulkhead),
        Pipeline::new().retry(Retry::fixed(HOUR).attempts_max(2)),
    ];
    for pipeline in pipelines {
        let token = CancelToken::new();
        let (done, finished) = mpsc::channel();
        let (asked, started) = mpsc::channel();
        let thread = std::thread::spawn({
            let token = token.clone();
            let statistics = Statistics::new();
            let pipeline = pipeline.statistics(&statistics);
            move || {
                asked.send(()).unwrap();
                let call = pipeline.run_blocking(|_| Err::<u32, _>(Failure::Busy));
                let why = call.cancel(&token).call().unwrap_err().reason();
                done.send((why, statistics.summary().calls)).unwrap();
            }
        });
        started.recv().unwrap();
        token.cancel();
        assert_eq!(finished.recv().unwrap(), (GiveUpReason::Cancelled, 1));
        thread.join().unwrap();
    }
}

#[test]
fn a_cancelled_call_is_reported_once() {
    #[derive(Debug, Default)]
    struct Ends(std::sync::Mutex<Vec<(GiveUpReason, u32)>>);
    impl Observer for Ends {
        fn observe(&self, event: &Event<'_>) {
            if let Event::GaveUp { why, attempts, .. } = event {
                self.0.lock().unwrap().push((*why, *attempts));
            }
        }
    }
    let (clock, token, ends) = (ManualClock::new(), CancelToken::new(), Arc::new(Ends::default()));
    let budget = RetryBudget::ratio(1.0).build();
    let pipeline = Pipeline::new()
        .retry(FIVE)
        .retry_budget(&budget)
        .observer(Arc::clone(&ends) as Arc<dyn Observer>)
        .clock(&clock);
    let call = pipeline.run_blocking(|attempt| {
        if attempt.number() == 3 {
            token.cancel();
        }
        Err::<u32, _>(Failure::Busy)
    });
    let error = call.cancel(&token).call().unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts(), error.elapsed()),
        (GiveUpReason::Cancelled, 3, seconds(2))
    );
    assert_eq!(error.category(), Category::Transient, "of the last failure");
    assert_eq!(*ends.0.lock().unwrap(), [(GiveUpReason::Cancelled, 3)]);
}
