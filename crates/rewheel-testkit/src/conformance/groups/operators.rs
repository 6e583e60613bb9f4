//! Tests what operators do to jobs of groups.

use super::{check_blocked, check_lines, claim, claim_one, grouped, line, turn};
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Changed, Edit, Filter, PageRequest, Reserve};
use rewheel_core::{
    Actor, GroupKey, JobId, KindEdit, KindEditVerb, KindEdited, KindName, NewJob, NewKind, OnDead,
    Priority, State, Tenant, When,
};

async fn on_dead(subject: &Subject, on_dead: OnDead) {
    let name = KindName::parse("mail").unwrap();
    let kind = NewKind { name, settings: "{}".to_owned(), takeovers_max: 3, on_dead };
    subject.store.put_kinds(&[kind], &Actor::new("suite")).await.unwrap();
    assert_eq!(subject.kind("mail").await.on_dead, on_dead);
}

async fn die(subject: &Subject, job: JobId) {
    let holder = subject.holder().await;
    let lease = claim_one(subject, holder, job).await;
    subject.settle(holder, &subject.dead(lease)).await;
}

const REDRIVE: ChangeVerb = ChangeVerb::Redrive { deadline: None };

/// A paused job holds up those behind it, and is first when it is resumed.
pub async fn wait_for_a_paused_head(subject: &Subject) {
    let jobs = line(subject, 2).await;
    let holder = subject.holder().await;
    subject.apply(jobs[0], ChangeVerb::Pause).await;
    assert_eq!(claim(subject, holder).await, []);
    check_blocked(subject, &jobs, &jobs[1..]).await;
    subject.apply(jobs[0], ChangeVerb::Resume).await;
    let lease = claim_one(subject, holder, jobs[0]).await;
    subject.change(jobs[0], ChangeVerb::Pause).await;
    subject.give_back(holder, lease).await;
    assert_eq!(claim(subject, holder).await, [], "the holder applied the pause");
    subject.apply(jobs[0], ChangeVerb::Cancel).await;
    claim_one(subject, holder, jobs[1]).await;
}

/// A job that is paused while it waits keeps its place, and holds the line when its turn comes.
pub async fn wait_for_a_member_that_was_paused(subject: &Subject) {
    let jobs = line(subject, 3).await;
    let holder = subject.holder().await;
    subject.apply(jobs[1], ChangeVerb::Pause).await;
    assert_eq!(subject.get(jobs[1]).await.state(), State::Paused);
    let lease = claim_one(subject, holder, jobs[0]).await;
    subject.apply(jobs[1], ChangeVerb::Resume).await;
    check_blocked(subject, &jobs, &jobs[1..]).await;
    subject.apply(jobs[1], ChangeVerb::Pause).await;
    subject.succeed(holder, lease).await;
    assert_eq!(claim(subject, holder).await, [], "a paused job holds the line");
    check_lines(subject).await;
    subject.apply(jobs[1], ChangeVerb::Resume).await;
    let lease = claim_one(subject, holder, jobs[1]).await;
    subject.succeed(holder, lease).await;
    claim_one(subject, holder, jobs[2]).await;
}

/// No change of a job that waits makes it overtake.
pub async fn cannot_be_overtaken_by_a_change(subject: &Subject) {
    let jobs = line(subject, 3).await;
    let holder = subject.holder().await;
    subject.change(jobs[1], ChangeVerb::Retry).await;
    let edit = Edit {
        priority: Some(Priority::new(9).unwrap()),
        due: Some(When::In(seconds(0))),
        payload: Some(b"[]".to_vec()),
        ..Edit::default()
    };
    subject.apply(jobs[2], ChangeVerb::Edit(Box::new(edit))).await;
    check_blocked(subject, &jobs, &jobs[1..]).await;
    let lease = claim_one(subject, holder, jobs[0]).await;
    subject.succeed(holder, lease).await;
    let lease = claim_one(subject, holder, jobs[1]).await;
    subject.succeed(holder, lease).await;
    let last = subject.get(jobs[2]).await;
    let leased = subject.claim_lane(holder, last.lane).await;
    assert_eq!(leased.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [jobs[2]]);
    assert_eq!(leased[0].job.payload.as_deref(), Some(&b"[]"[..]));
}

/// Cancelling one that waits takes it out of the line; cancelling the first lets the next one run.
pub async fn go_on_after_a_cancel(subject: &Subject) {
    let jobs = line(subject, 3).await;
    let holder = subject.holder().await;
    subject.apply(jobs[1], ChangeVerb::Cancel).await;
    check_blocked(subject, &jobs, &jobs[2..]).await;
    subject.apply(jobs[0], ChangeVerb::Cancel).await;
    claim_one(subject, holder, jobs[2]).await;
    subject.balance().await;
}

/// By default a dead letter lets the next job run. Redriven, it has the place that it had.
pub async fn go_on_after_a_dead_letter(subject: &Subject) {
    let jobs = line(subject, 4).await;
    die(subject, jobs[0]).await;
    let holder = subject.holder().await;
    let lease = claim_one(subject, holder, jobs[1]).await;
    let first = turn(subject, jobs[0]).await;
    subject.apply(jobs[0], REDRIVE).await;
    check_blocked(subject, &jobs, &[jobs[0], jobs[2], jobs[3]]).await;
    subject.succeed(holder, lease).await;
    let lease = claim_one(subject, holder, jobs[0]).await;
    assert!(turn(subject, jobs[0]).await > first, "a redrive is another turn");
    subject.succeed(holder, lease).await;
    die(subject, jobs[2]).await;
    let lease = claim_one(subject, holder, jobs[3]).await;
    subject.succeed(holder, lease).await;
    // The line has only the dead letter.
    check_lines(subject).await;
    let Changed::Applied { version, .. } = subject.change(jobs[2], REDRIVE).await else {
        panic!("it is redriven")
    };
    assert_eq!(subject.get(jobs[2]).await.version, version);
    claim_one(subject, holder, jobs[2]).await;
    check_lines(subject).await;
}

/// A kind can say that a dead letter holds up its group until it is redriven or cancelled.
pub async fn wait_for_a_dead_letter_if_the_kind_says_so(subject: &Subject) {
    let jobs = line(subject, 3).await;
    on_dead(subject, OnDead::Block).await;
    let holder = subject.holder().await;
    die(subject, jobs[0]).await;
    assert_eq!(claim(subject, holder).await, []);
    check_blocked(subject, &jobs, &jobs[1..]).await;
    assert_eq!(subject.store.release_groups(100).await.unwrap().released, 0);
    let edit = Edit { attempts_max: Some(9), ..Edit::default() };
    subject.apply(jobs[0], ChangeVerb::Edit(Box::new(edit))).await;
    subject.apply(jobs[0], REDRIVE).await;
    die(subject, jobs[0]).await;
    assert_eq!(claim(subject, holder).await, []);
    subject.apply(jobs[0], ChangeVerb::Cancel).await;
    let lease = claim_one(subject, holder, jobs[1]).await;
    subject.succeed(holder, lease).await;
    claim_one(subject, holder, jobs[2]).await;
    check_lines(subject).await;
}

/// The setting applies to the dead letters that there are.
pub async fn follow_a_changed_setting(subject: &Subject) {
    let jobs = line(subject, 3).await;
    on_dead(subject, OnDead::Block).await;
    die(subject, jobs[0]).await;
    on_dead(subject, OnDead::Continue).await;
    assert_eq!(subject.store.release_groups(100).await.unwrap().released, 1);
    let holder = subject.holder().await;
    let lease = claim_one(subject, holder, jobs[1]).await;
    on_dead(subject, OnDead::Block).await;
    subject.succeed(holder, lease).await;
    assert_eq!(claim(subject, holder).await, [], "the dead letter is first again");
    check_lines(subject).await;
}

/// Jobs that wait for their group count as live jobs, and keep their kind from being deleted.
pub async fn count_while_they_wait(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let tenant = Some(Tenant::parse("acme").unwrap());
    for _ in 0..3 {
        subject.put(NewJob { tenant: tenant.clone(), ..grouped(subject, "customer-17") }).await;
    }
    let tallies = subject.store.tally().await.unwrap();
    let counted: Vec<u64> = tallies.iter().map(|tally| tally.jobs[&State::Scheduled]).collect();
    assert_eq!(counted, [3]);
    let holder = subject.holder().await;
    let (tenant, jobs_max, needed) = (tenant.clone().unwrap(), 5, 10);
    let reserve = Reserve { holder, tenant, jobs_max, on_the_way: 0, needed, holders: 1 };
    assert_eq!(subject.store.reserve(&reserve).await.unwrap(), 2);
    let listed = subject.store.list(&Filter::default(), &PageRequest::first(10)).await.unwrap();
    let first = listed.items.iter().find(|job| !job.is_blocked()).unwrap().id;
    // Only jobs that wait are left.
    subject.store.leave(holder).await.unwrap();
    subject.apply(first, ChangeVerb::Pause).await;
    let edit = KindEdit::new(KindName::parse("mail").unwrap(), KindEditVerb::Delete);
    let deleted = subject.store.edit_kind(&edit, &Actor::new("suite")).await.unwrap();
    assert!(matches!(deleted, KindEdited::HasJobs(_)), "{deleted:?}");
}

/// Jobs are listed by their group key, in every state.
pub async fn are_listed_by_their_key(subject: &Subject) {
    let jobs = line(subject, 5).await;
    subject.put(grouped(subject, "customer-18")).await;
    subject.put(subject.job("mail")).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["mail"], 100).await;
    let lease = claimed.iter().find(|leased| leased.job.id == jobs[0]).unwrap().lease();
    subject.settle(holder, &subject.dead(lease)).await;
    let lease = claim_one(subject, holder, jobs[1]).await;
    subject.succeed(holder, lease).await;
    subject.apply(jobs[3], ChangeVerb::Pause).await;
    let group_key = Some(GroupKey::parse("customer-17").unwrap());
    let filter = Filter { group_key, ..Filter::default() };
    let mut expected = jobs.clone();
    expected.sort_unstable_by(|one, other| other.cmp(one));
    let page = subject.store.list(&filter, &PageRequest::first(3)).await.unwrap();
    let mut found: Vec<JobId> = page.items.iter().map(|job| job.id).collect();
    let rest = PageRequest::behind(page.next.expect("there are more"), 10);
    found.extend(subject.store.list(&filter, &rest).await.unwrap().items.iter().map(|job| job.id));
    assert_eq!(found, expected);
    let dead = Filter { states: vec![State::Dead], ..filter };
    let page = subject.store.list(&dead, &PageRequest::first(10)).await.unwrap();
    assert_eq!(page.items.iter().map(|job| job.id).collect::<Vec<_>>(), [jobs[0]]);
}
