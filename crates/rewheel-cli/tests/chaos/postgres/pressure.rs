//! What the cells of load share: a server that counts pages, jobs at a steady pace, and dead rows that vacuum must keep.

use super::database::{Connection, Database};
use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::load::{self, PATIENCE, Submitted};
use std::time::{Duration, Instant};

/// Counts the pages that each statement reads.
const OPTIONS: [&str; 1] = ["shared_preload_libraries=pg_stat_statements"];

/// Jobs per second of a trickle: little enough that nodes in a debug build keep up.
const RATE: u64 = 200;

/// Jobs that are submitted at once in a trickle.
const BATCH: usize = 10;

/// Dead rows of an hour, made at once.
const DEAD: i64 = 100_000;

/// The statements that look for jobs: with each poll and claim.
const HOT: [&str; 3] = ["lanes", "lane_heads", "claim"];

/// Maximum number of pages that these statements may read on average, for each call and for each row that they return: several times what
/// is usual (5 to 40 for a call, 8 to 12 for a job that is claimed), and a small part of what calls read that step over [`DEAD`] rows:
/// 4,000 each. An average of all, because a node that was not scheduled for seconds reads a whole lane once. It depends neither on the
/// time nor on the size of claims.
const PAGES_CALL: f64 = 150.0;
const PAGES_ROW: f64 = 30.0;

/// A cell on a server of its own, with a connection to measure.
pub(crate) struct Pressure {
    pub(crate) cell: Cell,
    pub(crate) database: Database,
    visitor: Connection,
    /// Ends last.
    _server: Server,
}

impl Pressure {
    /// Returns `None` and prints it if PostgreSQL is not installed.
    pub(crate) async fn start(name: &str, settings: Settings) -> Option<Pressure> {
        let server = Server::start(name, &OPTIONS).await?;
        let database = Database::on(&server.url, name).await;
        let visitor = database.connect().await;
        visitor.client.batch_execute("CREATE EXTENSION pg_stat_statements").await.unwrap();
        let cell = Cell::start(&database.store, settings).await;
        Some(Pressure { cell, database, visitor, _server: server })
    }

    /// Submits jobs at a steady pace for this long; on a busy machine it takes longer.
    pub(crate) async fn trickle(&self, name: &str, lasts: Duration) -> Submitted {
        let jobs = usize::try_from(RATE * lasts.as_millis() as u64 / 1_000).unwrap();
        let pause = Duration::from_millis(1_000 * BATCH as u64 / RATE);
        let mut submitted = Submitted::with_capacity(jobs);
        for batch in 0..jobs.div_ceil(BATCH) {
            submitted.extend(self.submit(&format!("{name}-{batch}"), BATCH).await);
            tokio::time::sleep(pause).await;
        }
        submitted
    }

    /// Submits jobs in one request.
    pub(crate) async fn submit(&self, name: &str, jobs: usize) -> Submitted {
        load::submit(&self.cell, name, jobs).await
    }

    /// Leaves the dead rows of an hour behind: in the lanes that have jobs, and of the holders that live.
    pub(crate) async fn age(&self) {
        let sql = "BEGIN; SET LOCAL synchronous_commit = off;
            INSERT INTO chaos.jobs (id, due_ms, created_ms, fence, version, lane, attempt, attempts_before, takeovers,
                                    takeovers_counted, state, because, shelf, held_by, held_until_ms, payload)
            SELECT gen_random_uuid(), now - n * 36, 0, 0, 1, lanes[1 + n / 2 % cardinality(lanes)], 0, 0, 0, 0,
                   CASE n % 2 WHEN 0 THEN 'scheduled' ELSE 'leased' END, 'submitted',
                   CASE n % 2 WHEN 0 THEN 'due' ELSE 'held' END,
                   CASE n % 2 WHEN 1 THEN holders[1 + n / 2 % cardinality(holders)] END,
                   CASE n % 2 WHEN 1 THEN now - n * 36 END, ''
              FROM generate_series(1, $dead) AS n,
                   (SELECT chaos.now_ms() AS now,
                           ARRAY (SELECT DISTINCT lane FROM chaos.lanes WHERE kind = 'work') AS lanes,
                           ARRAY (SELECT seq FROM chaos.holders WHERE died_ms IS NULL) AS holders) AS given;
            DELETE FROM chaos.jobs WHERE created_ms = 0; COMMIT";
        let sql = sql.replace("$dead", &DEAD.to_string());
        self.visitor.client.batch_execute(&sql).await.unwrap();
    }

    /// Vacuums the hot table, and checks that its dead rows had to stay.
    pub(crate) async fn keeps_dead_rows(&self) -> i64 {
        self.visitor.client.batch_execute("VACUUM chaos.jobs").await.unwrap();
        let dead =
            "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'chaos.jobs'::regclass";
        let started = Instant::now();
        loop {
            let count: i64 = self.visitor.client.query_one(dead, &[]).await.unwrap().get(0);
            if count >= DEAD {
                return count;
            }
            assert!(started.elapsed() < PATIENCE, "vacuum left only {count} dead rows");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Forgets what was counted so far.
    pub(crate) async fn count_afresh(&self) {
        let reset = "SELECT pg_stat_statements_reset()";
        self.visitor.client.batch_execute(reset).await.unwrap();
    }

    /// Checks that statements which look for jobs read as little as they should, dead rows or not.
    pub(crate) async fn check_pages(&self, when: &str) {
        // The first line of each statement is a comment with its name.
        let sql = "SELECT substring(query FROM '^-- (\\w+):') AS name, sum(calls)::float8, sum(rows)::float8,
                          sum(shared_blks_hit + shared_blks_read)::float8
                     FROM pg_stat_statements
                    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query ~ '^-- \\w+:'
                    GROUP BY name";
        let rows = self.visitor.client.query(sql, &[]).await.unwrap();
        let [mut all_calls, mut all_rows, mut all_pages] = [0.0; 3];
        for row in rows {
            let name: String = row.get(0);
            let [calls, returned, pages]: [f64; 3] = [row.get(1), row.get(2), row.get(3)];
            if !HOT.contains(&name.as_str()) {
                continue;
            }
            println!(
                "{when}: {name}: {:.1} pages for each of {calls} calls, {returned} rows",
                pages / calls
            );
            all_calls += calls;
            all_rows += returned;
            all_pages += pages;
        }
        assert!(all_calls > 0.0, "the server did not count the statements");
        assert!(
            all_pages <= PAGES_CALL * all_calls + PAGES_ROW * all_rows,
            "{when}: {all_pages} pages in {all_calls} calls that returned {all_rows} rows are too many"
        );
    }

    /// Waits until all jobs have ended, and checks every guarantee.
    pub(crate) async fn balance(self, phases: &[(&str, &Submitted)]) {
        load::balance(&self.cell, phases).await;
        let Pressure { cell, database, visitor, _server } = self;
        drop((cell, visitor));
        database.remove().await;
    }
}
