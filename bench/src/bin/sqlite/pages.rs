//! Counts the pages that a claim reads, in an empty and in a full store.

use super::{CLAIM_BATCH, prepare};
use anyhow::{Result, ensure};
use rewheel_stores::SqliteStore;
use rusqlite::types::Value;
use rusqlite::{Connection, ffi, params};
use std::path::Path;
use std::rc::Rc;

const OTHERS: i64 = 1_000_000;
const CLAIMED: usize = 10_000;

/// Maximum cost in a full store, relative to an empty one.
const TARGET: f64 = 1.2;

const CLAIM: &str = include_str!("../../../../crates/rewheel-stores/src/sqlite/sql/claim.sql");
const LEASE: &str = include_str!("../../../../crates/rewheel-stores/src/sqlite/sql/lease.sql");

/// Millions of rows, written in the format of the store.
const FILL: &str = "
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO jobs (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                  takeovers_counted, created_ms, payload)
SELECT randomblob(16), ?2, 'scheduled', ?3 + i, 'submitted', 0, 1, 0, 0, 0, 0, 0, zeroblob(200) FROM n";

const FINISH: &str = "
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO finished (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                      takeovers_counted, created_ms, ended_ms, expires_ms, payload)
SELECT randomblob(16), ?2, 'succeeded', i, 'submitted', 1, 3, 1, 0, 0, 0, 0, i, i, zeroblob(200) FROM n";

pub(super) fn print() -> Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let empty = claim_pages(&folder.path().join("empty.db"), 0)?;
    let full = claim_pages(&folder.path().join("full.db"), OTHERS)?;
    println!(
        "pages for each of {CLAIMED} jobs claimed {CLAIM_BATCH} at a time, by a process that just started"
    );
    println!("{:<70}{:>8}{:>11}", "", "read", "looked at");
    for (what, (read, seen)) in [
        ("nothing else in the store".to_owned(), empty),
        (format!("{OTHERS} future, {OTHERS} due in 10 other lanes, {OTHERS} finished"), full),
    ] {
        println!("{what:<70}{read:>8.3}{seen:>11.2}");
    }
    // A larger tree is deeper, which shows in the number of pages read; these are in memory.
    let ratio = full.0 / empty.0;
    let reached = if ratio <= TARGET { "pass" } else { "MISS" };
    println!("ratio {ratio:.2}  target {TARGET}  {reached}");
    Ok(())
}

/// Claims with the store's own statement on a connection whose pages can be counted.
fn claim_pages(file: &Path, others: i64) -> Result<(f64, f64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let store = SqliteStore::open(file).await?;
        prepare(&store).await?;
        rewheel_core::store::Store::close(&store).await?;
        anyhow::Ok(())
    })?;
    let connection = Connection::open(file)?;
    rusqlite::vtab::array::load_module(&connection)?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; BEGIN")?;
    for lane in 1..=11 {
        let tenant = format!("t{lane}");
        let values = params![lane, "bench", tenant, 5];
        connection.execute(
            "INSERT INTO lanes (lane, kind, tenant, priority) VALUES (?1, ?2, ?3, ?4)",
            values,
        )?;
    }
    let year_2100 = 4_102_444_800_000_i64;
    if others > 0 {
        connection.execute(FILL, params![others, 1, year_2100])?;
        for lane in 2..=11 {
            connection.execute(FILL, params![others / 10, lane, 0])?;
        }
        connection.execute(FINISH, params![others, 1])?;
    }
    connection.execute(FILL, params![CLAIMED as i64, 1, 0])?;
    connection.execute_batch("COMMIT; ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
    drop(connection);
    let connection = Connection::open(file)?;
    rusqlite::vtab::array::load_module(&connection)?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -65536")?;
    let before = pages(&connection);
    let mut claimed = 0;
    while claimed < CLAIMED {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let due_until = 1_000_000_000_i64;
        let mut claim = connection.prepare_cached(CLAIM)?;
        let values = params![1, due_until, 0, CLAIM_BATCH as i64];
        let found = claim.query_map(values, |row| row.get::<_, i64>(0))?;
        let found = found.collect::<rusqlite::Result<Vec<i64>>>()?;
        ensure!(!found.is_empty(), "nothing more to claim after {claimed}");
        let mut lease = connection.prepare_cached(LEASE)?;
        claimed += found.len();
        let found = Rc::new(found.into_iter().map(Value::Integer).collect::<Vec<_>>());
        lease.execute(params![found, 1, 0, 30_000, 5_000])?;
        drop((claim, lease));
        connection.execute_batch("COMMIT")?;
    }
    let after = pages(&connection);
    let each = |pages: i64| pages as f64 / CLAIMED as f64;
    Ok((each(after.0 - before.0), each(after.0 + after.1 - before.0 - before.1)))
}

/// Returns how often a page was read, and how often one was found in memory.
#[expect(unsafe_code, reason = "SQLite's counters have no other door")]
fn pages(connection: &Connection) -> (i64, i64) {
    let count = |which| {
        let (mut current, mut highest) = (0, 0);
        // SAFETY: the handle lives as long as the connection, which is borrowed; both output
        // locations are ours.
        unsafe {
            ffi::sqlite3_db_status(connection.handle(), which, &mut current, &mut highest, 0);
        }
        i64::from(current)
    };
    (count(ffi::SQLITE_DBSTATUS_CACHE_MISS), count(ffi::SQLITE_DBSTATUS_CACHE_HIT))
}
