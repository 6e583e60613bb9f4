//! What the log says of a call and of a breaker.

#![expect(clippy::unwrap_used, reason = "test code")]

use super::LogObserver;
use crate::{CircuitBreaker, ManualClock, RateLimiter, Retry, Retryable, millis, seconds};
use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes every event down as a line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}:{}", self.0);
        } else {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().target() != LogObserver::TARGET {
            return;
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        let level = event.metadata().level();
        self.0.lock().unwrap().push(format!("{level} {}", line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn lines_of(work: impl FnOnce(Arc<LogObserver>)) -> Vec<String> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || work(Arc::new(LogObserver::new())));
    let lines = lines.0.lock().unwrap();
    lines.clone()
}

#[test]
fn a_call_is_logged_attempt_by_attempt() {
    let lines = lines_of(|log| {
        let mut failures = 1;
        let mut flaky = || {
            let failed = failures > 0;
            failures -= i32::from(failed);
            if failed { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(()) }
        };
        (&mut flaky).retry(Retry::fixed(millis(1))).observer("fetch", log.clone()).call().unwrap();
        (&mut flaky).retry(Retry::fixed(millis(1))).observer("quiet", log).call().unwrap();
    });
    let [failed, retrying, succeeded] = &*lines else { panic!("{lines:?}") };
    assert!(
        failed.starts_with("DEBUG attempt failed: name=\"fetch\" attempt=1 category=\"timeout\""),
        "{failed}"
    );
    assert_eq!(retrying, "DEBUG retrying: name=\"fetch\" attempt=1 delay_ms=1");
    assert!(
        succeeded.starts_with("DEBUG call succeeded: name=\"fetch\" attempts=2 elapsed_ms="),
        "{succeeded}"
    );
}

#[test]
fn giving_up_and_an_open_breaker_are_warnings() {
    let clock = ManualClock::new();
    let lines = lines_of(|log| {
        let breaker = CircuitBreaker::consecutive(1).open_for(seconds(9)).clock(&clock);
        let breaker = breaker.named("bank").observer(log.clone()).build();
        breaker.acquire().unwrap().failure();
        assert!(breaker.acquire().is_err());
        clock.advance(seconds(9));
        breaker.acquire().unwrap().success();
        let limiter = RateLimiter::per_second(1).clock(&clock).observer(log.clone()).build();
        limiter.check().unwrap();
        let refuse = || Err::<(), _>(io::Error::from(io::ErrorKind::PermissionDenied));
        let _ = refuse.retry(Retry::fixed(millis(1))).observer("pay", log).call();
    });
    let [opened, refused, half_open, closed, failed, gave_up] = &*lines else {
        panic!("{lines:?}")
    };
    assert_eq!(opened, "WARN circuit breaker opened: name=\"bank\" from=\"closed\"");
    assert_eq!(
        refused,
        "DEBUG call refused: name=\"bank\" reason=\"circuit_open\" retry_in_ms=9000"
    );
    assert_eq!(half_open, "INFO circuit breaker half open: name=\"bank\" from=\"open\"");
    assert_eq!(closed, "INFO circuit breaker closed: name=\"bank\" from=\"half_open\"");
    assert!(failed.starts_with("DEBUG attempt failed"), "{failed}");
    assert!(
        gave_up.starts_with("WARN call gave up: name=\"pay\" reason=\"stopped\" attempts=1"),
        "{gave_up}"
    );
}
