//! Targets that are called through one policy without a retry.

use super::{BUSY, Failure, Reply, Script, three};
use crate::{
    AdaptiveLimit, BreakerState, Bulkhead, CircuitBreaker, Class, ClientThrottle, Error,
    GiveUpReason, Timeout, seconds,
};
use std::future::{Future, ready};

/// What each policy that makes a call itself returns for these results of the first two targets.
async fn check<F, Fut>(policy: &str, call: F)
where
    F: Fn(Reply) -> Fut,
    Fut: Future<Output = Result<u32, Error<Failure>>>,
{
    let breaker = CircuitBreaker::consecutive(1);
    let (failover, script) =
        (three().circuit_breaker(breaker.clone()).build(), Script::new(&[BUSY, Ok(2)]));
    let answer = failover.run(|target| call(script.reply(target))).await;
    assert_eq!(answer, Ok(2), "{policy}: a failure goes to the next target");
    assert_eq!(failover.breaker(0).unwrap().state(), BreakerState::Open, "{policy}");

    let script = Script::new(&[Err(Failure::NoSuchPage)]);
    let failover = three().circuit_breaker(breaker).build();
    let error = failover.run(|target| call(script.reply(target))).await.unwrap_err();
    assert_eq!(error.last(), Some(&Failure::NoSuchPage), "{policy}");
    assert_eq!(failover.breaker(0).unwrap().state(), BreakerState::Closed, "{policy}: it answered");

    let script = Script::new(&[Err(Failure::Throttle), Ok(2)]);
    assert_eq!(failover.run(|target| call(script.reply(target))).await, Ok(2), "{policy}");
    assert_eq!(failover.breaker(0).unwrap().state(), BreakerState::Closed, "{policy}: not called");
}

#[tokio::test]
async fn a_call_through_a_single_policy_is_judged_by_its_error() {
    let breaker = CircuitBreaker::consecutive(99).build();
    check("breaker", |reply| breaker.call(move || ready(reply))).await;
    check("breaker, blocking", |reply| ready(breaker.call_blocking(|| reply))).await;
    let judge = |reply: &Reply| match reply {
        Ok(_) => Class::DONE,
        Err(failure) => crate::Classify::classify(failure),
    };
    check("breaker, judged", |reply| breaker.call_judged(judge, move || ready(reply))).await;
    let bulkhead = Bulkhead::concurrency(1).build();
    check("bulkhead", |reply| bulkhead.call(move || ready(reply))).await;
    let judge = |failure: &Failure| crate::Classify::classify(failure);
    check("bulkhead, judged", |reply| bulkhead.call_judged(judge, move || ready(reply))).await;
    let limit = AdaptiveLimit::between(1, 9).build();
    check("adaptive limit", |reply| limit.call(move || ready(reply))).await;
    let throttle = ClientThrottle::accepts_times(1_000.0).build();
    check("client throttle", |reply| throttle.call(move || ready(reply))).await;
    let timeout = Timeout::new(seconds(60));
    check("timeout", |reply| timeout.call(move || ready(reply))).await;
    check("timeout, judged", |reply| timeout.call_judged(judge, move || ready(reply))).await;
}

#[test]
fn the_breaker_of_a_target_hears_for_how_long_the_target_asks_callers_to_stay_away() {
    #[derive(Debug)]
    struct Overloaded;
    impl crate::Classify for Overloaded {
        fn classify(&self) -> Class {
            Class::retry_after(crate::Category::Throttled, seconds(90))
        }
    }
    let clock = crate::ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(10)).clock(&clock);
    let breaker = breaker.open_for_retry_after(crate::minutes(5));
    let failover = three().clock(&clock).circuit_breaker(breaker).build();
    let error = failover.call_blocking(|_| Err::<u32, _>(Overloaded)).unwrap_err();
    assert_eq!(error.attempts(), 3);
    for target in 0..3 {
        let open = failover.breaker(target).unwrap().snapshot();
        assert_eq!(open.retry_in, Some(seconds(90)), "{target}");
    }
}

#[test]
fn the_text_of_a_call_through_a_single_policy_says_what_failed() {
    let breaker = CircuitBreaker::consecutive(99).build();
    let error = breaker.call_blocking(|| BUSY).unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 1));
}
