//! Tests the retry budget that all holders share.

use crate::race::both;
use crate::{Subject, seconds};
use rewheel_core::{Floor, KindName, RetryAsk, RetryPool, Timestamp};
use std::time::Duration;

const RETRY: u64 = RetryPool::RETRY;

/// A floor that adds nothing within a test.
const NONE: Floor = Floor { retries: 1, period: Duration::from_secs(1_000_000_000) };

fn ask(kind: &str, earned: u64, wanted: u32) -> RetryAsk {
    RetryAsk { kind: KindName::parse(kind).unwrap(), earned, wanted, floor: NONE }
}

async fn grant(subject: &Subject, ask: RetryAsk) -> u32 {
    let granted = subject.store.grant(&[ask]).await.unwrap();
    assert_eq!(granted.len(), 1);
    granted[0]
}

/// Spends the initial budget of a kind.
async fn empty(subject: &Subject, kind: &str) {
    let saved = grant(subject, ask(kind, 0, 1_000)).await;
    assert_eq!(u64::from(saved), RetryPool::SAVED / RETRY, "what a kind begins with");
}

/// Retries that one holder earned can be spent by another, completely and once.
pub async fn grants_what_others_earned(subject: &Subject) {
    empty(subject, "charge").await;
    assert_eq!(grant(subject, ask("charge", 2 * RETRY - 1, 0)).await, 0);
    assert_eq!(grant(subject, ask("charge", 0, 5)).await, 1);
    assert_eq!(grant(subject, ask("charge", 1, 5)).await, 1);
    assert_eq!(grant(subject, ask("charge", 0, 5)).await, 0);
    assert_eq!(grant(subject, ask("charge", 7 * RETRY, 3)).await, 3);
    assert_eq!(grant(subject, ask("charge", 0, 100)).await, 4);
}

/// Each kind has its own budget, and the results are in the order of the requests.
pub async fn answers_for_each_kind_in_order(subject: &Subject) {
    assert!(subject.store.grant(&[]).await.unwrap().is_empty());
    for kind in ["charge", "refund"] {
        empty(subject, kind).await;
    }
    // One of the kinds is new.
    let asks = [ask("refund", 3 * RETRY, 9), ask("audit", 0, 1), ask("charge", 0, 9)];
    assert_eq!(subject.store.grant(&asks).await.unwrap(), [3, 1, 0]);
    let asks = [ask("audit", 0, 90), ask("charge", RETRY, 90), ask("refund", 2 * RETRY, 90)];
    assert_eq!(subject.store.grant(&asks).await.unwrap(), [9, 1, 2]);
}

/// The floor is earned by the store's time alone, for at most ten seconds.
pub async fn grants_a_floor_by_the_stores_clock(subject: &Subject) {
    let floor = Floor { retries: 10, period: seconds(1) };
    let asked = |wanted| RetryAsk { floor, ..ask("charge", 0, wanted) };
    assert_eq!(grant(subject, asked(10_000)).await, 110, "what a kind begins with");
    subject.clock.advance(seconds(2));
    let granted = grant(subject, asked(10_000)).await;
    assert!((20..110).contains(&granted), "{granted} in two seconds");
    subject.clock.advance(seconds(3_600));
    assert_eq!(grant(subject, asked(10_000)).await, 100);
}

/// Unused savings decay, down to a few that are always kept.
pub async fn savings_melt(subject: &Subject) {
    assert_eq!(grant(subject, ask("charge", 500 * RETRY, 0)).await, 0);
    subject.clock.advance(seconds(10));
    assert_eq!(grant(subject, ask("charge", 0, 1_000)).await, 10);
    // Half of it in half of the time.
    assert_eq!(grant(subject, ask("charge", 110 * RETRY, 0)).await, 0);
    subject.clock.advance(seconds(5));
    let left = grant(subject, ask("charge", 0, 1_000)).await;
    assert!((20..=60).contains(&left), "{left} are left of 110");
}

/// Every store computes the same as the pool, except for the effects of time.
pub async fn computes_as_a_pool_does(subject: &Subject) {
    let now = Timestamp::from_millis(0);
    let mut pool = RetryPool::fresh(now);
    for _ in 0..100 {
        let earned = subject.random.next() % (3 * RETRY);
        // Keep the remaining balance small: the decay of a larger one depends on the time.
        let (_, there) = pool.grant(&ask("charge", earned, u32::MAX), now);
        let wanted = there.saturating_sub((subject.random.next() % 9) as u32);
        let asked = ask("charge", earned, wanted);
        let (after, expected) = pool.grant(&asked, now);
        assert_eq!(grant(subject, asked).await, expected);
        pool = after;
    }
}

/// Two concurrent requests together get what is available, and nothing twice.
pub async fn nothing_is_granted_twice(subject: &Subject) {
    let kinds = ["charge", "refund"];
    for kind in kinds {
        empty(subject, kind).await;
    }
    let mut sum = 0;
    for _ in 0..50 {
        let one = kinds.map(|kind| ask(kind, RETRY / 2, 3));
        // In the other order, so that they conflict.
        let other = [one[1].clone(), one[0].clone()];
        let (first, second) = both(subject.store.grant(&one), subject.store.grant(&other)).await;
        sum += first.unwrap().iter().chain(&second.unwrap()).sum::<u32>();
    }
    assert_eq!(sum, 100, "of 50 retries for each kind");
}

/// No request overflows.
pub async fn the_largest_ask_is_answered(subject: &Subject) {
    let floor = Floor { retries: u32::MAX, period: Duration::ZERO };
    let most = RetryAsk { floor, ..ask("charge", u64::MAX, u32::MAX) };
    assert_eq!(grant(subject, most.clone()).await, 1_000_000);
    subject.clock.advance(seconds(10));
    assert_eq!(grant(subject, most).await, 1_000_000);
    let ages = Floor { retries: 1, period: Duration::MAX };
    subject.clock.advance(seconds(10));
    assert_eq!(grant(subject, RetryAsk { floor: ages, ..ask("charge", 0, 1) }).await, 0);
}
