//! Tests settling jobs after attempts.

mod records;
mod wanted;
mod repeated;
mod late;

use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::threads::in_time;
use crate::{Subject, lane, seconds};
use rewheel::Category;
use rewheel_core::store::{Claim, Outcome, Prune, Settled, Settlement, Wakes};
use rewheel_core::{
    Decision, DueReason, Failure, HolderId, Job, JobId, Lease, NewJob, Retain, State, Status,
    Timestamp, Version, When,
};
use std::ops::RangeInclusive;
use std::time::Duration;

pub use self::late::*;
pub use self::records::*;
pub use self::repeated::*;
pub use self::wanted::*;

const NOT_KEPT: Retain = Retain { job: Duration::ZERO, key: Duration::ZERO };

/// Settles an attempt with a decision and nothing else.
fn with(lease: Lease, decision: Decision) -> Settlement {
    Settlement { decision, ..Settlement::succeed(lease) }
}

/// All decisions; those that wait use `after`.
fn decisions(subject: &Subject, after: Duration) -> [Decision; 8] {
    let because = DueReason::Backoff;
    [
        Decision::Succeed,
        Decision::Retry { after, sticky: false, because },
        Decision::Retry { after, sticky: true, because },
        Decision::Snooze { after, because: DueReason::Snooze },
        Decision::Dead { failure: subject.timeout() },
        Decision::Fail { failure: subject.timeout() },
        Decision::Pause,
        Decision::Cancel,
    ]
}

/// Settles an attempt of a new job, and returns it with the time span of the call.
async fn settle_new(
    subject: &Subject,
    decision: Decision,
) -> (Settled, Job, RangeInclusive<Timestamp>) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(seconds(5));
    let before = subject.now().await;
    let settled = subject.settle(holder, &with(lease, decision)).await;
    (settled, subject.get(lease.job).await, before..=subject.now().await)
}

fn let_go(state: State) -> Settled {
    Settled::Applied(Outcome::LetGo(state))
}

/// Moves a span.
fn later(span: &RangeInclusive<Timestamp>, by: Duration) -> RangeInclusive<Timestamp> {
    span.start().plus(by)..=span.end().plus(by)
}

/// A success ends the job.
pub async fn ends_a_job_that_succeeded(subject: &Subject) {
    let (settled, job, span) = settle_new(subject, Decision::Succeed).await;
    assert_eq!(settled, let_go(State::Succeeded));
    let Status::Succeeded(at) = job.status else { panic!("{job:?}") };
    assert!(span.contains(&at), "{job:?}");
    assert_eq!((job.attempt, job.failure, job.payload.is_some()), (1, None, true));
    let another = subject.holder().await;
    assert_eq!(subject.claim(another, &["charge"], 10).await, []);
    subject.balance().await;
}

/// A retry makes the job wait, for any holder when it is due.
pub async fn lets_a_job_wait_for_its_retry(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(seconds(5));
    let before = subject.now().await;
    let settled = subject.settle(holder, &subject.retry(lease, seconds(60), false)).await;
    let span = before..=subject.now().await;
    assert_eq!(settled, let_go(State::Scheduled));

    let job = subject.get(lease.job).await;
    assert_eq!((job.status, job.attempt, job.because), (Status::Scheduled, 1, DueReason::Backoff));
    assert!(later(&span, seconds(60)).contains(&job.due), "{job:?}");
    assert_eq!(job.failure, Some(subject.timeout()));
    let another = subject.holder().await;
    assert_eq!(subject.claim(another, &["charge"], 10).await, []);
    subject.clock.advance(seconds(60));
    let claimed = subject.claim(another, &["charge"], 10).await;
    assert_eq!((claimed.len(), claimed[0].job.id, claimed[0].job.attempt), (1, lease.job, 1));
}

/// The reason of a wait reads back as it was decided.
pub async fn keeps_why_a_job_waits(subject: &Subject) {
    for because in DueReason::ALL {
        let retry = Decision::Retry { after: seconds(60), sticky: false, because };
        let (_, job, _) = settle_new(subject, retry).await;
        assert_eq!(job.because, because);
        let snooze = Decision::Snooze { after: seconds(60), because };
        let (_, job, _) = settle_new(subject, snooze).await;
        assert_eq!((job.because, job.attempt), (because, 0));
    }
}

/// A snooze makes the job wait as if the attempt had not happened.
pub async fn counts_no_attempt_for_a_snooze(subject: &Subject) {
    let snooze = Decision::Snooze { after: seconds(60), because: DueReason::Snooze };
    let (settled, job, span) = settle_new(subject, snooze).await;
    assert_eq!(settled, let_go(State::Scheduled));
    assert_eq!((job.status, job.attempt, job.because), (Status::Scheduled, 0, DueReason::Snooze));
    assert!(later(&span, seconds(60)).contains(&job.due), "{job:?}");
}

/// A job that is given up for an operator becomes a dead letter, and stays one.
pub async fn keeps_a_dead_letter_for_a_person(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let before = subject.now().await;
    let settlement = Settlement { keep: NOT_KEPT, ..subject.dead(lease) };
    assert_eq!(subject.settle(holder, &settlement).await, let_go(State::Dead));
    let span = before..=subject.now().await;

    let job = subject.get(lease.job).await;
    let Status::Dead(at) = job.status else { panic!("{job:?}") };
    assert!(span.contains(&at), "{job:?}");
    assert_eq!((job.attempt, &job.failure), (1, &Some(subject.timeout())));
    subject.clock.advance(seconds(1_000_000_000));
    subject.store.prune(&Prune { limit: 10, audit_older_than: seconds(1) }).await.unwrap();
    assert_eq!(subject.get(lease.job).await, job);
    subject.balance().await;
}

/// A job that failed without an operator's attention ends.
pub async fn ends_a_job_that_failed(subject: &Subject) {
    let fail = Decision::Fail { failure: subject.timeout() };
    let (settled, job, span) = settle_new(subject, fail).await;
    assert_eq!(settled, let_go(State::Failed));
    let Status::Failed(at) = job.status else { panic!("{job:?}") };
    assert!(span.contains(&at), "{job:?}");
    assert_eq!((job.attempt, job.failure), (1, Some(subject.timeout())));
}

/// A job that asks for an operator is paused: its due time stays, and no attempt is used.
pub async fn lets_a_job_wait_for_a_person(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let before = subject.get(lease.job).await;
    let settled = subject.settle(holder, &with(lease, Decision::Pause)).await;
    assert_eq!(settled, let_go(State::Paused));
    let job = subject.get(lease.job).await;
    assert_eq!((job.status, job.attempt), (Status::Paused, 0));
    assert_eq!((job.due, job.because), (before.due, before.because));
    subject.clock.advance(seconds(3_600));
    assert_eq!(subject.claim(holder, &["charge"], 10).await, []);
}

/// A cancelled job ends.
pub async fn ends_a_job_that_was_cancelled(subject: &Subject) {
    let (settled, job, span) = settle_new(subject, Decision::Cancel).await;
    assert_eq!(settled, let_go(State::Cancelled));
    let Status::Cancelled(at) = job.status else { panic!("{job:?}") };
    assert!(span.contains(&at), "{job:?}");
    assert_eq!((job.attempt, job.failure), (1, None));
}

/// A sticky retry stays with its holder, under a new fence and with a new overdue time.
pub async fn keeps_a_sticky_retry_with_its_holder(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(seconds(5));
    let before = subject.now().await;
    let settled = subject.settle(holder, &subject.retry(lease, seconds(60), true)).await;
    let span = before..=subject.now().await;
    let Settled::Applied(Outcome::Kept { fence, due_in }) = settled else { panic!("{settled:?}") };
    assert_eq!(fence, lease.fence.next());
    assert!(due_in <= seconds(60) && due_in > seconds(55), "{due_in:?}");

    let job = subject.get(lease.job).await;
    let overdue = job.due.plus(ATTEMPT_TIMEOUT + GRACE);
    assert_eq!(job.status, Status::Leased { holder, overdue, wanted: None });
    assert_eq!((job.fence, job.attempt, job.because), (fence, 1, DueReason::Backoff));
    assert!(later(&span, seconds(60)).contains(&job.due), "{job:?}");
    assert_eq!(job.failure, Some(subject.timeout()));
    let another = subject.holder().await;
    let visits = [subject.visit(lane("charge"), 10)];
    let claim = Claim { holder: another, visits: &visits, horizon: seconds(3_600), limit: 10 };
    assert_eq!(subject.store.claim(&claim).await.unwrap(), []);
}

/// Repeated sticky retries are settled under each new fence.
pub async fn settles_each_sticky_retry_under_its_own_fence(subject: &Subject) {
    let (holder, mut lease) = subject.leased("charge").await;
    for attempt in 1..=5 {
        let settled = subject.settle(holder, &subject.retry(lease, Duration::ZERO, true)).await;
        let fence = lease.fence.next();
        let kept = Settled::Applied(Outcome::Kept { fence, due_in: Duration::ZERO });
        assert_eq!(settled, kept);
        assert_eq!(subject.get(lease.job).await.attempt, attempt);
        lease.fence = fence;
    }
    assert_eq!(subject.succeed(holder, lease).await, let_go(State::Succeeded));
    assert_eq!(subject.get(lease.job).await.attempt, 6);
}

/// The last failure stays with a job that succeeds in the end.
pub async fn keeps_the_last_failure_of_a_job(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, Duration::ZERO, false)).await;
    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    subject.succeed(holder, lease).await;
    assert_eq!(subject.get(lease.job).await.failure, Some(subject.timeout()));
}

/// The failure that a job was given up for may differ from that of its last attempt.
pub async fn keeps_what_a_job_was_given_up_for(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let why = Failure::new(Category::Deadline, None, "the deadline comes before the next attempt");
    let decision = Decision::Dead { failure: why.clone() };
    subject.settle(holder, &Settlement { decision, ..subject.dead(lease) }).await;
    assert_eq!(subject.get(lease.job).await.failure, Some(why));
    let records = subject.store.attempts(lease.job).await.unwrap();
    assert_eq!(records[0].failure(), Some(&subject.timeout()));
}

/// A job that ends without retention leaves only a line in the ledger.
pub async fn leaves_nothing_of_a_job_that_is_not_kept(subject: &Subject) {
    let fail = Decision::Fail { failure: subject.timeout() };
    for decision in [Decision::Succeed, fail, Decision::Cancel] {
        let (holder, lease) = subject.leased("charge").await;
        let failure = Some(subject.timeout());
        let settlement = Settlement { keep: NOT_KEPT, failure, ..with(lease, decision) };
        let settled = subject.settle(holder, &settlement).await;
        assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
        assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
        assert_eq!(subject.store.attempts(lease.job).await.unwrap(), []);
    }
    let books = subject.store.books().await.unwrap();
    assert_eq!((books.submitted, books.pruned, books.finished), (3, 3, 0));
    subject.balance().await;
}

/// An ended job is kept for its retention.
pub async fn keeps_a_job_for_as_long_as_was_said(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let keep = Retain { job: seconds(60), key: seconds(1) };
    subject.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
    let prune = Prune { limit: 10, audit_older_than: seconds(3_600) };
    subject.clock.advance(seconds(50));
    subject.store.prune(&prune).await.unwrap();
    assert_eq!(subject.get(lease.job).await.state(), State::Succeeded);
    subject.clock.advance(seconds(11));
    subject.store.prune(&prune).await.unwrap();
    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
}

/// The items of a batch are answered in order, each on its own.
pub async fn answers_in_the_order_of_the_items(subject: &Subject) {
    let (holder, stale) = subject.leased("charge").await;
    subject.heir_of(holder).await;
    let holder = subject.holder().await;
    subject.insert(&subject.jobs("charge", 4)).await;
    let claimed = subject.claim(holder, &["charge"], 5).await;
    let fresh: Vec<Lease> = claimed
        .iter()
        .map(|leased| leased.lease())
        .filter(|lease| lease.job != stale.job)
        .collect();
    subject.succeed(holder, fresh[0]).await;
    let unknown = Lease { job: subject.id(), fence: fresh[0].fence };

    let items = [
        Settlement::succeed(stale),
        Settlement::succeed(fresh[1]),
        Settlement::succeed(unknown),
        Settlement::succeed(fresh[0]),
        subject.dead(fresh[2]),
        subject.retry(fresh[3], seconds(60), false),
    ];
    let answers = subject.store.settle(holder, &items).await.unwrap();
    let expected = [
        Settled::Lost,
        let_go(State::Succeeded),
        Settled::AlreadyApplied(Outcome::Gone),
        Settled::AlreadyApplied(Outcome::LetGo(State::Succeeded)),
        let_go(State::Dead),
        let_go(State::Scheduled),
    ];
    assert_eq!(answers, expected);
    subject.balance().await;
}

/// A thousand attempts are settled by one call, each with its own decision.
pub async fn settles_a_thousand_at_once(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 1_000)).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 1_000).await;
    let decided = decisions(subject, seconds(3_600));
    let items: Vec<Settlement> = claimed
        .iter()
        .zip(decided.iter().cycle())
        .map(|(leased, decision)| with(leased.lease(), decision.clone()))
        .collect();
    let answers = subject.store.settle(holder, &items).await.unwrap();

    assert_eq!(answers.len(), 1_000);
    for (item, answer) in items.iter().zip(answers) {
        match (item.decision.state(None), answer) {
            (State::Leased, Settled::Applied(Outcome::Kept { .. })) => {}
            (state, answer) => assert_eq!(answer, let_go(state)),
        }
    }
    let books = subject.store.books().await.unwrap();
    assert_eq!((books.live, books.dead, books.finished), (500, 125, 375));
    subject.balance().await;
}

/// An empty batch is not an error.
pub async fn takes_no_items(subject: &Subject) {
    let holder = subject.holder().await;
    assert_eq!(subject.store.settle(holder, &[]).await.unwrap(), []);
}

/// Every settle is a visible change.
pub async fn grows_the_version(subject: &Subject) {
    for decision in decisions(subject, seconds(60)) {
        let (holder, lease) = subject.leased("charge").await;
        let before: Version = subject.get(lease.job).await.version;
        subject.settle(holder, &with(lease, decision.clone())).await;
        assert!(subject.get(lease.job).await.version > before, "{decision:?}");
    }
}

/// Work that was done before the deadline may be reported after it.
pub async fn takes_a_success_after_the_deadline(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let deadline = Some(When::In(seconds(60)));
    subject.put(NewJob { deadline, ..subject.job("charge") }).await;
    let holder = subject.holder().await;
    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    subject.clock.advance(seconds(61));
    assert_eq!(subject.succeed(holder, lease).await, let_go(State::Succeeded));
}

/// An overdue job that was not swept still belongs to its holder.
pub async fn takes_what_is_overdue_but_not_swept(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance((ATTEMPT_TIMEOUT + GRACE) * 2);
    assert_eq!(subject.succeed(holder, lease).await, let_go(State::Succeeded));
}

/// A watcher is woken for a released job.
pub async fn wakes_a_watcher_when_it_lets_go(subject: &Subject) {
    if subject.store.capabilities().wakes == Wakes::None {
        return subject.skip("sends no wake-ups");
    }
    let (holder, lease) = subject.leased("charge").await;
    let mut watch = subject.store.watch();
    subject.settle(holder, &subject.retry(lease, Duration::ZERO, false)).await;
    in_time("waking", watch.changed()).await;
}

async fn claim_one(subject: &Subject, holder: HolderId, job: JobId) -> Lease {
    let claimed = subject.claim(holder, &["charge"], 1).await;
    assert_eq!(claimed.first().map(|leased| leased.job.id), Some(job));
    claimed[0].lease()
}
