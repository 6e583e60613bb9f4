//! Tests extreme numbers, durations and settings.

use crate::people::KEEP_NOTHING;
use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::{Subject, lane};
use rewheel::Backoff;
use rewheel_core::store::{
    AttemptTiming, Claim, Count, DeadLetter, Direct, Filter, HolderExpiry, Insert, Inserted,
    Outcome, PageRequest, Prune, Settled, Settlement, Sweep, Visit,
};
use rewheel_core::{
    Decision, DueReason, Fence, Format, Lease, NewHolder, NewJob, Retain, Role, State, Status,
    Timestamp, Version, When,
};
use std::time::Duration;

const END_OF_TIME: Timestamp = Timestamp::from_millis(i64::MAX);
const KEEP_FOR_EVER: Retain = Retain { job: Duration::MAX, key: Duration::MAX };

/// A job without an effective timeout is never overdue, and does not block others.
pub async fn an_attempt_may_take_for_ever(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let patient = NewJob { attempt_timeout: Some(Duration::MAX), ..subject.job("charge") };
    let last = NewJob { due: When::At(END_OF_TIME), ..subject.job("charge") };
    subject.insert(&[subject.job("charge"), patient.clone(), last.clone()]).await;
    let holder = subject.holder().await;
    let visits = [Visit { grace: Duration::MAX, ..subject.visit(lane("charge"), 10) }];
    let claim = Claim { holder, visits: &visits, horizon: Duration::MAX, limit: 10 };
    let claimed = subject.store.claim(&claim).await.unwrap();
    assert_eq!(claimed.len(), 3);
    for leased in claimed {
        assert_eq!(subject.get(leased.job.id).await, leased.job);
        let Status::Leased { overdue, .. } = leased.job.status else { panic!("{leased:?}") };
        assert_eq!(overdue, END_OF_TIME);
        assert_eq!(subject.succeed(holder, leased.lease()).await, applied(State::Succeeded));
    }
    leases_for_ever_at_once(subject).await;
}

/// A job inserted by SQL may ask for a longer attempt than its kind allows: the claim counts at most the ceiling.
pub async fn a_lease_is_no_longer_than_the_kind_allows(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let ceiling = ATTEMPT_TIMEOUT * 2;
    let wants = |own| NewJob { attempt_timeout: own, ..subject.job("charge") };
    let jobs = [wants(None), wants(Some(ATTEMPT_TIMEOUT / 2)), wants(Some(Duration::MAX))];
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    let visit =
        Visit { attempt_timeout_ceiling: ceiling, ..subject.visit(lane("charge"), jobs.len()) };
    let visits = [visit];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: jobs.len() };
    let before = subject.store.now().await.unwrap();
    let claimed = subject.store.claim(&claim).await.unwrap();
    let after = subject.store.now().await.unwrap();
    assert_eq!(claimed.len(), jobs.len());
    for leased in claimed {
        let timeout = match leased.job.attempt_timeout {
            None => ATTEMPT_TIMEOUT,
            Some(own) => own.min(ceiling),
        };
        let Status::Leased { overdue, .. } = leased.job.status else { panic!("{leased:?}") };
        let between = before.plus(timeout + GRACE)..=after.plus(timeout + GRACE);
        assert!(between.contains(&overdue), "{overdue:?} is not in {between:?}");
        assert_eq!(subject.get(leased.job.id).await, leased.job, "and it is stored");
        subject.succeed(holder, leased.lease()).await;
    }
    // A probe is claimed in another way.
    let probe = wants(Some(Duration::MAX));
    subject.insert(std::slice::from_ref(&probe)).await;
    subject.park("charge").await;
    subject.probe("charge", holder).await;
    let claimed = subject.store.claim(&claim).await.unwrap();
    let after = subject.store.now().await.unwrap();
    assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [probe.id]);
    let Status::Leased { overdue, .. } = claimed[0].job.status else { panic!("{claimed:?}") };
    assert!(overdue <= after.plus(ceiling + GRACE), "{overdue:?}");
}

fn applied(state: State) -> Settled {
    Settled::Applied(Outcome::LetGo(state))
}

/// The same for a job that is leased by its insert.
async fn leases_for_ever_at_once(subject: &Subject) {
    let holder = subject.holder().await;
    let direct = Some(Direct { holder, attempt_timeout: Duration::MAX, grace: Duration::MAX });
    let jobs = [subject.job("charge")];
    let answers = subject.answers(&Insert { direct, ..Insert::new(&jobs) }).await;
    assert!(matches!(answers[0], Inserted::Created { leased: Some(_), .. }), "{answers:?}");
    assert_eq!(subject.sweep(holder).await, []);
    let lease = Lease { job: jobs[0].id, fence: Fence::new(1) };
    assert_eq!(subject.succeed(holder, lease).await, applied(State::Succeeded));
}

/// The longest delays are as long as a store can represent, and never end too early.
pub async fn a_retry_may_wait_for_ever(subject: &Subject) {
    let ran = AttemptTiming { started_ago: Duration::MAX, duration: Duration::MAX };
    for sticky in [false, true] {
        let (holder, lease) = subject.leased("charge").await;
        let retry = Settlement {
            ran,
            hold: Duration::MAX,
            keep: KEEP_FOR_EVER,
            ..subject.retry(lease, Duration::MAX, sticky)
        };
        assert!(matches!(subject.settle(holder, &retry).await, Settled::Applied(_)));
        assert_eq!(subject.get(lease.job).await.due, END_OF_TIME);
        assert_eq!(subject.store.attempts(lease.job).await.unwrap().len(), 1);
        assert_eq!(subject.sweep(holder).await, []);
    }
}

/// Unlimited retention survives a prune, and an unlimited lease never expires.
pub async fn the_longest_times_do_not_wrap(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let kept = Settlement { keep: KEEP_FOR_EVER, ..Settlement::succeed(lease) };
    assert_eq!(subject.settle(holder, &kept).await, applied(State::Succeeded));
    let prune = Prune { limit: 100, audit_older_than: Duration::MAX };
    let pruned = subject.store.prune(&prune).await.unwrap();
    assert_eq!((pruned.finished, pruned.audit), (0, 0));

    let id = rewheel_core::HolderId::new(Timestamp::from_millis(0), &subject.random);
    let lease_ttl = Duration::MAX;
    subject
        .store
        .join(&NewHolder {
            id,
            name: String::new(),
            role: Role::Engine,
            lease_ttl,
            format: Format::CURRENT,
        })
        .await
        .unwrap();
    assert!(!subject.find(id).await.unwrap().expired);
    assert_eq!(subject.store.expire_holder(holder, id, 0).await.unwrap(), HolderExpiry::Alive);

    let deadline = Some(When::In(Duration::MAX));
    subject.put(NewJob { deadline, ..subject.job("charge") }).await;
    let (_, leased) = subject.leased("charge").await;
    assert_eq!(subject.store.deadlines(Duration::MAX, 10).await.unwrap(), []);
    assert_eq!(subject.store.held(holder, Duration::MAX, None, 10).await.unwrap(), []);
    assert_eq!(subject.get(leased.job).await.state(), State::Leased);
}

/// A number that was never assigned matches nothing, however large it is.
pub async fn the_largest_numbers_match_nothing(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let other = Lease { fence: Fence::new(u64::MAX), ..lease };
    assert_eq!(subject.store.start(holder, &[other, lease]).await.unwrap(), [false, true]);
    assert_eq!(subject.succeed(holder, other).await, Settled::Lost);
    let given = subject.store.give_back(holder, &[other], KEEP_NOTHING).await.unwrap();
    assert_eq!(given, [Settled::Lost]);
    assert_eq!(
        subject.store.expire_holder(holder, holder, u64::MAX).await.unwrap(),
        HolderExpiry::Alive
    );

    subject.settle(holder, &subject.dead(lease)).await;
    let letters = subject.store.unannounced(10).await.unwrap();
    let wrong = DeadLetter { version: Version::new(u64::MAX), ..letters[0].clone() };
    subject.store.announce(&[wrong]).await.unwrap();
    assert_eq!(subject.store.unannounced(10).await.unwrap(), letters);
    subject.store.audit(None, Some(u64::MAX), 10).await.unwrap();
}

/// The largest limit returns everything.
pub async fn the_largest_limit_is_no_limit(subject: &Subject) {
    const ALL: usize = usize::MAX;
    let store = &subject.store;
    let dead = subject.dead_letter("charge").await;
    let deadline = Some(When::In(crate::seconds(60)));
    let late = subject.put(NewJob { deadline, ..subject.job("charge") }).await;
    let kinds = [lane("charge").kind];
    assert_eq!(store.lanes(&kinds, None, ALL).await.unwrap().len(), 1);
    assert_eq!(store.count(&Filter::default(), ALL).await.unwrap(), Count::Exactly(2));
    let page = PageRequest { scan_max: ALL, ..PageRequest::first(ALL) };
    assert_eq!(store.list(&Filter::default(), &page).await.unwrap().items.len(), 2);
    assert_eq!(store.unannounced(ALL).await.unwrap()[0].job, dead);
    store.audit(None, None, ALL).await.unwrap();

    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], ALL).await;
    assert_eq!(claimed.len(), 1);
    let lease = claimed[0].lease();
    assert_eq!(store.held(holder, Duration::ZERO, None, ALL).await.unwrap(), [lease]);
    let heir = subject.holder().await;
    store.leave(holder).await.unwrap();
    assert_eq!(store.sweep(&Sweep::new(heir, ALL, Retain::default())).await.unwrap().len(), 1);
    subject.clock.advance(crate::seconds(61));
    let events = store.deadlines(Duration::ZERO, ALL).await.unwrap();
    assert_eq!(events.iter().map(|event| event.job).collect::<Vec<_>>(), [late]);
    store.prune(&Prune { limit: ALL, audit_older_than: Duration::ZERO }).await.unwrap();
    subject.balance().await;
}

/// A limit of zero returns nothing, and changes nothing.
pub async fn a_limit_of_zero_does_nothing(subject: &Subject) {
    let store = &subject.store;
    subject.dead_letter("charge").await;
    let (holder, lease) = subject.leased("charge").await;
    let heir = subject.holder().await;
    store.leave(holder).await.unwrap();
    assert_eq!(store.sweep(&Sweep::new(heir, 0, Retain::default())).await.unwrap(), []);
    assert_eq!(store.held(holder, Duration::ZERO, None, 0).await.unwrap(), []);
    assert_eq!(store.lanes(&[lane("charge").kind], None, 0).await.unwrap(), []);
    assert_eq!(store.unannounced(0).await.unwrap(), []);
    assert_eq!(store.audit(None, None, 0).await.unwrap(), []);
    assert_eq!(store.deadlines(Duration::ZERO, 0).await.unwrap(), []);
    let prune = Prune { limit: 0, audit_older_than: Duration::ZERO };
    assert!(store.prune(&prune).await.unwrap().is_nothing());
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);
}

/// Claims, sweeps and prunes without a limit do not block each other.
pub async fn large_limits_that_meet_are_all_served(subject: &Subject) {
    subject.submit("charge").await;
    let holder = subject.holder().await;
    let all = crate::threads::at_once(8, |_| {
        let store = std::sync::Arc::clone(&subject.store);
        async move {
            for _ in 0..20 {
                store.sweep(&Sweep::new(holder, usize::MAX, Retain::default())).await.unwrap();
                store.deadlines(GRACE, usize::MAX).await.unwrap();
            }
        }
    })
    .await;
    assert_eq!(all.len(), 8);
    assert_eq!(subject.claim(holder, &["charge"], 1).await.len(), 1);
}

/// A custom backoff of this process is refused or kept; it does not affect other jobs.
pub async fn a_custom_backoff_breaks_no_row(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let own = Backoff::custom("own", |_| ATTEMPT_TIMEOUT);
    let odd = [NewJob { backoff: Some(own), ..subject.job("charge") }];
    subject.store.insert(&Insert::new(&odd)).await.unwrap();
    // It is stored by its name, which another process may not know.
    assert_eq!(subject.get(odd[0].id).await.backoff, Some(own));
    for backoff in [
        Backoff::fixed(Duration::ZERO),
        Backoff::fixed(Duration::MAX),
        Backoff::linear(Duration::from_nanos(1)).step(Duration::MAX),
        Backoff::exponential(Duration::from_nanos(1)).factor(1_000.0).max(Duration::MAX),
        Backoff::adaptive(Duration::from_micros(3)).factor(1.001).stretch(999.999),
    ] {
        let job = NewJob { backoff: Some(backoff), ..subject.job("charge") };
        let id = subject.put(job).await;
        assert_eq!(subject.get(id).await.backoff, Some(backoff));
    }
    let plain = subject.put(subject.job("charge")).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 10).await;
    assert!(claimed.iter().any(|leased| leased.job.id == plain));
    subject.store.list(&Filter::default(), &PageRequest::first(10)).await.unwrap();
    subject.balance().await;
}

/// A job without retention leaves nothing behind, including records of uncounted attempts.
pub async fn a_snooze_leaves_nothing_behind(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let snooze = Settlement {
        decision: Decision::Snooze { after: Duration::ZERO, because: DueReason::Snooze },
        failure: Some(subject.timeout()),
        ..Settlement::succeed(lease)
    };
    assert_eq!(subject.settle(holder, &snooze).await, applied(State::Scheduled));
    let again = subject.claim_only(holder, "charge").await.lease();
    let done = Settlement { keep: KEEP_NOTHING, ..Settlement::succeed(again) };
    assert_eq!(subject.settle(holder, &done).await, applied(State::Succeeded));
    assert_eq!(subject.store.attempts(lease.job).await.unwrap(), []);
    subject.balance().await;
}

/// Even with small prunes, the ledger does not grow forever.
pub async fn small_prunes_add_up_the_ledger(subject: &Subject) {
    for _ in 0..150 {
        subject.submit("charge").await;
    }
    let prune = Prune { limit: 10, audit_older_than: Duration::MAX };
    let mut folded = 0;
    for _ in 0..100 {
        let pruned = subject.store.prune(&prune).await.unwrap();
        folded += pruned.ledger;
        if pruned.is_nothing() {
            break;
        }
        assert!(pruned.ledger <= 10, "no more than asked: {pruned:?}");
        subject.balance().await;
    }
    assert!(folded >= 50, "{folded} of 150 lines were added up");
}
