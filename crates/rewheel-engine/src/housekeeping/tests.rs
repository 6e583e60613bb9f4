//! Tests of the walk over groups, and of what an engine drops after the store was promoted or restored.

use super::{GROUPS_AT_ONCE, GROUPS_ROUNDS, GroupWalk, drop_forgotten};
use crate::engine::Engine;
use crate::settings::KindSettings;
use rewheel_core::store::{Direct, Insert, Inserted, StoreResult, SubmitStore};
use rewheel_core::{Fence, KindName, Lease, NewJob};
use rewheel_stores::MemoryStore;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn leases_that_the_store_forgot_are_dropped_and_others_stay() -> StoreResult<()> {
    let store = Arc::new(MemoryStore::new());
    let builder = Engine::builder(store.clone()).kind("work", KindSettings::default());
    let engine = builder.start().await.unwrap();
    let shared = engine.shared();
    let (attempt_timeout, grace) = (Duration::from_secs(60), Duration::from_secs(60));
    let direct = Some(Direct { holder: shared.holder(), attempt_timeout, grace });
    let new = || NewJob::new(shared.new_id(), KindName::parse("work").unwrap(), Vec::new());
    let jobs = [new(), new(), new()];
    let answers = store.insert(&Insert { direct, ..Insert::new(&jobs[..2]) }).await?;
    let is_leased = |answer: &Inserted| matches!(answer, Inserted::Created { leased: Some(_), .. });
    assert!(answers.iter().all(is_leased), "{answers:?}");
    let lease = |job: usize, fence: u64| Lease { job: jobs[job].id, fence: Fence::new(fence) };
    // The second has another fence in the store, and the third is unknown there.
    let held = [lease(0, 1), lease(1, 2), lease(2, 1)];
    held.iter().for_each(|lease| shared.leases.hold(*lease));

    drop_forgotten(shared).await?;
    assert_eq!(held.map(|lease| shared.leases.holds(lease)), [true, false, false]);
    // One that runs is left alone: its result decides.
    shared.leases.hold(lease(2, 1));
    assert!(shared.leases.begin(lease(2, 1)).is_some());
    drop_forgotten(shared).await?;
    assert!(shared.leases.holds(lease(2, 1)));
    engine.shutdown(Duration::ZERO).await;
    Ok(())
}

/// Walks over this many groups as the loop does. Returns the number of rounds.
fn rounds(walk: &mut GroupWalk, groups: usize) -> usize {
    let mut left = groups;
    for round in 1.. {
        for _ in 0..walk.calls() {
            let checked = left.min(GROUPS_AT_ONCE);
            left -= checked;
            if walk.add(checked) {
                return round;
            }
        }
    }
    0
}

#[test]
fn all_groups_are_looked_at_within_half_a_minute_however_many_there_are() {
    let mut walk = GroupWalk::default();
    assert!(walk.is_first());
    assert!(rounds(&mut walk, 1_000_000) <= 11, "the first look goes to the end without a rest");
    assert!(!walk.is_first());
    assert!(rounds(&mut walk, 100_000) <= GROUPS_ROUNDS);
    assert!((20..=GROUPS_ROUNDS).contains(&rounds(&mut walk, 100_000)));
    assert_eq!(rounds(&mut walk, 10), 1);
    assert!(rounds(&mut walk, 1_000_000) <= 200, "many at once");
    assert!(rounds(&mut walk, 1_000_000) <= GROUPS_ROUNDS);
}
