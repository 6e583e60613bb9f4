//! Prints how fast the SQLite store is, compared with the raw limit of the same file.

use anyhow::{Result, ensure};
use rewheel::Random;
use rewheel_core::store::{
    Claim, Insert, KindStore, LeaseStore, Leased, Outcome, Settled, Settlement, SubmitStore, Visit,
    WorkStore,
};
use rewheel_core::{
    Actor, Format, HolderId, JobId, KindName, Lane, NewHolder, NewJob, NewKind, Priority, Retain,
    Role, Shard, Timestamp,
};
use rewheel_stores::SqliteStore;
use rusqlite::{Connection, params};
use std::path::Path;
use std::time::{Duration, Instant};

const JOBS: usize = 100_000;
const PAYLOAD_BYTES: usize = 200;
const INSERT_BATCH: usize = 1_000;
const CLAIM_BATCH: usize = 500;
const ROUNDS_MIN: usize = 5;

/// The results of one round, in jobs per second.
#[derive(Default)]
struct Rates {
    raw_insert: Vec<f64>,
    raw_drain: Vec<f64>,
    insert: Vec<f64>,
    drain_dropped: Vec<f64>,
    drain_kept: Vec<f64>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("pages") {
        return pages::print();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut rates = Rates::default();
    for _ in 0..ROUNDS_MIN {
        let folder = tempfile::tempdir_in(".")?;
        let (insert, drain) = raw(&folder.path().join("raw.db"))?;
        rates.raw_insert.push(insert);
        rates.raw_drain.push(drain);
        for keep in [Duration::ZERO, Duration::from_secs(3_600)] {
            let file = folder.path().join(format!("ours-{}.db", keep.as_secs()));
            let (insert, drain) = runtime.block_on(ours(&file, keep))?;
            if keep.is_zero() {
                rates.insert.push(insert);
                rates.drain_dropped.push(drain);
            } else {
                rates.drain_kept.push(drain);
            }
        }
    }
    println!("{JOBS} jobs of {PAYLOAD_BYTES} B, synchronous=full, {ROUNDS_MIN} rounds, medians");
    line("insert", &rates.insert, &rates.raw_insert, 0.5);
    line("claim + settle, not kept", &rates.drain_dropped, &rates.raw_drain, 0.5);
    line("claim + settle, kept", &rates.drain_kept, &rates.raw_drain, 0.5);
    Ok(())
}

fn line(what: &str, ours: &[f64], raw: &[f64], target: f64) {
    let ratio = median(ours.iter().zip(raw).map(|(ours, raw)| ours / raw).collect());
    let reached = if ratio >= target { "pass" } else { "MISS" };
    println!(
        "{what:<26}{:>9.0}/s  raw {:>9.0}/s  ratio {ratio:.2}  target {target}  {reached}",
        median(ours.to_vec()),
        median(raw.to_vec()),
    );
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn rate(jobs: usize, started: Instant) -> f64 {
    jobs as f64 / started.elapsed().as_secs_f64()
}

/// One table, one index, integer ids, no fences, no keys, no holders: the limit of the file.
fn raw(file: &Path) -> Result<(f64, f64)> {
    let connection = Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA cache_size = -65536; PRAGMA temp_store = memory;
         CREATE TABLE jobs (id INTEGER PRIMARY KEY, due INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
             attempts INTEGER NOT NULL DEFAULT 0, holder TEXT, until INTEGER, payload BLOB NOT NULL);
         CREATE INDEX jobs_due ON jobs (due, id) WHERE state = 0;",
    )?;
    let payload = vec![7_u8; PAYLOAD_BYTES];
    let started = now();
    for batch in 0..JOBS / INSERT_BATCH {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut insert =
            connection.prepare_cached("INSERT INTO jobs (due, payload) VALUES (?1, ?2)")?;
        for nth in 0..INSERT_BATCH {
            insert.execute(params![(batch * INSERT_BATCH + nth) as i64, payload])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    let insert = rate(JOBS, started);
    let started = now();
    let mut drained = 0;
    while drained < JOBS {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut ids = Vec::with_capacity(CLAIM_BATCH);
        {
            let mut claim = connection.prepare_cached(
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
        let mut delete = connection.prepare_cached("DELETE FROM jobs WHERE id = ?1")?;
        for id in &ids {
            delete.execute([id])?;
        }
        connection.execute_batch("COMMIT")?;
        drained += ids.len();
    }
    Ok((insert, rate(JOBS, started)))
}

async fn ours(file: &Path, keep: Duration) -> Result<(f64, f64)> {
    let store = SqliteStore::open(file).await?;
    let (holder, lane) = prepare(&store).await?;
    let random = Random::seeded(1);
    let jobs: Vec<NewJob> = (0..JOBS)
        .map(|nth| {
            // Ten per millisecond, as from a busy submitter.
            let made = Timestamp::from_millis(1_700_000_000_000 + nth as i64 / 10);
            NewJob::new(JobId::new(made, &random), lane.kind.clone(), vec![7; PAYLOAD_BYTES])
        })
        .collect();
    let started = now();
    for batch in jobs.chunks(INSERT_BATCH) {
        store.insert(&Insert::new(batch)).await?;
    }
    let insert = rate(JOBS, started);
    let visits = [Visit {
        lane,
        limit: CLAIM_BATCH,
        attempt_timeout: Duration::from_secs(30),
        attempt_timeout_ceiling: Duration::from_secs(3_600),
        grace: Duration::from_secs(5),
    }];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: CLAIM_BATCH };
    let started = now();
    let mut drained = 0;
    while drained < JOBS {
        let claimed = store.claim(&claim).await?;
        ensure!(!claimed.is_empty(), "only {drained} of {JOBS} jobs were found");
        let keep = Retain { job: keep, key: keep };
        let settlements: Vec<Settlement> = claimed
            .iter()
            .map(|leased: &Leased| Settlement { keep, ..Settlement::succeed(leased.lease()) })
            .collect();
        for settled in store.settle(holder, &settlements).await? {
            ensure!(matches!(settled, Settled::Applied(Outcome::LetGo(_))), "lost: {settled:?}");
        }
        drained += claimed.len();
    }
    Ok((insert, rate(JOBS, started)))
}

async fn prepare(store: &SqliteStore) -> Result<(HolderId, Lane)> {
    let kind = KindName::parse("bench")?;
    let new = NewKind {
        name: kind.clone(),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    store.put_kinds(&[new], &Actor::new("bench")).await?;
    let id = HolderId::new(Timestamp::from_millis(0), &Random::seeded(2));
    let lease_ttl = Duration::from_secs(60);
    let (name, role, format) = ("bench".to_owned(), Role::Engine, Format::CURRENT);
    store.join(&NewHolder { id, name, role, lease_ttl, format }).await?;
    Ok((id, Lane { kind, tenant: None, priority: Priority::DEFAULT, shard: Shard::NONE }))
}

#[expect(clippy::disallowed_methods, reason = "the time that passes is what is measured here")]
fn now() -> Instant {
    Instant::now()
}

mod pages;
