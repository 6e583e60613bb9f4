//! Reads PostgreSQL's page and statement counters during a measurement.

use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_postgres::Client;

use crate::server::{APPLICATION, Database};

/// Pages of tables with their TOAST data, then of indexes, found in memory or not.
const BUFFERS: &str = "
SELECT relname::text, (coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0)
                     + coalesce(toast_blks_hit, 0) + coalesce(toast_blks_read, 0)
                     + coalesce(tidx_blks_hit, 0) + coalesce(tidx_blks_read, 0))::bigint
  FROM pg_statio_user_tables
UNION ALL
SELECT indexrelname::text, (idx_blks_hit + idx_blks_read)::bigint FROM pg_statio_user_indexes";

/// A session counts its own pages, and reports them at the latest when it ends.
const SESSIONS: &str = "
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> $1";

/// Vacuuming touches pages as well: it runs only when a measurement starts it.
const AUTOVACUUM_OFF: &str = "
DO $$ DECLARE name regclass; BEGIN
    FOR name IN SELECT relid FROM pg_stat_user_tables LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', name);
    END LOOP;
END $$";

/// How long sessions may take to end.
const SESSIONS_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

pub struct Counters(Client);

/// Pages that were touched, by table or index.
#[derive(Clone, Debug, Default)]
pub struct Buffers(BTreeMap<String, i64>);

impl Buffers {
    pub fn total(&self) -> i64 {
        self.0.values().sum()
    }

    pub fn since(&self, before: &Buffers) -> Buffers {
        let earlier = |name: &String| before.0.get(name).copied().unwrap_or_default();
        let since = self.0.iter().map(|(name, count)| (name.clone(), count - earlier(name)));
        Buffers(since.collect())
    }

    pub fn of(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Counters {
    pub async fn open(database: &Database) -> Result<Counters> {
        Ok(Counters(database.connect().await?))
    }

    /// Returns the touched pages, once all other sessions have ended.
    pub async fn buffers(&self) -> Result<Buffers> {
        let mut waited = Duration::ZERO;
        while self.0.query_one(SESSIONS, &[&APPLICATION]).await?.get::<_, i64>(0) > 0 {
            ensure!(waited < SESSIONS_MAX, "sessions stay open after the store was closed");
            tokio::time::sleep(LOOK).await;
            waited += LOOK;
        }
        self.buffers_so_far().await
    }

    /// Returns what sessions have reported so far: at most a second old if they are busy.
    pub async fn buffers_so_far(&self) -> Result<Buffers> {
        let rows = self.0.query(BUFFERS, &[]).await?;
        Ok(Buffers(rows.iter().map(|row| (row.get(0), row.get(1))).collect()))
    }

    pub async fn autovacuum_off(&self) -> Result<()> {
        Ok(self.0.batch_execute(AUTOVACUUM_OFF).await?)
    }

    pub async fn vacuum(&self) -> Result<()> {
        Ok(self.0.batch_execute("VACUUM ANALYZE").await?)
    }
}
