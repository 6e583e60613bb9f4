//! Checks that keys do not use each other's retries, and that many keys give no key a new balance.

use crate::budget::RetryBudget;
use crate::clock::ManualClock;
use crate::duration::seconds;

#[test]
fn each_key_has_its_own_balance() {
    let budgets = RetryBudget::ratio(0.5).floor_per_second(0).burst(2).keyed::<&str>(10);
    let spend = |key: &'static str| {
        std::iter::from_fn(|| budgets.get(&key).withdraw().ok()).take(100).count()
    };
    assert_eq!((spend("a"), spend("a"), spend("b")), (2, 0, 2));
    (0..2).for_each(|_| budgets.get(&"a").deposit());
    assert_eq!((spend("a"), spend("b")), (1, 0));
}

#[test]
fn a_flood_of_keys_gives_no_key_a_new_balance() {
    let budgets = RetryBudget::ratio(0.1).floor_per_second(0).burst(5).keyed::<u32>(8);
    let spent = |key: u32| budgets.get(&key).withdraw().is_ok();
    assert_eq!((0..20).filter(|_| spent(0)).count(), 5);
    let of_others = (1..1_000).filter(|key| spent(*key)).count();
    assert!(!spent(0), "the flood gave key 0 a new balance");
    // Seven keys with a place spend one each; all others share five.
    assert_eq!(of_others, 7 + 5);
    assert_eq!(budgets.len(), 8);
}

#[test]
fn a_key_whose_balance_is_full_leaves_its_place() {
    let clock = ManualClock::new();
    let budgets = RetryBudget::per_second(2).clock(&clock).keyed::<u32>(2);
    for key in 0..2 {
        assert!(budgets.get(&key).withdraw().is_ok());
    }
    clock.advance(seconds(2));
    for key in 10..12 {
        assert_eq!((0..5).filter(|_| budgets.get(&key).withdraw().is_ok()).count(), 2, "{key}");
    }
    assert_eq!(budgets.len(), 2);
}
