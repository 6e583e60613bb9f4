//! Measures plain SQLite (one table, one index, integer ids) as a baseline for the SQLite store.

use super::subject::{now, rate};
use anyhow::Result;
use rusqlite::{Connection, params};
use std::path::Path;

const INSERT_BATCH: usize = 1_000;
const CLAIM_BATCH: usize = 500;

/// Returns inserts, and claims with deletes, in jobs per second.
pub(super) fn round(file: &Path, jobs: usize, payload_bytes: usize) -> Result<(f64, f64)> {
    let connection = Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA cache_size = -65536; PRAGMA temp_store = memory;
         CREATE TABLE jobs (id INTEGER PRIMARY KEY, due INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
             attempts INTEGER NOT NULL DEFAULT 0, holder TEXT, until INTEGER, payload BLOB NOT NULL);
         CREATE INDEX jobs_due ON jobs (due, id) WHERE state = 0;",
    )?;
    let payload = vec![b'7'; payload_bytes];
    let started = now();
    let mut inserted = 0;
    while inserted < jobs {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut insert = connection.prepare("INSERT INTO jobs (due, payload) VALUES (?1, ?2)")?;
        for _ in 0..INSERT_BATCH.min(jobs - inserted) {
            insert.execute(params![inserted as i64, payload])?;
            inserted += 1;
        }
        connection.execute_batch("COMMIT")?;
    }
    let insert = rate(jobs, started);
    let started = now();
    let mut drained = 0;
    while drained < jobs {
        drained += claim_and_delete(&connection)?;
    }
    Ok((insert, rate(jobs, started)))
}

fn claim_and_delete(connection: &Connection) -> Result<usize> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut ids = Vec::with_capacity(CLAIM_BATCH);
    {
        let mut claim = connection.prepare(
            "UPDATE jobs SET state = 1, attempts = attempts + 1, holder = 'w', until = ?1
              WHERE id IN (SELECT id FROM jobs WHERE state = 0 AND due <= ?1 ORDER BY due, id LIMIT ?2)
             RETURNING id, payload",
        )?;
        let mut rows = claim.query(params![i64::MAX / 2, CLAIM_BATCH as i64])?;
        while let Some(row) = rows.next()? {
            std::hint::black_box(row.get::<_, Vec<u8>>(1)?);
            ids.push(row.get::<_, i64>(0)?);
        }
    }
    connection.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
    {
        let mut delete = connection.prepare("DELETE FROM jobs WHERE id = ?1")?;
        for id in &ids {
            delete.execute([id])?;
        }
    }
    connection.execute_batch("COMMIT")?;
    Ok(ids.len())
}
