//! Tests calls that fail, whose response is lost, or that never return.

use crate::people::KEEP_NOTHING;
use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::{Fault, FaultyStore, Subject, Verb, lane, seconds};
use rewheel_core::store::{
    Change, ChangeVerb, Changed, Direct, Edit, FleetLimit, Insert, Inserted, LimitOf, LimitWait,
    LimitedClaim, Outcome, Sent, Settled, Settlement, StoreError, StoreResult, Sweep, halving,
};
use rewheel_core::{Actor, HolderId, KindName, Lease, NewJob, Retain, State, Version, Wanted};
use std::sync::Arc;
use std::time::Duration;

/// The same store, wrapped so that calls can fail.
fn faulty(subject: &Subject) -> (Arc<FaultyStore>, Subject) {
    let faulty = Arc::new(FaultyStore::new(subject.store.clone()));
    (faulty.clone(), Subject::new(faulty, subject.clock.clone()))
}

/// Makes a call that fails, checks that it does, and repeats it.
async fn twice<T>(
    faulty: &FaultyStore,
    verb: Verb,
    fault: Fault,
    mut call: impl AsyncFnMut(Sent) -> StoreResult<T>,
) -> T {
    faulty.fail_next(verb, fault);
    let first = faulty.patiently(call(Sent::First)).await;
    let as_told = match (fault, first) {
        (Fault::Before, Some(Err(StoreError::Unavailable(_))))
        | (Fault::After, Some(Err(StoreError::Ambiguous(_))))
        | (Fault::NoAnswer, None) => true,
        (Fault::Before | Fault::After | Fault::NoAnswer, _) => false,
    };
    assert!(as_told, "{verb:?} did not fail as told: {fault:?}");
    call(Sent::Again).await.unwrap()
}

/// The expected result of a repeated settlement.
fn settled(fault: Fault, outcome: Outcome) -> Settled {
    if fault.is_done() { Settled::AlreadyApplied(outcome) } else { Settled::Applied(outcome) }
}

async fn settle_twice(
    faulty: &FaultyStore,
    subject: &Subject,
    fault: Fault,
    holder: HolderId,
    settlement: &Settlement,
) -> Settled {
    let settlements = std::slice::from_ref(settlement);
    let call = async |_| subject.store.settle(holder, settlements).await;
    twice(faulty, Verb::Settle, fault, call).await.remove(0)
}

/// An insert happens once, whatever response arrives.
pub async fn an_insert_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    subject.kinds(&["charge"]).await;
    for (round, fault) in Fault::ALL.into_iter().enumerate() {
        let jobs = subject.jobs("charge", 3);
        let call = async |sent| subject.store.insert(&Insert { sent, ..Insert::new(&jobs) }).await;
        for (answer, job) in twice(&faulty, Verb::Insert, fault, call).await.iter().zip(&jobs) {
            let duplicate = Inserted::Duplicate { job: job.id, state: State::Scheduled };
            assert_eq!(*answer == duplicate, fault.is_done(), "{fault:?}: {answer:?}");
            assert_eq!(subject.get(job.id).await.version.get(), 1);
        }
        let submitted = subject.store.books().await.unwrap().submitted;
        assert_eq!(submitted, 3 * (u64::try_from(round).unwrap() + 1));
    }
    subject.balance().await;
}

/// A direct insert leases a job once; a lease without a response is found and given back.
pub async fn a_direct_insert_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let direct = Some(Direct { holder, attempt_timeout: ATTEMPT_TIMEOUT, grace: GRACE });
    for fault in Fault::ALL {
        let jobs = [subject.job("charge")];
        let call =
            async |sent| subject.store.insert(&Insert { sent, direct, ..Insert::new(&jobs) }).await;
        let answer = twice(&faulty, Verb::Insert, fault, call).await.remove(0);
        let duplicate = Inserted::Duplicate { job: jobs[0].id, state: State::Leased };
        assert_eq!(answer == duplicate, fault.is_done(), "{fault:?}: {answer:?}");

        let held = subject.store.held(holder, Duration::ZERO, None, 10).await.unwrap();
        assert_eq!(held.iter().map(|lease| lease.job).collect::<Vec<_>>(), [jobs[0].id]);
        subject.succeed(holder, held[0]).await;
    }
    subject.balance().await;
}

/// A claim whose response is lost holds its jobs; its holder finds them and gives them back.
pub async fn a_lost_claim_is_found_and_given_back(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.insert(&subject.jobs("charge", 3)).await;
    for fault in Fault::ALL {
        let call = async |_| subject.try_claim(holder, &["charge"], 10).await;
        let claimed = twice(&faulty, Verb::Claim, fault, call).await;
        assert_eq!(claimed.len(), if fault.is_done() { 0 } else { 3 });

        let held = subject.store.held(holder, Duration::ZERO, None, 10).await.unwrap();
        assert_eq!(held.len(), 3);
        let given = subject.store.give_back(holder, &held, Retain::default()).await.unwrap();
        assert_eq!(given, [Settled::Applied(Outcome::LetGo(State::Scheduled)); 3]);
    }
    for leased in subject.claim(holder, &["charge"], 10).await {
        assert_eq!((leased.job.attempt, leased.job.takeovers, leased.job.fence.get()), (0, 0, 4));
    }
}

/// A limited claim whose response is lost keeps its slots until its jobs are found and given back.
pub async fn a_lost_limited_claim_keeps_its_slots(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.insert(&subject.jobs("charge", 5)).await;
    let of = LimitOf::Kind(KindName::parse("charge").unwrap());
    let limits = [FleetLimit { of, concurrency_max: Some(2), interval: None }];
    let visits = [subject.visit(lane("charge"), 10)];
    let claim = LimitedClaim { holder, visits: &visits, limit: 10, limits: &limits };
    for fault in Fault::ALL {
        let call = async |_| subject.store.claim_limited(&claim).await;
        let claimed = twice(&faulty, Verb::ClaimLimited, fault, call).await;
        assert_eq!(claimed.leased.len(), if fault.is_done() { 0 } else { 2 });
        assert_eq!(claimed.waits, [Some(LimitWait::Concurrency)]);

        let held = subject.store.held(holder, Duration::ZERO, None, 10).await.unwrap();
        assert_eq!(held.len(), 2);
        subject.store.give_back(holder, &held, Retain::default()).await.unwrap();
        let waits = subject.store.limit_waits(&limits).await.unwrap();
        assert_eq!(waits, [None]);
    }
}

/// A success happens once.
pub async fn a_success_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        let succeed = Settlement::succeed(lease);
        let answer = settle_twice(&faulty, &subject, fault, holder, &succeed).await;
        assert_eq!(answer, settled(fault, Outcome::LetGo(State::Succeeded)));
        assert_eq!(subject.get(lease.job).await.attempt, 1);
    }
    assert_eq!(subject.store.books().await.unwrap().finished, 3);
    subject.balance().await;
}

/// A success without retention happens once, although no row is left.
pub async fn a_success_that_is_not_kept_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        let succeed = Settlement { keep: KEEP_NOTHING, ..Settlement::succeed(lease) };
        let answer = settle_twice(&faulty, &subject, fault, holder, &succeed).await;
        if fault.is_done() {
            assert_eq!(answer, Settled::AlreadyApplied(Outcome::Gone));
        } else {
            assert!(matches!(answer, Settled::Applied(_)), "{answer:?}");
        }
        assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    }
    assert_eq!(subject.store.books().await.unwrap().pruned, 3);
    subject.balance().await;
}

/// A retry that returns to the store uses one attempt, and leaves one record.
pub async fn a_retry_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        let retry = subject.retry(lease, seconds(3_600), false);
        let answer = settle_twice(&faulty, &subject, fault, holder, &retry).await;
        assert_eq!(answer, settled(fault, Outcome::LetGo(State::Scheduled)));
        assert_eq!(subject.get(lease.job).await.attempt, 1);
        assert_eq!(subject.store.attempts(lease.job).await.unwrap().len(), 1);
    }
}

/// A retry that another holder claimed before it was repeated is not overwritten.
pub async fn a_retry_repeated_late_changes_nothing(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in [Fault::After, Fault::NoAnswer] {
        let other = subject.holder().await;
        let (holder, lease) = subject.leased("charge").await;
        let retry = [subject.retry(lease, seconds(0), false)];
        faulty.fail_next(Verb::Settle, fault);
        let lost = faulty.patiently(subject.store.settle(holder, &retry)).await;
        assert!(!matches!(lost, Some(Ok(_))));
        let claimed = subject.claim_only(other, "charge").await;
        let before = subject.get(lease.job).await;

        let again = subject.store.settle(holder, &retry).await.unwrap();
        assert!(!matches!(again[0], Settled::Applied(_)), "{again:?}");
        assert_eq!(subject.get(lease.job).await, before);
        subject.succeed(other, claimed.lease()).await;
    }
}

/// A sticky retry uses one attempt, and its holder learns the new fence.
pub async fn a_sticky_retry_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        let retry = subject.retry(lease, seconds(60), true);
        let answer = settle_twice(&faulty, &subject, fault, holder, &retry).await;
        let (Settled::Applied(kept) | Settled::AlreadyApplied(kept)) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(answer, settled(fault, kept));
        let Outcome::Kept { fence, due_in } = kept else { panic!("{kept:?}") };
        assert!(due_in > seconds(30) && due_in <= seconds(60), "{due_in:?}");
        let job = subject.get(lease.job).await;
        assert_eq!((job.attempt, job.fence, fence), (1, fence, lease.fence.next()));
        assert_eq!(subject.store.attempts(lease.job).await.unwrap().len(), 1);
        let second = Lease { fence, ..lease };
        assert!(matches!(subject.succeed(holder, second).await, Settled::Applied(_)));
    }
}

/// A death happens once, and is listed once.
pub async fn a_death_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        let dead = subject.dead(lease);
        let answer = settle_twice(&faulty, &subject, fault, holder, &dead).await;
        assert_eq!(answer, settled(fault, Outcome::LetGo(State::Dead)));
        assert_eq!(subject.store.attempts(lease.job).await.unwrap().len(), 1);
        let letters = subject.store.unannounced(10).await.unwrap();
        assert_eq!(letters.len(), 1);
        subject.store.announce(&letters).await.unwrap();
    }
    subject.balance().await;
}

/// Giving back happens once.
pub async fn giving_back_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        let before = subject.get(lease.job).await;
        let call = async |_| subject.store.give_back(holder, &[lease], Retain::default()).await;
        let answer = twice(&faulty, Verb::GiveBack, fault, call).await.remove(0);
        assert_eq!(answer, settled(fault, Outcome::LetGo(State::Scheduled)));
        let job = subject.get(lease.job).await;
        assert_eq!((job.state(), job.attempt, job.due), (State::Scheduled, 0, before.due));
        assert_eq!(job.version, before.version.next());
        let lease = subject.claim_only(holder, "charge").await.lease();
        subject.succeed(holder, lease).await;
    }
}

/// A change by an operator happens once, and is in the audit log once.
pub async fn a_change_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        for (what, state) in
            [(ChangeVerb::Pause, State::Paused), (ChangeVerb::Cancel, State::Cancelled)]
        {
            let job = subject.submit("charge").await;
            let change = [Change::new(job, what)];
            let by = Actor::new("suite");
            let call = async |_| subject.store.change(&change, &by, Retain::default()).await;
            let answer = twice(&faulty, Verb::Change, fault, call).await.remove(0);
            let version = Version::new(2);
            let expected = if fault.is_done() {
                Changed::Unchanged { state, version }
            } else {
                Changed::Applied { state, version }
            };
            assert_eq!(answer, expected);
            assert_eq!(subject.get(job).await.version, version);
            assert_eq!(subject.store.audit(Some(job), None, 10).await.unwrap().len(), 1);
        }
    }
    subject.balance().await;
}

/// A change with a version is made once: a repetition reports that it was made.
pub async fn a_change_with_a_version_happens_once(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        let job = subject.submit("charge").await;
        let seen = subject.get(job).await.version;
        let edit = ChangeVerb::Edit(Box::new(Edit { attempts_max: Some(3), ..Edit::default() }));
        let change = [Change { if_version: Some(seen), ..Change::new(job, edit) }];
        let by = Actor::new("suite");
        let call = async |_| subject.store.change(&change, &by, Retain::default()).await;
        let answer = twice(&faulty, Verb::Change, fault, call).await.remove(0);
        let told = Changed::VersionChanged(seen.next());
        assert_eq!(answer == told, fault.is_done(), "{fault:?}: {answer:?}");
        let job = subject.get(job).await;
        assert_eq!((job.version, job.attempts_max), (seen.next(), Some(3)));
    }
}

/// The next renewal makes up for a lost one, and returns everything that is wanted.
pub async fn a_renewal_may_be_repeated(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        subject.change(lease.job, ChangeVerb::Cancel).await;
        let call = async |_| subject.store.renew(holder).await;
        let renewed = twice(&faulty, Verb::Renew, fault, call).await;
        assert_eq!(renewed.renewals, if fault.is_done() { 2 } else { 1 });
        assert_eq!(renewed.wanted.len(), 1);
        assert_eq!((renewed.wanted[0].lease, renewed.wanted[0].wanted), (lease, Wanted::Cancel));
        assert_eq!(subject.find(holder).await.unwrap().died, None);
    }
}

/// A start is recorded once: the takeover that follows counts once.
pub async fn a_start_may_be_repeated(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    let by = subject.holder().await;
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        let call = async |_| subject.store.start(holder, &[lease]).await;
        assert_eq!(twice(&faulty, Verb::Start, fault, call).await, [true]);
        subject.take_over(by, holder).await;
        assert_eq!(subject.get(lease.job).await.takeovers_counted, 1);
        subject.apply(lease.job, ChangeVerb::Cancel).await;
    }
}

/// A sweep whose response is lost took over each job once.
pub async fn a_sweep_may_be_repeated(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    let by = subject.holder().await;
    for fault in Fault::ALL {
        let (holder, lease) = subject.leased("charge").await;
        subject.store.leave(holder).await.unwrap();
        let call = async |_| subject.store.sweep(&Sweep::new(by, 10, Retain::default())).await;
        let events = twice(&faulty, Verb::Sweep, fault, call).await;
        assert_eq!(events.len(), usize::from(!fault.is_done()));
        assert_eq!(subject.get(lease.job).await.takeovers, 1);
        subject.apply(lease.job, ChangeVerb::Cancel).await;
    }
}

/// A closed store returns an error for every call.
pub async fn a_closed_store_says_so(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.store.close().await.unwrap();
    let jobs = [subject.job("charge")];
    let store = &subject.store;
    let is_closed = |error: Option<StoreError>| matches!(error, Some(StoreError::Closed));
    assert!(is_closed(store.insert(&Insert::new(&jobs)).await.err()));
    assert!(is_closed(subject.try_claim(holder, &["charge"], 1).await.err()));
    assert!(is_closed(store.settle(holder, &[Settlement::succeed(lease)]).await.err()));
    assert!(is_closed(store.renew(holder).await.err()));
    assert!(is_closed(store.kinds().await.err()));
    assert!(is_closed(store.deadlines(seconds(0), 1).await.err()));
    assert!(is_closed(store.get(lease.job).await.err()));
}

/// One bad job among five hundred is refused alone.
pub async fn one_bad_job_does_not_hold_up_an_insert(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", 500);
    faulty.fail_batches_with(jobs[321].id);
    let insert = async |part: &[NewJob]| subject.store.insert(&Insert::new(part)).await;
    let answers = halving(&jobs, insert).await.unwrap();
    assert_eq!(answers.len(), 500);
    for (at, (answer, job)) in answers.iter().zip(&jobs).enumerate() {
        assert_eq!(matches!(answer, Ok(Inserted::Created { .. })), at != 321);
        assert_eq!(subject.store.get(job.id).await.unwrap().is_some(), at != 321);
    }
    assert_eq!(subject.store.books().await.unwrap().submitted, 499);
    subject.balance().await;
}

/// One bad settlement among five hundred is refused alone.
pub async fn one_bad_job_does_not_hold_up_a_flush(subject: &Subject) {
    let (faulty, subject) = faulty(subject);
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.insert(&subject.jobs("charge", 500)).await;
    let claimed = subject.claim(holder, &["charge"], 500).await;
    let settlements: Vec<Settlement> =
        claimed.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    let bad = settlements[77].lease.job;
    faulty.fail_batches_with(bad);
    let settle = async |part: &[Settlement]| subject.store.settle(holder, part).await;
    let answers = halving(&settlements, settle).await.unwrap();
    let applied = Settled::Applied(Outcome::LetGo(State::Succeeded));
    for (at, answer) in answers.iter().enumerate() {
        assert_eq!(answer.as_ref().is_ok_and(|settled| *settled == applied), at != 77);
    }
    assert_eq!(subject.get(bad).await.state(), State::Leased);
    let books = subject.store.books().await.unwrap();
    assert_eq!((books.live, books.finished, books.missing()), (1, 499, 0));
}
