//! Migrates the tables of a schema to the current version.

use super::epoch::Epochs;
use super::error::{Stage, VerbError, broken, judge, judge_pool};
use super::for_schema;
use super::hosts::Hosts;
use crate::open_mode::{Tables, outdated};
use deadpool_postgres::{Object, Pool};
use rewheel_core::store::StoreResult;
use std::time::Duration;
use tokio_postgres::Client;

/// The SQL of each version of the tables, on top of the version before it. Never edited once released.
const MIGRATIONS: &[(&str, &str)] = &[
    ("jobs", include_str!("migrations/0001_jobs.sql")),
    ("submit", include_str!("migrations/0002_submit.sql")),
    ("reserved", include_str!("migrations/0003_reserved.sql")),
    ("roles", include_str!("migrations/0004_roles.sql")),
    ("budgets", include_str!("migrations/0005_budgets.sql")),
    ("shards", include_str!("migrations/0006_shards.sql")),
    ("tokens", include_str!("migrations/0007_tokens.sql")),
    ("idempotency", include_str!("migrations/0008_idempotency.sql")),
    ("owners", include_str!("migrations/0009_owners.sql")),
    ("kind_versions", include_str!("migrations/0010_kind_versions.sql")),
    ("limits", include_str!("migrations/0011_limits.sql")),
    ("unreadable", include_str!("migrations/0012_unreadable.sql")),
    ("scale", include_str!("migrations/0013_scale.sql")),
    ("follow_ups", include_str!("migrations/0014_follow_ups.sql")),
    ("holds", include_str!("migrations/0015_holds.sql")),
    ("duplicates", include_str!("migrations/0016_duplicates.sql")),
    ("results", include_str!("migrations/0017_results.sql")),
    ("schedules", include_str!("migrations/0018_schedules.sql")),
    ("groups", include_str!("migrations/0019_groups.sql")),
    ("epochs", include_str!("migrations/0020_epochs.sql")),
    ("replica_identity", include_str!("migrations/0023_replica_identity.sql")),
    ("group_lines", include_str!("migrations/0026_group_lines.sql")),
    ("bins", include_str!("migrations/0027_bins.sql")),
    ("history", include_str!("migrations/0028_history.sql")),
    ("corrections", include_str!("migrations/0029_corrections.sql")),
];

/// The functions that SQL and triggers call, applied after the migrations. Each file replaces what an earlier revision of it created.
const FUNCTIONS: [&str; 2] =
    [include_str!("functions/formats.sql"), include_str!("functions/submit.sql")];

/// Raise it with every change of [`FUNCTIONS`]: a node applies them only over an older revision, so that a node of an older release that
/// starts later does not put its own back.
const REVISION: i32 = 1;

/// The migrations of this release.
#[cfg(not(feature = "test-next-release"))]
fn migrations() -> Vec<(&'static str, &'static str)> {
    MIGRATIONS.to_vec()
}

/// The migrations of this release. A test can add one of a fictional next release, which locks tables that every node uses.
#[cfg(feature = "test-next-release")]
fn migrations() -> Vec<(&'static str, &'static str)> {
    let mut known = MIGRATIONS.to_vec();
    if std::env::var_os("REWHEEL_TEST_NEXT_RELEASE").is_some() {
        let next = "ALTER TABLE rewheel.holders ADD COLUMN next_release bigint;
                    ALTER TABLE rewheel.jobs ADD COLUMN next_release bigint NOT NULL DEFAULT 0";
        known.push(("next_release", next));
    }
    known
}

/// How long a migration waits for a table lock. Every later statement on that table, heartbeats included, waits behind it, so this must
/// be a small part of a lease.
const LOCK_TIMEOUT: &str = "1s";

/// Maximum number of tries while another client, such as a backup, holds a lock.
const TRIES_MAX: u32 = 200;

/// Pause between two tries, in which normal work continues.
const REST: Duration = Duration::from_secs(3);

/// Applies what is missing, all of it or nothing, if the tables may be changed. Those who start at the same time wait, and find it done.
/// Then checks the epoch, which the first connection could not read before.
pub(super) async fn open(
    pool: &Pool,
    hosts: &Hosts,
    epochs: &Epochs,
    schema: &str,
    tables: Tables,
) -> StoreResult<()> {
    let connection = pool.get().await.map_err(|error| judge_pool(error, hosts))?;
    let done = async {
        let found = version(&connection, schema).await?;
        let is_current = found == migrations().len();
        if tables == Tables::Keep && !is_current {
            check_not_newer(found)?;
            let why = outdated(found, migrations().len());
            return Err(VerbError::Said(broken(why, None)));
        }
        // Functions of an earlier revision are good enough for a program that only looks.
        let is_old = !is_current || revision(&connection, schema).await? < REVISION;
        if is_old && tables == Tables::Migrate {
            apply_patiently(&connection, schema).await?;
            connection.batch_execute("COMMIT").await?;
        }
        Ok::<_, VerbError>(epochs.check(&connection).await?)
    };
    let done = done.await;
    if done.is_err() {
        // Closing it also ends the transaction.
        drop(Object::take(connection));
    }
    done.map_err(|trouble| judge(trouble, Stage::Open))
}

/// Retries while other clients hold a lock that a migration needs, and lets normal work continue in between.
async fn apply_patiently(client: &Client, schema: &str) -> Result<(), VerbError> {
    for tries in 1.. {
        match apply(client, schema).await {
            Err(trouble) if trouble.is_lock() && tries < TRIES_MAX => {
                client.batch_execute("ROLLBACK").await?;
                tracing::warn!(tries, "migration waits for a table lock: retrying");
                tokio::time::sleep(REST).await;
            }
            done => return done,
        }
    }
    Ok(())
}

fn check_not_newer(found: usize) -> Result<(), VerbError> {
    let known = migrations().len();
    if found <= known {
        return Ok(());
    }
    Err(VerbError::Said(broken(
        format!(
            "a newer version of Rewheel created the tables (the tables have version {found}, this version of Rewheel supports \
             {known}): upgrade Rewheel on this node"
        ),
        None,
    )))
}

async fn apply(client: &Client, schema: &str) -> Result<(), VerbError> {
    // This lock ends with the transaction. A session lock could stay behind on a pooled connection. Only other migrations wait for it.
    let lock = format!(
        "BEGIN; SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '1min'; \
         SELECT pg_advisory_xact_lock(hashtext('rewheel {schema}')); SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"
    );
    client.batch_execute(&lock).await?;
    let known = migrations();
    let from = version(client, schema).await?;
    check_not_newer(from)?;
    if from == 0 {
        begin(client, schema).await?;
    }
    for (version, (name, migration)) in known.iter().enumerate().skip(from) {
        client.batch_execute(&for_schema(migration, schema)).await?;
        let note = format!(
            "INSERT INTO {schema}.migrations (version, name) VALUES ({}, '{name}')",
            version + 1
        );
        client.batch_execute(&note).await?;
    }
    if revision(client, schema).await? < REVISION {
        for functions in FUNCTIONS {
            client.batch_execute(&for_schema(functions, schema)).await?;
        }
        let note = format!("UPDATE {schema}.functions SET revision = {REVISION}");
        client.batch_execute(&note).await?;
    }
    Ok(())
}

/// Returns the revision of the functions in tables of the current version.
async fn revision(client: &Client, schema: &str) -> Result<i32, VerbError> {
    let revision = format!("SELECT revision FROM {schema}.functions");
    let rows = client.query_typed(&revision, &[]).await?;
    Ok(rows.first().map_or(Ok(0), |row| row.try_get(0))?)
}

async fn begin(client: &Client, schema: &str) -> Result<(), VerbError> {
    let about = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '{schema}'), \
         pg_catalog.current_setting('server_encoding')"
    );
    let about = client.query_typed(&about, &[]).await?;
    let about = about
        .first()
        .map(|row| Ok::<(bool, String), VerbError>((row.try_get(0)?, row.try_get(1)?)));
    let (exists, encoding) = about.transpose()?.unwrap_or_default();
    if encoding != "UTF8" {
        return Err(VerbError::Said(broken(
            format!(
                "the database has the encoding {encoding}, which cannot store every character: create a database with ENCODING 'UTF8', and use it in the store's URL"
            ),
            None,
        )));
    }
    // `IF NOT EXISTS` would require the CREATE privilege even if the schema exists.
    if !exists {
        client.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
    }
    let table = format!(
        "CREATE TABLE {schema}.migrations (
             version integer PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT now()
         )"
    );
    Ok(client.batch_execute(&table).await?)
}

async fn version(client: &Client, schema: &str) -> Result<usize, VerbError> {
    // Not `to_regclass`: it may still return a result from before this session waited for another migration.
    let exists = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace \
         WHERE nspname = '{schema}' AND relname = 'migrations')"
    );
    let exists = client.query_typed(&exists, &[]).await?;
    if !exists.first().map_or(Ok(false), |row| row.try_get(0))? {
        return Ok(0);
    }
    let version = format!("SELECT coalesce(max(version), 0) FROM {schema}.migrations");
    let rows = client.query_typed(&version, &[]).await?;
    let version: i32 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(usize::try_from(version).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{FUNCTIONS, REVISION};
    use rewheel_core::Format;
    use sha2::{Digest, Sha256};

    /// A change of the functions needs a new revision, or nodes would not apply it. Then write the new hash here.
    #[test]
    fn every_change_of_the_functions_has_a_revision() {
        let hash = FUNCTIONS.iter().fold(Sha256::new(), |hash, text| hash.chain_update(text));
        let hash =
            hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!((REVISION, hash.as_str()), (1, "303cda4101db7531"));
    }

    #[test]
    fn holders_of_this_release_are_not_too_old() {
        let known = format!("IF NEW.format >= {} THEN", Format::CURRENT.get());
        assert!(FUNCTIONS[0].contains(&known), "{known}");
    }
}
