//! Creates temporary schemas on a PostgreSQL server, and measures one plain table there.

use super::report::About;
use super::subject::{now, rate};
use anyhow::{Context, Result, bail};
use rewheel_core::SecretUrl;
use rewheel_stores::PostgresOptions;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Config, NoTls};

const BATCH: usize = 1_000;
/// Two clients take jobs: one works while the other commits.
const TAKERS: usize = 2;

/// Settings that decide how fast a commit is.
const SETTINGS: [&str; 5] =
    ["fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size"];

/// A server, with a connection that creates and drops our own schemas.
pub(super) struct Server {
    url: SecretUrl,
    config: Config,
    connection: Connection,
}

/// A client with the task that drives its connection.
struct Connection {
    client: Client,
    #[expect(dead_code, reason = "ends when it is dropped")]
    moving: JoinSet<()>,
}

impl Server {
    pub(super) async fn connect(url: &SecretUrl) -> Result<Server> {
        if url.expose().contains("schema=") {
            bail!("a benchmark creates its own schemas: remove `schema` from the URL");
        }
        let config = PostgresOptions::parse(url.expose())?.server;
        let connection = open(&config).await?;
        Ok(Server { url: url.clone(), config, connection })
    }

    /// Creates a schema, and returns the URL of a store in it. Fails if the schema exists: only schemas created here are used and
    /// dropped.
    pub(super) async fn make(&self, name: &str) -> Result<SecretUrl> {
        let schema = schema(name);
        let made = self.connection.client.batch_execute(&format!("CREATE SCHEMA {schema}")).await;
        made.with_context(|| format!("cannot create the schema {schema}"))?;
        let url = self.url.expose();
        let join = if url.contains('?') { '&' } else { '?' };
        Ok(SecretUrl::new(format!("{url}{join}schema={schema}")))
    }

    /// Returns how many rows of a schema were read so far.
    pub(super) async fn rows_read(&self, name: &str) -> Result<u64> {
        let read = "SELECT ((SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE schemaname = $1)
                          + (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE schemaname = $1))::bigint";
        let row = self.connection.client.query_one(read, &[&schema(name)]).await?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0))
    }

    /// Drops a schema that was created here.
    pub(super) async fn clear(&self, name: &str) -> Result<()> {
        let drop = format!("DROP SCHEMA {} CASCADE", schema(name));
        Ok(self.connection.client.batch_execute(&drop).await?)
    }

    pub(super) async fn about(&self) -> Result<About> {
        let ask = "SELECT current_setting($1)";
        let client = &self.connection.client;
        let version: String = client.query_one(ask, &[&"server_version"]).await?.get(0);
        let mut about = About::new("postgres", version.split(' ').next().unwrap_or_default());
        for name in SETTINGS {
            about.settings.insert(name, client.query_one(ask, &[&name]).await?.get(0));
        }
        Ok(about)
    }

    /// Measures one table with one index and integer ids, without any guarantees. Returns inserts per second, and jobs taken and deleted
    /// per second.
    pub(super) async fn raw(&self, name: &str, jobs: usize, bytes: usize) -> Result<(f64, f64)> {
        self.make(name).await?;
        let rates = self.raw_rates(&schema(name), jobs, bytes).await;
        self.clear(name).await?;
        rates
    }

    async fn raw_rates(&self, schema: &str, jobs: usize, bytes: usize) -> Result<(f64, f64)> {
        let client = &self.connection.client;
        let table = format!(
            "CREATE TABLE {schema}.jobs (id bigserial PRIMARY KEY, due timestamptz NOT NULL DEFAULT now(),
                 payload bytea NOT NULL);
             CREATE INDEX ON {schema}.jobs (due, id)"
        );
        client.batch_execute(&table).await?;
        let insert =
            format!("INSERT INTO {schema}.jobs (payload) SELECT * FROM unnest($1::bytea[])");
        let insert = client.prepare(&insert).await?;
        let payloads = vec![vec![b'7'; bytes]; BATCH];
        let started = now();
        for first in (0..jobs).step_by(BATCH) {
            client.execute(&insert, &[&&payloads[..BATCH.min(jobs - first)]]).await?;
        }
        let inserted = rate(jobs, started);
        let take = format!(
            "DELETE FROM {schema}.jobs WHERE id = ANY (ARRAY(
                 SELECT id FROM {schema}.jobs WHERE due <= now() ORDER BY due, id LIMIT $1
                    FOR UPDATE SKIP LOCKED)) RETURNING id, payload"
        );
        let mut takers = Vec::with_capacity(TAKERS);
        for _ in 0..TAKERS {
            let taker = open(&self.config).await?;
            let take = taker.client.prepare(&take).await?;
            takers.push((taker, take));
        }
        let started = now();
        let mut taking = JoinSet::new();
        for (taker, take) in takers {
            taking.spawn(async move {
                // Move the whole value: a client without its connection task is closed.
                let taker = taker;
                while !taker.client.query(&take, &[&(BATCH as i64)]).await?.is_empty() {}
                anyhow::Ok(())
            });
        }
        while let Some(taken) = taking.join_next().await {
            taken??;
        }
        Ok((inserted, rate(jobs, started)))
    }
}

/// Returns a schema name that shows its origin, in case it stays behind.
fn schema(name: &str) -> String {
    format!("rewheel_bench_{}_{name}", std::process::id())
}

async fn open(config: &Config) -> Result<Connection> {
    let connected = config.connect(NoTls).await;
    let (client, connection) =
        connected.context("cannot connect to PostgreSQL (a benchmark connects without TLS)")?;
    let mut moving = JoinSet::new();
    moving.spawn(async move {
        // The waiting call returns the error.
        let _ = connection.await;
    });
    Ok(Connection { client, moving })
}
