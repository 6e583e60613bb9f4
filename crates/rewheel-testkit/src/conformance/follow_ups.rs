//! Tests jobs that a settle submits.

mod endings;
mod refused;

use crate::people::KEEP_NOTHING;
use crate::threads::in_time;
use crate::{Subject, lane, seconds};
use rewheel_core::store::{
    Change, ChangeVerb, Filter, Insert, Inserted, Outcome, PageRequest, Settled, Settlement,
    StoreChange, Wakes,
};
use rewheel_core::{
    Actor, Decision, DueReason, HolderId, Job, JobId, Key, Lease, NewJob, Retain, State, Tenant,
};

pub use self::endings::*;
pub use self::refused::*;

/// Settles an attempt as a success that submits these jobs.
fn submitting(lease: Lease, follow_ups: &[NewJob]) -> Settlement {
    Settlement { follow_ups: follow_ups.to_vec(), ..Settlement::succeed(lease) }
}

/// Leases a job of the kind `charge`; the kind `mail` exists too.
async fn charged(subject: &Subject) -> (HolderId, Lease) {
    subject.kinds(&["mail"]).await;
    subject.leased("charge").await
}

/// Returns the jobs that the settle of a job submitted, the newest id first.
async fn children(subject: &Subject, parent: JobId) -> Vec<Job> {
    let filter = Filter { parent: Some(parent), ..Filter::default() };
    subject.store.list(&filter, &PageRequest::first(100)).await.unwrap().items
}

fn applied(state: State) -> Settled {
    Settled::Applied(Outcome::LetGo(state))
}

/// A job that a success submits is stored with it: scheduled, and with its parent.
pub async fn exist_once_the_settle_counted(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let mail = subject.job("mail");
    let settled = subject.settle(holder, &submitting(lease, std::slice::from_ref(&mail))).await;
    assert_eq!(settled, applied(State::Succeeded));
    assert_eq!(subject.get(lease.job).await.state(), State::Succeeded);
    let stored = subject.get(mail.id).await;
    assert_eq!((stored.state(), stored.parent), (State::Scheduled, Some(lease.job)));
    assert_eq!(stored.payload.as_deref(), Some(mail.payload.as_slice()));
    let claimed = subject.claim_only(holder, "mail").await;
    assert_eq!((claimed.job.id, claimed.job.parent), (mail.id, Some(lease.job)));
    assert_eq!(subject.succeed(holder, claimed.lease()).await, applied(State::Succeeded));
    subject.balance().await;
}

/// Whatever the settle decides: they exist exactly when it counted.
pub async fn ride_on_every_decision(subject: &Subject) {
    let (after, because) = (seconds(60), DueReason::Backoff);
    for decision in [
        Decision::Succeed,
        Decision::Retry { after, sticky: false, because },
        Decision::Retry { after, sticky: true, because },
        Decision::Snooze { after, because: DueReason::Snooze },
        Decision::Dead { failure: subject.timeout() },
        Decision::Fail { failure: subject.timeout() },
        Decision::Pause,
        Decision::Cancel,
    ] {
        let (holder, lease) = charged(subject).await;
        let mail = subject.job("mail");
        let settlement = Settlement {
            decision: decision.clone(),
            ..submitting(lease, std::slice::from_ref(&mail))
        };
        let settled = subject.settle(holder, &settlement).await;
        assert!(matches!(settled, Settled::Applied(_)), "{decision:?}: {settled:?}");
        let found = children(subject, lease.job).await;
        assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [mail.id], "{decision:?}");
    }
    subject.balance().await;
}

/// A settle that is repeated submits nothing again, even if the job it submitted is gone by then.
pub async fn are_submitted_once_by_a_repeated_settle(subject: &Subject) {
    for keep in [Retain::default(), KEEP_NOTHING] {
        let (holder, lease) = charged(subject).await;
        let mail = subject.job("mail");
        let settlement = Settlement { keep, ..submitting(lease, std::slice::from_ref(&mail)) };
        assert_eq!(subject.settle(holder, &settlement).await, applied(State::Succeeded));
        let again = subject.settle(holder, &settlement).await;
        assert!(matches!(again, Settled::AlreadyApplied(_)), "{again:?}");
        let claimed = subject.claim_only(holder, "mail").await;
        let done = Settlement { keep: KEEP_NOTHING, ..Settlement::succeed(claimed.lease()) };
        subject.settle(holder, &done).await;
        let late = subject.settle(holder, &settlement).await;
        assert!(matches!(late, Settled::AlreadyApplied(_)), "{late:?}");
        assert_eq!(subject.store.get(mail.id).await.unwrap(), None);
    }
    subject.balance().await;
}

/// The same settlement twice in one batch submits its jobs once.
pub async fn are_submitted_once_by_a_batch_that_repeats(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let settlement = submitting(lease, &[subject.job("mail")]);
    let both = [settlement.clone(), settlement];
    let settled = subject.store.settle(holder, &both).await.unwrap();
    assert_eq!(settled[0], applied(State::Succeeded));
    assert!(matches!(settled[1], Settled::AlreadyApplied(_)), "{settled:?}");
    assert_eq!(children(subject, lease.job).await.len(), 1);
    subject.balance().await;
}

/// A settle that is lost submits nothing: another holder has the job.
pub async fn do_not_exist_if_the_settle_was_lost(subject: &Subject) {
    let (late, lease) = charged(subject).await;
    let heir = subject.heir_of(late).await;
    let mail = subject.job("mail");
    let settlement = submitting(lease, std::slice::from_ref(&mail));
    assert_eq!(subject.settle(late, &settlement).await, Settled::Lost);
    let claimed = subject.claim_only(heir, "charge").await;
    assert_eq!(subject.settle(late, &settlement).await, Settled::Lost);
    assert_eq!(subject.store.get(mail.id).await.unwrap(), None);
    // The holder that has the job may submit it.
    let settlement = submitting(claimed.lease(), std::slice::from_ref(&mail));
    assert_eq!(subject.settle(heir, &settlement).await, applied(State::Succeeded));
    assert_eq!(subject.get(mail.id).await.state(), State::Scheduled);
    subject.balance().await;
}

/// A settle of a job that does not exist submits nothing.
pub async fn do_not_exist_if_the_job_is_gone(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let done = Settlement { keep: KEEP_NOTHING, ..Settlement::succeed(lease) };
    subject.settle(holder, &done).await;
    let mail = subject.job("mail");
    let settled = subject.settle(holder, &submitting(lease, std::slice::from_ref(&mail))).await;
    assert_eq!(settled, Settled::AlreadyApplied(Outcome::Gone));
    assert_eq!(subject.store.get(mail.id).await.unwrap(), None);
    subject.balance().await;
}

/// A success stays one although a user wanted to cancel the job, and what it submits is stored.
pub async fn exist_where_a_success_comes_before_a_cancel(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    subject.change(lease.job, ChangeVerb::Cancel).await;
    let settled = subject.settle(holder, &submitting(lease, &[subject.job("mail")])).await;
    assert_eq!(settled, applied(State::Succeeded));
    assert_eq!(children(subject, lease.job).await.len(), 1);
}

/// They belong to the tenant of their parent, whatever they say.
pub async fn have_the_tenant_of_their_parent(subject: &Subject) {
    subject.kinds(&["mail", "charge"]).await;
    let [parents, others] = ["acme", "other"].map(|name| Some(Tenant::parse(name).unwrap()));
    for (of_parent, said) in [(&parents, &others), (&parents, &None), (&None, &others)] {
        let parent = NewJob { tenant: of_parent.clone(), ..subject.job("charge") };
        let (holder, lease) = subject.lease_new(&parent).await;
        let mail = NewJob { tenant: said.clone(), ..subject.job("mail") };
        subject.settle(holder, &submitting(lease, std::slice::from_ref(&mail))).await;
        let stored = subject.get(mail.id).await;
        assert_eq!((stored.state(), stored.lane.tenant), (State::Scheduled, of_parent.clone()));
    }
}

/// One with the key of an existing job is that job: nothing is stored, and nothing is refused.
pub async fn with_a_known_key_are_the_job_that_has_it(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let key = Some(Key::parse("order-17").unwrap());
    let first = subject.put(NewJob { key: key.clone(), ..subject.job("mail") }).await;
    let (holder, lease) = subject.leased("charge").await;
    let mail = NewJob { key, ..subject.job("mail") };
    let settled = subject.settle(holder, &submitting(lease, std::slice::from_ref(&mail))).await;
    assert_eq!(settled, applied(State::Succeeded));
    assert_eq!(subject.store.get(mail.id).await.unwrap(), None);
    assert_eq!(children(subject, lease.job).await, []);
    assert_eq!(subject.get(first).await.parent, None);
    // And the key of a stored follow-up is known to a later insert.
    let (holder, lease) = charged(subject).await;
    let keyed = NewJob { key: Some(Key::parse("order-18").unwrap()), ..subject.job("mail") };
    subject.settle(holder, &submitting(lease, std::slice::from_ref(&keyed))).await;
    let later = [NewJob { id: subject.id(), ..keyed.clone() }];
    let answers = subject.answers(&Insert::new(&later)).await;
    assert_eq!(answers, [Inserted::Duplicate { job: keyed.id, state: State::Scheduled }]);
    subject.balance().await;
}

/// Many settlements of one batch submit jobs, some with the same key, beside others that submit none.
pub async fn of_a_whole_batch_are_stored(subject: &Subject) {
    subject.kinds(&["charge", "mail"]).await;
    subject.insert(&subject.jobs("charge", 30)).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 30).await;
    let key = Some(Key::parse("one for all").unwrap());
    let settlement = |(place, lease): (usize, Lease)| match place % 3 {
        0 => Settlement::succeed(lease),
        1 => submitting(lease, &subject.jobs("mail", 2)),
        _ => submitting(lease, &[NewJob { key: key.clone(), ..subject.job("mail") }]),
    };
    let leases = claimed.iter().map(rewheel_core::store::Leased::lease).enumerate();
    let settlements: Vec<Settlement> = leases.map(settlement).collect();
    let settled = subject.store.settle(holder, &settlements).await.unwrap();
    assert_eq!(settled, vec![applied(State::Succeeded); 30]);
    assert_eq!(subject.claim(holder, &["mail"], 1_000).await.len(), 10 * 2 + 1);
    subject.balance().await;
}

/// They are found by their parent, in every state and over several pages.
pub async fn are_listed_by_their_parent(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let mails = subject.jobs("mail", 12);
    subject.settle(holder, &submitting(lease, &mails)).await;
    subject.submit("mail").await;
    let claimed = subject.claim(holder, &["mail"], 4).await;
    let own: Vec<Lease> = claimed
        .iter()
        .map(rewheel_core::store::Leased::lease)
        .filter(|lease| mails.iter().any(|mail| mail.id == lease.job))
        .collect();
    subject.succeed(holder, own[0]).await;
    subject.settle(holder, &subject.dead(own[1])).await;
    let filter = Filter { parent: Some(lease.job), ..Filter::default() };
    let mut wanted: Vec<JobId> = mails.iter().map(|mail| mail.id).collect();
    wanted.sort_unstable();
    wanted.reverse();
    let (mut found, mut page) = (Vec::new(), PageRequest::first(5));
    loop {
        let read = subject.store.list(&filter, &page).await.unwrap();
        found.extend(read.items.iter().map(|job| job.id));
        let Some(next) = read.next else { break };
        page = PageRequest::behind(next, 5);
    }
    assert_eq!(found, wanted);
    let dead = Filter { states: vec![State::Dead], ..filter.clone() };
    let dead = subject.store.list(&dead, &PageRequest::first(5)).await.unwrap();
    assert_eq!(dead.items.iter().map(|job| job.id).collect::<Vec<_>>(), [own[1].job]);
    let count = subject.store.count(&filter, 1_000).await.unwrap();
    assert_eq!(count, rewheel_core::store::Count::Exactly(12));
    assert_eq!(children(subject, subject.id()).await, []);
}

/// Newer jobs of others do not hide them, however few rows a list may read.
pub async fn are_listed_without_a_look_at_other_jobs(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let mails = subject.jobs("mail", 2);
    subject.settle(holder, &submitting(lease, &mails)).await;
    for _ in 0..30 {
        subject.submit("mail").await;
    }
    let filter = Filter { parent: Some(lease.job), ..Filter::default() };
    let page = PageRequest { scan_max: 3, ..PageRequest::first(10) };
    let read = subject.store.list(&filter, &page).await.unwrap();
    let mut found: Vec<JobId> = read.items.iter().map(|job| job.id).collect();
    let mut wanted: Vec<JobId> = mails.iter().map(|mail| mail.id).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!((found, read.next), (wanted, None));
}

/// Watchers hear of their lanes.
pub async fn wake_a_watcher_of_their_lane(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    if subject.store.capabilities().wakes == Wakes::None {
        subject.skip("sends no wake-ups");
        return;
    }
    let mut watch = subject.store.watch();
    subject.settle(holder, &submitting(lease, &[subject.job("mail")])).await;
    let lane = lane("mail");
    in_time("a settle that submits a job wakes", async {
        loop {
            match watch.changed().await {
                StoreChange::AnyLane | StoreChange::Replaced => break,
                StoreChange::Lanes(lanes) if lanes.contains(&lane) => break,
                StoreChange::Lanes(_) => {}
            }
        }
    })
    .await;
}

/// A user may do with them what may be done with any job.
pub async fn can_be_cancelled(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let mail = subject.job("mail");
    subject.settle(holder, &submitting(lease, std::slice::from_ref(&mail))).await;
    let change = [Change::new(mail.id, ChangeVerb::Cancel)];
    subject.store.change(&change, &Actor::new("suite"), KEEP_NOTHING).await.unwrap();
    assert_eq!(children(subject, lease.job).await, []);
    subject.balance().await;
}
