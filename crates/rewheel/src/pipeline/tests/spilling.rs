//! Checks that calls which are given up are handed over, with what was tried before.

use super::*;
use crate::{CancelToken, FailedCall, Retryable as _, Spill, SpillOutcome};
use std::sync::Mutex;

/// Takes every job over, or none.
#[derive(Debug, Default)]
struct Later {
    is_down: bool,
    taken: Mutex<Vec<(&'static str, FailedCall)>>,
}

impl Spill<&'static str> for Later {
    type Receipt = usize;
    type Error = &'static str;

    async fn spill(&self, job: &'static str, failed: FailedCall) -> Result<usize, &'static str> {
        // Not ready at once, as nothing durable is.
        tokio::task::yield_now().await;
        if self.is_down {
            return Err("down");
        }
        let mut taken = self.taken.lock().unwrap();
        taken.push((job, failed));
        Ok(taken.len())
    }
}

impl Later {
    fn taken(&self) -> Vec<(&'static str, u32, GiveUpReason, Category, Duration)> {
        let taken = std::mem::take(&mut *self.taken.lock().unwrap());
        let told = |(job, f): (_, FailedCall)| (job, f.attempts, f.why, f.category, f.elapsed);
        taken.into_iter().map(told).collect()
    }
}

fn busy(_: Attempt) -> std::future::Ready<Result<u32, Failure>> {
    std::future::ready(Err(Failure::Busy))
}

#[test]
fn a_pipeline_hands_over_what_it_gives_up_with_the_attempts_already_made() {
    let (clock, later) = (ManualClock::new(), Later::default());
    let pipeline = Pipeline::new().retry(FIVE.attempts_max(3)).clock(&clock);
    let taken = ("job", 3, GiveUpReason::AttemptsExhausted, Category::Transient, seconds(2));

    let spilled = finish(clock.drive(Box::pin(pipeline.run(busy).or_spill_to(&later, "job"))));
    assert!(matches!(spilled, Ok(SpillOutcome::Spilled(1))));
    assert_eq!(later.taken(), [taken]);

    let call = pipeline.run_blocking(|_| Err::<u32, _>(Failure::Busy));
    assert!(matches!(call.call_or_spill_to(&later, "job"), Ok(SpillOutcome::Spilled(1))));
    assert_eq!(later.taken(), [taken]);

    let call = pipeline.run(|_| std::future::ready(Ok::<_, Failure>(7)));
    let done = finish(clock.drive(Box::pin(call.or_spill_to(&later, "job"))));
    assert!(matches!(done, Ok(SpillOutcome::Done(7))));
    assert_eq!(later.taken(), []);
}

#[test]
fn a_blocking_retry_hands_over_what_it_gives_up() {
    let (clock, later) = (ManualClock::new(), Later::default());
    let call = || (|| Err::<u32, _>(Failure::Busy)).retry(FIVE).clock(&clock);
    assert!(matches!(call().call_or_spill_to(&later, "job"), Ok(SpillOutcome::Spilled(1))));
    let tried = ("job", 5, GiveUpReason::AttemptsExhausted, Category::Transient, seconds(4));
    assert_eq!(later.taken(), [tried]);

    let down = Later { is_down: true, ..Later::default() };
    let error = call().call_or_spill_to(&down, "job").unwrap_err();
    assert_eq!((error.call.attempts(), error.spill), (5, Some("down")));
}

#[test]
fn a_refused_call_is_handed_over_without_attempts_and_a_cancelled_one_is_not() {
    let (clock, later, token) = (ManualClock::new(), Later::default(), CancelToken::new());
    let breaker = CircuitBreaker::consecutive(1).clock(&clock).build();
    breaker.isolate();
    let pipeline = Pipeline::new().retry(FIVE).circuit_breaker(&breaker).clock(&clock);
    let spilled = finish(pipeline.run(busy).or_spill_to(&later, "job"));
    assert!(matches!(spilled, Ok(SpillOutcome::Spilled(1))));
    let refused = ("job", 0, GiveUpReason::CircuitOpen, Category::CircuitOpen, Duration::ZERO);
    assert_eq!(later.taken(), [refused]);

    token.cancel();
    let error = finish(pipeline.run(busy).cancel(&token).or_spill_to(&later, "job")).unwrap_err();
    assert_eq!((error.call.reason(), error.spill), (GiveUpReason::Cancelled, None));
    assert_eq!(later.taken(), []);
}

/// A declined card must not be charged again by a job; a transient failure without a retry may be.
#[test]
fn a_permanent_failure_is_not_handed_over() {
    let (clock, later) = (ManualClock::new(), Later::default());
    let gone = |_: Attempt| std::future::ready(Err::<u32, _>(Failure::Gone));
    for pipeline in [Pipeline::new().retry(FIVE).clock(&clock), Pipeline::new().clock(&clock)] {
        let error = finish(pipeline.run(gone).or_spill_to(&later, "job")).unwrap_err();
        assert_eq!((error.call.reason(), error.spill), (GiveUpReason::Stopped, None));
        let call = pipeline.run_blocking(|_| Err::<u32, _>(Failure::Gone));
        assert_eq!(call.call_or_spill_to(&later, "job").unwrap_err().spill, None);
    }
    let plain = (|| gone(Attempt::ONLY)).retry(FIVE).clock(&clock);
    assert!(finish(plain.or_spill_to(&later, "job")).is_err());
    assert_eq!(later.taken(), []);

    let once = Pipeline::new().clock(&clock);
    assert!(finish(once.run(busy).or_spill_to(&later, "job")).is_ok());
    assert_eq!(later.taken().len(), 1, "another attempt could have succeeded");
}

#[test]
fn inside_an_outer_retry_only_the_outer_one_goes_on() {
    let (clock, later) = (ManualClock::new(), Later::default());
    let calls = Cell::new(0);
    let inner = || {
        calls.set(calls.get() + 1);
        let call = (|| busy(Attempt::ONLY)).retry(FIVE).clock(&clock);
        call.or_spill_to(&later, "job")
    };
    let outer = inner.retry(FIVE.attempts_max(2)).clock(&clock);
    let error = finish(clock.drive(outer)).unwrap_err();
    assert_eq!((error.attempts(), calls.get()), (2, 2));
    assert_eq!(error.into_last().unwrap().call.reason(), GiveUpReason::Nested);
    assert_eq!(later.taken(), [], "the first attempt of two became a job");
}

/// An exhausted 503 is a value, but it is not done.
#[test]
fn a_value_that_was_judged_a_failure_is_handed_over() {
    let (clock, later) = (ManualClock::new(), Later::default());
    let down = Later { is_down: true, ..Later::default() };
    let judge = |result: &Result<u32, Failure>| match result {
        Ok(status) => Class::of_status(u16::try_from(*status).unwrap()),
        Err(failure) => failure.classify(),
    };
    let three = FIVE.attempts_max(3);
    let pipeline = Pipeline::new().retry(three).clock(&clock);
    let answer = |status: u32| move |_: Attempt| std::future::ready(Ok::<_, Failure>(status));
    let taken = ("job", 3, GiveUpReason::AttemptsExhausted, Category::Transient, seconds(2));

    let call = pipeline.run(answer(503)).judge(judge).or_spill_to(&later, "job");
    assert!(matches!(finish(clock.drive(Box::pin(call))), Ok(SpillOutcome::Spilled(1))));
    assert_eq!(later.taken(), [taken]);
    let call = (|| answer(503)(Attempt::ONLY)).retry(three).clock(&clock).judge(judge);
    let spilled = finish(clock.drive(Box::pin(call.or_spill_to(&later, "job"))));
    assert!(matches!(spilled, Ok(SpillOutcome::Spilled(1))));
    assert_eq!(later.taken(), [taken]);
    let call = pipeline.run_blocking(|_| Ok::<_, Failure>(503)).judge(judge);
    assert!(matches!(call.call_or_spill_to(&later, "job"), Ok(SpillOutcome::Spilled(1))));
    assert_eq!(later.taken(), [taken]);

    let call = pipeline.run_blocking(|_| Ok::<_, Failure>(503)).judge(judge);
    let error = call.call_or_spill_to(&down, "job").unwrap_err();
    assert_eq!((error.call.attempts(), error.call.category()), (3, Category::Transient));
    assert_eq!(error.spill, Some("down"));

    for done in [200, 404] {
        let call = pipeline.run(answer(done)).judge(judge).or_spill_to(&later, "job");
        assert!(matches!(finish(call), Ok(SpillOutcome::Done(status)) if status == done));
    }
    assert_eq!(later.taken(), []);
}
