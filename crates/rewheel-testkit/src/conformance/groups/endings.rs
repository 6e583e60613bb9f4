//! Tests every way in which a job of a group ends or comes back.

use super::{check_blocked, check_lines, claim, claim_one, grouped, line};
use crate::subject::GRACE;
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Insert, Inserted, Refusal, Settlement, StoreError};
use rewheel_core::{
    Decision, Format, GroupKey, HolderId, NewHolder, NewJob, Retain, Role, State, Timestamp, When,
};
use std::time::Duration;

/// Whatever a settle decides, the next job of the group runs, with and without retention.
pub async fn go_on_after_every_decision(subject: &Subject) {
    let failure = subject.timeout();
    let kept = Retain::default();
    let dropped = Retain { job: Duration::ZERO, key: Duration::ZERO };
    for keep in [kept, dropped] {
        for decision in [
            Decision::Succeed,
            Decision::Fail { failure: failure.clone() },
            Decision::Dead { failure: failure.clone() },
            Decision::Cancel,
        ] {
            let jobs = line(subject, 2).await;
            let holder = subject.holder().await;
            let lease = claim_one(subject, holder, jobs[0]).await;
            let settlement = Settlement { decision, keep, ..Settlement::succeed(lease) };
            subject.settle(holder, &settlement).await;
            let lease = claim_one(subject, holder, jobs[1]).await;
            subject.succeed(holder, lease).await;
            check_lines(subject).await;
        }
    }
    subject.balance().await;
}

/// A batch that ends the heads of many groups releases the next job of each.
pub async fn of_a_whole_batch_go_on(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let jobs: Vec<NewJob> =
        (0..60).map(|nth| grouped(subject, &format!("customer-{}", nth % 20))).collect();
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    for _ in 0..3 {
        let claimed = claim(subject, holder).await;
        assert_eq!(claimed.len(), 20);
        let settlements: Vec<Settlement> =
            claimed.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
        subject.store.settle(holder, &settlements).await.unwrap();
        check_lines(subject).await;
    }
    assert_eq!(claim(subject, holder).await, []);
    subject.balance().await;
}

/// A settle that is sent again releases no second job.
pub async fn go_on_once_after_a_repeated_settle(subject: &Subject) {
    let jobs = line(subject, 3).await;
    let holder = subject.holder().await;
    let lease = claim_one(subject, holder, jobs[0]).await;
    subject.succeed(holder, lease).await;
    subject.succeed(holder, lease).await;
    check_blocked(subject, &jobs, &jobs[2..]).await;
}

/// A retry, a snooze, a give-back and a takeover keep the first job first.
pub async fn keep_their_head_while_it_lives(subject: &Subject) {
    let jobs = line(subject, 2).await;
    let holder = subject.holder().await;
    let lease = claim_one(subject, holder, jobs[0]).await;
    subject.settle(holder, &subject.retry(lease, seconds(10), false)).await;
    assert_eq!(claim(subject, holder).await, [], "a retry that waits holds the line");
    subject.clock.advance(seconds(11));
    let lease = claim_one(subject, holder, jobs[0]).await;
    subject.settle(holder, &subject.retry(lease, seconds(1), true)).await;
    assert_eq!(claim(subject, holder).await, [], "a sticky retry holds the line");
    let by = subject.heir_of(holder).await;
    subject.clock.advance(seconds(2));
    let lease = claim_one(subject, by, jobs[0]).await;
    subject.give_back(by, lease).await;
    claim_one(subject, by, jobs[0]).await;
    check_blocked(subject, &jobs, &jobs[1..]).await;
}

/// A job that takes its holders with it becomes a dead letter, and the next one runs.
pub async fn go_on_after_takeovers(subject: &Subject) {
    let jobs = line(subject, 2).await;
    for _ in 0..3 {
        let holder = subject.holder().await;
        let lease = claim_one(subject, holder, jobs[0]).await;
        subject.start(holder, lease).await;
        subject.heir_of(holder).await;
    }
    assert_eq!(subject.get(jobs[0]).await.state(), State::Dead);
    let holder = subject.holder().await;
    claim_one(subject, holder, jobs[1]).await;
}

/// A deadline ends the first job of a group, or one that waits.
pub async fn go_on_after_a_deadline(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let deadline = Some(When::In(seconds(60)));
    let first = subject.put(NewJob { deadline, ..grouped(subject, "customer-17") }).await;
    let second = subject.put(NewJob { deadline, ..grouped(subject, "customer-17") }).await;
    let third = subject.put(grouped(subject, "customer-17")).await;
    subject.clock.advance(seconds(61));
    let events = subject.store.deadlines(GRACE, 10).await.unwrap();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.from == State::Scheduled), "{events:?}");
    for job in [first, second] {
        let dead = subject.get(job).await;
        assert_eq!((dead.state(), dead.is_blocked()), (State::Dead, false));
    }
    let holder = subject.holder().await;
    let lease = claim_one(subject, holder, third).await;
    subject.succeed(holder, lease).await;
    check_lines(subject).await;
}

/// A cancellation that the holder applies releases the next job.
pub async fn go_on_after_a_wanted_cancel(subject: &Subject) {
    let jobs = line(subject, 3).await;
    let holder = subject.holder().await;
    let lease = claim_one(subject, holder, jobs[0]).await;
    subject.change(jobs[0], ChangeVerb::Cancel).await;
    subject.give_back(holder, lease).await;
    claim_one(subject, holder, jobs[1]).await;
    subject.change(jobs[1], ChangeVerb::Cancel).await;
    let by = subject.heir_of(holder).await;
    assert_eq!(subject.get(jobs[1]).await.state(), State::Cancelled);
    claim_one(subject, by, jobs[2]).await;
}

/// A follow-up joins the end of its group's line, and a refused one is a dead letter of the group.
pub async fn take_follow_ups(subject: &Subject) {
    subject.kinds(&["mail", "charge"]).await;
    let group_key = Some(GroupKey::parse("customer-17").unwrap());
    let parent = NewJob { group_key, ..subject.job("charge") };
    subject.insert(std::slice::from_ref(&parent)).await;
    let before = subject.put(grouped(subject, "customer-17")).await;
    let holder = subject.holder().await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    let mails = [grouped(subject, "customer-17"), grouped(subject, "customer-18")];
    let deadline = Some(When::At(Timestamp::from_millis(1)));
    let late = NewJob { deadline, ..grouped(subject, "customer-17") };
    let follow_ups = vec![mails[0].clone(), late.clone(), mails[1].clone()];
    subject.settle(holder, &Settlement { follow_ups, ..Settlement::succeed(lease) }).await;
    assert_eq!(subject.get(late.id).await.state(), State::Dead);
    check_blocked(subject, &[before, mails[0].id, mails[1].id], &[mails[0].id]).await;
    let lease = {
        let claimed = claim(subject, holder).await;
        assert_eq!(claimed.len(), 2);
        claimed.iter().find(|leased| leased.job.id == before).unwrap().lease()
    };
    subject.succeed(holder, lease).await;
    claim_one(subject, holder, mails[0].id).await;
}

/// A release that knows no groups would run them without order: it must stop first.
pub async fn wait_for_the_last_old_holder(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let id = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &subject.random);
    let (role, name, format) = (Role::Engine, "old-1".to_owned(), Format::FOLLOW_UPS);
    let old = NewHolder { id, name, role, lease_ttl: seconds(15), format };
    subject.store.join(&old).await.unwrap();
    let child = NewJob { parent: Some(subject.id()), ..subject.job("mail") };
    let jobs = [grouped(subject, "customer-17"), child];
    let answers = subject.answers(&Insert::new(&jobs)).await;
    let refusal = Refusal::HolderTooOld { holder: "old-1".to_owned() };
    assert_eq!(answers[0], Inserted::Refused(refusal));
    assert!(matches!(answers[1], Inserted::Created { .. }), "{answers:?}");
    subject.store.leave(id).await.unwrap();
    subject.insert(&jobs[..1]).await;
}

fn old_holder(subject: &Subject, format: Format) -> NewHolder {
    let id = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &subject.random);
    NewHolder { id, name: "old-1".to_owned(), role: Role::Engine, lease_ttl: seconds(15), format }
}

/// A follow-up that is refused for an old holder becomes a dead letter without its group: that holder would not mark it in the line.
pub async fn lose_it_if_an_old_holder_lives(subject: &Subject) {
    subject.kinds(&["mail", "charge"]).await;
    let (holder, lease) = subject.leased("charge").await;
    subject.store.join(&old_holder(subject, Format::SCHEDULES)).await.unwrap();
    let mail = grouped(subject, "customer-17");
    let follow_ups = vec![mail.clone()];
    subject.settle(holder, &Settlement { follow_ups, ..Settlement::succeed(lease) }).await;
    let letter = subject.get(mail.id).await;
    assert_eq!((letter.state(), letter.group), (State::Dead, None));
    let message = letter.failure.expect("it says why").message().to_owned();
    assert!(message.contains("old-1") && message.contains("customer-17"), "{message}");
}

/// After the first job of a group no holder of a release without groups can register. It may have slept while the job was stored.
pub async fn keep_old_holders_out(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let join = async |format| {
        let holder = old_holder(subject, format);
        subject.store.join(&holder).await.map(|_| holder.id)
    };
    let old = join(Format::SCHEDULES).await.unwrap();
    let jobs = [grouped(subject, "customer-17")];
    let answers = subject.answers(&Insert::new(&jobs)).await;
    assert!(matches!(answers[0], Inserted::Refused(_)), "{answers:?}");
    let other = join(Format::FIRST).await.expect("nothing is stored that it does not know");
    for id in [old, other] {
        subject.store.leave(id).await.unwrap();
    }
    subject.insert(&jobs).await;
    for format in [Format::FIRST, Format::SCHEDULES] {
        let refused = join(format).await;
        assert!(matches!(refused, Err(StoreError::Rejected(_))), "{refused:?}");
    }
    join(Format::CURRENT).await.unwrap();
}
