//! The PostgreSQL server that all queues are measured on.

use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_postgres::{Client, NoTls, Row};

/// Application name, which separates the connections of a measurement from others.
pub const APPLICATION: &str = "rewheel-bench";

/// The settings that determine how fast a commit is.
const SETTINGS: [&str; 8] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "shared_buffers",
    "max_wal_size",
    "max_connections",
    "autovacuum",
];

pub struct Server {
    url: String,
    admin: Client,
    databases: AtomicU32,
    pub about: About,
}

/// The description of the server in the JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    name: &'static str,
    version: String,
    settings: BTreeMap<&'static str, String>,
}

/// The calls of one statement, and the time they took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct StatementTotals {
    pub calls: f64,
    pub ms: f64,
}

impl StatementTotals {
    pub fn mean(&self) -> f64 {
        self.ms / self.calls
    }
}

/// A table or an index.
pub struct Relation {
    pub name: String,
    pub is_index: bool,
    pub bytes: i64,
}

/// A database that exists for one measurement.
pub struct Database {
    name: String,
    pub url: String,
}

impl Server {
    pub async fn connect(url: &str) -> Result<Server> {
        let admin = connect(&bare(url)).await?;
        let version: String = admin.query_one("SHOW server_version", &[]).await?.get(0);
        // Distributions append their own name.
        let version = version.split(' ').next().unwrap_or_default().to_owned();
        let mut settings = BTreeMap::new();
        for name in SETTINGS {
            let row = admin.query_one("SELECT current_setting($1)", &[&name]).await?;
            settings.insert(name, row.get(0));
        }
        let about = About { name: "postgres", version, settings };
        Ok(Server { url: url.to_owned(), admin, databases: AtomicU32::new(0), about })
    }

    /// The URL for peers, without the parameters of Rewheel.
    pub fn bare_url(&self) -> String {
        bare(&self.url)
    }

    pub async fn create(&self, purpose: &str) -> Result<Database> {
        let nth = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("rewheel_bench_{purpose}_{}_{nth}", std::process::id());
        self.admin.batch_execute(&format!("CREATE DATABASE {name}")).await?;
        let url = with_database(&self.url, &name)?;
        Ok(Database { name, url })
    }

    pub async fn drop(&self, database: Database) -> Result<()> {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", database.name);
        Ok(self.admin.batch_execute(&drop).await?)
    }

    /// Writes out dirty pages of the previous measurement, so that the next one does not pay for them.
    pub async fn checkpoint(&self) {
        // Not every user may do this.
        let _ = self.admin.batch_execute("CHECKPOINT").await;
    }

    /// Counts the transactions of a database without adding one to it.
    pub async fn transactions(&self, database: &Database) -> Result<i64> {
        let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
        Ok(self.admin.query_one(count, &[&database.name]).await?.get(0))
    }

    /// Counts the pages that the statements of a database read. Without `pg_stat_statements` this includes those of vacuum.
    pub async fn pages(&self, database: &Database) -> Result<i64> {
        let count = "SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint FROM pg_stat_statements \
                     WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)";
        if let Ok(row) = self.admin.query_one(count, &[&database.name]).await {
            return Ok(row.get(0));
        }
        let count = "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = $1";
        Ok(self.admin.query_one(count, &[&database.name]).await?.get(0))
    }

    /// Returns the totals of each statement of Rewheel by its name, if `pg_stat_statements` is installed.
    pub async fn statement_totals(&self, database: &Database) -> BTreeMap<String, StatementTotals> {
        // The first line of each statement is a comment with its name.
        let totals = "SELECT substring(query FROM '^-- (\\w+):') AS name, sum(calls)::float8, sum(total_exec_time) \
                      FROM pg_stat_statements \
                      WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1) AND query ~ '^-- \\w+:' GROUP BY name";
        let rows = self.admin.query(totals, &[&database.name]).await.unwrap_or_default();
        let totals = |row: &Row| StatementTotals { calls: row.get(1), ms: row.get(2) };
        rows.iter().map(|row| (row.get(0), totals(row))).collect()
    }

    /// Counts its statements, if `pg_stat_statements` is installed in the database of the server's URL: one transaction may
    /// contain several.
    pub async fn statements(&self, database: &Database) -> Option<i64> {
        let count = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements \
                     WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)";
        Some(self.admin.query_one(count, &[&database.name]).await.ok()?.get(0))
    }
}

impl Database {
    pub async fn connect(&self) -> Result<Client> {
        connect(&bare(&self.url)).await
    }

    /// Returns the tables and indexes of Rewheel with their sizes. The bins of finished jobs, which take turns, are one table.
    pub async fn relations(&self) -> Result<Vec<Relation>> {
        let sizes = "SELECT regexp_replace(relname::text, '_bin_\\d+', '_bins') AS name, relkind = 'i' AS is_index, \
                            sum(pg_table_size(oid))::bigint \
                       FROM pg_class WHERE relnamespace = 'rewheel'::regnamespace AND relkind IN ('r', 'i') \
                      GROUP BY name, is_index ORDER BY 1";
        let rows = self.connect().await?.query(sizes, &[]).await?;
        let relation =
            |row: &Row| Relation { name: row.get(0), is_index: row.get(1), bytes: row.get(2) };
        Ok(rows.iter().map(relation).collect())
    }

    /// Returns the number of dead rows of all tables, as the server estimates it.
    pub async fn dead_rows(&self) -> Result<i64> {
        let dead = "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables";
        Ok(self.connect().await?.query_one(dead, &[]).await?.get(0))
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.version)?;
        for (name, value) in &self.settings {
            write!(f, ", {name} {value}")?;
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "a connection ends with its client")]
async fn connect(url: &str) -> Result<Client> {
    let mut config: tokio_postgres::Config = url.parse().context("not a URL of PostgreSQL")?;
    let (client, connection) = config.application_name(APPLICATION).connect(NoTls).await?;
    tokio::spawn(async move {
        // The caller that waits for a result gets the error.
        let _ = connection.await;
    });
    Ok(client)
}

fn bare(url: &str) -> String {
    url.split('?').next().unwrap_or_default().to_owned()
}

fn with_database(url: &str, name: &str) -> Result<String> {
    let authority = url.find("://").context("not a URL")? + 3;
    let end = url[authority..].find(['/', '?']).map_or(url.len(), |at| authority + at);
    let settings = url.find('?').map_or("", |at| &url[at..]);
    Ok(format!("{}/{name}{settings}", &url[..end]))
}
