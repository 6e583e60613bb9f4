//! Tests the list of lanes with scheduled jobs.

use crate::{Subject, lane, millis, seconds};
use rewheel_core::store::{ChangeVerb, Edit, LaneHead, Settlement};
use rewheel_core::{
    Decision, KindName, Lane, NewJob, Priority, Shard, ShardKey, Tenant, Timestamp, When,
};
use std::slice::from_ref;
use std::time::Duration;

fn of(kind: &str, tenant: Option<&str>, priority: u8) -> Lane {
    on(kind, tenant, priority, 0)
}

fn on(kind: &str, tenant: Option<&str>, priority: u8, shard: u8) -> Lane {
    Lane {
        kind: KindName::parse(kind).unwrap(),
        tenant: tenant.map(|name| Tenant::parse(name).unwrap()),
        priority: Priority::new(priority).unwrap(),
        shard: Shard::new(shard),
    }
}

fn job_in(subject: &Subject, lane: &Lane) -> NewJob {
    NewJob {
        tenant: lane.tenant.clone(),
        priority: lane.priority,
        shard: Some(lane.shard),
        ..subject.job(lane.kind.as_str())
    }
}

fn names(heads: &[LaneHead]) -> Vec<Lane> {
    heads.iter().map(|head| head.lane.clone()).collect()
}

/// Stores jobs in lanes of two kinds, last lane first, and returns the lanes in order. Ignoring case or accents would mix up the tenants.
async fn fill(subject: &Subject) -> Vec<Lane> {
    subject.kinds(&["charge", "refund"]).await;
    let mut lanes = vec![
        of("charge", None, 0),
        of("charge", None, 5),
        of("charge", None, 9),
        of("charge", Some("Zeta"), 5),
        of("charge", Some("acme"), 4),
        of("charge", Some("acme"), 5),
        on("charge", Some("acme"), 5, 1),
        on("charge", Some("acme"), 5, 64),
        on("charge", Some("acme"), 5, 255),
        of("charge", Some("acme "), 5),
        of("charge", Some("zeta"), 5),
        of("charge", Some("äcme"), 5),
        of("refund", None, 5),
        of("refund", Some("acme"), 5),
    ];
    for lane in lanes.iter().rev() {
        subject.insert(&[job_in(subject, lane), job_in(subject, lane)]).await;
    }
    lanes.sort();
    lanes
}

/// Lanes are sorted by kind, tenant and priority, each once, however many jobs it has.
pub async fn come_in_their_order(subject: &Subject) {
    let lanes = fill(subject).await;
    assert_eq!(names(&subject.lanes(&["refund", "charge"]).await), lanes);
}

/// Continuing after the last lane of a page visits every lane once.
pub async fn are_read_page_by_page(subject: &Subject) {
    let lanes = fill(subject).await;
    let kinds = ["charge", "refund"].map(|kind| KindName::parse(kind).unwrap());
    let (mut seen, mut after) = (Vec::new(), None);
    while seen.len() < 2 * lanes.len() {
        let page = subject.store.lanes(&kinds, after.as_ref(), 3).await.unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        seen.extend(names(&page));
        after = seen.last().cloned();
    }
    assert_eq!(seen, lanes);
}

/// A page may begin after a lane that has no jobs any more, or never had any.
pub async fn are_read_on_from_behind_an_empty_lane(subject: &Subject) {
    let lanes = fill(subject).await;
    let kinds = ["charge", "refund"].map(|kind| KindName::parse(kind).unwrap());
    for gap in [of("charge", Some("acme"), 2), of("charge", Some("x"), 9), of("a", None, 0)] {
        let page = subject.store.lanes(&kinds, Some(&gap), 100).await.unwrap();
        let behind: Vec<Lane> = lanes.iter().filter(|lane| **lane > gap).cloned().collect();
        assert_eq!(names(&page), behind, "behind {gap:?}");
    }
}

/// A job stays in its shard: the one that it names, or that of its tenant and shard key.
pub async fn keep_their_shard(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let tenant = Tenant::parse("acme").ok();
    let shard_key = ShardKey::parse("order 17").ok();
    let by_name = NewJob { tenant, shard_key, ..subject.job("charge") };
    let named = NewJob { shard: Some(Shard::new(200)), ..by_name.clone() };
    for job in [by_name, NewJob { id: subject.job("charge").id, ..named }] {
        let lane = job.lane();
        assert_ne!(lane.shard, Shard::NONE);
        subject.put(job.clone()).await;
        assert_eq!(names(&subject.lanes(&["charge"]).await), from_ref(&lane));
        let holder = subject.holder().await;
        let claimed = subject.claim_lane(holder, lane.clone()).await;
        assert_eq!(claimed[0].job.lane, lane);
        subject.settle(holder, &subject.retry(claimed[0].lease(), Duration::ZERO, false)).await;
        assert_eq!(names(&subject.lanes(&["charge"]).await), from_ref(&lane), "it is tried again");
        let claimed = subject.claim_lane(holder, lane.clone()).await;
        subject.settle(holder, &subject.dead(claimed[0].lease())).await;
        assert_eq!(subject.get(job.id).await.lane, lane, "it is dead");
        subject.change(job.id, ChangeVerb::Redrive { deadline: None }).await;
        let priority = Some(Priority::MAX);
        subject
            .change(job.id, ChangeVerb::Edit(Box::new(Edit { priority, ..Edit::default() })))
            .await;
        let urgent = Lane { priority: Priority::MAX, ..lane };
        assert_eq!(names(&subject.lanes(&["charge"]).await), from_ref(&urgent));
        let claimed = subject.claim_lane(holder, urgent).await;
        subject.succeed(holder, claimed[0].lease()).await;
    }
}

/// Jobs of one batch that differ only in their shard are in different lanes.
pub async fn tell_the_shards_of_a_batch_apart(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let keyed =
        |key: &str| NewJob { shard_key: ShardKey::parse(key).ok(), ..subject.job("charge") };
    let shard = Some(Shard::new(200));
    let jobs = [keyed("a"), keyed("b"), NewJob { shard, ..keyed("b") }, keyed("b"), keyed("a")];
    subject.insert(&jobs).await;
    for job in &jobs {
        assert_eq!(subject.get(job.id).await.lane, job.lane());
    }
    let mut lanes: Vec<Lane> = jobs[..3].iter().map(NewJob::lane).collect();
    lanes.sort();
    assert_eq!(names(&subject.lanes(&["charge"]).await), lanes);
}

/// Only the requested kinds are read.
pub async fn are_those_of_the_kinds_asked_for(subject: &Subject) {
    subject.kinds(&["a", "b", "c"]).await;
    subject.insert(&[subject.job("a"), subject.job("b"), subject.job("c")]).await;
    assert_eq!(names(&subject.lanes(&["c", "a"]).await), [lane("a"), lane("c")]);
    assert_eq!(names(&subject.lanes(&["unknown-kind", "b"]).await), [lane("b")]);
    assert_eq!(subject.lanes(&[]).await, []);
}

/// Each lane has the due time of its first job, and the time until then.
pub async fn tell_the_earliest_due(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let before = subject.now().await;
    for after in [30, 10, 20] {
        let due = When::At(before.plus(seconds(after)));
        subject.put(NewJob { due, ..subject.job("charge") }).await;
    }
    let head = subject.lanes(&["charge"]).await.remove(0);
    assert_eq!(head.due, before.plus(seconds(10)));
    assert!((millis(1)..=seconds(10)).contains(&head.due_in), "{head:?}");
    subject.clock.advance(seconds(4));
    let head = subject.lanes(&["charge"]).await.remove(0);
    assert!((millis(1)..=seconds(6)).contains(&head.due_in), "{head:?}");

    let past = Timestamp::from_millis(before.as_millis() - 5_000);
    subject.put(NewJob { due: When::At(past), ..subject.job("charge") }).await;
    let heads = subject.lanes(&["charge"]).await;
    assert_eq!(heads, [LaneHead { lane: lane("charge"), due: past, due_in: Duration::ZERO }]);
}

/// When the first job of a lane is claimed, the next one is the earliest.
pub async fn move_on_when_the_first_is_claimed(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let due = subject.now().await.plus(seconds(60));
    subject.put(subject.job("charge")).await;
    subject.put(NewJob { due: When::At(due), ..subject.job("charge") }).await;
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["charge"], 10).await.len(), 1);
    assert_eq!(subject.lanes(&["charge"]).await[0].due, due);
}

/// A lane whose jobs are leased, paused, dead or finished is not listed.
pub async fn are_left_out_without_scheduled_jobs(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    assert_eq!(subject.lanes(&["charge"]).await, [], "it is leased");
    let pause = Settlement { decision: Decision::Pause, ..Settlement::succeed(lease) };
    subject.settle(holder, &pause).await;
    assert_eq!(subject.lanes(&["charge"]).await, [], "it is paused");
    subject.change(lease.job, ChangeVerb::Resume).await;
    assert_eq!(names(&subject.lanes(&["charge"]).await), [lane("charge")]);

    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    subject.settle(holder, &subject.dead(lease)).await;
    assert_eq!(subject.lanes(&["charge"]).await, [], "it is dead");
    subject.change(lease.job, ChangeVerb::Redrive { deadline: None }).await;
    assert_eq!(names(&subject.lanes(&["charge"]).await), [lane("charge")]);

    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    subject.succeed(holder, lease).await;
    assert_eq!(subject.lanes(&["charge"]).await, [], "it is finished");
}

/// A lane is listed again when its job comes back.
pub async fn are_there_again_when_a_job_comes_back(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(60), false)).await;
    let job = subject.get(lease.job).await;
    let heads = subject.lanes(&["charge"]).await;
    assert_eq!((heads.len(), heads[0].due), (1, job.due));
    assert!(heads[0].due_in > seconds(50), "{heads:?}");
}

/// Lanes that are asked for by name have the same times as in the list. Those without scheduled jobs are left out, known or not.
pub async fn are_read_by_name(subject: &Subject) {
    let lanes = fill(subject).await;
    let later = subject.now().await.plus(seconds(60));
    let quiet = of("refund", Some("later"), 5);
    let due = When::At(later);
    subject.insert(&[NewJob { due, ..job_in(subject, &quiet) }]).await;
    let all = subject.lanes(&["charge", "refund"]).await;
    let asked =
        [&lanes[11], &quiet, &lanes[0], &of("charge", Some("unknown"), 5), &lane("unknown")];
    let asked: Vec<Lane> = asked.into_iter().cloned().collect();
    let mut heads = subject.store.lane_heads(&asked).await.unwrap();
    heads.sort_by(|one, other| one.lane.cmp(&other.lane));
    let mut found = vec![lanes[0].clone(), lanes[11].clone(), quiet.clone()];
    found.sort();
    assert_eq!(names(&heads), found);
    for head in heads {
        let listed = all.iter().find(|one| one.lane == head.lane).unwrap();
        assert_eq!(head.due, listed.due);
        assert!(head.due_in <= seconds(60) && head.due_in.is_zero() != (head.lane == quiet));
    }
    let holder = subject.holder().await;
    assert_eq!(subject.claim_lane(holder, lanes[0].clone()).await.len(), 2);
    assert_eq!(subject.store.lane_heads(&lanes[..1]).await.unwrap(), [], "both are leased");
    assert_eq!(subject.store.lane_heads(&[]).await.unwrap(), []);
}
