//! Tests holders that claim under one limit at the same time.

use super::{fill, lane_of, of_kind, of_tenant, rate};
use crate::threads::at_once;
use crate::{Subject, lane, seconds};
use rewheel_core::store::{FleetLimit, LimitedClaim, Settlement, Store};
use rewheel_core::{HolderId, Lane, Lease};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const HOLDERS: usize = 6;

async fn holders(subject: &Subject) -> Vec<HolderId> {
    let mut holders = Vec::new();
    for _ in 0..HOLDERS {
        holders.push(subject.holder().await);
    }
    holders
}

async fn claim(
    subject: &Subject,
    store: &dyn Store,
    holder: HolderId,
    lane: &Lane,
    limits: &[FleetLimit],
) -> Vec<Lease> {
    let visits = [subject.visit(lane.clone(), 10)];
    let claim = LimitedClaim { holder, visits: &visits, limit: 10, limits };
    let claimed = store.claim_limited(&claim).await.unwrap();
    claimed.leased.iter().map(|leased| leased.lease()).collect()
}

/// The same store, for another thread.
fn share(subject: &Subject) -> Subject {
    Subject::new(subject.store.clone(), subject.clock.clone())
}

/// Concurrent claims fill all slots, and never more.
pub async fn racing_claims_never_exceed_the_slots(subject: &Subject) {
    let holders = holders(subject).await;
    for round in 0..5 {
        let kind = format!("charge-{round}");
        fill(subject, &lane(&kind), 40).await;
        let leases = at_once(HOLDERS, |nth| {
            let (subject, holder, kind) = (share(subject), holders[nth], kind.clone());
            async move {
                let limits = [of_kind(&kind, 4)];
                claim(&subject, &*subject.store, holder, &lane(&kind), &limits).await.len()
            }
        });
        assert_eq!(leases.await.iter().sum::<usize>(), 4);
    }
}

/// The same while other holders settle.
pub async fn settling_meanwhile_frees_no_slot_early(subject: &Subject) {
    const MOST: usize = 3;
    let holders = holders(subject).await;
    fill(subject, &lane("charge"), 100).await;
    let running = Arc::new(AtomicUsize::new(0));
    let done = at_once(HOLDERS, |nth| {
        let (subject, holder, running) = (share(subject), holders[nth], Arc::clone(&running));
        async move {
            let mut done = 0;
            for _ in 0..12 {
                let limits = [of_kind("charge", 3)];
                let leases =
                    claim(&subject, &*subject.store, holder, &lane("charge"), &limits).await;
                let before = running.fetch_add(leases.len(), Ordering::SeqCst);
                assert!(before + leases.len() <= MOST, "{before} and {}", leases.len());
                // The jobs run for as long as a call of the store.
                subject.store.limit_waits(&limits).await.unwrap();
                running.fetch_sub(leases.len(), Ordering::SeqCst);
                let settled: Vec<Settlement> =
                    leases.iter().map(|lease| Settlement::succeed(*lease)).collect();
                subject.store.settle(holder, &settled).await.unwrap();
                done += leases.len();
            }
            done
        }
    });
    assert!(done.await.iter().sum::<usize>() >= MOST);
    subject.balance().await;
}

/// Concurrent claims under a rate start one job.
pub async fn racing_claims_start_one_job(subject: &Subject) {
    let holders = holders(subject).await;
    fill(subject, &lane("charge"), 40).await;
    for _ in 0..5 {
        let leases = at_once(HOLDERS, |nth| {
            let (subject, holder) = (share(subject), holders[nth]);
            async move {
                let limits = [rate("charge", seconds(600))];
                claim(&subject, &*subject.store, holder, &lane("charge"), &limits).await.len()
            }
        });
        assert_eq!(leases.await.iter().sum::<usize>(), 1);
        subject.clock.advance(seconds(600));
    }
}

/// Claims that name the same limits in another order do not deadlock.
pub async fn racing_claims_of_several_limits_all_answer(subject: &Subject) {
    let holders = holders(subject).await;
    for round in 0..5 {
        let kind = format!("charge-{round}");
        let lane = lane_of(&kind, "acme");
        fill(subject, &lane, 40).await;
        let leases = at_once(HOLDERS, |nth| {
            let (subject, holder, lane) = (share(subject), holders[nth], lane.clone());
            let mut limits = vec![of_kind(&kind, 5), of_tenant("acme", 5 * (round + 1))];
            limits.extend((0..5).map(|other| of_kind(&format!("other-{round}-{other}"), 1)));
            limits.rotate_left(nth);
            async move { claim(&subject, &*subject.store, holder, &lane, &limits).await.len() }
        });
        assert_eq!(leases.await.iter().sum::<usize>(), 5);
    }
}
