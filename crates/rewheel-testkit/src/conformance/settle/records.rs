//! Tests the records of failed attempts.

use super::{claim_one, with};
use crate::{Subject, millis, seconds};
use rewheel::Category;
use rewheel_core::store::{AttemptEnd, AttemptRecord, AttemptTiming, Settlement};
use rewheel_core::{Decision, DueReason, Failure, Lease, Limits};
use std::time::Duration;

async fn records(subject: &Subject, job: rewheel_core::JobId) -> Vec<AttemptRecord> {
    subject.store.attempts(job).await.unwrap()
}

/// A failed attempt is recorded with all its data.
pub async fn records_a_failed_attempt(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let ran = AttemptTiming { started_ago: seconds(3), duration: millis(2_250) };
    let before = subject.now().await.as_millis() - 3_000;
    let settlement = Settlement { ran, ..subject.retry(lease, millis(1_500), false) };
    subject.settle(holder, &settlement).await;
    let after = subject.now().await.as_millis() - 3_000;

    let recorded = records(subject, lease.job).await;
    assert_eq!(recorded.len(), 1);
    assert!((before..=after).contains(&recorded[0].started.as_millis()), "{recorded:?}");
    let expected = AttemptRecord {
        attempt: 1,
        fence: lease.fence,
        holder,
        started: recorded[0].started,
        duration: millis(2_250),
        ended: AttemptEnd::Failed(subject.timeout()),
        decision: "retry".to_owned(),
        delay: Some(millis(1_500)),
        dropped: 0,
    };
    assert_eq!(recorded, [expected]);
}

/// Attempts are recorded in order with their holders, including sticky ones.
pub async fn records_attempts_in_order(subject: &Subject) {
    let (first, lease) = subject.leased("charge").await;
    subject.settle(first, &subject.retry(lease, Duration::ZERO, true)).await;
    let mut kept = lease;
    kept.fence = lease.fence.next();
    subject.settle(first, &subject.retry(kept, Duration::ZERO, false)).await;
    let second = subject.holder().await;
    let last = claim_one(subject, second, lease.job).await;
    subject.settle(second, &subject.dead(last)).await;

    let recorded: Vec<_> = records(subject, lease.job)
        .await
        .into_iter()
        .map(|record| (record.attempt, record.fence, record.holder, record.decision, record.delay))
        .collect();
    let expected = [
        (1, lease.fence, first, "retry".to_owned(), Some(Duration::ZERO)),
        (2, kept.fence, first, "retry".to_owned(), Some(Duration::ZERO)),
        (3, last.fence, second, "dead".to_owned(), None),
    ];
    assert_eq!(recorded, expected);
}

/// An uncounted attempt has the number of the next one.
pub async fn records_an_attempt_that_does_not_count(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let failure = Some(Failure::new(Category::CircuitOpen, None, "the breaker is open"));
    let snooze =
        with(lease, Decision::Snooze { after: Duration::ZERO, because: DueReason::Snooze });
    subject.settle(holder, &Settlement { failure, ..snooze }).await;
    let next = claim_one(subject, holder, lease.job).await;
    subject.settle(holder, &subject.retry(next, Duration::ZERO, false)).await;

    let recorded: Vec<_> = records(subject, lease.job)
        .await
        .into_iter()
        .map(|record| (record.attempt, record.decision, record.delay))
        .collect();
    let zero = Some(Duration::ZERO);
    assert_eq!(recorded, [(1, "snooze".to_owned(), zero), (1, "retry".to_owned(), zero)]);
    assert_eq!(subject.get(lease.job).await.attempt, 1);
}

/// An attempt without a failure that does not end the job leaves no record.
pub async fn records_nothing_where_nothing_went_wrong(subject: &Subject) {
    let because = DueReason::RateLimit;
    let after = Duration::ZERO;
    for decision in [
        Decision::Snooze { after, because: DueReason::Snooze },
        Decision::Retry { after, sticky: false, because },
        Decision::Pause,
    ] {
        let (holder, lease) = subject.leased("charge").await;
        subject.settle(holder, &with(lease, decision)).await;
        assert_eq!(records(subject, lease.job).await, []);
    }
}

/// A failure reads back as written: every category, any text.
pub async fn records_any_failure(subject: &Subject) {
    let (holder, mut lease) = subject.leased("charge").await;
    let long = "ß".repeat(5_000);
    let mut failures: Vec<Failure> = Category::ALL
        .iter()
        .map(|category| Failure::new(*category, None, "it said \"no\"; DROP TABLE jobs; --"))
        .collect();
    failures.push(Failure::new(Category::Io, Some("E\u{301}\u{1F980}"), "line 1\nline 2\t\u{7f}"));
    failures.push(Failure::new(Category::Io, Some(&long), &long));
    failures.push(Failure::new(Category::Io, None, ""));
    for failure in &failures {
        let settlement =
            Settlement { failure: Some(failure.clone()), ..subject.retry(lease, seconds(0), true) };
        subject.settle(holder, &settlement).await;
        lease.fence = lease.fence.next();
        assert_eq!(subject.get(lease.job).await.failure.as_ref(), Some(failure));
    }
    let recorded = records(subject, lease.job).await;
    let recorded: Vec<_> = recorded.iter().filter_map(AttemptRecord::failure).collect();
    assert_eq!(recorded, failures.iter().collect::<Vec<_>>());
}

/// The history stays with a job when it dies, is redriven, or ends.
pub async fn keeps_the_records_of_a_job_that_moves(subject: &Subject) {
    use rewheel_core::store::ChangeVerb;
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.dead(lease)).await;
    assert_eq!(records(subject, lease.job).await.len(), 1);
    subject.change(lease.job, ChangeVerb::Redrive { deadline: None }).await;
    assert_eq!(records(subject, lease.job).await.len(), 1);
    let again = claim_one(subject, holder, lease.job).await;
    subject.settle(holder, &subject.retry(again, Duration::ZERO, false)).await;
    let last = claim_one(subject, holder, lease.job).await;
    subject.succeed(holder, last).await;

    let numbers: Vec<u32> =
        records(subject, lease.job).await.iter().map(|record| record.attempt).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(subject.get(lease.job).await.attempt, 3);
}

/// Of a long history the first and last records stay, and the dropped ones are counted.
pub async fn drops_records_in_the_middle_of_a_long_history(subject: &Subject) {
    let (holder, mut lease) = subject.leased("charge").await;
    let total = 150;
    for number in 0..total {
        let retry = subject.retry(lease, Duration::ZERO, true);
        // A snooze uses no attempt, but leaves a record.
        let decision = Decision::Snooze { after: Duration::ZERO, because: DueReason::Snooze };
        let snooze = Settlement { decision, ..retry.clone() };
        subject.settle(holder, if number % 3 == 0 { &snooze } else { &retry }).await;
        lease = match subject.claim(holder, &["charge"], 1).await.first() {
            Some(again) => again.lease(),
            None => with_fence(subject, lease).await,
        };
    }
    let recorded = records(subject, lease.job).await;
    let (first, last) = (Limits::ATTEMPTS_FIRST_KEPT, Limits::ATTEMPTS_LAST_KEPT);
    assert_eq!(recorded.len(), first + last);
    let dropped: Vec<u64> = recorded.iter().map(|record| record.dropped).collect();
    let mut expected = vec![0; first + last];
    expected[first] = (total - first - last) as u64;
    assert_eq!(dropped, expected);
    assert!(recorded.windows(2).all(|pair| pair[0].fence < pair[1].fence));
}

async fn with_fence(subject: &Subject, lease: Lease) -> Lease {
    Lease { fence: subject.get(lease.job).await.fence, ..lease }
}
