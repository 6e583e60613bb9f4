//! Checks that keys do not use each other's slots, and that their number is limited.

use crate::bulkhead::Bulkhead;
use crate::clock::ManualClock;
use crate::duration::seconds;
use crate::error::GiveUpReason;

#[test]
fn each_key_has_its_own_slots() {
    let bulkheads = Bulkhead::concurrency(2).keyed::<u32>(10);
    let permits: Vec<_> = (0..2).map(|_| bulkheads.try_acquire(&1).unwrap()).collect();
    assert_eq!(bulkheads.try_acquire(&1).unwrap_err().why, GiveUpReason::BulkheadFull);
    assert!(bulkheads.try_acquire(&2).is_ok());
    drop(permits);
    assert!(bulkheads.try_acquire(&1).is_ok());
}

#[test]
fn a_key_with_a_running_call_is_never_forgotten() {
    let bulkheads = Bulkhead::concurrency(1).keyed::<u32>(3);
    let permit = bulkheads.try_acquire(&0).unwrap();
    for key in 1..1_000 {
        assert!(bulkheads.try_acquire(&key).is_ok(), "key {key}");
        assert!(bulkheads.len() <= 3);
        assert!(bulkheads.try_acquire(&0).is_err(), "key 0 got a second slot after key {key}");
    }
    drop(permit);
    assert!(bulkheads.try_acquire(&0).is_ok());
}

#[test]
fn keys_without_room_share_one_bulkhead_until_there_is_room() {
    let bulkheads = Bulkhead::concurrency(1).keyed::<u32>(2);
    let own: Vec<_> = (0..2).map(|key| bulkheads.try_acquire(&key).unwrap()).collect();
    let shared = bulkheads.try_acquire(&2).unwrap();
    assert!(bulkheads.try_acquire(&3).is_err(), "the shared bulkhead has one slot");
    drop(own);
    // The map looks for room now and then.
    let has_room = (0..10).any(|_| bulkheads.try_acquire(&3).is_ok());
    assert!(has_room, "room of other keys is never found");
    drop(shared);
    assert!(bulkheads.len() <= 2);
}

#[tokio::test]
async fn a_caller_waits_for_a_slot_of_its_key() {
    let clock = ManualClock::new();
    let bulkheads = Bulkhead::concurrency(1).queue_max(5).wait_max(seconds(1)).clock(&clock);
    let bulkheads = bulkheads.keyed::<String>(10);
    let permit = bulkheads.acquire("a").await.unwrap();
    let mut waits = Box::pin(bulkheads.acquire("a"));
    assert!(futures_util::poll!(&mut waits).is_pending());
    drop(bulkheads.acquire("b").await.unwrap());
    drop(permit);
    drop(waits.await.unwrap());
    let _permit = bulkheads.acquire("a").await.unwrap();
    let refused = clock.drive(bulkheads.acquire("a")).await.unwrap_err();
    assert_eq!((refused.why, clock.elapsed()), (GiveUpReason::BulkheadFull, seconds(1)));
}
