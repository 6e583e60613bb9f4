//! Migrates the tables of a file to the current version.

use super::error::{VerbError, broken};
use crate::open_mode::outdated;
use rusqlite::Connection;

/// Marks a file as a Rewheel store: "Rwhl".
const APPLICATION_ID: i32 = 0x5277_686c;

/// The SQL of each version of the tables, on top of the version before it. Never edited once
/// released.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_jobs.sql"),
    include_str!("migrations/0002_parking.sql"),
    include_str!("migrations/0003_reserved.sql"),
    include_str!("migrations/0004_roles.sql"),
    include_str!("migrations/0005_budgets.sql"),
    include_str!("migrations/0006_shards.sql"),
    include_str!("migrations/0007_tokens.sql"),
    include_str!("migrations/0008_idempotency.sql"),
    include_str!("migrations/0009_owners.sql"),
    include_str!("migrations/0010_kind_versions.sql"),
    include_str!("migrations/0011_limits.sql"),
    include_str!("migrations/0012_unreadable.sql"),
    include_str!("migrations/0013_scale.sql"),
    include_str!("migrations/0014_follow_ups.sql"),
    include_str!("migrations/0015_holds.sql"),
    include_str!("migrations/0016_duplicates.sql"),
    include_str!("migrations/0017_results.sql"),
    include_str!("migrations/0018_schedules.sql"),
    include_str!("migrations/0019_groups.sql"),
    include_str!("migrations/0022_group_lines.sql"),
    include_str!("migrations/0028_history.sql"),
];

/// Applies the missing migrations in one transaction. Processes that start at the same time wait
/// and then find it done.
pub(super) fn migrate(connection: &Connection) -> Result<(), VerbError> {
    if version(connection)? == MIGRATIONS.len() {
        return check_owner(connection);
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done = apply(connection);
    connection.execute_batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    done
}

/// Checks that nothing needs to be migrated, without a change.
pub(super) fn check_current(connection: &Connection) -> Result<(), VerbError> {
    let found = version(connection)?;
    check_not_newer(found)?;
    check_owner(connection)?;
    if found == MIGRATIONS.len() {
        return Ok(());
    }
    Err(VerbError::Said(broken(outdated(found, MIGRATIONS.len()), None)))
}

fn check_not_newer(found: usize) -> Result<(), VerbError> {
    if found > MIGRATIONS.len() {
        return Err(VerbError::Said(broken(
            format!(
                "a newer version of Rewheel wrote the file (its tables have version {found}, this version of Rewheel supports \
                 {}): upgrade Rewheel on this node",
                MIGRATIONS.len()
            ),
            None,
        )));
    }
    Ok(())
}

fn apply(connection: &Connection) -> Result<(), VerbError> {
    let from = version(connection)?;
    check_not_newer(from)?;
    check_owner(connection)?;
    for migration in &MIGRATIONS[from..] {
        connection.execute_batch(migration)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", MIGRATIONS.len())?;
    Ok(())
}

/// Rejects a database of another program.
fn check_owner(connection: &Connection) -> Result<(), VerbError> {
    let owner: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if owner == APPLICATION_ID || (owner == 0 && tables == 0) {
        return Ok(());
    }
    Err(VerbError::Said(broken(
        "the file is a SQLite database of another program: use another file",
        None,
    )))
}

fn version(connection: &Connection) -> Result<usize, VerbError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}
