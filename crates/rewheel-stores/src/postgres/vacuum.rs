//! Vacuums the table of live jobs while this process runs many jobs.
//!
//! Autovacuum looks at a table once a minute by default. At 20,000 jobs per second that is two million dead rows, which fill the table and its
//! indexes. The table of live jobs is small, so a vacuum takes milliseconds.

use super::error::DriverError;
use super::for_schema;
use super::statements::{DEAD_ROWS, VACUUM};
use deadpool_postgres::Pool;
use rewheel::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

/// A rest is this many times as long as the vacuum before it: vacuums take at most a tenth of the time.
const REST_PER_RUN: u32 = 9;

/// The shortest rest after a vacuum that did not help: another transaction keeps the rows, or another vacuum is under way.
const REST_IN_VAIN: Duration = Duration::from_secs(1);

/// The longest rest. By then autovacuum has looked at the table several times.
const REST_MAX: Duration = Duration::from_secs(600);

/// How long a server before PostgreSQL 15 needs to count what a vacuum removed.
const COUNTED_AFTER: Duration = Duration::from_secs(1);

/// A task that vacuums the table of live jobs. It ends when this value is dropped.
pub(super) struct Vacuum {
    replaced: Arc<Replaced>,
    stop: AbortHandle,
    _runs: JoinSet<()>,
}

/// Rows that this process has replaced or deleted since the last vacuum.
struct Replaced {
    rows: AtomicU64,
    enough: u64,
    /// Told when there are enough of them.
    told: Notify,
}

impl Vacuum {
    pub(super) fn start(pool: Pool, schema: &str, enough: u64, clock: Clock) -> Vacuum {
        let replaced = Replaced { rows: AtomicU64::new(0), enough, told: Notify::new() };
        let replaced = Arc::new(replaced);
        let cleaner = Cleaner {
            pool,
            dead_rows: for_schema(&DEAD_ROWS.text, schema),
            vacuum: for_schema(&VACUUM.text, schema),
            replaced: Arc::clone(&replaced),
            clock,
        };
        let mut runs = JoinSet::new();
        let stop = runs.spawn(cleaner.run());
        Vacuum { replaced, stop, _runs: runs }
    }

    /// Counts rows that were replaced or deleted.
    pub(super) fn note(&self, rows: u64) {
        let before = self.replaced.rows.fetch_add(rows, Ordering::Relaxed);
        if before.saturating_add(rows) >= self.replaced.enough {
            self.replaced.told.notify_one();
        }
    }

    /// Ends the task.
    pub(super) fn close(&self) {
        self.stop.abort();
    }
}

struct Cleaner {
    pool: Pool,
    dead_rows: String,
    vacuum: String,
    replaced: Arc<Replaced>,
    clock: Clock,
}

/// What the server says about the table.
struct Dead {
    rows: u64,
    /// How long ago a vacuum of any process ended.
    vacuumed: Option<Duration>,
    is_counted_at_once: bool,
}

impl Cleaner {
    /// Runs until the task is stopped. Nothing depends on it: autovacuum looks at the table as well.
    async fn run(self) {
        let mut pace = Pace::default();
        loop {
            self.replaced.told.notified().await;
            let rest = match self.once(&mut pace).await {
                Ok(rest) => rest,
                Err(error) => {
                    tracing::debug!(%error, "failed to vacuum the table of live jobs: autovacuum will do it");
                    pace.in_vain(Duration::ZERO)
                }
            };
            tokio::time::sleep(rest).await;
        }
    }

    /// Vacuums the table, unless a process has done so a moment ago. Returns how long to rest.
    async fn once(&self, pace: &mut Pace) -> Result<Duration, Failed> {
        let connection = self.pool.get().await.map_err(|error| Failed(error.to_string()))?;
        let before = self.dead(&connection).await?;
        let rest = before.vacuumed.and_then(|ago| pace.rest.checked_sub(ago)).unwrap_or_default();
        if !rest.is_zero() {
            return Ok(rest);
        }
        let replaced = self.replaced.rows.swap(0, Ordering::Relaxed);
        let started = self.clock.now();
        let ended = connection.batch_execute(&self.vacuum).await;
        let took = self.clock.now().since(started);
        if let Err(error) = ended {
            pace.in_vain(took);
            return Err(error.into());
        }
        if !before.is_counted_at_once {
            tokio::time::sleep(COUNTED_AFTER).await;
        }
        let left = self.dead(&connection).await?.rows;
        let rest = if left > before.rows.max(replaced) / 2 {
            pace.in_vain(took)
        } else {
            pace.helped(took)
        };
        tracing::debug!(?took, left, ?rest, "vacuumed the table of live jobs");
        Ok(rest)
    }

    async fn dead(&self, connection: &tokio_postgres::Client) -> Result<Dead, Failed> {
        let row = connection.query_typed(&self.dead_rows, &[]).await?;
        let row = row.first().ok_or_else(|| Failed("the server sent no statistics".to_owned()))?;
        let (rows, ago): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Dead {
            rows: u64::try_from(rows).unwrap_or(0),
            vacuumed: u64::try_from(ago).ok().map(Duration::from_millis),
            is_counted_at_once: row.try_get(2)?,
        })
    }
}

/// Why a table was not vacuumed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Failed {
        Failed(DriverError(error).to_string())
    }
}

/// Decides how long to rest after a vacuum.
#[derive(Debug, Default)]
struct Pace {
    rest: Duration,
    /// How many of the latest vacuums in a row did not help.
    vain: u32,
}

impl Pace {
    fn helped(&mut self, took: Duration) -> Duration {
        self.vain = 0;
        self.rest = took.saturating_mul(REST_PER_RUN).min(REST_MAX);
        self.rest
    }

    /// Each vacuum in vain doubles the rest: while a transaction stays open, all rows that it may see stay as well.
    fn in_vain(&mut self, took: Duration) -> Duration {
        let shortest = took.saturating_mul(REST_PER_RUN).max(REST_IN_VAIN);
        self.rest = shortest.saturating_mul(1 << self.vain.min(10)).min(REST_MAX);
        self.vain = self.vain.saturating_add(1);
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, REST_MAX};
    use std::time::Duration;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn vacuums_take_at_most_a_tenth_of_the_time() {
        let mut pace = Pace::default();
        assert_eq!(pace.helped(millis(20)), millis(180));
        assert_eq!(pace.helped(millis(2_000)), millis(18_000));
        assert_eq!(pace.helped(Duration::MAX), REST_MAX);
    }

    #[test]
    fn vacuums_in_vain_become_rare_until_one_helps() {
        let mut pace = Pace::default();
        let rests: Vec<u64> = (0..5).map(|_| pace.in_vain(millis(10)).as_secs()).collect();
        assert_eq!(rests, [1, 2, 4, 8, 16]);
        for _ in 0..100 {
            assert!(pace.in_vain(millis(500)) <= REST_MAX);
        }
        assert_eq!(pace.in_vain(Duration::MAX), REST_MAX);
        assert_eq!(pace.helped(millis(20)), millis(180));
        assert_eq!(pace.in_vain(millis(20)), millis(1_000));
    }
}
