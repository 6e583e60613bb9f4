//! Tests what is recorded of a job.

use crate::{Subject, seconds};
use rewheel::Category;
use rewheel_core::store::{AttemptRecord, AttemptTiming, Change, ChangeVerb, Edit, Settlement};
use rewheel_core::{
    Actor, AuditEntry, AuditFields, Decision, DueReason, Failure, JobId, KindChange, Lease, Limits,
    Priority, Retain, State, Version, When,
};
use std::time::Duration;

async fn attempts(subject: &Subject, job: JobId) -> Vec<AttemptRecord> {
    subject.store.attempts(job).await.unwrap()
}

async fn numbers(subject: &Subject, job: JobId) -> Vec<u32> {
    attempts(subject, job).await.iter().map(|record| record.attempt).collect()
}

/// A failed attempt is recorded with its holder, its time, the failure and the decision.
pub async fn remembers_a_failed_attempt(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let ran = AttemptTiming { started_ago: seconds(9), duration: seconds(7) };
    let failure = Failure::new(Category::Throttled, Some("429"), "slow down \u{e4} ' % \\");
    let retry = subject.retry(lease, seconds(60), false);
    let before = subject.now().await;
    subject.settle(holder, &Settlement { ran, failure: Some(failure.clone()), ..retry }).await;
    let after = subject.now().await;

    let records = attempts(subject, lease.job).await;
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!((record.attempt, record.fence, record.holder), (1, lease.fence, holder));
    assert_eq!((record.duration, record.failure()), (seconds(7), Some(&failure)));
    assert_eq!((record.decision.as_str(), record.delay), ("retry", Some(seconds(60))));
    let started = record.started.plus(seconds(9));
    assert!(before <= started && started <= after, "{started:?}");
}

/// Attempts are recorded in order, each under its own fence, with its decision.
pub async fn remembers_attempts_in_order(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(0), true)).await;
    let second = Lease { fence: lease.fence.next(), ..lease };
    subject.settle(holder, &subject.retry(second, seconds(0), false)).await;
    let third = subject.claim_only(holder, "charge").await.lease();
    subject.settle(holder, &subject.dead(third)).await;

    let records = attempts(subject, lease.job).await;
    let told: Vec<_> = records.iter().map(|r| (r.attempt, r.fence, r.decision.as_str())).collect();
    let fences = [lease.fence, second.fence, third.fence];
    assert_eq!(told, [(1, fences[0], "retry"), (2, fences[1], "retry"), (3, fences[2], "dead")]);
    assert_eq!(records[2].delay, None);
}

/// Attempts keep counting after a redrive, and none is lost.
pub async fn remembers_attempts_across_a_redrive(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    subject.apply(job, ChangeVerb::Redrive { deadline: None }).await;
    assert_eq!(numbers(subject, job).await, [1]);
    let holder = subject.holder().await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.settle(holder, &subject.dead(lease)).await;

    assert_eq!(numbers(subject, job).await, [1, 2]);
    let dead = subject.get(job).await;
    assert_eq!((dead.attempt, dead.attempts_before), (2, 1));
}

/// A takeover loses no attempt, and is not an attempt itself.
pub async fn remembers_attempts_across_a_takeover(subject: &Subject) {
    let by = subject.holder().await;
    let (silent, lease) = subject.leased("charge").await;
    subject.settle(silent, &subject.retry(lease, seconds(0), true)).await;
    subject.take_over(by, silent).await;
    assert_eq!(numbers(subject, lease.job).await, [1]);

    let next = subject.claim_only(by, "charge").await.lease();
    subject.settle(by, &subject.retry(next, seconds(60), false)).await;
    let holders: Vec<_> =
        attempts(subject, lease.job).await.iter().map(|r| (r.attempt, r.holder)).collect();
    assert_eq!(holders, [(1, silent), (2, by)]);
}

/// An uncounted attempt has the number of the next one.
pub async fn numbers_a_snooze_like_what_follows(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let decision = Decision::Snooze { after: Duration::ZERO, because: DueReason::Snooze };
    let snooze = Settlement { decision, ..subject.retry(lease, seconds(0), false) };
    subject.settle(holder, &snooze).await;
    let next = subject.claim_only(holder, "charge").await.lease();
    subject.settle(holder, &subject.retry(next, seconds(60), false)).await;

    let records = attempts(subject, lease.job).await;
    let told: Vec<_> = records.iter().map(|r| (r.attempt, r.decision.as_str())).collect();
    assert_eq!(told, [(1, "snooze"), (1, "retry")]);
    assert_eq!(subject.get(lease.job).await.attempt, 1);
}

/// The records of earlier failures stay with a job that succeeds, and the success is on record after them.
pub async fn keeps_the_history_of_a_job_that_succeeded(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    let next = subject.claim_only(holder, "charge").await.lease();
    subject.succeed(holder, next).await;
    assert_eq!(numbers(subject, lease.job).await, [1, 2]);
    assert_eq!(subject.get(lease.job).await.attempt, 2);
}

/// A very long history is listed from its end.
pub async fn tells_the_first_and_the_latest_of_a_long_history(subject: &Subject) {
    let (holder, mut lease) = subject.leased("charge").await;
    let count = Limits::ATTEMPTS_LISTED_MAX + 5;
    for _ in 0..count {
        subject.settle(holder, &subject.retry(lease, seconds(0), true)).await;
        lease.fence = lease.fence.next();
    }
    let told = numbers(subject, lease.job).await;
    let first = 1..=u32::try_from(Limits::ATTEMPTS_FIRST_KEPT).unwrap();
    let last = 16..=u32::try_from(count).unwrap();
    let expected: Vec<u32> = first.chain(last).collect();
    assert_eq!(told, expected);
}

fn fact<'a>(facts: &'a AuditFields, name: &str) -> Option<Option<&'a str>> {
    facts.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

async fn log(subject: &Subject, job: Option<JobId>) -> Vec<AuditEntry> {
    subject.store.audit(job, None, 100).await.unwrap()
}

/// An operator's change is in the log: actor, action, states before and after.
pub async fn logs_who_changed_what(subject: &Subject) {
    let job = subject.submit("charge").await;
    let steps = [
        (ChangeVerb::Pause, "pause", State::Scheduled, State::Paused),
        (ChangeVerb::Resume, "resume", State::Paused, State::Scheduled),
        (ChangeVerb::Retry, "retry", State::Scheduled, State::Scheduled),
        (ChangeVerb::Cancel, "cancel", State::Scheduled, State::Cancelled),
    ];
    for (what, name, from, to) in steps {
        let who = Actor::new(&format!("token:{name}"));
        let change = [Change::new(job, what)];
        subject.store.change(&change, &who, Retain::default()).await.unwrap();

        let entry = log(subject, Some(job)).await.remove(0);
        assert_eq!((&entry.who, entry.what.as_str(), entry.job), (&who, name, Some(job)));
        assert_eq!(entry.kind.unwrap().as_str(), "charge");
        assert_eq!(fact(&entry.before, "state"), Some(Some(from.as_str())));
        assert_eq!(fact(&entry.after, "state"), Some(Some(to.as_str())));
        assert!(entry.at <= subject.now().await);
    }
    assert_eq!(log(subject, Some(job)).await.len(), 4);
}

/// A redrive is in the log.
pub async fn logs_a_redrive(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    subject.apply(job, ChangeVerb::Redrive { deadline: None }).await;
    let entry = log(subject, Some(job)).await.remove(0);
    assert_eq!(entry.what, "redrive");
    assert_eq!(fact(&entry.before, "state"), Some(Some("dead")));
    assert_eq!(fact(&entry.after, "state"), Some(Some("scheduled")));
}

/// An edit is in the log with every named field, before and after.
pub async fn logs_what_an_edit_changed(subject: &Subject) {
    let job = subject.submit("charge").await;
    let edit = Edit {
        payload: Some(b"new \xff".to_vec()),
        priority: Some(Priority::MAX),
        due: Some(When::In(seconds(60))),
        deadline: Some(Some(When::In(seconds(120)))),
        attempts_max: Some(3),
    };
    subject.apply(job, ChangeVerb::Edit(Box::new(edit))).await;

    let entry = log(subject, Some(job)).await.remove(0);
    assert_eq!(entry.what, "edit");
    let both = |name| (fact(&entry.before, name), fact(&entry.after, name));
    assert_eq!(both("payload"), (Some(Some("{\"order\":17}")), Some(Some("new \u{fffd}"))));
    assert_eq!(both("priority"), (Some(Some("5")), Some(Some("9"))));
    assert_eq!(both("attempts_max"), (Some(None), Some(Some("3"))));
    assert!(fact(&entry.before, "due").unwrap() < fact(&entry.after, "due").unwrap());
    assert_eq!(fact(&entry.before, "deadline"), Some(None));
    assert!(fact(&entry.after, "deadline").unwrap().is_some());
}

/// Fields that an edit does not name are not in its entry.
pub async fn logs_only_what_an_edit_changed(subject: &Subject) {
    let job = subject.submit("charge").await;
    let edit = Edit { attempts_max: Some(3), ..Edit::default() };
    subject.apply(job, ChangeVerb::Edit(Box::new(edit))).await;
    let entry = log(subject, Some(job)).await.remove(0);
    let named: Vec<&str> = entry.after.iter().map(|(name, _)| name).collect();
    assert_eq!(named, ["attempts_max"]);
}

/// A wanted pause or cancel is in the log.
pub async fn logs_what_is_wanted_of_a_leased_job(subject: &Subject) {
    let (_, lease) = subject.leased("charge").await;
    subject.change(lease.job, ChangeVerb::Pause).await;
    subject.change(lease.job, ChangeVerb::Cancel).await;
    let entries = log(subject, Some(lease.job)).await;
    let whats: Vec<&str> = entries.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(whats, ["cancel", "pause"]);
}

/// A refused change is not in the log.
pub async fn logs_nothing_that_was_refused(subject: &Subject) {
    let job = subject.job_in("charge", State::Succeeded).await;
    let before = log(subject, None).await;
    subject.change(job, ChangeVerb::Pause).await;
    subject.change(subject.id(), ChangeVerb::Pause).await;
    subject.change_if(job, ChangeVerb::Cancel, Version::new(99)).await;
    subject.change_kind("unknown", KindChange::Pause).await;
    subject.change_kind("charge", KindChange::Unpark { generation: 99 }).await;
    assert_eq!(log(subject, None).await, before);
}

/// A change of a kind is in the log, under the kind and without a job.
pub async fn logs_what_was_done_to_a_kind(subject: &Subject) {
    let holder = subject.holder().await;
    subject.kinds(&["charge"]).await;
    subject.apply_kind("charge", KindChange::Pause).await;
    subject.apply_kind("charge", KindChange::Resume).await;
    subject.park("charge").await;
    subject.probe("charge", holder).await;
    subject.unpark("charge").await;

    let entries = log(subject, None).await;
    let whats: Vec<&str> = entries.iter().map(|entry| entry.what.as_str()).collect();
    let expected =
        ["unpark kind", "probe kind", "park kind", "resume kind", "pause kind", "put kind"];
    assert_eq!(whats, expected);
    for entry in entries {
        assert_eq!((entry.job, entry.kind.unwrap().as_str()), (None, "charge"));
    }
}

/// The log is listed from its end, page by page, without gaps or repetitions.
pub async fn pages_the_log_from_its_end(subject: &Subject) {
    let jobs = [subject.submit("charge").await, subject.submit("charge").await];
    for _ in 0..5 {
        for job in jobs {
            subject.apply(job, ChangeVerb::Pause).await;
            subject.apply(job, ChangeVerb::Resume).await;
        }
    }
    let all = log(subject, None).await;
    assert!(all.windows(2).all(|pair| pair[0].seq > pair[1].seq && pair[0].at >= pair[1].at));
    let of_one = log(subject, Some(jobs[0])).await;
    assert_eq!(of_one.len(), 10);
    assert!(of_one.iter().all(|entry| entry.job == Some(jobs[0]) && all.contains(entry)));

    for (job, expected) in [(None, &all), (Some(jobs[0]), &of_one)] {
        let (mut paged, mut before) = (Vec::new(), None);
        loop {
            let page = subject.store.audit(job, before, 3).await.unwrap();
            assert!(page.len() <= 3 && paged.len() <= expected.len(), "the log never ends");
            match page.last() {
                None => break,
                Some(last) => before = Some(last.seq),
            }
            paged.extend(page);
        }
        assert_eq!(&paged, expected);
    }
}
