//! Tests new jobs that the insert leases at once.

use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::{Subject, lane, seconds};
use rewheel_core::store::{
    ChangeVerb, Direct, IfRefused, Insert, Inserted, Outcome, Sent, Settled, Sweep,
};
use rewheel_core::{
    Fence, HolderId, Job, Key, KindChange, NewJob, Priority, Retain, State, Status, Tenant,
    Timestamp, When,
};
use std::slice::from_ref;

fn to(holder: HolderId) -> Option<Direct> {
    Some(Direct { holder, attempt_timeout: ATTEMPT_TIMEOUT, grace: GRACE })
}

/// Inserts jobs with a free slot at `holder`, and returns the fence of each leased one.
async fn insert_direct(subject: &Subject, holder: HolderId, jobs: &[NewJob]) -> Vec<Option<Fence>> {
    let insert = Insert { direct: to(holder), ..Insert::new(jobs) };
    let answers = subject.answers(&insert).await;
    answers
        .into_iter()
        .map(|answer| match answer {
            Inserted::Created { leased, .. } => leased,
            other @ (Inserted::Duplicate { .. }
            | Inserted::Replaced { .. }
            | Inserted::Refused(_)
            | Inserted::LeftOut) => panic!("not stored: {other:?}"),
        })
        .collect()
}

/// Checks that one more job of the kind `charge` is stored, but not leased at once.
async fn check_not_leased(subject: &Subject, holder: HolderId, new: NewJob) {
    let leased = insert_direct(subject, holder, from_ref(&new)).await;
    assert_eq!(leased, [None]);
    let job = subject.get(new.id).await;
    assert_eq!((job.status, job.fence), (Status::Scheduled, Fence::new(0)));
}

fn overdue(job: &Job) -> Timestamp {
    match job.status {
        Status::Leased { overdue, .. } => overdue,
        Status::Scheduled
        | Status::Paused
        | Status::Succeeded(_)
        | Status::Failed(_)
        | Status::Dead(_)
        | Status::Cancelled(_) => panic!("not leased: {job:?}"),
    }
}

/// A job that may run at once is leased by its insert, to one holder only.
pub async fn leases_a_new_job_at_once(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let new = subject.job("charge");
    let leased = insert_direct(subject, holder, from_ref(&new)).await;
    assert_eq!(leased, [Some(Fence::new(1))]);

    let job = subject.get(new.id).await;
    let overdue = overdue(&job);
    assert_eq!(job.status, Status::Leased { holder, overdue, wanted: None });
    assert_eq!(overdue, job.due.plus(ATTEMPT_TIMEOUT + GRACE));
    assert_eq!((job.fence, job.attempt, job.due), (Fence::new(1), 0, job.created));
    let another = subject.holder().await;
    assert_eq!(subject.claim(another, &["charge"], 10).await, []);
    assert_eq!(subject.lanes(&["charge"]).await, []);
}

/// A job's own attempt timeout decides when it is overdue.
pub async fn is_overdue_by_the_jobs_own_timeout(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let new = NewJob { attempt_timeout: Some(seconds(7)), ..subject.job("charge") };
    insert_direct(subject, holder, from_ref(&new)).await;
    let job = subject.get(new.id).await;
    assert_eq!(overdue(&job), job.due.plus(seconds(7) + GRACE));
}

/// A job that was due long ago gets its whole time from now on.
pub async fn is_overdue_from_now_where_the_due_has_passed(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let now = subject.now().await;
    let due = Timestamp::from_millis(now.as_millis() - 3_600_000);
    let new = NewJob { due: When::At(due), ..subject.job("charge") };
    assert_eq!(insert_direct(subject, holder, from_ref(&new)).await, [Some(Fence::new(1))]);
    let job = subject.get(new.id).await;
    assert_eq!(job.due, due);
    assert!(overdue(&job) >= now.plus(ATTEMPT_TIMEOUT + GRACE), "{job:?}");
}

/// Several jobs of one batch are leased: they do not block each other.
pub async fn leases_several_of_one_batch(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let mut jobs = subject.jobs("charge", 4);
    jobs[1].due = When::In(seconds(60));
    let leased = insert_direct(subject, holder, &jobs).await;
    let first = Some(Fence::new(1));
    assert_eq!(leased, [first, None, first, first]);
    assert_eq!(subject.get(jobs[1].id).await.state(), State::Scheduled);
}

/// A paused kind runs nothing.
pub async fn leases_nothing_of_a_paused_kind(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.apply_kind("charge", KindChange::Pause).await;
    check_not_leased(subject, holder, subject.job("charge")).await;
    subject.apply_kind("charge", KindChange::Resume).await;
    assert_eq!(subject.claim(holder, &["charge"], 10).await.len(), 1);
}

/// A parked kind runs nothing, not even for the holder that may probe it.
pub async fn leases_nothing_of_a_parked_kind(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let holder = subject.holder().await;
    subject.park("charge").await;
    check_not_leased(subject, holder, subject.job("charge")).await;
    subject.park("refund").await;
    subject.probe("refund", holder).await;
    check_not_leased(subject, holder, subject.job("refund")).await;
}

/// A new job does not overtake an older one that is due.
pub async fn does_not_overtake_an_older_due_job(subject: &Subject) {
    let older = subject.submit("charge").await;
    let holder = subject.holder().await;
    let newer = subject.job("charge");
    check_not_leased(subject, holder, newer.clone()).await;

    let claimed = subject.claim(holder, &["charge"], 10).await;
    let ids: Vec<_> = claimed.iter().map(|leased| leased.job.id).collect();
    assert_eq!(ids, [older, newer.id]);
}

/// Jobs in other lanes do not block the direct path.
pub async fn looks_at_its_own_lane_only(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let acme = Tenant::parse("acme").unwrap();
    let others = [
        subject.job("refund"),
        NewJob { tenant: Some(acme), ..subject.job("charge") },
        NewJob { priority: Priority::MAX, ..subject.job("charge") },
    ];
    subject.insert(&others).await;
    let holder = subject.holder().await;
    let leased = insert_direct(subject, holder, &[subject.job("charge")]).await;
    assert_eq!(leased, [Some(Fence::new(1))]);
}

/// Jobs of its lane that are due later, leased or paused do not block the direct path.
pub async fn waits_for_due_jobs_only(subject: &Subject) {
    let (holder, _) = subject.leased("charge").await;
    let paused = subject.submit("charge").await;
    subject.change(paused, ChangeVerb::Pause).await;
    subject.put(NewJob { due: When::In(seconds(60)), ..subject.job("charge") }).await;

    let leased = insert_direct(subject, holder, &[subject.job("charge")]).await;
    assert_eq!(leased, [Some(Fence::new(1))]);
}

/// A dead holder gets nothing; the job is stored for others.
pub async fn leases_nothing_to_the_dead(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let (holder, by) = (subject.holder().await, subject.holder().await);
    subject.expire_holder(by, holder).await;
    check_not_leased(subject, holder, subject.job("charge")).await;

    let stranger = HolderId::new(Timestamp::from_millis(0), &subject.random);
    check_not_leased(subject, stranger, subject.job("refund")).await;
    assert_eq!(subject.claim(by, &["charge", "refund"], 10).await.len(), 2);
}

/// A job that is due later waits in the store.
pub async fn leases_nothing_that_is_due_later(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let later = NewJob { due: When::In(seconds(60)), ..subject.job("charge") };
    check_not_leased(subject, holder, later).await;
}

/// A duplicate leases nothing: its job may belong to any holder.
pub async fn does_not_lease_the_job_of_a_duplicate(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let key = Some(Key::parse("order-17").unwrap());
    let first = subject.put(NewJob { key: key.clone(), ..subject.job("charge") }).await;
    let twin = NewJob { key, ..subject.job("charge") };
    let insert = Insert { direct: to(holder), ..Insert::new(from_ref(&twin)) };
    let answers = subject.answers(&insert).await;
    assert_eq!(answers, [Inserted::Duplicate { job: first, state: State::Scheduled }]);
    assert_eq!(subject.get(first).await.status, Status::Scheduled);
}

/// A batch of which nothing is stored leases nothing.
pub async fn leases_nothing_where_nothing_is_stored(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let jobs = [subject.job("charge"), subject.job("unknown-kind")];
    let insert =
        Insert { direct: to(holder), if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
    assert_eq!(subject.answers(&insert).await[0], Inserted::LeftOut);
    assert_eq!(subject.store.held(holder, seconds(0), None, 10).await.unwrap(), []);
}

/// An insert that is sent again after a lost response keeps the lease of the first time.
pub async fn keeps_the_lease_of_an_insert_sent_again(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let new = subject.job("charge");
    insert_direct(subject, holder, from_ref(&new)).await;
    let before = subject.get(new.id).await;
    let insert = Insert { direct: to(holder), sent: Sent::Again, ..Insert::new(from_ref(&new)) };
    let answers = subject.answers(&insert).await;
    assert_eq!(answers, [Inserted::Duplicate { job: new.id, state: State::Leased }]);
    assert_eq!(subject.get(new.id).await, before);
}

/// A job from the direct path is settled like a claimed one.
pub async fn is_settled_like_a_claim(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    insert_direct(subject, holder, &[subject.job("charge")]).await;
    let held = subject.store.held(holder, seconds(0), None, 10).await.unwrap();
    assert_eq!(held.len(), 1);

    let settled = subject.succeed(holder, held[0]).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
    assert_eq!(subject.get(held[0].job).await.attempt, 1);
    subject.balance().await;
}

/// A job from the direct path goes to another holder when its holder dies, and the late settle is
/// lost.
pub async fn is_swept_when_the_holder_dies(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    insert_direct(subject, holder, &[subject.job("charge")]).await;
    let lease = subject.store.held(holder, seconds(0), None, 10).await.unwrap()[0];

    let by = subject.heir_of(holder).await;
    let claimed = subject.claim(by, &["charge"], 10).await;
    assert_eq!((claimed.len(), claimed[0].job.takeovers), (1, 1));
    assert!(claimed[0].job.fence > lease.fence);
    assert_eq!(subject.succeed(holder, lease).await, Settled::Lost);
}

/// An overdue job from the direct path is taken from a live holder.
pub async fn is_swept_when_it_is_overdue(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    insert_direct(subject, holder, &[subject.job("charge")]).await;
    let sweep =
        async || subject.store.sweep(&Sweep::new(holder, 10, Retain::default())).await.unwrap();
    subject.clock.advance(ATTEMPT_TIMEOUT);
    assert_eq!(sweep().await, []);
    subject.clock.advance(GRACE);
    assert_eq!(sweep().await.len(), 1);
    assert_eq!(subject.lanes(&["charge"]).await[0].lane, lane("charge"));
}
