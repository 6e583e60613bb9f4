//! Tests internals of the SQLite store.

use super::files::Files;
use super::job_columns::fill_in;
use super::transaction::{Lanes, Statements, Transaction};
use super::verbs::insert::{Batch, insert};
use super::verbs::{claim, kinds, lease};
use super::{SqliteOptions, SqliteStore, verbs};
use rewheel::Random;
use rewheel_core::store::{IfRefused, KindStore, Sent, Store, Visit};
use rewheel_core::{
    Actor, HolderId, JobId, KindName, Lane, NewHolder, NewJob, NewKind, Priority, Shard, Timestamp,
};
use std::time::Duration;

#[test]
fn a_renewal_writes_one_row_however_many_jobs_are_held() {
    const JOBS: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(folder.path().join("rewheel.db"), &SqliteOptions::default());
    let connection = files.open_writer().unwrap();
    let (statements, mut lanes) = (Statements::new(&connection), Lanes::default());
    let now = Timestamp::from_millis(1_000);
    let mut tx = Transaction::new(&statements, now, &mut lanes);
    let random = Random::seeded(1);
    let holder = HolderId::new(now, &random);
    let kind = KindName::parse("charge").unwrap();
    let new = NewKind {
        name: kind.clone(),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    kinds::put_kinds(&mut tx, &[new], &Actor::new("test")).unwrap();
    let lease_ttl = Duration::from_secs(15);
    let joining = NewHolder {
        id: holder,
        name: "node".to_owned(),
        role: rewheel_core::Role::Engine,
        lease_ttl,
        format: rewheel_core::Format::CURRENT,
    };
    lease::join(&tx, &joining).unwrap();
    let jobs = (0..JOBS).map(|_| NewJob::new(JobId::new(now, &random), kind.clone(), vec![1]));
    let (if_refused, sent) = (IfRefused::StoreOthers, Sent::First);
    let batch = Batch { jobs: jobs.collect(), if_refused, sent, direct: None };
    insert(&mut tx, &batch).unwrap();
    let lane = Lane { kind, tenant: None, priority: Priority::DEFAULT, shard: Shard::NONE };
    let (attempt_timeout, grace) = (Duration::from_secs(30), Duration::from_secs(5));
    let visits = vec![Visit {
        lane,
        limit: JOBS,
        attempt_timeout,
        attempt_timeout_ceiling: attempt_timeout,
        grace,
    }];
    let wish = claim::Wish { holder, visits, horizon: Duration::ZERO, limit: JOBS };
    assert_eq!(claim::claim(&mut tx, &wish).unwrap().len(), JOBS);

    let before = connection.total_changes();
    verbs::lease::renew(&tx, holder).unwrap();
    assert_eq!(connection.total_changes() - before, 1);
}

/// Statements that scan a table from its first row: those that count, and those that stop after a few rows.
const SCANS: &[&str] = &["books", "tally", "prune_audit", "ledger_sum", "sample_now"];

#[test]
fn no_statement_scans_a_table_or_sorts_one() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(folder.path().join("rewheel.db"), &SqliteOptions::default());
    let connection = files.open_writer().unwrap();
    let sql = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/sql");
    for file in std::fs::read_dir(sql).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fill_in(&std::fs::read_to_string(&path).unwrap());
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
        // The values of parameters do not affect a plan.
        let mut rows = explain.raw_query();
        let mut steps: Vec<String> = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get(3).unwrap());
        }
        let large = ["jobs", "dead", "finished", "attempts", "keys", "audit", "ledger"];
        for step in steps {
            let scans = large.iter().any(|table| step == format!("SCAN {table}"));
            // `held` sorts the jobs of one holder by id, which its concurrency limits; the number of `tokens` is limited, too.
            let is_short = ["held", "tokens"].contains(&name.as_str());
            let sorts = step.contains("TEMP B-TREE") && !is_short;
            assert!(!(scans || sorts) || SCANS.contains(&name.as_str()), "{name}: {step}");
        }
    }
}

#[test]
fn a_damaged_file_is_a_risk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rewheel.db");
    let files = Files::new(path.clone(), &SqliteOptions::default());
    let connection = files.open_writer().unwrap();
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) \
                INSERT INTO lanes (kind, tenant, priority) SELECT 'kind', 'tenant ' || i, 5 FROM n; \
                PRAGMA wal_checkpoint(TRUNCATE);";
    connection.execute_batch(many).unwrap();
    let risks = |connection: &rusqlite::Connection| {
        let (statements, mut lanes) = (Statements::new(connection), Lanes::default());
        let tx = Transaction::new(&statements, Timestamp::from_millis(0), &mut lanes);
        verbs::read::risks(&tx).unwrap().len()
    };
    assert_eq!(risks(&connection), 0);
    drop(connection);
    let mut bytes = std::fs::read(&path).unwrap();
    // Damage the newest pages, which contain many lanes.
    let damaged = bytes.len() - 40_000;
    bytes[damaged..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(risks(&files.open_writer().unwrap()), 1);
}

#[tokio::test]
async fn a_write_of_another_process_is_an_unreported_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rewheel.db");
    let (one, other) =
        (SqliteStore::open(&path).await.unwrap(), SqliteStore::open(&path).await.unwrap());
    let (before, theirs) =
        (one.unreported_changes().await.unwrap(), other.unreported_changes().await.unwrap());
    let name = KindName::parse("charge").unwrap();
    let kind =
        NewKind { name, settings: "{}".to_owned(), takeovers_max: 3, on_dead: Default::default() };
    other.put_kinds(&[kind], &Actor::new("test")).await.unwrap();
    let after = one.unreported_changes().await.unwrap();
    assert_ne!(after, before);
    assert_eq!(one.unreported_changes().await.unwrap(), after, "nothing happened since");
    assert_eq!(other.unreported_changes().await.unwrap(), theirs, "it knows its own writes");
}
