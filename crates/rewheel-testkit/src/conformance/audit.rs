//! Tests audit log entries for changes that no operator made.

use crate::people::KEEP_NOTHING;
use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::{Subject, seconds};
use rewheel::Category;
use rewheel_core::store::{ChangeVerb, Leased, Settled, Settlement, Sweep};
use rewheel_core::{
    AuditEntry, AuditFields, Decision, DueReason, Failure, JobId, Lease, Limits, Retain, State,
    When,
};

fn said(facts: &AuditFields) -> String {
    let pairs: Vec<String> =
        facts.iter().map(|(name, value)| format!("{name}={}", value.unwrap_or("none"))).collect();
    pairs.join(" ")
}

/// The log of one job, oldest first.
async fn log(subject: &Subject, job: JobId) -> Vec<AuditEntry> {
    let mut log = subject.store.audit(Some(job), None, 100).await.unwrap();
    log.reverse();
    log
}

async fn whats(subject: &Subject, job: JobId) -> Vec<String> {
    log(subject, job).await.into_iter().map(|entry| entry.what).collect()
}

/// Reads the only entry of a job.
async fn only(subject: &Subject, job: JobId) -> AuditEntry {
    let mut log = log(subject, job).await;
    assert_eq!(log.len(), 1, "not the only one: {log:?}");
    log.remove(0)
}

fn decided(lease: Lease, decision: Decision) -> Settlement {
    Settlement { decision, ..Settlement::succeed(lease) }
}

/// A takeover is in the log: by which holder, from which holder, under which fence.
pub async fn notes_a_takeover(subject: &Subject) {
    let by = subject.holder().await;
    let (silent, lease) = subject.leased("charge").await;
    let events = subject.take_over(by, silent).await;

    let entry = only(subject, lease.job).await;
    assert_eq!((entry.what.as_str(), entry.who.as_str()), ("takeover", "holder:suite"));
    assert_eq!((entry.at, entry.job), (events[0].at, Some(lease.job)));
    assert_eq!(entry.kind.unwrap().as_str(), "charge");
    assert_eq!(
        said(&entry.before),
        format!("state=leased holder={silent} fence={}", lease.fence.get())
    );
    assert_eq!(said(&entry.after), "state=scheduled takeovers=1 takeovers_counted=0");
}

/// A takeover of an overdue job from a live holder is in the log as well.
pub async fn notes_a_takeover_from_the_living(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(ATTEMPT_TIMEOUT + GRACE + seconds(1));
    assert_eq!(subject.sweep(holder).await.len(), 1);
    let entry = only(subject, lease.job).await;
    assert_eq!(entry.what, "takeover");
    assert!(said(&entry.before).contains(&format!("holder={holder}")));
}

/// Each job of a dead node has its own entry, however many there are.
pub async fn notes_every_takeover_of_a_node(subject: &Subject) {
    let by = subject.holder().await;
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", Limits::BATCH_MAX);
    subject.insert(&jobs).await;
    let gone = subject.holder().await;
    assert_eq!(subject.claim(gone, &["charge"], Limits::BATCH_MAX).await.len(), jobs.len());
    subject.store.leave(gone).await.unwrap();
    while !subject.sweep(by).await.is_empty() {}

    let log = subject.store.audit(None, None, 2 * Limits::BATCH_MAX).await.unwrap();
    let mut taken: Vec<JobId> =
        log.iter().filter(|entry| entry.what == "takeover").filter_map(|entry| entry.job).collect();
    taken.sort_unstable();
    let mut all: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    all.sort_unstable();
    assert_eq!(taken, all);
}

/// A job that crashed too many holders has two entries for the last one: taken over, and dead.
pub async fn notes_who_killed_its_holders(subject: &Subject) {
    let by = subject.holder().await;
    let job = subject.submit("charge").await;
    for _ in 0..3 {
        let holder = subject.holder().await;
        let lease = subject.claim_only(holder, "charge").await.lease();
        subject.start(holder, lease).await;
        subject.store.leave(holder).await.unwrap();
        subject.sweep(by).await;
    }
    assert_eq!(whats(subject, job).await, ["takeover", "takeover", "takeover", "dead"]);
    let log = log(subject, job).await;
    assert_eq!(said(&log[2].after), "state=dead takeovers=3 takeovers_counted=3");
    let why = Failure::of_takeovers(3);
    let expected = format!("state=dead category=panic code=takeovers message={}", why.message());
    assert_eq!(said(&log[3].after), expected);
    assert_eq!(log[3].before, log[2].before);
}

/// Every end except success is in the log, with the failure and the holder.
pub async fn notes_an_end_that_is_no_success(subject: &Subject) {
    let failure = || Failure::new(Category::Io, None, &"x".repeat(1_000));
    let ends = [
        (
            Decision::Dead { failure: subject.timeout() },
            "dead",
            "category=timeout code=504 message=no answer",
        ),
        (
            Decision::Fail { failure: subject.timeout() },
            "failed",
            "category=timeout code=504 message=no answer",
        ),
        (Decision::Cancel, "cancelled", ""),
    ];
    for (decision, what, why) in ends {
        let (holder, lease) = subject.leased("charge").await;
        subject.settle(holder, &decided(lease, decision)).await;
        let entry = only(subject, lease.job).await;
        assert_eq!((entry.what.as_str(), entry.who.as_str()), (what, "holder:suite"));
        let before = format!("state=leased holder={holder} fence={}", lease.fence.get());
        assert_eq!(said(&entry.before), before);
        assert_eq!(said(&entry.after), format!("state={what} {why}").trim_end());
    }
    let (holder, lease) = subject.leased("charge").await;
    let cancel = Settlement { failure: Some(failure()), ..decided(lease, Decision::Cancel) };
    subject.settle(holder, &cancel).await;
    let after = said(&only(subject, lease.job).await.after);
    let message = "x".repeat(Limits::AUDIT_MESSAGE_BYTES_MAX);
    assert_eq!(after, format!("state=cancelled category=io message={message}"));
}

/// Retries, successes and jobs given back at shutdown are not in the log.
pub async fn notes_nothing_of_what_goes_well(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(0), true)).await;
    let lease = Lease { fence: lease.fence.next(), ..lease };
    subject
        .settle(
            holder,
            &decided(lease, Decision::Snooze { after: seconds(0), because: DueReason::Snooze }),
        )
        .await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.give_back(holder, lease).await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.succeed(holder, lease).await;
    // A success that also reports a failure takes another code path.
    let (holder, told) = subject.leased("charge").await;
    let success = Settlement { failure: Some(subject.timeout()), ..Settlement::succeed(told) };
    subject.settle(holder, &success).await;
    for job in [lease.job, told.job] {
        assert_eq!(subject.get(job).await.state(), State::Succeeded);
        assert_eq!(log(subject, job).await, []);
    }
}

/// A wanted pause or cancel that was applied is in the log after the request, whichever holder applied it.
pub async fn notes_that_a_wish_was_obeyed(subject: &Subject) {
    let by = subject.holder().await;
    for way in ["settle", "give back", "sweep"] {
        let (holder, lease) = subject.leased("charge").await;
        subject.change(lease.job, ChangeVerb::Cancel).await;
        match way {
            "settle" => {
                subject.settle(holder, &subject.retry(lease, seconds(9), false)).await;
            }
            "give back" => subject.give_back(holder, lease).await,
            _ => assert_eq!(subject.take_over(by, holder).await.len(), 1),
        }
        assert_eq!(subject.get(lease.job).await.state(), State::Cancelled);
        let whats = whats(subject, lease.job).await;
        let expected: &[&str] = match way {
            "sweep" => &["cancel", "takeover", "cancelled"],
            _ => &["cancel", "cancelled"],
        };
        assert_eq!(whats, expected, "{way}");
        let last = log(subject, lease.job).await.pop().unwrap();
        assert!(said(&last.before).ends_with(" wanted=cancel"), "{way}: {last:?}");
        assert!(said(&last.after).starts_with("state=cancelled"), "{way}: {last:?}");
    }
}

/// A job that missed its deadline is in the log, with no particular holder as the actor.
pub async fn notes_a_missed_deadline(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let late = |subject: &Subject| {
        let mut new = subject.job("charge");
        new.deadline = Some(When::In(seconds(60)));
        new
    };
    let (holder, lease) = subject.lease_new(&late(subject)).await;
    let waits = subject.put(late(subject)).await;
    subject.clock.advance(seconds(61));
    assert_eq!(subject.store.deadlines(seconds(0), 10).await.unwrap().len(), 2);

    let why = Failure::of_deadline();
    let after = format!("state=dead category=deadline message={}", why.message());
    let held = format!("state=leased holder={holder} fence={}", lease.fence.get());
    for (job, before) in [(waits, "state=scheduled".to_owned()), (lease.job, held)] {
        let entry = only(subject, job).await;
        assert_eq!((entry.what.as_str(), entry.who.as_str()), ("dead", "engine"));
        assert_eq!((said(&entry.before), said(&entry.after)), (before, after.clone()));
    }
}

/// An end is in the log once, however often it is reported; a late settlement is not.
pub async fn notes_an_end_once(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.dead(lease)).await;
    let again = subject.settle(holder, &subject.dead(lease)).await;
    assert!(matches!(again, Settled::AlreadyApplied(_)), "{again:?}");
    let other = subject.holder().await;
    assert_eq!(subject.settle(other, &subject.dead(lease)).await, Settled::Lost);
    subject.sweep(other).await;
    assert_eq!(whats(subject, lease.job).await, ["dead"]);
}

/// Of a flush only the jobs that ended badly are in the log, in the order in which they were reported.
pub async fn notes_what_ended_badly_of_a_flush(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 30)).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 30).await;
    let settled: Vec<Settlement> = claimed
        .iter()
        .map(Leased::lease)
        .enumerate()
        .map(|(at, lease)| match at % 3 {
            0 => Settlement::succeed(lease),
            1 => subject.retry(lease, seconds(9), false),
            _ => subject.dead(lease),
        })
        .collect();
    subject.store.settle(holder, &settled).await.unwrap();

    let mut log = subject.store.audit(None, None, 100).await.unwrap();
    log.reverse();
    let noted: Vec<JobId> = log.iter().filter_map(|entry| entry.job).collect();
    let dead: Vec<JobId> = settled.iter().skip(2).step_by(3).map(|one| one.lease.job).collect();
    assert_eq!(noted, dead);
}

/// The log outlives a job without retention.
pub async fn notes_an_end_of_what_is_not_kept(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let fail = Decision::Fail { failure: subject.timeout() };
    subject.settle(holder, &Settlement { keep: KEEP_NOTHING, ..decided(lease, fail) }).await;
    let (other, wanted) = subject.leased("charge").await;
    subject.change(wanted.job, ChangeVerb::Cancel).await;
    subject.store.leave(other).await.unwrap();
    subject.store.sweep(&Sweep::new(holder, 10, KEEP_NOTHING)).await.unwrap();

    for job in [lease.job, wanted.job] {
        assert_eq!(subject.store.get(job).await.unwrap(), None);
    }
    assert_eq!(whats(subject, lease.job).await, ["failed"]);
    assert_eq!(whats(subject, wanted.job).await, ["cancel", "takeover", "cancelled"]);
    subject.balance().await;
}

/// A takeover from a holder that was deleted is in the log.
pub async fn takes_entries_of_unknown_actors(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let mut new = subject.job("charge");
    // Not overdue for a long time: only the death of its holder can free it.
    new.attempt_timeout = Some(Limits::DEAD_HOLDERS_KEPT * 10);
    let (gone, lease) = subject.lease_new(&new).await;
    subject.store.leave(gone).await.unwrap();
    subject.clock.advance(Limits::DEAD_HOLDERS_KEPT + seconds(1));
    assert_eq!(subject.prune_all().await.holders, 1);
    let by = subject.holder().await;
    subject.store.sweep(&Sweep::new(by, 10, Retain::default())).await.unwrap();
    let entry = only(subject, lease.job).await;
    assert_eq!(entry.what, "takeover");
    // A store that numbers its holders has forgotten which one it was.
    let before = said(&entry.before);
    let known = [format!("holder={gone}"), "holder=none".to_owned()];
    assert!(known.iter().any(|holder| before.contains(holder)), "{before}");
}
