//! Tests of one engine's share of a retry budget.

use super::{Budget, BudgetSettings};
use crate::KindSettings;
use rewheel::{Clock, ManualClock, Moment, millis, seconds};
use rewheel_core::{KindName, RetryAsk, RetryPool};
use std::cell::{RefCell, RefMut};
use std::time::Duration;

const RETRY: u64 = RetryPool::RETRY;
const BEAT: Duration = seconds(3);

/// A holder with its budget, at its heartbeat.
struct Holder {
    clock: ManualClock,
    budget: RefCell<Budget>,
}

impl Holder {
    fn new(ratio: f64) -> Holder {
        let clock = ManualClock::new();
        let settings = BudgetSettings { ratio, ..BudgetSettings::default() };
        let budget = RefCell::new(Budget::new(settings, Clock::from(&clock).now(), BEAT));
        Holder { clock, budget }
    }

    fn now(&self) -> Moment {
        Clock::from(&self.clock).now()
    }

    fn beat(&self, living: usize) -> RetryAsk {
        self.clock.advance(BEAT);
        self.budget().ask(&KindName::parse("charge").unwrap(), self.now(), living)
    }

    fn budget(&self) -> RefMut<'_, Budget> {
        self.budget.borrow_mut()
    }

    fn pay(&self) {
        assert!(self.budget().pay(), "something is left");
    }

    fn put_off(&self, after: Duration) -> Duration {
        self.put_off_by(after, u64::MAX)
    }

    fn put_off_by(&self, after: Duration, chance: u64) -> Duration {
        self.budget().put_off(self.now(), after, None, chance)
    }
}

#[test]
fn settings_that_cannot_work_are_named() {
    let says = |text: &str| {
        let settings: KindSettings = match serde_json::from_str(text) {
            Ok(settings) => settings,
            Err(error) => return error.to_string(),
        };
        settings.check().map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    };
    let ratio = "retry_budget.ratio: must be 0 to 1: 0.1 allows one retry per ten first attempts";
    assert_eq!(says(r#"{"retry_budget":{"ratio":1.1}}"#), ratio);
    assert_eq!(says(r#"{"retry_budget":{"ratio":-0.1}}"#), ratio);
    let floor = "retry_budget.floor: must be `1/m` or more";
    assert_eq!(says(r#"{"retry_budget":{"floor":"1/61s"}}"#), floor);
    assert_eq!(says(r#"{"retry_budget":{"floor":"10/h"}}"#), floor);
    let most = "retry_budget.floor: must be 1000000 or fewer";
    assert_eq!(says(r#"{"retry_budget":{"floor":"1000001/s"}}"#), most);
    assert!(says(r#"{"retry_budget":{"rato":1}}"#).contains("unknown field `rato`"));
    assert!(says(r#"{"retry_budget":{"floor":"no"}}"#).contains("`no` is not a rate"));
    for good in [r#"{"ratio":0}"#, r#"{"ratio":1,"floor":"60/h"}"#, "{}"] {
        assert_eq!(says(&format!(r#"{{"retry_budget":{good}}}"#)), "fine");
    }
}

#[test]
fn says_what_it_earned_and_asks_for_what_it_lacks() {
    let holder = Holder::new(0.1);
    (0..25).for_each(|_| holder.budget().earn());
    let ask = holder.beat(100);
    // A reserve of one: a hundred holders share it.
    assert_eq!((ask.earned, ask.wanted), (25 * RETRY / 10, 1));
    assert_eq!((ask.floor.retries, ask.floor.period), (10, seconds(1)));
    holder.budget().receive(1);
    assert_eq!(holder.beat(100).wanted, 0, "it has what it needs");
    holder.pay();
    for _ in 0..3 {
        holder.put_off(Duration::ZERO);
    }
    let ask = holder.beat(100);
    assert_eq!((ask.earned, ask.wanted), (0, 4 + 1));
    assert_eq!(holder.beat(1).wanted, 10, "alone it keeps ten");
}

#[test]
fn spends_no_more_than_it_was_granted() {
    let holder = Holder::new(1.0);
    (0..10).for_each(|_| holder.budget().earn());
    assert!(!holder.budget().pay(), "what it earned is everybody's");
    holder.budget().receive(2);
    holder.pay();
    holder.pay();
    assert!(!holder.budget().pay());
}

#[test]
fn a_retry_that_succeeds_gives_back_what_it_cost_and_one_more() {
    let holder = Holder::new(0.1);
    holder.budget().receive(1);
    for _ in 0..5 {
        holder.pay();
        holder.budget().refund();
    }
    assert_eq!(holder.budget().granted, 6);
    (0..6).for_each(|_| holder.pay());
    assert!(!holder.budget().pay());
    // Eleven were made, so as many may be wanted again, plus the reserve.
    assert_eq!(holder.beat(100).wanted, 12);
}

#[test]
fn a_retry_that_succeeds_beside_failures_gives_nothing_back() {
    let holder = Holder::new(0.1);
    holder.budget().receive(5);
    (0..18).for_each(|_| holder.budget().note(true));
    (0..2).for_each(|_| holder.budget().note(false));
    holder.pay();
    holder.budget().refund();
    assert_eq!(holder.budget().granted, 6, "one in ten may fail");
    holder.budget().note(false);
    holder.pay();
    holder.budget().refund();
    assert_eq!(holder.budget().granted, 5, "more may not");
    // Old results are soon forgotten.
    (0..2).for_each(|_| drop(holder.beat(1)));
    holder.pay();
    holder.budget().refund();
    assert_eq!(holder.budget().granted, 6);
}

#[test]
fn a_retry_that_is_not_made_was_not_wanted() {
    let holder = Holder::new(0.1);
    holder.budget().receive(1);
    for _ in 0..5 {
        holder.pay();
        holder.budget().undo();
    }
    assert_eq!(holder.beat(100).wanted, 0, "one is in hand, and none was needed");
    holder.pay();
}

#[test]
fn gives_back_what_it_does_not_need() {
    let holder = Holder::new(0.1);
    holder.budget().receive(50);
    let ask = holder.beat(100);
    assert_eq!((ask.earned, ask.wanted), (49 * RETRY, 0));
    assert_eq!(holder.beat(100).earned, 0, "once");
}

#[test]
fn what_the_store_has_not_heard_is_said_again() {
    let holder = Holder::new(0.5);
    holder.budget().earn();
    let ask = holder.beat(1);
    holder.budget().unsay(&ask);
    holder.budget().earn();
    assert_eq!(holder.beat(1).earned, RETRY);
}

#[test]
fn those_put_off_come_back_after_the_next_grant_spread_over_a_time() {
    let holder = Holder::new(0.1);
    holder.clock.advance(seconds(1));
    let waits = [0, u64::MAX / 2, u64::MAX].map(|chance| holder.put_off_by(millis(50), chance));
    assert_eq!(waits, [seconds(2), millis(3_500), seconds(5)]);
    // A longer backoff is not changed.
    assert_eq!(holder.put_off_by(seconds(9), 0), seconds(9));
    // A late heartbeat may come at any moment.
    holder.clock.advance(seconds(9));
    assert_eq!(holder.put_off_by(Duration::ZERO, 0), millis(100));
}

/// A put-off retry came back, with or without a grant.
fn comes(holder: &Holder, is_paid: bool) {
    holder.budget().granted = u64::from(is_paid);
    assert_eq!(holder.budget().pay(), is_paid);
}

#[test]
fn about_as_many_come_back_as_are_paid_for() {
    let holder = Holder::new(0.1);
    let spread = |paid: u32, of: u32| {
        // As long as it takes until all have come back.
        holder.clock.advance(seconds(60));
        (0..of).for_each(|nth| comes(&holder, nth < paid));
        holder.beat(100);
        holder.put_off(Duration::ZERO) - BEAT
    };
    assert_eq!(spread(1, 8), 2 * BEAT, "too many come");
    assert_eq!(spread(0, 20), 4 * BEAT);
    assert_eq!(spread(0, 7), 4 * BEAT, "too few to know");
    assert_eq!(spread(3, 5), 4 * BEAT, "a quarter of all twelve");
    assert_eq!(spread(4, 8), 4 * BEAT, "half of them");
    assert_eq!(spread(5, 8), 2 * BEAT, "more could come");
    assert_eq!(spread(8, 8), BEAT);
    assert_eq!(spread(8, 8), BEAT, "never sooner than a grant");
    assert_eq!(spread(0, 20), 2 * BEAT);
    (0..20).for_each(|_| comes(&holder, false));
    holder.beat(100);
    assert_eq!(holder.put_off(Duration::ZERO), 3 * BEAT, "those that come were put off before");
}

#[test]
fn those_whose_dependency_is_back_do_not_wait_for_long() {
    let holder = Holder::new(0.1);
    for _ in 0..10 {
        holder.clock.advance(seconds(3_600));
        (0..8).for_each(|_| comes(&holder, false));
        holder.budget().note(false);
        holder.beat(100);
    }
    assert!(holder.put_off(Duration::ZERO) > seconds(1_000));
    (0..20).for_each(|_| holder.budget().note(true));
    assert_eq!(holder.put_off(Duration::ZERO), 2 * BEAT);
    // A time without attempts says nothing.
    (0..9).for_each(|_| drop(holder.beat(100)));
    assert_eq!(holder.put_off(Duration::ZERO), 2 * BEAT);
}

#[test]
fn a_wait_is_bounded_and_leaves_a_look_before_the_deadline() {
    let holder = Holder::new(0.1);
    for _ in 0..50 {
        holder.clock.advance(seconds(3_600));
        (0..8).for_each(|_| comes(&holder, false));
        holder.beat(100);
    }
    assert_eq!(holder.put_off(Duration::ZERO), seconds(3_600));
    let before = |after, left| holder.budget().put_off(holder.now(), after, Some(left), u64::MAX);
    assert_eq!(before(millis(200), seconds(10)), seconds(5));
    assert_eq!(before(millis(200), millis(300)), millis(200), "never sooner than its backoff says");
}
