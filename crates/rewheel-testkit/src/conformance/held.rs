//! Tests what a holder finds when it audits its own jobs.

use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::{Subject, seconds};
use rewheel_core::store::{Direct, Insert, Leased};
use rewheel_core::{HolderId, Lease, Retain, Timestamp};
use std::time::Duration;

/// Reads all jobs of a holder, however recent.
async fn held(subject: &Subject, holder: HolderId) -> Vec<Lease> {
    subject.store.held(holder, Duration::ZERO, None, 1_000).await.unwrap()
}

/// Leases this many jobs to a new holder, and returns the leases by job.
async fn lease_many(subject: &Subject, count: usize) -> (HolderId, Vec<Lease>) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", count)).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], count).await;
    assert_eq!(claimed.len(), count);
    let mut leases: Vec<Lease> = claimed.iter().map(Leased::lease).collect();
    leases.sort_by_key(|lease| lease.job);
    (holder, leases)
}

/// A holder finds its own jobs, and none of others.
pub async fn lists_the_holders_own_leases(subject: &Subject) {
    let (first, firsts) = lease_many(subject, 5).await;
    let (second, seconds) = lease_many(subject, 3).await;
    assert_eq!(held(subject, first).await, firsts);
    assert_eq!(held(subject, second).await, seconds);
    let stranger = HolderId::new(Timestamp::from_millis(0), &subject.random);
    assert_eq!(held(subject, stranger).await, []);
}

/// A holder with many jobs reads them page by page.
pub async fn lists_page_by_page(subject: &Subject) {
    let (holder, leases) = lease_many(subject, 7).await;
    let (mut seen, mut after) = (Vec::new(), None);
    for expected in [3, 3, 1, 0] {
        let page = subject.store.held(holder, Duration::ZERO, after, 3).await.unwrap();
        assert_eq!(page.len(), expected);
        seen.extend(page);
        after = seen.last().map(|lease: &Lease| lease.job);
    }
    assert_eq!(seen, leases);
}

/// A claim whose response was lost is found, once the response cannot arrive any more.
pub async fn leaves_out_what_is_younger_than_asked_for(subject: &Subject) {
    let (holder, old) = subject.leased("charge").await;
    subject.put(subject.job("charge")).await;
    subject.clock.advance(seconds(20));
    // Its response is lost.
    let young = subject.claim(holder, &["charge"], 1).await[0].lease();

    let older = async |than| subject.store.held(holder, than, None, 10).await.unwrap();
    assert_eq!(older(seconds(10)).await, [old]);
    assert_eq!(older(seconds(60)).await, []);
    subject.clock.advance(seconds(10));
    let mut both = vec![old, young];
    both.sort_by_key(|lease| lease.job);
    assert_eq!(older(seconds(10)).await, both);
}

/// A holder that asks for everything gets it, also after the clock was set back.
pub async fn lists_everything_when_the_clock_was_set_back(subject: &Subject) {
    let (holder, leases) = lease_many(subject, 2).await;
    subject.clock.turn_back(seconds(3_600));
    assert_eq!(held(subject, holder).await, leases);
}

/// Jobs that were settled, given back or taken over are not found.
pub async fn leaves_out_what_was_let_go(subject: &Subject) {
    let (holder, leases) = lease_many(subject, 4).await;
    subject.succeed(holder, leases[0]).await;
    subject.settle(holder, &subject.retry(leases[1], Duration::ZERO, false)).await;
    subject.store.give_back(holder, &leases[2..3], Retain::default()).await.unwrap();
    assert_eq!(held(subject, holder).await, leases[3..]);
    subject.heir_of(holder).await;
    assert_eq!(held(subject, holder).await, []);
}

/// A sticky retry is found under its new fence, and its age starts with that: the response with the
/// fence may still be on its way.
pub async fn lists_a_sticky_retry_under_its_new_fence(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(seconds(20));
    subject.settle(holder, &subject.retry(lease, seconds(60), true)).await;
    let kept = Lease { fence: lease.fence.next(), ..lease };
    assert_eq!(held(subject, holder).await, [kept]);
    let older = async |than| subject.store.held(holder, than, None, 10).await.unwrap();
    assert_eq!(older(seconds(10)).await, []);
    subject.clock.advance(seconds(10));
    assert_eq!(older(seconds(10)).await, [kept]);
}

/// A job leased by an insert is found like a claimed one.
pub async fn lists_what_an_insert_leased(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let job = subject.job("charge");
    let direct = Some(Direct { holder, attempt_timeout: ATTEMPT_TIMEOUT, grace: GRACE });
    let insert = Insert { direct, ..Insert::new(std::slice::from_ref(&job)) };
    subject.answers(&insert).await;
    let lease = Lease { job: job.id, fence: subject.get(job.id).await.fence };
    assert_eq!(held(subject, holder).await, [lease]);
    let older = subject.store.held(holder, seconds(10), None, 10).await.unwrap();
    assert_eq!(older, [], "its answer may still be on its way");
}
