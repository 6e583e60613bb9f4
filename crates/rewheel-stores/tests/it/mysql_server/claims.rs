//! Tests the rows of claims: they count the jobs that are still leased, and say when the first of them is overdue.

use super::node::{Node, begin, user};
use super::support::{number, open};
use mysql_async::prelude::Queryable;
use rewheel_core::store::{Extension, LeaseStore, Leased, Settled, WorkStore};
use rewheel_core::{
    Format, HolderId, JobId, Lease, NewHolder, Role, State, Timestamp, WorkerOwner,
};
use rewheel_testkit::{Database, Subject, seconds};

/// More lanes, and so more claims, than a sweep reads at once.
const LANES: usize = 60;

/// An SQL literal with the id of a job.
fn literal(job: JobId) -> String {
    let digits: String = job.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x'{digits}'")
}

fn lease_of(leased: &[Leased], job: JobId) -> Lease {
    leased.iter().map(Leased::lease).find(|lease| lease.job == job).expect("it was claimed")
}

async fn retry(subject: &Subject, holder: HolderId, lease: Lease, after: u64) {
    let settled = subject.settle(holder, &subject.retry(lease, seconds(after), false)).await;
    assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
}

/// A job was claimed twice by the same holder, so two claims list it, which a sweep reads apart. The sweep must not count its lease as
/// ended twice: the claim of its neighbour would be deleted, and nothing else leads to the neighbour.
#[tokio::test]
async fn a_job_that_two_claims_list_is_freed_once() {
    let database = Database::fresh();
    let subject = open(&database).await;
    let names: Vec<String> = (0..LANES).map(|n| format!("kind-{n}")).collect();
    let kinds: Vec<&str> = names.iter().map(String::as_str).collect();
    subject.kinds(&["charge"]).await;
    subject.kinds(&kinds).await;
    let (by, dead) = (subject.holder().await, subject.holder().await);
    let (twice, other) = (subject.submit("charge").await, subject.submit("charge").await);
    let first = subject.claim(dead, &["charge"], 2).await;
    retry(&subject, dead, lease_of(&first, twice), 10).await;
    for kind in &kinds {
        subject.insert(&subject.jobs(kind, 1)).await;
    }
    assert_eq!(subject.claim(dead, &kinds, LANES).await.len(), LANES);
    subject.clock.advance(seconds(11));
    let neighbour = subject.submit("charge").await;
    assert_eq!(subject.claim(dead, &["charge"], 2).await.len(), 2);

    // The neighbour is being changed at this moment, so the sweep passes over it.
    let mut connection = database.connect().await;
    connection.query_drop("START TRANSACTION").await.expect("a transaction");
    let lock = format!("SELECT 1 FROM rewheel_jobs WHERE id = {} FOR UPDATE", literal(neighbour));
    connection.query_drop(lock).await.expect("a lock");
    subject.store.leave(dead).await.expect("it left");
    let events = subject.sweep(by).await;
    let times = |job| events.iter().filter(|event| event.job == job).count();
    assert_eq!((times(twice), times(other), times(neighbour)), (1, 1, 0));
    assert_eq!(events.len(), LANES + 2);
    connection.query_drop("ROLLBACK").await.expect("the lock is released");

    assert_eq!(subject.get(twice).await.takeovers, 1);
    let events = subject.sweep(by).await;
    assert_eq!(events.iter().map(|event| event.job).collect::<Vec<_>>(), [neighbour]);
    assert_eq!(number(&mut connection, "SELECT COUNT(*) FROM rewheel_claims").await, 0);
    subject.balance().await;
}

#[tokio::test]
async fn doctor_finds_leased_jobs_without_a_claim() {
    let database = Database::fresh();
    let subject = open(&database).await;
    let (_, lease) = subject.leased("charge").await;
    let names = async || {
        let risks = subject.store.risks().await.expect("risks");
        risks.into_iter().map(|risk| (risk.name, risk.message)).collect::<Vec<_>>()
    };
    assert!(names().await.iter().all(|(name, _)| *name != "claims"));
    database.connect().await.query_drop("DELETE FROM rewheel_claims").await.expect("no claims");
    let found = names().await;
    let (_, message) = found.iter().find(|(name, _)| *name == "claims").expect("a risk");
    assert!(message.contains(&lease.job.to_string()), "{message}");
}

/// The check reads jobs page by page, and every page must count.
#[tokio::test]
async fn doctor_finds_a_leased_job_without_a_claim_behind_many_others() {
    /// Two pages.
    const JOBS: u64 = 6_000;
    let database = Database::fresh();
    let subject = open(&database).await;
    let (_, lease) = subject.leased("charge").await;
    let mut connection = database.connect().await;
    let numbers = format!(
        "(WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {JOBS}) SELECT n FROM n) AS numbers"
    );
    for sql in [
        format!("SET SESSION max_recursive_iterations = {JOBS}"),
        format!(
            "INSERT INTO rewheel_jobs (lane, place, id, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted, created_ms, payload) \
             SELECT 0, n, UNHEX(LPAD(HEX(n), 32, '0')), 0, n, 'submitted', 0, 1, 0, 0, 0, 0, n, '' FROM {numbers}"
        ),
        "DELETE FROM rewheel_claims".to_owned(),
    ] {
        connection.query_drop(sql).await.expect("done");
    }
    let risks = subject.store.risks().await.expect("risks");
    let claims = risks.iter().find(|risk| risk.name == "claims").expect("a risk");
    let text = format!("1 leased jobs (for example {})", lease.job);
    assert!(claims.message.contains(&text), "{}", claims.message);
}

#[tokio::test]
async fn a_check_that_fails_is_reported_and_hides_no_other() {
    let database = Database::fresh();
    let subject = open(&database).await;
    subject.leased("charge").await;
    let mut connection = database.connect().await;
    for sql in ["DELETE FROM rewheel_claims", "DROP TABLE rewheel_unreadable"] {
        connection.query_drop(sql).await.expect("done");
    }
    let risks = subject.store.risks().await.expect("risks");
    let message = |name| {
        let found = risks.iter().find(|risk| risk.name == name);
        found.map(|risk| risk.message.as_str()).unwrap_or_default()
    };
    assert!(message("claims").contains("belong to no claim"), "{risks:?}");
    assert!(message("unreadable").contains("could not be checked"), "{risks:?}");
    assert!(message("unreadable").contains("rewheel_unreadable"), "{risks:?}");
}

/// A holder keeps a job for another attempt, with less time than before, while another node sweeps. The sweep neither waits nor writes
/// the old time of the job over the new one.
#[tokio::test]
async fn a_sweep_does_not_raise_the_time_of_a_claim_that_is_being_lowered() {
    let database = Database::fresh();
    let subject = open(&database).await;
    let (holder, lease) = subject.leased("charge").await;
    let hour = seconds(3_600);
    let extension = Extension { lease, timeout: hour, total_max: hour * 2, grace: seconds(5) };
    subject.store.extend(holder, &extension).await.expect("extended").expect("it has the job");
    subject.clock.advance(seconds(60));
    subject.store.renew(holder).await.expect("it is alive");
    // What a settle does that keeps the lease.
    let soon = subject.now().await.plus(seconds(35)).as_millis();
    let mut settle = database.connect().await;
    for sql in [
        "START TRANSACTION".to_owned(),
        format!("UPDATE rewheel_jobs SET overdue_ms = {soon}"),
        format!("UPDATE rewheel_claims SET overdue_ms = LEAST(overdue_ms, {soon})"),
    ] {
        settle.query_drop(sql).await.expect("done");
    }
    assert_eq!(subject.sweep(holder).await, []);
    settle.query_drop("COMMIT").await.expect("committed");
    subject.clock.advance(seconds(36));
    subject.store.renew(holder).await.expect("it is alive");
    assert_eq!(subject.sweep(holder).await.len(), 1);
}

/// As above, but another job of the claim is overdue earlier, so that the settle does not touch the claim. Then that job ends.
#[tokio::test]
async fn a_sweep_does_not_raise_the_time_of_a_claim_whose_second_job_is_being_settled() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["charge"]).await;
    let (first, second) = (node.submit("charge").await, node.submit("charge").await);
    let holder = node.holder().await;
    let leased = node.claim(holder, &["charge"], 2).await;
    let (first, lease) = (lease_of(&leased, first), lease_of(&leased, second));
    let hour = seconds(3_600);
    let extension = Extension { lease, timeout: hour, total_max: hour * 2, grace: seconds(5) };
    node.mysql.extend(holder, &extension).await.expect("extended").expect("it has the job");
    // The settle that keeps the lease is not committed yet.
    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let retry = [node.retry(lease, seconds(10), true)];
    let settled = node.mysql.settle_in(&mut transaction, holder, &retry).await.expect("settled");
    assert!(matches!(settled[..], [Settled::Applied(_)]), "{settled:?}");
    node.succeed(holder, first).await;
    // The claim says that its first job is overdue; the second one is soon.
    node.clock.advance(seconds(36));
    node.mysql.renew(holder).await.expect("it is alive");
    assert_eq!(node.sweep(holder).await, []);
    transaction.commit().await.expect("committed");
    node.clock.advance(seconds(10));
    node.mysql.renew(holder).await.expect("it is alive");
    let events = node.sweep(holder).await;
    assert_eq!(events.iter().map(|event| event.job).collect::<Vec<_>>(), [second]);
}

/// A sweep writes the earliest time of each claim, so that the next one does not read the claim again.
#[tokio::test]
async fn a_sweep_raises_the_time_of_a_claim_whose_jobs_were_extended() {
    let database = Database::fresh();
    let subject = open(&database).await;
    let (holder, lease) = subject.leased("charge").await;
    let hour = seconds(3_600);
    let extension = Extension { lease, timeout: hour, total_max: hour * 2, grace: seconds(5) };
    let overdue = subject.store.extend(holder, &extension).await.expect("extended");
    subject.clock.advance(seconds(60));
    subject.store.renew(holder).await.expect("it is alive");
    assert_eq!(subject.sweep(holder).await, []);
    let mut connection = database.connect().await;
    let stored = number(&mut connection, "SELECT MIN(overdue_ms) FROM rewheel_claims").await;
    assert_eq!(Some(Timestamp::from_millis(stored)), overdue);
}

/// Claims read over leased jobs at the head of a lane. After two seconds they leave that range, also those of workers, which do not sweep.
#[tokio::test]
async fn long_leases_of_workers_leave_the_range_that_claims_read() {
    /// More claims than are set aside with one transaction.
    const CLAIMS: usize = 130;
    let database = Database::fresh();
    let subject = open(&database).await;
    subject.kinds(&["charge"]).await;
    let engine = subject.holder().await;
    let worker = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &subject.random);
    let (name, role) = ("worker".to_owned(), Role::Worker { owner: WorkerOwner::NoToken });
    let new = NewHolder { id: worker, name, role, lease_ttl: seconds(15), format: Format::CURRENT };
    subject.store.join(&new).await.expect("it joins");
    subject.insert(&subject.jobs("charge", 2 * CLAIMS)).await;
    for _ in 0..CLAIMS {
        assert_eq!(subject.claim(worker, &["charge"], 2).await.len(), 2);
    }
    subject.clock.advance(seconds(3));
    assert_eq!(subject.sweep(engine).await, []);
    let mut connection = database.connect().await;
    let left = number(&mut connection, "SELECT COUNT(*) FROM rewheel_jobs WHERE lane > 0").await;
    assert_eq!(left, 0);
    let held = subject.store.held(worker, seconds(0), None, 1_000).await.expect("leases");
    assert_eq!(held.len(), 2 * CLAIMS);
    for lease in held {
        subject.give_back(worker, lease).await;
    }
    assert_eq!(subject.claim(engine, &["charge"], 1_000).await.len(), 2 * CLAIMS);
}

/// A job that another transaction changes at this moment stays where it is until the next sweep, which must find it.
#[tokio::test]
async fn a_long_lease_that_was_locked_is_set_aside_by_the_next_sweep() {
    let database = Database::fresh();
    let subject = open(&database).await;
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(seconds(3));
    let mut connection = database.connect().await;
    connection.query_drop("START TRANSACTION").await.expect("a transaction");
    let lock = format!("SELECT 1 FROM rewheel_jobs WHERE id = {} FOR UPDATE", literal(lease.job));
    connection.query_drop(lock).await.expect("a lock");
    subject.sweep(holder).await;
    connection.query_drop("ROLLBACK").await.expect("the lock is released");
    let in_range = "SELECT COUNT(*) FROM rewheel_jobs WHERE lane > 0";
    assert_eq!(number(&mut connection, in_range).await, 1);
    subject.sweep(holder).await;
    assert_eq!(number(&mut connection, in_range).await, 0);
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);
}
