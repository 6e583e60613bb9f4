//! Tests sequences that led to jobs being lost, miscounted or never announced.

use crate::people::AGES;
use crate::race::both;
use crate::{Fault, FaultyStore, Subject, Verb, seconds};
use rewheel::Category;
use rewheel_core::store::{
    ChangeVerb, Insert, Inserted, OperateStore, Outcome, Prune, Refusal, Settled, Settlement,
    StoreError, SubmitStore, WorkStore, halving,
};
use rewheel_core::{
    Decision, Failure, Key, KindChange, KindName, NewJob, Retain, State, Tenant, When,
};
use std::sync::Arc;

/// Dead letters are in a table that is pruned. Only an operator deletes them.
pub async fn a_dead_letter_of_long_ago(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    for _ in 0..3 {
        subject.clock.advance(AGES / 10);
        subject.prune_all().await;
    }
    let dead = subject.get(job).await;
    assert_eq!((dead.state(), dead.payload.is_some()), (State::Dead, true));
    assert_eq!(subject.store.unannounced(10).await.unwrap()[0].job, job);
    subject.apply(job, ChangeVerb::Redrive { deadline: None }).await;
    let holder = subject.holder().await;
    assert_eq!(subject.claim_only(holder, "charge").await.job.payload, dead.payload);
}

/// A key is pruned while its job is live, points at a pruned job, is shared by tenants, or two clients submit it at once. A key belongs
/// to (tenant, kind), outlives the job, and one of two clients gets the other's id.
pub async fn a_key_that_two_submit(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let keyed = || NewJob { key: Some(Key::parse("order-17").unwrap()), ..subject.job("charge") };
    let (a, b) = ([keyed()], [keyed()]);
    let (insert_a, insert_b) = (Insert::new(&a), Insert::new(&b));
    let (one, two) = both(subject.store.insert(&insert_a), subject.store.insert(&insert_b)).await;
    let (one, two) = (one.unwrap().remove(0), two.unwrap().remove(0));
    let state = State::Scheduled;
    let first = match (&one, &two) {
        (Inserted::Created { .. }, Inserted::Duplicate { job, .. }) => {
            assert_eq!(two, Inserted::Duplicate { job: a[0].id, state });
            *job
        }
        (Inserted::Duplicate { job, .. }, Inserted::Created { .. }) => {
            assert_eq!(one, Inserted::Duplicate { job: b[0].id, state });
            *job
        }
        answers => panic!("not one of two: {answers:?}"),
    };
    let tenant = Some(Tenant::parse("acme").unwrap());
    let kind = KindName::parse("refund").unwrap();
    subject.insert(&[NewJob { tenant, ..keyed() }, NewJob { kind, ..keyed() }]).await;

    let say =
        async |job: NewJob| subject.store.insert(&Insert::new(&[job])).await.unwrap().remove(0);
    subject.clock.advance(AGES / 10);
    subject.prune_all().await;
    assert_eq!(say(keyed()).await, Inserted::Duplicate { job: first, state });
    let holder = subject.holder().await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    let keep = Retain { job: seconds(1), key: seconds(3_600) };
    subject.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
    subject.clock.advance(seconds(2));
    subject.prune_all().await;
    assert_eq!(subject.store.get(first).await.unwrap(), None);
    let duplicate = Inserted::Duplicate { job: first, state: State::Succeeded };
    assert_eq!(say(keyed()).await, duplicate);
    let other = NewJob { payload: b"other".to_vec(), ..keyed() };
    assert_eq!(say(other).await, Inserted::Refused(Refusal::KeyReused { job: first }));
}

/// A NUL in a text, `\u0000` in JSON: a flush of five hundred jobs is repeated forever. Payloads are bytes and texts are cleaned; a
/// remaining bad item is found by splitting the batch in halves.
pub async fn a_flush_with_what_databases_refuse(subject: &Subject) {
    let faulty = Arc::new(FaultyStore::new(subject.store.clone()));
    subject.kinds(&["charge"]).await;
    let mut jobs = subject.jobs("charge", 500);
    jobs[7].payload = (0..=255).collect();
    jobs[8].payload = b"{\"a\":\"\\u0000\"}".to_vec();
    jobs[9].payload = b"\0".to_vec();
    faulty.fail_batches_with(jobs[123].id);
    let insert = async |part: &[NewJob]| faulty.insert(&Insert::new(part)).await;
    let answers = halving(&jobs, insert).await.unwrap();
    for (at, answer) in answers.iter().enumerate() {
        match answer {
            Ok(Inserted::Created { .. }) => assert_ne!(at, 123),
            Err(StoreError::Rejected(_)) => assert_eq!(at, 123),
            other => panic!("{at}: {other:?}"),
        }
    }
    for at in [7, 8, 9] {
        let found = subject.get(jobs[at].id).await;
        assert_eq!(found.payload.as_ref(), Some(&jobs[at].payload));
    }
    let holder = subject.holder().await;
    let leases = subject.claim(holder, &["charge"], 500).await;
    let failure = || Failure::new(Category::Unknown, Some("\0"), "a\0b \u{1}\u{ffff}\u{1F600}");
    let dead: Vec<Settlement> = leases
        .iter()
        .map(|leased| Settlement {
            decision: Decision::Dead { failure: failure() },
            failure: Some(failure()),
            ..Settlement::succeed(leased.lease())
        })
        .collect();
    let settled = subject.store.settle(holder, &dead).await.unwrap();
    let applied = Settled::Applied(Outcome::LetGo(State::Dead));
    assert!(settled.len() == 499 && settled.iter().all(|settled| *settled == applied));
    assert_eq!(subject.get(jobs[9].id).await.failure, Some(failure()));
}

/// A crash between settle and notify: a dead letter that is never announced. It stays unannounced until a notice was sent, and any holder
/// may send it.
pub async fn a_crash_before_the_announcement(subject: &Subject) {
    let faulty = FaultyStore::new(subject.store.clone());
    let (holder, lease) = subject.leased("charge").await;
    faulty.fail_next(Verb::Settle, Fault::NoAnswer);
    let dead = [subject.dead(lease)];
    assert!(faulty.patiently(faulty.settle(holder, &dead)).await.is_none());

    for _ in 0..2 {
        let letters = subject.store.unannounced(10).await.unwrap();
        assert_eq!(letters.iter().map(|letter| letter.job).collect::<Vec<_>>(), [lease.job]);
    }
}

/// A prune crashes half-way, and the books are wrong. Deleted jobs are counted in the same transaction, whatever response the caller
/// gets.
pub async fn a_prune_that_crashes(subject: &Subject) {
    let faulty = FaultyStore::new(subject.store.clone());
    for _ in 0..6 {
        subject.job_in("charge", State::Succeeded).await;
    }
    subject.clock.advance(AGES / 10);
    let prune = Prune { limit: 1, audit_older_than: AGES };
    for fault in Fault::ALL.into_iter().cycle().take(9) {
        faulty.fail_next(Verb::Prune, fault);
        let answer = faulty.patiently(faulty.prune(&prune)).await;
        assert!(!matches!(answer, Some(Ok(_))), "{answer:?}");
        subject.balance().await;
    }
    let books = subject.store.books().await.unwrap();
    assert_eq!((books.finished, books.pruned), (0, 6));
}

/// A parked or paused job, or one without a handler, never reaches its deadline. One sweep covers every live state.
pub async fn a_deadline_that_cannot_be_met(subject: &Subject) {
    subject.kinds(&["parked", "paused", "unhandled", "waiting"]).await;
    subject.park("parked").await;
    subject.apply_kind("paused", KindChange::Pause).await;
    let mut jobs = Vec::new();
    for kind in ["parked", "paused", "unhandled", "waiting"] {
        let new = NewJob { deadline: Some(When::In(seconds(60))), ..subject.job(kind) };
        subject.insert(std::slice::from_ref(&new)).await;
        jobs.push(new.id);
    }
    subject.apply(jobs[3], ChangeVerb::Pause).await;
    subject.clock.advance(seconds(61));
    assert_eq!(subject.store.deadlines(seconds(5), 100).await.unwrap().len(), 4);
    for job in jobs {
        let dead = subject.get(job).await;
        assert_eq!((dead.state(), dead.failure), (State::Dead, Some(Failure::of_deadline())));
    }
}
