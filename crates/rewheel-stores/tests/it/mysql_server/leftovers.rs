//! Tests that ended jobs leave nothing behind.

use super::support::open;
use mysql_async::prelude::Queryable;
use rewheel_core::store::{Change, ChangeVerb, Reserve, Settlement};
use rewheel_core::{Actor, GroupKey, HolderId, JobId, Key, NewJob, Retain, Tenant, When};
use rewheel_testkit::{Database, Subject, seconds};
use std::collections::BTreeMap;

/// Tables whose rows belong to no job: names, settings and logs with a retention of their own.
const KEPT: [&str; 6] = [
    "rewheel_audit",
    "rewheel_ledger",
    "rewheel_holders",
    "rewheel_renewals",
    "rewheel_lanes",
    "rewheel_steps",
];

const NOTHING: Retain = Retain { job: seconds(0), key: seconds(0) };

/// Returns how many rows each table has.
async fn rows(database: &Database) -> BTreeMap<String, u64> {
    let mut connection = database.connect().await;
    let tables: Vec<String> = connection.query("SHOW TABLES").await.expect("tables");
    let mut rows = BTreeMap::new();
    for table in tables.into_iter().filter(|table| !KEPT.contains(&table.as_str())) {
        let count = format!("SELECT COUNT(*) FROM {table}");
        let count: Option<u64> = connection.query_first(count).await.expect("a number");
        rows.insert(table, count.expect("a row"));
    }
    rows
}

fn job(subject: &Subject) -> NewJob {
    NewJob {
        tenant: Some(Tenant::parse("acme").expect("a name")),
        key: Some(Key::parse("order-17").expect("a key")),
        group_key: Some(GroupKey::parse("customer-3").expect("a key")),
        deadline: Some(When::In(seconds(3_600))),
        parent: Some(subject.id()),
        ..subject.job("charge")
    }
}

/// Reserves room for a job and releases it.
async fn reserve(subject: &Subject, holder: HolderId) {
    let tenant = Tenant::parse("acme").expect("a name");
    for needed in [1, 0] {
        let (tenant, jobs_max) = (tenant.clone(), 9);
        let reserve = Reserve { holder, tenant, jobs_max, on_the_way: 0, needed, holders: 1 };
        subject.store.reserve(&reserve).await.expect("an answer");
    }
}

#[tokio::test]
async fn a_job_without_retention_leaves_nothing_behind() {
    let database = Database::fresh();
    let subject = open(&database).await;
    subject.kinds(&["charge"]).await;
    let before = rows(&database).await;
    let holder = subject.holder().await;
    for ending in ["success", "dead", "cancelled"] {
        reserve(&subject, holder).await;
        let new = job(&subject);
        subject.insert(std::slice::from_ref(&new)).await;
        let leased = subject.claim_lane(holder, new.lane()).await;
        let lease = leased.first().expect("it was claimed").lease();
        // An operator requests a pause and withdraws it.
        subject.change(new.id, ChangeVerb::Pause).await;
        subject.change(new.id, ChangeVerb::Resume).await;
        match ending {
            "success" => {
                let settlement = Settlement { keep: NOTHING, ..Settlement::succeed(lease) };
                subject.settle(holder, &settlement).await;
            }
            "dead" => {
                subject.settle(holder, &subject.dead(lease)).await;
                cancel(&subject, new.id).await;
            }
            _ => {
                cancel(&subject, new.id).await;
                let settlement = subject.retry(lease, seconds(1), false);
                subject.settle(holder, &Settlement { keep: NOTHING, ..settlement }).await;
            }
        }
    }
    subject.clock.advance(seconds(2 * 24 * 3_600));
    subject.prune_all().await;
    assert_eq!(rows(&database).await, before);
    subject.balance().await;
}

async fn cancel(subject: &Subject, job: JobId) {
    let change = [Change::new(job, ChangeVerb::Cancel)];
    subject.store.change(&change, &Actor::new("test"), NOTHING).await.expect("an answer");
}

/// The row of a line is kept for a while after its last job, so that its turns grow even if the clock of the server is set back.
#[tokio::test]
async fn a_line_that_is_used_again_keeps_its_turn() {
    let database = Database::fresh();
    let subject = open(&database).await;
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let mut turns = Vec::new();
    for _ in 0..3 {
        let new = NewJob { key: None, ..job(&subject) };
        subject.insert(std::slice::from_ref(&new)).await;
        subject.prune_all().await;
        let leased = subject.claim_lane(holder, new.lane()).await;
        let leased = leased.first().expect("it was claimed");
        turns.push(leased.job.group.as_ref().expect("a group").turn);
        let settlement = Settlement { keep: NOTHING, ..Settlement::succeed(leased.lease()) };
        subject.settle(holder, &settlement).await;
        subject.prune_all().await;
    }
    assert!(turns.is_sorted_by(|one, next| one < next), "{turns:?}");
}
