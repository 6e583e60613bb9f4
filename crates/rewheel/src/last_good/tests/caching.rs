//! What is returned, and from where.

use crate::{
    Category, CircuitBreaker, Class, Classify, Error, Event, Freshness, GiveUpReason, Good,
    LastGood, LastGoodBuilder, ManualClock, Observer, Pipeline, Retry, Retryable, millis, seconds,
};
use std::cell::Cell;
use std::future::ready;
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Busy,
    Gone,
}

impl Classify for Failure {
    fn classify(&self) -> Class {
        match self {
            Failure::Busy => Class::retry(Category::Transient),
            Failure::Gone => Class::stop(Category::Rejected),
        }
    }
}

type Cache = LastGood<u32, u32, Failure>;
type Reply = Result<u32, Failure>;

fn builder(clock: &ManualClock) -> LastGoodBuilder {
    LastGood::ttl(seconds(60)).stale_if_error(seconds(600)).clock(clock)
}

/// Returns the value and where it is from, or the failure.
fn seen(result: Result<Good<u32>, Error<Arc<Failure>>>) -> Result<(u32, Freshness), Failure> {
    result.map(|good| (*good, good.freshness())).map_err(|error| **error.last().unwrap())
}

async fn ask(cache: &Cache, reply: Reply) -> Result<(u32, Freshness), Failure> {
    let before = cache.fetches();
    let seen_async = seen(cache.get_or_call(&7, || ready(reply)).await);
    assert_eq!(cache.fetches(), before, "a fetch was left behind");
    seen_async
}

use Freshness::{Cached, Fetched, Stale};
const BUSY: Reply = Err(Failure::Busy);

#[tokio::test]
async fn a_value_is_fetched_again_when_its_time_to_live_is_over() {
    let clock = ManualClock::new();
    let cache = builder(&clock).build();
    assert_eq!(ask(&cache, Ok(1)).await, Ok((1, Fetched)));
    clock.advance(seconds(59));
    assert_eq!(ask(&cache, Ok(2)).await, Ok((1, Cached)));
    assert_eq!(cache.get(&7).unwrap().age(), seconds(59));
    clock.advance(seconds(1));
    assert!(cache.get(&7).is_none());
    assert_eq!(ask(&cache, Ok(3)).await, Ok((3, Fetched)));
}

#[tokio::test]
async fn after_a_failure_the_last_good_value_is_returned_for_a_while() {
    let clock = ManualClock::new();
    let cache = builder(&clock).build();
    assert_eq!(ask(&cache, BUSY).await, Err(Failure::Busy));
    ask(&cache, Ok(1)).await.unwrap();
    clock.advance(seconds(659));
    assert_eq!(ask(&cache, BUSY).await, Ok((1, Stale)));
    clock.advance(seconds(1));
    assert_eq!(ask(&cache, BUSY).await, Err(Failure::Busy));
    assert_eq!(ask(&cache, Ok(2)).await, Ok((2, Fetched)));
}

#[tokio::test]
async fn an_answer_through_a_single_policy_is_an_answer_too() {
    let clock = ManualClock::new();
    let (cache, breaker) = (builder(&clock).build(), CircuitBreaker::consecutive(9).build());
    cache.insert(7, 1);
    clock.advance(seconds(61));
    let reply = |reply: Reply| breaker.call(move || ready(reply));
    let gone = seen(cache.get_or_run(&7, reply(Err(Failure::Gone))).await);
    assert_eq!(gone, Err(Failure::Gone));
    assert_eq!(seen(cache.get_or_run(&7, reply(BUSY)).await), Ok((1, Stale)));
}

#[tokio::test]
async fn an_answer_of_the_service_is_returned_instead_of_an_old_value() {
    let clock = ManualClock::new();
    let cache = builder(&clock).build();
    ask(&cache, Ok(1)).await.unwrap();
    clock.advance(seconds(61));
    assert_eq!(ask(&cache, Err(Failure::Gone)).await, Err(Failure::Gone));
}

#[tokio::test]
async fn without_stale_if_error_a_failure_is_returned() {
    let clock = ManualClock::new();
    let cache = LastGood::ttl(seconds(60)).clock(&clock).build();
    ask(&cache, Ok(1)).await.unwrap();
    clock.advance(seconds(60));
    assert_eq!(ask(&cache, BUSY).await, Err(Failure::Busy));
}

#[test]
fn blocking_calls_use_the_same_values() {
    let clock = ManualClock::new();
    let cache: Cache = builder(&clock).build();
    let ask = |reply| seen(cache.get_or_call_blocking(&7, || reply));
    assert_eq!(ask(Ok(1)), Ok((1, Fetched)));
    assert_eq!(ask(Ok(2)), Ok((1, Cached)));
    clock.advance(seconds(60));
    assert_eq!(ask(BUSY), Ok((1, Stale)));
    let call = (|| BUSY).retry(Retry::fixed(millis(1))).clock(&clock);
    assert_eq!(seen(call.call_last_good(&cache, &7)), Ok((1, Stale)));
    assert_eq!(cache.fetches(), 0);
}

#[tokio::test]
async fn a_call_under_policies_is_not_made_if_the_value_is_known() {
    let clock = ManualClock::new();
    let cache: Cache = builder(&clock).build();
    let fetch = Pipeline::new().clock(&clock).retry(Retry::fixed(millis(1)).attempts_max(2));
    let calls = Cell::new(0);
    let busy_once = |_| {
        calls.set(calls.get() + 1);
        ready(if calls.get() == 1 { BUSY } else { Ok(calls.get()) })
    };
    for expected in [(2, Fetched), (2, Cached)] {
        let call = Box::pin(fetch.run(busy_once).last_good(&cache, &7));
        assert_eq!(seen(clock.drive(call).await), Ok(expected));
    }
    assert_eq!(calls.get(), 2);
}

#[tokio::test]
async fn a_value_that_the_judge_rejects_is_not_stored() {
    let clock = ManualClock::new();
    let cache: Cache = builder(&clock).build();
    let fetch = Pipeline::new().clock(&clock);
    let judge = |reply: &Reply| match reply {
        Ok(503) => Class::retry(Category::Transient),
        Ok(_) => Class::DONE,
        Err(failure) => failure.classify(),
    };
    let error = fetch.run(|_| ready(Ok(503))).judge(judge).last_good(&cache, &7).await.unwrap_err();
    assert_eq!((error.category(), cache.len()), (Category::Transient, 0));
    let error = fetch.run_blocking(|_| Ok(503)).judge(judge).call_last_good(&cache, &7);
    assert_eq!((error.unwrap_err().reason(), cache.len()), (GiveUpReason::Stopped, 0));
}

#[tokio::test]
async fn the_number_of_keys_is_limited() {
    let cache: LastGood<u32, u32, Failure> = LastGood::ttl(seconds(60)).keys_max(100).build();
    for key in 0..10_000 {
        cache.get_or_call(&key, || ready(Ok(key))).await.unwrap();
        assert!(cache.len() <= 100, "{} values", cache.len());
    }
    assert!(cache.len() > 50 && cache.fetches() == 0);
}

#[tokio::test]
async fn an_invalidated_value_is_forgotten_also_as_a_stale_one() {
    let clock = ManualClock::new();
    let cache = builder(&clock).build();
    ask(&cache, Ok(1)).await.unwrap();
    cache.invalidate(&7);
    assert!(cache.is_empty());
    assert_eq!(ask(&cache, BUSY).await, Err(Failure::Busy));
    cache.insert(7, 9);
    assert_eq!(ask(&cache, BUSY).await, Ok((9, Cached)));
}

#[tokio::test]
async fn the_value_of_a_fetch_during_an_invalidation_is_not_kept() {
    let clock = ManualClock::new();
    let cache: Cache = builder(&clock).build();
    let during = cache.get_or_call(&7, || {
        cache.invalidate(&7);
        ready(Ok(1))
    });
    assert_eq!(*during.await.unwrap(), 1);
    assert!(cache.is_empty() && cache.fetches() == 0);
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn observe(&self, event: &Event<'_>) {
        if let Event::LastGoodServed { name, freshness, age } = event {
            self.0.lock().unwrap().push(format!("{name}: {freshness} {age:?}"));
        }
    }
}

#[tokio::test]
async fn observers_hear_where_values_are_from() {
    let clock = ManualClock::new();
    let heard = Arc::new(Heard::default());
    let cache = builder(&clock).named("rates").observer(heard.clone()).build();
    for reply in [Ok(1), Ok(2), BUSY] {
        ask(&cache, reply).await.unwrap();
        clock.advance(seconds(40));
    }
    let expected = ["rates: fetched 0ns", "rates: cached 40s", "rates: stale 80s"];
    assert_eq!(*heard.0.lock().unwrap(), expected);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    assert_eq!(LastGood::try_ttl(seconds(0)).unwrap_err().setting(), "ttl");
    let builder = LastGood::ttl(seconds(1));
    assert_eq!(builder.clone().try_keys_max(0).unwrap_err().setting(), "keys_max");
    let error = builder.try_takeover_after(seconds(0)).unwrap_err();
    assert_eq!(error.to_string(), "invalid takeover_after `0s`: use a time above zero");
}
