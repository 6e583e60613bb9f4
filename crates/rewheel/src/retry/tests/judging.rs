//! Tests of which rule decides what a result means.

use super::*;
use crate::Matcher;
use std::io;

/// Makes a call of at most three attempts, and counts them.
macro_rules! attempts {
    ($result:expr, |$call:ident| $set:expr) => {{
        let clock = ManualClock::new();
        let mut blocking = 0;
        let $call = (|| {
            blocking += 1;
            $result
        })
        .retry(Retry::fixed(seconds(1)))
        .clock(&clock);
        let result = $set.call();
        let mut patient = 0;
        let $call = (|| {
            patient += 1;
            std::future::ready($result)
        })
        .retry(Retry::fixed(seconds(1)))
        .clock(&clock);
        let again = finish(clock.drive($set));
        assert_eq!(format!("{result:?}"), format!("{again:?}"), "async and blocking differ");
        assert_eq!(patient, blocking, "async and blocking differ");
        (result, blocking)
    }};
}

#[test]
fn a_closure_picks_the_errors_to_retry() {
    let (result, made) = attempts!(Err::<(), _>("busy"), |call| call.when(|e| *e == "busy"));
    assert_eq!((result.unwrap_err().reason(), made), (GiveUpReason::AttemptsExhausted, 3));
    let (result, made) = attempts!(Err::<(), _>("gone"), |call| call.when(|e| *e == "busy"));
    assert_eq!((result.unwrap_err().reason(), made), (GiveUpReason::Stopped, 1));
}

#[test]
fn a_matcher_picks_the_errors_to_retry() {
    let matcher = Matcher::text("too many");
    let (_, made) = attempts!(Err::<(), _>(io::Error::other("too many clients")), |call| call
        .when_matches(&matcher));
    assert_eq!(made, 3);
    // The closure at the call overrides the error's own class.
    let (result, made) =
        attempts!(Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)), |call| {
            call.when_matches(&matcher)
        });
    assert_eq!((result.unwrap_err().reason(), made), (GiveUpReason::Stopped, 1));
}

#[test]
fn a_judge_sees_successes_and_errors() {
    fn judge(result: &Result<u16, &'static str>) -> Class {
        match result {
            Ok(200) => Class::DONE,
            Ok(404) => Class::stop(Category::Rejected),
            Ok(_) => Class::retry(Category::Transient),
            Err("fine") => Class::DONE,
            Err(_) => Class::retry_after(Category::Throttled, seconds(30)),
        }
    }
    type Judged = Result<u16, &'static str>;
    let done: Judged = Ok(200);
    assert_eq!(attempts!(done, |call| call.judge(judge)), (Ok(200), 1));
    let missing: Judged = Ok(404);
    assert_eq!(attempts!(missing, |call| call.judge(judge)), (Ok(404), 1), "the best there is");
    let broken: Judged = Ok(503);
    assert_eq!(attempts!(broken, |call| call.judge(judge)), (Ok(503), 3), "the best there is");
    let (result, made) = attempts!(Err::<u16, _>("busy"), |call| call.judge(judge));
    let error = result.unwrap_err();
    assert_eq!((error.elapsed(), made), (seconds(60), 3));
    // An error that is judged done is still an error, but is not repeated.
    let (result, made) = attempts!(Err::<u16, _>("fine"), |call| call.judge(judge));
    assert_eq!((result.unwrap_err().into_last(), made), (Some("fine"), 1));
}

#[test]
fn a_result_that_is_not_good_enough_is_retried_and_returned_in_the_end() {
    let pending: Result<&str, Failure> = Ok("pending");
    let not_yet = |value: &&str| *value == "pending";
    let (result, made) = attempts!(pending, |call| call.when_ok(not_yet));
    assert_eq!((result, made), (Ok("pending"), 3));

    let ready: Result<&str, Failure> = Ok("ready");
    assert_eq!(attempts!(ready, |call| call.when_ok(not_yet)), (Ok("ready"), 1));

    // The class of errors is still decided as before.
    let busy: Result<&str, Failure> = Err(Failure::Busy);
    assert_eq!(attempts!(busy, |call| call.when_ok(not_yet)).1, 3);
    let gone: Result<&str, Failure> = Err(Failure::Gone);
    assert_eq!(attempts!(gone, |call| call.when_ok(not_yet)).1, 1);
    let text: Result<&str, &str> = Err("busy");
    let when = |error: &&str| *error == "busy";
    assert_eq!(attempts!(text, |call| call.when(when).when_ok(not_yet)).1, 3);
}

#[test]
fn a_result_that_does_not_fit_the_deadline_is_returned_as_it_is() {
    let clock = ManualClock::new();
    let call = (|| Ok::<_, Failure>("pending"))
        .retry(Retry::fixed(seconds(3)).deadline(seconds(5)))
        .when_ok(|value| *value == "pending");
    assert_eq!(call.clock(&clock).call(), Ok("pending"));
    assert_eq!(clock.elapsed(), seconds(3));
}
