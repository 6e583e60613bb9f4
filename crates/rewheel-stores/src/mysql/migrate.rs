//! Creates and migrates the tables of a database.
//!
//! MySQL commits every change of a table by itself, so a migration is a list of steps. Each step may be repeated: a process that ends in the
//! middle of one leaves it to the next process. A lock of the server lets one process at a time work on the steps; the others wait, and
//! then find them done.

use super::error::{VerbError, broken};
use super::pool::Connection;
use super::statement::without_comments;
use crate::open_mode::{Tables, outdated};
use mysql_async::prelude::Queryable;
use rewheel_core::store::StoreError;
use std::time::Duration;

/// The SQL of each version of the tables, on top of the version before it. Never edited once released.
const MIGRATIONS: &[&str] =
    &[include_str!("migrations/0001_jobs.sql"), include_str!("migrations/0002_history.sql")];

/// How long a process waits for another one to finish the steps.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// The steps that are done. `step` counts from 1 within each version.
const STEPS: &str = "CREATE TABLE IF NOT EXISTS rewheel_steps (version INT NOT NULL, step INT NOT NULL, \
     PRIMARY KEY (version, step)) ENGINE = InnoDB";

/// Applies the missing steps, if the tables may be changed. Returns the largest packet that the server accepts.
pub(super) async fn open(connection: &mut Connection, tables: Tables) -> Result<usize, VerbError> {
    let packet_max: Option<u64> = connection.query_first("SELECT @@max_allowed_packet").await?;
    let found = version(connection).await?;
    if found != MIGRATIONS.len() {
        if tables == Tables::Keep {
            return Err(broken(outdated(found, MIGRATIONS.len()), None).into());
        }
        let lock: Option<String> =
            connection.query_first("SELECT CONCAT('rewheel:', LEFT(MD5(DATABASE()), 32))").await?;
        let lock = lock.unwrap_or_default();
        let sql = format!("SELECT GET_LOCK('{lock}', {})", WAIT_MAX.as_secs());
        let locked: Option<Option<i64>> = connection.query_first(sql).await?;
        if locked.flatten() != Some(1) {
            let what = "another process has been migrating the tables for two minutes";
            return Err(StoreError::Unavailable(what.into()).into());
        }
        let applied = apply(connection).await;
        connection.query_drop(format!("DO RELEASE_LOCK('{lock}')")).await?;
        applied?;
    }
    Ok(packet_max.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0))
}

/// Returns the newest version whose steps are all done, and those of the versions before it.
async fn version(connection: &mut Connection) -> Result<usize, VerbError> {
    let exists = "SELECT COUNT(*) FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = 'rewheel_steps'";
    let exists: Option<u64> = connection.query_first(exists).await?;
    if exists != Some(1) {
        return Ok(0);
    }
    let done: Vec<(i64, i64)> = connection.query("SELECT version, step FROM rewheel_steps").await?;
    let newest = done.iter().map(|(version, _)| *version).max().unwrap_or(0);
    if usize::try_from(newest).is_ok_and(|newest| newest > MIGRATIONS.len()) {
        let what = format!(
            "a newer version of Rewheel wrote the tables (they have version {newest}, this version of Rewheel supports {}): upgrade \
             Rewheel on this node",
            MIGRATIONS.len()
        );
        return Err(broken(what, None).into());
    }
    let is_done = |(version, sql): &(i64, &&str)| {
        done.iter().filter(|(of, _)| of == version).count() >= steps(sql).len()
    };
    Ok((1..).zip(MIGRATIONS).take_while(is_done).count())
}

async fn apply(connection: &mut Connection) -> Result<(), VerbError> {
    connection.query_drop(STEPS).await?;
    let done: Vec<(usize, usize)> =
        connection.query("SELECT version, step FROM rewheel_steps").await?;
    for (version, sql) in (1..).zip(MIGRATIONS) {
        for (step, sql) in (1..).zip(steps(sql)) {
            if done.contains(&(version, step)) {
                continue;
            }
            connection.query_drop(sql).await?;
            let note = "INSERT IGNORE INTO rewheel_steps (version, step) VALUES (?, ?)";
            connection.exec_drop(note, (version, step)).await?;
        }
    }
    Ok(())
}

/// Splits a migration into its statements.
fn steps(sql: &str) -> Vec<String> {
    let sql = without_comments(sql);
    sql.split(";\n").map(str::trim).filter(|step| !step.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{MIGRATIONS, steps};

    #[test]
    fn every_step_may_be_repeated() {
        for step in MIGRATIONS.iter().flat_map(|sql| steps(sql)) {
            let repeatable = ["CREATE TABLE IF NOT EXISTS ", "INSERT IGNORE INTO ", "ALTER TABLE "];
            assert!(repeatable.iter().any(|start| step.starts_with(start)), "{step}");
            assert!(!step.starts_with("ALTER") || step.contains("IF NOT EXISTS"), "{step}");
        }
    }
}
