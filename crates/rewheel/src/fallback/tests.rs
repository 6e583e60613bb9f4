//! Tests of fallbacks.

#![expect(clippy::unwrap_used, reason = "test code")]

use crate::{
    CancelToken, Category, CircuitBreaker, Class, Classify, Event, FallbackError, GiveUpReason,
    ManualClock, Observer, Pipeline, Retry, Retryable, millis, seconds,
};
use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

const TWICE: Retry = Retry::fixed(millis(1)).attempts_max(2);

fn down() -> io::Result<u32> {
    Err(ErrorKind::ConnectionRefused.into())
}

/// A permanent failure, which the called service has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such page")]
struct NoSuchPage;

impl Classify for NoSuchPage {
    fn classify(&self) -> Class {
        Class::stop(Category::Rejected)
    }
}

#[tokio::test]
async fn a_success_needs_no_fallback() {
    let fetch = Pipeline::new().retry(TWICE);
    let answer = fetch.run(|_| async { Ok::<_, io::Error>(7) }).or_with(|_| panic!("used")).await;
    assert_eq!(answer.unwrap(), 7);
    let answer = (|| Ok::<_, io::Error>(7)).retry(TWICE).call_or_with(|_| panic!("used"));
    assert_eq!(answer.unwrap(), 7);
}

#[tokio::test]
async fn a_call_that_was_given_up_returns_the_value() {
    let fetch = Pipeline::new().retry(TWICE);
    assert_eq!(fetch.run(|_| async { down() }).or_value(1).await.unwrap(), 1);
    let attempts = fetch.run(|_| async { down() }).or_with(|error| error.attempts()).await;
    assert_eq!(attempts.unwrap(), 2);
    assert_eq!((|| async { down() }).retry(TWICE).or_value(1).await.unwrap(), 1);
    assert_eq!((|| down()).retry(TWICE).call_or_value(1).unwrap(), 1);
    assert_eq!(fetch.run_blocking(|_| down()).call_or_value(1).unwrap(), 1);
}

#[tokio::test]
async fn a_refused_call_returns_the_value() {
    let breaker = CircuitBreaker::consecutive(1).build();
    breaker.isolate();
    let fetch = Pipeline::new().circuit_breaker(&breaker);
    let why = fetch.run(|_| async { down() }).or_with(|error| {
        assert_eq!(error.reason(), GiveUpReason::CircuitOpen);
        1
    });
    assert_eq!(why.await.unwrap(), 1);
}

#[tokio::test]
async fn an_answer_of_the_service_is_not_replaced() {
    let ask = || async { Err::<u32, _>(NoSuchPage) };
    let error = ask.retry(TWICE).or_with(|_| panic!("used")).await.unwrap_err();
    assert_eq!(error.last(), Some(&NoSuchPage));
    let error = ask.retry(TWICE).or_call(|_| async { Ok::<_, io::Error>(1) }).await.unwrap_err();
    assert_eq!((error.call.last(), error.fallback.is_none()), (Some(&NoSuchPage), true));
    assert_eq!(error.to_string(), "failed: no such page");
    assert_eq!(error.source().unwrap().to_string(), "no such page");
    let ask = || Err::<u32, _>(NoSuchPage);
    assert!(ask.retry(TWICE).call_or_value(1).is_err());
    assert!(ask.retry(TWICE).call_or_call(|_| Ok::<_, io::Error>(1)).is_err());
}

#[tokio::test]
async fn a_caller_that_cancelled_gets_no_fallback() {
    let token = CancelToken::new();
    token.cancel();
    let call = (|| async { down() }).retry(TWICE).cancel(&token);
    assert_eq!(call.or_value(1).await.unwrap_err().reason(), GiveUpReason::Cancelled);
}

#[tokio::test]
async fn a_value_that_the_judge_rejects_is_replaced() {
    let fetch = Pipeline::new().retry(TWICE);
    let busy = |result: &io::Result<u32>| match result {
        Ok(503) => Class::retry(Category::Transient),
        Ok(_) => Class::DONE,
        Err(error) => error.classify(),
    };
    let call = fetch.run(|_| async { Ok::<_, io::Error>(503) }).judge(busy);
    assert_eq!(call.or_with(|error| error.attempts()).await.unwrap(), 2);
    let call = fetch.run_blocking(|_| Ok::<_, io::Error>(503)).judge(busy);
    assert_eq!(call.call_or_with(|error| error.attempts()).unwrap(), 2);
}

#[tokio::test]
async fn another_pipeline_takes_over() {
    let clock = ManualClock::new();
    let primary = Pipeline::new().clock(&clock).retry(Retry::fixed(seconds(1)).attempts_max(2));
    let replica = Pipeline::new().clock(&clock).retry(Retry::fixed(seconds(2)).attempts_max(2));
    let mut replies = [down(), Ok(7)].into_iter();
    let call = primary.run(|_| async { down() }).or_call(|error| {
        assert_eq!(error.attempts(), 2);
        replica.run(|_| std::future::ready(replies.next().unwrap()))
    });
    assert_eq!(clock.drive(Box::pin(call)).await.unwrap(), 7);
    assert_eq!(clock.elapsed(), seconds(3));
}

#[tokio::test]
async fn a_fallback_that_fails_gives_both_causes() {
    let fetch = Pipeline::new().retry(TWICE);
    let broken = || io::Error::new(ErrorKind::NotFound, "no such file");
    let error = fetch.run(|_| async { down() }).or_call(|_| async { Err(broken()) }).await;
    check(&error.unwrap_err());
    let error = fetch.run_blocking(|_| down()).call_or_call(|_| Err(broken()));
    check(&error.unwrap_err());

    #[track_caller]
    fn check(error: &FallbackError<io::Error, io::Error>) {
        assert_eq!(error.call.attempts(), 2);
        assert_eq!(error.call.last().unwrap().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(error.fallback.as_ref().unwrap().kind(), ErrorKind::NotFound);
        let text = error.to_string();
        assert!(
            text.contains("connection refused; the fallback failed too: no such file"),
            "{text}"
        );
        assert_eq!(error.source().unwrap().to_string(), "no such file");
        assert_eq!(error.classify(), error.call.classify());
    }
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn observe(&self, event: &Event<'_>) {
        let line = if let Event::FallbackUsed { name, why } = event {
            format!("{name} used: {}", why.as_str())
        } else if let Event::FallbackFailed { name } = event {
            format!("{name} failed")
        } else {
            return;
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test]
async fn observers_hear_of_fallbacks() {
    let heard = Arc::new(Heard::default());
    let fetch = Pipeline::new().retry(TWICE).named("fetch").observer(heard.clone());
    fetch.run(|_| async { down() }).or_value(1).await.unwrap();
    fetch.run(|_| async { Ok::<_, io::Error>(1) }).or_value(1).await.unwrap();
    let call = (|| down()).retry(TWICE).observer("read", heard.clone());
    assert!(call.call_or_call(|_| down()).is_err());
    let expected =
        ["fetch used: attempts_exhausted", "read used: attempts_exhausted", "read failed"];
    assert_eq!(*heard.0.lock().unwrap(), expected);
}
