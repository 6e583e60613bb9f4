//! Checks that a retry inside a retry does not multiply the calls.

use super::*;
use crate::retry::Nested;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

const THREE: Retry = Retry::fixed(seconds(1)).attempts_max(3);
const TWO: Retry = Retry::fixed(seconds(1)).attempts_max(2);

/// Counts the calls of the inner of two retries.
fn calls_async(outer: Retry, inner: Retry) -> u32 {
    let (clock, calls) = (ManualClock::new(), Cell::new(0));
    let innermost = || async {
        calls.set(calls.get() + 1);
        Clock::from(&clock).sleep(millis(10)).await;
        Err::<(), _>(Failure::Busy)
    };
    let middle = || async {
        // The inner retry begins in a later poll than the outer attempt.
        Clock::from(&clock).sleep(millis(10)).await;
        innermost.retry(inner).clock(&clock).await
    };
    let error = finish(clock.drive(middle.retry(outer).clock(&clock))).unwrap_err();
    assert_eq!(error.into_last().unwrap().into_last(), Some(Failure::Busy));
    calls.get()
}

fn calls_blocking(outer: Retry, inner: Retry) -> u32 {
    let (clock, calls) = (ManualClock::new(), Cell::new(0));
    let innermost = || {
        calls.set(calls.get() + 1);
        Err::<(), _>(Failure::Busy)
    };
    let middle = || innermost.retry(inner).clock(&clock).call();
    middle.retry(outer).clock(&clock).call().unwrap_err();
    calls.get()
}

/// Makes a call of three attempts, and returns how many it made.
fn attempts_of_a_fresh_retry() -> u32 {
    let call = (|| Err::<(), _>(Failure::Busy)).retry(THREE).clock(ManualClock::new());
    call.call().unwrap_err().attempts()
}

#[test]
fn the_outer_retry_repeats_and_the_inner_does_not() {
    assert_eq!(calls_async(THREE, TWO), 3);
    assert_eq!(calls_blocking(THREE, TWO), 3);
}

#[test]
fn an_inner_retry_that_insists_is_not_multiplied_by_the_outer_one() {
    // It has used up its attempts: the outer retry does not begin again.
    assert_eq!(calls_async(THREE, TWO.nested(Nested::Retry)), 2);
    assert_eq!(calls_blocking(THREE, TWO.nested(Nested::Retry)), 2);
}

#[test]
fn an_inner_retry_that_insists_multiplies_if_the_outer_one_does_too() {
    let (clock, calls) = (ManualClock::new(), Cell::new(0));
    let innermost = || {
        calls.set(calls.get() + 1);
        Err::<(), _>(Failure::Busy)
    };
    let middle = || innermost.retry(TWO.nested(Nested::Retry)).clock(&clock).call();
    let error = middle.retry(THREE).when(|_| true).clock(&clock).call().unwrap_err();
    assert_eq!((error.attempts(), calls.get()), (3, 6));
}

#[test]
fn a_suppressed_retry_says_so_and_stays_retryable() {
    let seen = Cell::new(None);
    let middle = || {
        let result = (|attempt: Attempt| {
            assert!(attempt.is_last(), "it is the only one");
            Err::<(), _>(Failure::BusyFor(seconds(9)))
        })
        .retry(TWO)
        .call();
        let error = result.as_ref().unwrap_err();
        seen.set(Some((error.reason(), error.attempts(), error.classify())));
        result
    };
    let clock = ManualClock::new();
    middle.retry(TWO).clock(&clock).call().unwrap_err();
    let class = Class::retry_after(Category::Throttled, seconds(9));
    assert_eq!(seen.take(), Some((GiveUpReason::Nested, 1, class)));
    assert_eq!(clock.elapsed(), seconds(9), "what the callee asked for reaches the outer retry");
}

#[test]
fn a_suppressed_retry_whose_attempt_times_out_is_repeated_by_the_outer_one() {
    let (clock, calls) = (ManualClock::new(), Cell::new(0));
    let hanging = || {
        calls.set(calls.get() + 1);
        std::future::pending::<Result<(), Failure>>()
    };
    let middle = || hanging.retry(TWO.attempt_timeout(seconds(1))).clock(&clock).into_future();
    let error = finish(clock.drive(middle.retry(THREE).clock(&clock))).unwrap_err();
    assert_eq!((error.attempts(), calls.get()), (3, 3));
}

#[test]
fn a_success_of_the_inner_retry_is_a_success() {
    let middle = || (|| Ok::<_, Failure>(1)).retry(TWO).call();
    assert_eq!(middle.retry(THREE).call(), Ok(1));
}

#[test]
fn nothing_is_suppressed_after_a_panic() {
    let blocking = || (|| -> Result<(), Failure> { panic!("an attempt") }).retry(THREE).call();
    assert!(catch_unwind(blocking).is_err());
    assert_eq!(attempts_of_a_fresh_retry(), 3);

    let panicking = || async {
        tokio::task::yield_now().await;
        if calls_something() {
            panic!("an attempt")
        }
        Ok::<_, Failure>(())
    };
    let patient = AssertUnwindSafe(|| finish(panicking.retry(THREE).into_future()));
    assert!(catch_unwind(patient).is_err());
    assert_eq!(attempts_of_a_fresh_retry(), 3);
}

/// Keeps the compiler from knowing that the following code is never reached.
fn calls_something() -> bool {
    std::hint::black_box(true)
}

#[test]
fn nothing_is_suppressed_beside_an_attempt_that_is_under_way() {
    let mut outer =
        Box::pin((|| std::future::pending::<Result<(), Failure>>()).retry(THREE).into_future());
    assert!(poll(outer.as_mut()).is_pending());
    assert_eq!(attempts_of_a_fresh_retry(), 3, "a sibling on the same thread");
    assert!(poll(outer.as_mut()).is_pending());
    drop(outer);
    assert_eq!(attempts_of_a_fresh_retry(), 3, "after the outer call was dropped");
}

#[test]
fn nothing_is_suppressed_between_two_attempts() {
    let clock = ManualClock::new();
    let seen = Cell::new(0);
    let call = (|| Err::<(), _>(Failure::Busy))
        .retry(TWO)
        .clock(&clock)
        .on_retry(|_| seen.set(attempts_of_a_fresh_retry()));
    call.call().unwrap_err();
    assert_eq!(seen.get(), 3, "a hook runs outside of the attempt");
}

#[test]
fn a_retry_of_one_attempt_leaves_the_repeating_to_the_one_inside() {
    let mut attempts = 0;
    let inner = || {
        (|| {
            attempts += 1;
            Err::<(), _>(Failure::Busy)
        })
        .retry(Retry::fixed(Duration::ZERO).attempts_max(3))
        .call()
    };
    let _ = inner.retry(Retry::fixed(Duration::ZERO).attempts_max(1)).call();
    assert_eq!(attempts, 3);
}

#[test]
fn a_suppressed_retry_that_its_own_deadline_cuts_is_repeated_by_the_outer_one() {
    let (clock, calls) = (ManualClock::new(), Cell::new(0));
    let hanging = || {
        calls.set(calls.get() + 1);
        std::future::pending::<Result<(), Failure>>()
    };
    let middle = || hanging.retry(TWO.deadline(seconds(1))).clock(&clock).into_future();
    let error = finish(clock.drive(middle.retry(THREE).clock(&clock))).unwrap_err();
    assert_eq!((error.attempts(), calls.get()), (3, 3));
    let inner = error.into_last().unwrap();
    assert_eq!((inner.reason(), inner.category()), (GiveUpReason::Nested, Category::Timeout));

    calls.set(0);
    let pipeline = crate::Pipeline::new().retry(TWO.deadline(seconds(1))).clock(&clock);
    let middle = || pipeline.run(|_| hanging()).into_future();
    let error = finish(clock.drive(middle.retry(THREE).clock(&clock))).unwrap_err();
    assert_eq!((error.attempts(), calls.get()), (3, 3));
}

/// A supervisor restarts a consumer; the calls of the consumer have retries of their own.
#[test]
fn an_outer_retry_may_let_the_inner_ones_retry() {
    let supervise = THREE.inner(crate::Inner::Allow);
    assert_eq!(calls_async(supervise, TWO), 2, "the inner one used up its attempts");
    assert_eq!(calls_blocking(supervise, TWO), 2);
    assert_eq!("3 attempts, fixed 1s jitter none, inner allow".parse(), Ok(supervise));
}

#[derive(Debug, Default)]
struct Suppressed(std::sync::Mutex<Vec<String>>);

impl crate::Observer for Suppressed {
    fn observe(&self, event: &crate::Event<'_>) {
        if let crate::Event::RetrySuppressed { name } = event {
            self.0.lock().unwrap().push((*name).to_owned());
        }
    }
}

#[test]
fn a_suppressed_retry_is_an_event() {
    let seen = std::sync::Arc::new(Suppressed::default());
    let pipeline = crate::Pipeline::new().named("pages").retry(TWO).observer(seen.clone());
    let middle = || {
        (|| Ok::<_, Failure>(1)).retry(TWO).observer("plain", seen.clone()).call()?;
        pipeline.run_blocking(|_| Ok::<_, Failure>(1)).call()
    };
    middle.retry(THREE).call().unwrap();
    assert_eq!(*seen.0.lock().unwrap(), ["plain", "pages"]);
    middle().unwrap();
    assert_eq!(seen.0.lock().unwrap().len(), 2, "it was not inside of another retry");
}

/// Without the feature, tasks cannot be told apart.
#[cfg(feature = "tokio")]
#[test]
fn tasks_of_a_runtime_that_an_attempt_drives_are_not_part_of_the_attempt() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let attempt = || {
        runtime.block_on(async {
            let inside = attempts_of_a_fresh_retry();
            let mut tasks = tokio::task::JoinSet::new();
            tasks.spawn(async { attempts_of_a_fresh_retry() });
            let task = tasks.join_next().await.unwrap();
            Ok::<_, Failure>((inside, task.unwrap()))
        })
    };
    assert_eq!(attempt.retry(THREE).call(), Ok((1, 3)));
}
