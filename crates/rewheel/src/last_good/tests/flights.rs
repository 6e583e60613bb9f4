//! Many callers that want the same value at the same time.

use crate::{
    CallContext, CancelToken, Freshness, GiveUpReason, Good, LastGood, ManualClock, Pipeline,
    Refused, Retries, Retry, seconds,
};
use futures_util::poll;
use std::cell::Cell;
use std::future::{Future, pending, ready};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::SystemTime;

type Cache = LastGood<u32, u32, io::Error>;
type Answer = Result<Good<u32>, crate::Error<Arc<io::Error>>>;

fn cache() -> Cache {
    LastGood::ttl(seconds(60)).clock(ManualClock::new()).build()
}

#[tokio::test]
async fn a_thousand_callers_make_one_call() {
    let (cache, calls) = (cache(), Cell::new(0));
    let call = || {
        cache.get_or_call(&7, || async {
            calls.set(calls.get() + 1);
            tokio::task::yield_now().await;
            Ok(1)
        })
    };
    let answers = futures_util::future::join_all((0..1_000).map(|_| call())).await;
    let count = |freshness| {
        answers.iter().filter(|good| good.as_ref().unwrap().freshness() == freshness).count()
    };
    assert_eq!((count(Freshness::Fetched), count(Freshness::Shared)), (1, 999));
    assert_eq!((calls.get(), cache.fetches()), (1, 0));
}

#[tokio::test]
async fn those_who_wait_share_the_error() {
    let (cache, calls) = (cache(), Cell::new(0));
    let call = || {
        cache.get_or_call(&7, || async {
            calls.set(calls.get() + 1);
            tokio::task::yield_now().await;
            Err(ErrorKind::TimedOut.into())
        })
    };
    let answers = futures_util::future::join_all((0..1_000).map(|_| call())).await;
    assert!(answers.iter().all(|answer| {
        answer.as_ref().unwrap_err().last().unwrap().kind() == ErrorKind::TimedOut
    }));
    assert_eq!((calls.get(), cache.fetches()), (1, 0));
}

/// A call that never returns, and one that waits for it.
async fn hanging_and_waiting(
    cache: &Cache,
) -> (Pin<Box<impl Future<Output = Answer>>>, Pin<Box<impl Future<Output = Answer>>>) {
    let mut hanging = Box::pin(cache.get_or_call(&7, pending));
    assert!(poll!(hanging.as_mut()).is_pending());
    let mut waiting = Box::pin(cache.get_or_call(&7, || ready(Ok(2))));
    assert!(poll!(waiting.as_mut()).is_pending());
    assert_eq!(cache.fetches(), 1);
    (hanging, waiting)
}

#[tokio::test]
async fn if_the_caller_that_fetches_is_dropped_another_one_fetches() {
    let cache = cache();
    let (hanging, waiting) = hanging_and_waiting(&cache).await;
    drop(hanging);
    let good = waiting.await.unwrap();
    assert_eq!((*good, good.freshness(), cache.fetches()), (2, Freshness::Fetched, 0));
}

#[tokio::test]
async fn a_waiting_caller_that_is_not_polled_does_not_block_the_others() {
    let cache = cache();
    let (hanging, _not_polled) = hanging_and_waiting(&cache).await;
    let last = cache.get_or_call(&7, || ready(Ok(3)));
    let mut last = Box::pin(last);
    assert!(poll!(last.as_mut()).is_pending());
    drop(hanging);
    assert_eq!(*last.await.unwrap(), 3);
}

#[tokio::test]
async fn dropping_all_callers_leaves_nothing_behind() {
    let cache = cache();
    let (hanging, waiting) = hanging_and_waiting(&cache).await;
    drop(waiting);
    assert_eq!(cache.fetches(), 1);
    drop(hanging);
    assert_eq!(cache.fetches(), 0);
}

#[tokio::test]
async fn a_panic_passes_the_fetch_to_another_caller() {
    let cache = cache();
    let mut panicking = Box::pin(cache.get_or_call(&7, || async {
        tokio::task::yield_now().await;
        panic!("on purpose")
    }));
    assert!(poll!(panicking.as_mut()).is_pending());
    let mut waiting = Box::pin(cache.get_or_call(&7, || ready(Ok(2))));
    assert!(poll!(waiting.as_mut()).is_pending());
    let mut context = Context::from_waker(Waker::noop());
    let poll = AssertUnwindSafe(|| panicking.as_mut().poll(&mut context));
    assert!(catch_unwind(poll).is_err());
    drop(panicking);
    assert_eq!(*waiting.await.unwrap(), 2);
    assert_eq!(cache.fetches(), 0);
}

#[test]
fn a_blocking_call_that_panics_leaves_nothing_behind() {
    let cache = cache();
    let panics = || cache.get_or_call_blocking(&7, || panic!("on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(cache.fetches(), 0);
    assert_eq!(*cache.get_or_call_blocking(&7, || Ok(1)).unwrap(), 1);
}

#[tokio::test]
async fn only_the_caller_that_cancelled_hears_of_it() {
    let (cache, token) = (cache(), CancelToken::new());
    let fetch = Pipeline::new();
    let cancelled = fetch.run(|_| pending()).cancel(&token).last_good(&cache, &7);
    let mut cancelled = Box::pin(cancelled);
    assert!(poll!(cancelled.as_mut()).is_pending());
    let mut waiting = Box::pin(cache.get_or_call(&7, || ready(Ok(2))));
    assert!(poll!(waiting.as_mut()).is_pending());
    token.cancel();
    assert_eq!(cancelled.await.unwrap_err().reason(), GiveUpReason::Cancelled);
    assert_eq!(*waiting.await.unwrap(), 2);
}

/// A failure after one attempt.
fn given_up(why: GiveUpReason) -> crate::Error<io::Error> {
    let last = io::Error::from(ErrorKind::ConnectionRefused);
    crate::Error::new(Refused::new(why, None), 1, seconds(1), Some(last))
}

/// Fetches in this context and fails; returns whether another caller, in its own context, makes a call of its own.
async fn is_fetched_again(
    leader: CallContext,
    why: GiveUpReason,
    waiter: Option<CallContext>,
) -> bool {
    let cache = cache();
    let fails = async {
        tokio::task::yield_now().await;
        Err(given_up(why))
    };
    let leads = leader.scope(cache.get_or_run(&7, fails));
    let waits = cache.get_or_run(&7, ready(Ok(2)));
    let waits = async {
        match waiter {
            Some(context) => context.scope(waits).await,
            None => waits.await,
        }
    };
    let (led, waited) = tokio::join!(leads, waits);
    assert_eq!(led.unwrap_err().reason(), why);
    assert_eq!(cache.fetches(), 0);
    waited.is_ok()
}

#[tokio::test]
async fn who_has_attempts_left_does_not_share_the_failure_of_a_caller_with_one() {
    use GiveUpReason::{AttemptsExhausted, Nested};
    let once = CallContext::new(1, Retries::Caller);
    assert!(is_fetched_again(once, Nested, None).await);
    assert!(is_fetched_again(once, Nested, Some(CallContext::new(1, Retries::Callee))).await);
    assert!(!is_fetched_again(once, Nested, Some(once)).await, "it has one attempt, too");
    assert!(!is_fetched_again(once, AttemptsExhausted, None).await, "not because of its limits");
}

#[tokio::test]
async fn who_has_more_time_does_not_share_the_failure_of_a_caller_with_less() {
    use GiveUpReason::{AttemptsExhausted, Deadline, Timeout};
    let until = |time| {
        CallContext::new(1, Retries::Callee).with_deadline(SystemTime::UNIX_EPOCH + seconds(time))
    };
    for why in [Deadline, Timeout] {
        assert!(is_fetched_again(until(5), why, None).await);
        assert!(is_fetched_again(until(5), why, Some(until(6))).await);
        assert!(!is_fetched_again(until(5), why, Some(until(5))).await);
        assert!(!is_fetched_again(until(5), why, Some(until(4))).await);
    }
    assert!(!is_fetched_again(until(5), AttemptsExhausted, None).await);
    let own_limit = CallContext::new(1, Retries::Callee);
    assert!(!is_fetched_again(own_limit, Timeout, None).await, "a limit that all callers have");
}

#[tokio::test]
async fn one_call_is_made_for_all_that_do_not_share_the_failure() {
    let (cache, calls) = (cache(), Cell::new(0));
    let fails = async {
        tokio::task::yield_now().await;
        Err(given_up(GiveUpReason::Nested))
    };
    let leads = CallContext::new(1, Retries::Caller).scope(cache.get_or_run(&7, fails));
    let waits = futures_util::future::join_all((0..1_000).map(|_| {
        cache.get_or_run(&7, async {
            calls.set(calls.get() + 1);
            tokio::task::yield_now().await;
            Ok(2)
        })
    }));
    let (led, waited) = tokio::join!(leads, waits);
    assert!(led.is_err() && waited.iter().all(Result::is_ok));
    assert_eq!((calls.get(), cache.fetches()), (1, 0));
}

#[tokio::test]
async fn a_fetch_that_takes_too_long_is_taken_over() {
    let clock = ManualClock::new();
    let cache: Cache = LastGood::ttl(seconds(60)).takeover_after(seconds(5)).clock(&clock).build();
    let (mut hanging, mut waiting) = hanging_and_waiting(&cache).await;
    clock.advance(seconds(4));
    assert!(poll!(waiting.as_mut()).is_pending());
    clock.advance(seconds(1));
    assert_eq!(*waiting.await.unwrap(), 2);
    assert!(poll!(hanging.as_mut()).is_pending());
    assert_eq!(*cache.get(&7).unwrap(), 2);
    drop(hanging);
    assert_eq!(*cache.get(&7).unwrap(), 2, "the slow fetch removed the value of the faster one");
}

#[tokio::test]
async fn a_slow_fetch_that_fails_in_the_end_does_not_end_the_one_that_took_over() {
    let clock = ManualClock::new();
    let cache: Cache = LastGood::ttl(seconds(60)).takeover_after(seconds(5)).clock(&clock).build();
    let fetch = Pipeline::new().clock(&clock).timeout(seconds(6));
    let mut slow = Box::pin(fetch.run(|_| pending()).last_good(&cache, &7));
    assert!(poll!(slow.as_mut()).is_pending());
    let fetch = Pipeline::new().clock(&clock).retry(Retry::fixed(seconds(3)).attempts_max(2));
    let mut replies = [Err(ErrorKind::TimedOut.into()), Ok(2)].into_iter();
    let second = fetch.run(|_| ready(replies.next().unwrap())).last_good(&cache, &7);
    let mut second = Box::pin(second);
    assert!(poll!(second.as_mut()).is_pending());
    let mut third = Box::pin(cache.get_or_call(&7, pending));
    clock.advance(seconds(5));
    assert!(poll!(second.as_mut()).is_pending(), "it leads, and waits for its second attempt");
    assert!(poll!(third.as_mut()).is_pending());
    clock.advance(seconds(1));
    assert!(slow.await.is_err());
    assert!(poll!(third.as_mut()).is_pending());
    clock.advance(seconds(2));
    assert_eq!(*second.await.unwrap(), 2);
    assert_eq!(*third.await.unwrap(), 2);
    assert_eq!(cache.fetches(), 0);
}

#[test]
fn threads_that_block_share_one_call() {
    let cache = LastGood::ttl(seconds(60)).build::<u32, u32, io::Error>();
    let calls = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    cache.get_or_call_blocking(&7, || {
                        // Until the others wait, or have not started yet and find the value.
                        let mut patience = 0;
                        while patience < 100 {
                            std::thread::yield_now();
                            patience += 1;
                        }
                        Ok(calls.fetch_add(1, Ordering::Relaxed) + 1)
                    })
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(*thread.join().unwrap().unwrap(), 1);
        }
    });
    assert_eq!((calls.into_inner(), cache.fetches()), (1, 0));
}
