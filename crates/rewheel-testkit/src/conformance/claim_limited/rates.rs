//! Tests the minimum interval between two starts.

use super::{FULL, claim, fill, ids, rate, waits};
use crate::{Subject, lane, seconds};
use rewheel_core::store::{FleetLimit, LimitWait};
use std::time::Duration;

/// Checks the time until the next start, minus the time that the case took.
#[track_caller]
fn check_wait(wait: Option<LimitWait>, expected: Duration) {
    let Some(LimitWait::Rate(left)) = wait else { panic!("no wait for a rate: {wait:?}") };
    assert!(left <= expected && left + seconds(5) > expected, "{left:?}, not {expected:?}");
}

/// One job is started, then another one interval later, by any holder.
pub async fn starts_one_job_in_an_interval(subject: &Subject) {
    let (one, other) = (subject.holder().await, subject.holder().await);
    let jobs = fill(subject, &lane("charge"), 5).await;
    let (lanes, limits) = ([lane("charge")], [rate("charge", seconds(60))]);
    assert_eq!(waits(subject, &limits).await, [None]);
    let claimed = claim(subject, one, &lanes, &limits).await;
    assert_eq!(ids(&claimed), jobs[..1]);
    check_wait(claimed.waits[0], seconds(60));
    subject.succeed(one, claimed.leased[0].lease()).await;
    // The rate outlives the holder that used it.
    subject.store.leave(one).await.unwrap();
    subject.clock.advance(seconds(20));
    let claimed = claim(subject, other, &lanes, &limits).await;
    assert_eq!(claimed.leased, []);
    check_wait(claimed.waits[0], seconds(40));
    check_wait(waits(subject, &limits).await[0], seconds(40));
    subject.clock.advance(seconds(40));
    assert_eq!(waits(subject, &limits).await, [None]);
    assert_eq!(ids(&claim(subject, other, &lanes, &limits).await), jobs[1..2]);
    assert_eq!(claim(subject, other, &lanes, &limits).await.leased, []);
}

/// A long time without starts allows only one start at once.
pub async fn does_not_save_up_starts(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 5).await;
    let (lanes, limits) = ([lane("charge")], [rate("charge", seconds(60))]);
    for _ in 0..2 {
        assert_eq!(claim(subject, holder, &lanes, &limits).await.leased.len(), 1);
        assert_eq!(claim(subject, holder, &lanes, &limits).await.leased, []);
        subject.clock.advance(seconds(3_600));
    }
}

/// A changed interval counts from the last start.
pub async fn counts_a_changed_interval_from_the_last_start(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 5).await;
    let lanes = [lane("charge")];
    assert_eq!(
        claim(subject, holder, &lanes, &[rate("charge", seconds(60))]).await.leased.len(),
        1
    );
    subject.clock.advance(seconds(30));
    let longer = claim(subject, holder, &lanes, &[rate("charge", seconds(300))]).await;
    assert_eq!(longer.leased, []);
    check_wait(longer.waits[0], seconds(270));
    let shorter = claim(subject, holder, &lanes, &[rate("charge", seconds(20))]).await;
    assert_eq!(shorter.leased.len(), 1);
}

/// A claim that finds no job leaves the start for the next claim, also of another lane.
pub async fn takes_no_start_without_a_job(subject: &Subject) {
    let holder = subject.holder().await;
    subject.kinds(&["charge"]).await;
    let limits = [rate("charge", seconds(60))];
    let lanes = ["a", "b"].map(|name| super::lane_of("charge", name));
    assert_eq!(claim(subject, holder, &lanes, &limits).await.waits, [None]);
    let jobs = fill(subject, &lanes[1], 2).await;
    let claimed = claim(subject, holder, &lanes, &limits).await;
    assert_eq!(ids(&claimed), jobs[..1]);
    check_wait(claimed.waits[0], seconds(60));
}

/// A job that ended or was given back does not give its start back.
pub async fn keeps_the_rate_when_jobs_are_let_go(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 2).await;
    let (lanes, limits) = ([lane("charge")], [rate("charge", seconds(60))]);
    let leased = claim(subject, holder, &lanes, &limits).await.leased;
    subject.give_back(holder, leased[0].lease()).await;
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased, []);
}

/// A limit may have a rate and a concurrency: both apply.
pub async fn keeps_rate_and_slots(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 5).await;
    let both = FleetLimit { concurrency_max: Some(2), ..rate("charge", seconds(60)) };
    let (lanes, limits) = ([lane("charge")], [both]);
    let first = claim(subject, holder, &lanes, &limits).await;
    assert_eq!(first.leased.len(), 1);
    check_wait(first.waits[0], seconds(60));
    subject.clock.advance(seconds(60));
    let second = claim(subject, holder, &lanes, &limits).await;
    assert_eq!((second.leased.len(), &second.waits[..]), (1, &[FULL][..]));
    subject.clock.advance(seconds(60));
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased, []);
    subject.succeed(holder, first.leased[0].lease()).await;
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased.len(), 1);
}

/// A clock that is set back delays the next start by at most one interval.
pub async fn goes_on_when_the_clock_was_set_back(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 3).await;
    subject.clock.advance(seconds(7_200));
    let (lanes, limits) = ([lane("charge")], [rate("charge", seconds(60))]);
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased.len(), 1);
    subject.clock.turn_back(seconds(3_600));
    check_wait(waits(subject, &limits).await[0], seconds(60));
    let claimed = claim(subject, holder, &lanes, &limits).await;
    assert_eq!(claimed.leased, []);
    check_wait(claimed.waits[0], seconds(60));
    subject.clock.advance(seconds(60));
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased.len(), 1);
}

/// Pruning deletes a start only when no interval reaches back to it.
pub async fn outlives_a_prune(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 3).await;
    let day = seconds(24 * 3_600);
    let (lanes, limits) = ([lane("charge")], [rate("charge", day)]);
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased.len(), 1);
    subject.clock.advance(day - seconds(60));
    subject.prune(100).await;
    let claimed = claim(subject, holder, &lanes, &limits).await;
    assert_eq!(claimed.leased, []);
    check_wait(claimed.waits[0], seconds(60));
    subject.clock.advance(day + seconds(120));
    subject.prune(100).await;
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased.len(), 1);
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased, []);
}
