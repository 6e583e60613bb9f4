//! `migrate-under-load`: a node of the next release migrates under load, while a backup reads every table and nodes of this release work.

use super::database::{Connection, Database};
use crate::cell::{Cell, Settings, name};
use crate::{alone, fault_lasts};
use std::time::{Duration, Instant};

/// The node that simulates the next release.
const NEXT: usize = 2;

/// Maximum time for a migration to request a lock, or to get it when it is free.
const WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_no_node_dies_while_a_migration_waits_for_a_backup() {
    let _alone = alone().await;
    let database = Database::new("migrate").await;
    let env = |index| match index {
        NEXT => vec![("REWHEEL_TEST_NEXT_RELEASE".to_owned(), "1".to_owned())],
        _ => Vec::new(),
    };
    // The default lease: a migration waits for locks for a small part of it.
    let settings = Settings { nodes: NEXT, lease_ttl: None, env, ..Settings::default() };
    let mut cell = Cell::start(&database.store, settings).await;
    let (backup, visitor) = (database.connect().await, database.connect().await);
    // A migration that stays in the lock queue would block this cell, too.
    visitor.client.batch_execute("SET lock_timeout = '10s'").await.unwrap();
    let submitter = cell.submit_on();
    let holders = lives(&visitor).await;
    assert_eq!(holders.len(), NEXT);

    read_everything(&backup).await;
    let (next, renewals) = tokio::join!(cell.new_node(NEXT), async {
        let renewals = works_beside(&cell, &visitor).await;
        assert!(!is_migrated(&visitor).await, "the backup did not hold the migration up");
        backup.client.batch_execute("COMMIT").await.unwrap();
        renewals
    });
    assert!(is_migrated(&visitor).await);
    cell.add(next);

    let probes = cell.recover("migrate").await;
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    let now = lives(&visitor).await;
    assert_eq!(now[..NEXT], holders[..], "a node died");
    // The doctor belongs to this release.
    let undo = "DELETE FROM chaos.migrations WHERE name = 'next_release'";
    visitor.client.batch_execute(undo).await.unwrap();
    cell.balance(&acknowledged).await;
    println!("{renewals} heartbeats while the migration waited");
    drop(cell);
    database.remove().await;
}

/// Does what a backup does: a transaction that reads every table and keeps its locks.
async fn read_everything(backup: &Connection) {
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ;
        DO $$ DECLARE name regclass; BEGIN
            FOR name IN SELECT oid FROM pg_class WHERE relnamespace = 'chaos'::regnamespace AND relkind = 'r' LOOP
                EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', name);
            END LOOP;
        END $$";
    backup.client.batch_execute(begin).await.unwrap();
}

/// Watches the nodes for the duration of the fault, from when the migration first waits for a lock. Returns how often they renewed.
async fn works_beside(cell: &Cell, visitor: &Connection) -> i64 {
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let started = Instant::now();
    while number(visitor, waits).await == 0 {
        assert!(started.elapsed() < WITHIN, "the migration asks for no lock");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let renewals = "SELECT sum(renewals)::bigint FROM chaos.holders";
    let (before, jobs) = (number(visitor, renewals).await, cell.callee.count());
    // Longer than a lease: without heartbeats a holder would expire.
    tokio::time::sleep(fault_lasts().max(Duration::from_secs(20))).await;
    let renewed = number(visitor, renewals).await - before;
    assert!(renewed >= 2 * 3, "{renewed} heartbeats of two nodes in more than a lease");
    assert!(cell.callee.count() > jobs, "no job ran");
    renewed
}

/// Returns the ids of the live nodes, by name.
async fn lives(visitor: &Connection) -> Vec<(String, String)> {
    let sql = "SELECT name, id::text FROM chaos.holders WHERE died_ms IS NULL ORDER BY name";
    let rows = visitor.client.query(sql, &[]).await.unwrap();
    let lives: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert!(lives.iter().enumerate().all(|(index, (found, _))| *found == name(index)), "{lives:?}");
    lives
}

async fn is_migrated(visitor: &Connection) -> bool {
    let sql = "SELECT count(*) FROM chaos.migrations WHERE name = 'next_release'";
    number(visitor, sql).await == 1
}

async fn number(visitor: &Connection, sql: &str) -> i64 {
    visitor.client.query_one(sql, &[]).await.unwrap().get(0)
}
