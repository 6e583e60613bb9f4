//! Checks the headers that services send each other, and the scope of a context.

use super::time::{format, parse};
use super::{CallContext, Retries};
use crate::{Retry, Retryable, millis};
use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::time::{Duration, SystemTime};

#[track_caller]
fn check_time(text: &str, millis: Option<u64>) {
    let at = millis.map(|millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
    assert_eq!(parse(text), at, "{text}");
    if let Some(at) = at {
        assert_eq!(format(at).as_deref(), Some(text));
    }
}

#[test]
fn times_are_read_and_written() {
    check_time("1970-01-01T00:00:00.000Z", Some(0));
    check_time("2023-11-14T22:13:20.120Z", Some(1_700_000_000_120));
    check_time("2024-02-29T23:59:59.999Z", Some(1_709_251_199_999));
    check_time("2000-02-29T00:00:00.000Z", Some(951_782_400_000));
    check_time("9999-12-31T23:59:59.000Z", Some(253_402_300_799_000));
}

#[test]
fn every_day_of_four_centuries_survives() {
    for day in 0..146_097 {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400 + 7);
        assert_eq!(parse(&format(at).unwrap()), Some(at));
    }
}

#[test]
fn wrong_times_are_no_times() {
    for text in [
        "",
        "Z",
        "soon",
        "2023-11-14T22:13:20.120",
        "2023-11-14T22:13:20.120+01:00",
        "2023-11-14 22:13:20Z",
        "2023-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2023-13-01T00:00:00Z",
        "2023-00-01T00:00:00Z",
        "2023-01-00T00:00:00Z",
        "2023-01-01T24:00:00Z",
        "2023-01-01T00:00:61Z",
        "2023-01-01T00:00:00.Z",
        "2023-01-01T00:00:00.1x3Z",
        "1969-12-31T23:59:59Z",
        "+023-01-01T00:00:00Z",
        "２023-01-01T00:00:00Z",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
    assert!(parse("2023-11-14T22:13:20Z").is_some());
    assert!(parse("2023-11-14T22:13:20.1234567891Z").is_some());
}

fn read(headers: &[(&'static str, &'static str)]) -> Option<CallContext> {
    let headers: HashMap<_, _> = headers.iter().copied().collect();
    CallContext::parse(|name| headers.get(name).copied())
}

#[test]
fn headers_that_were_written_are_read() {
    let deadline = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_120);
    let sent = CallContext::new(3, Retries::Exhausted).with_deadline(deadline);
    let headers: HashMap<_, _> = sent.headers().collect();
    assert_eq!(headers["rewheel-deadline"], "2023-11-14T22:13:20.120Z");
    let received = CallContext::parse(|name| headers.get(name).map(String::as_str));
    assert_eq!(received, Some(sent));
}

#[test]
fn invalid_headers_are_ignored_one_by_one() {
    assert_eq!(read(&[]), None);
    assert_eq!(read(&[("rewheel-attempt", "0"), ("rewheel-retry", "me")]), None);
    assert_eq!(read(&[("rewheel-attempt", "-1"), ("rewheel-deadline", "tomorrow")]), None);
    let read = read(&[("rewheel-attempt", "99999999999"), ("rewheel-retry", "caller")]).unwrap();
    assert_eq!((read.attempt(), read.retries()), (1, Retries::Caller));
}

async fn attempts_in(context: CallContext) -> u32 {
    let calls = Cell::new(0);
    let call = || {
        calls.set(calls.get() + 1);
        assert_eq!(CallContext::current(), Some(context));
        async { Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)) }
    };
    let policy = Retry::fixed(millis(1)).attempts_max(3);
    let _ = context.scope(async { call.retry(policy).await }).await;
    assert_eq!(CallContext::current(), None, "the scope did not end");
    calls.get()
}

#[tokio::test]
async fn retries_inside_leave_the_repeating_to_the_caller() {
    assert_eq!(attempts_in(CallContext::new(1, Retries::Callee)).await, 3);
    assert_eq!(attempts_in(CallContext::new(1, Retries::Caller)).await, 1);
    assert_eq!(attempts_in(CallContext::new(1, Retries::Exhausted)).await, 1);
}
