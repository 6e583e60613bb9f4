//! Code shared by the programs that measure other queues: database setup, payloads, figures, the submitting process.
//!
//! ```text
//! PEER URL JOBS PAYLOAD_BYTES SAMPLES          measures, one line of JSON for each figure
//! PEER submit URL SAMPLES PAYLOAD_BYTES        the other process, which only submits
//! ```

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, NoTls};

const BATCH: usize = 1_000;
/// The first jobs of a process find cold caches; they are not measured.
const WARM_UP: usize = 30;
/// A job that has not started this long after the last one was submitted counts as missing.
const GIVE_UP: Duration = Duration::from_secs(5);
/// A drain that takes longer than this has failed.
const DRAIN_MAX: Duration = Duration::from_secs(120);

/// The payload of every job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payload {
    /// When it was created, in microseconds since boot: the same clock in every process.
    pub at: u64,
    /// Its number in its series.
    pub nth: usize,
    /// Fills the payload to the requested size.
    pub pad: String,
}

impl Payload {
    fn new(bytes: usize, nth: usize) -> Result<Payload> {
        let mut payload = Payload { at: micros(), nth, pad: String::new() };
        let bare = serde_json::to_string(&payload)?.len();
        payload.pad = "x".repeat(bytes.saturating_sub(bare));
        Ok(payload)
    }
}

/// What handlers do with a job.
pub type OnJob = Arc<dyn Fn(&Payload) + Send + Sync>;

/// A queue on PostgreSQL.
pub trait Peer: Sized {
    /// Part of the name of its database.
    const NAME: &'static str;
    /// Whether it is faster with fresh statistics of its tables.
    const ANALYZE: bool;

    /// Creates its tables if they do not exist yet.
    fn open(url: &str) -> impl Future<Output = Result<Self>>;
    /// Stores a batch.
    fn insert(&mut self, batch: Vec<Payload>) -> impl Future<Output = Result<()>>;
    /// Stores a single job.
    fn submit(&mut self, job: Payload) -> impl Future<Output = Result<()>>;
    /// Starts the worker.
    fn work(&mut self, on_job: OnJob) -> impl Future<Output = Result<()>>;
    /// Returns the number of jobs that are not done.
    fn left(&mut self, sql: &Client) -> impl Future<Output = Result<i64>>;
}

/// Runs the command of the command line.
pub fn run<P: Peer>() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize| -> Result<usize> {
        let text = arguments.get(nth).context("see the first lines of this program")?;
        text.parse().with_context(|| format!("`{text}` is not a number"))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = match arguments.first().map(String::as_str) {
        Some("submit") => {
            let url = arguments.get(1).context("no URL")?;
            runtime.block_on(submit_side::<P>(url, number(2)?, number(3)?))
        }
        Some(url) => runtime.block_on(measure::<P>(url, number(1)?, number(2)?, number(3)?)),
        None => bail!("usage: URL JOBS PAYLOAD_BYTES SAMPLES"),
    };
    // Some workers cannot be stopped.
    runtime.shutdown_background();
    done
}

async fn measure<P: Peer>(server: &str, jobs: usize, bytes: usize, samples: usize) -> Result<()> {
    let name = format!("rewheel_bench_{}_{}", P::NAME, std::process::id());
    let url = with_database(server, &name)?;
    let admin = connect(server).await?;
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await?;
    let done = figures::<P>(&url, jobs, bytes, samples).await;
    admin.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await?;
    done
}

async fn figures<P: Peer>(url: &str, jobs: usize, bytes: usize, samples: usize) -> Result<()> {
    let mut peer = P::open(url).await?;
    let started = micros();
    for first in (0..jobs).step_by(BATCH) {
        let batch = (first..jobs.min(first + BATCH)).map(|nth| Payload::new(bytes, nth));
        peer.insert(batch.collect::<Result<_>>()?).await?;
    }
    tell(&json!({"bench": "submit", "unit": "jobs/s", "value": rate(jobs, started)}));

    let sql = connect(url).await?;
    if P::ANALYZE {
        sql.batch_execute("VACUUM ANALYZE").await?;
    }
    let seen = Arc::new(Seen { until: jobs, ..Seen::default() });
    let now = Arc::new(Mutex::new(Arc::clone(&seen)));
    let shared = Arc::clone(&now);
    let started = micros();
    peer.work(Arc::new(move |job| {
        let seen = Arc::clone(&shared.lock().expect("no holder of the lock panics"));
        seen.add(job);
    }))
    .await?;
    let all = timeout(DRAIN_MAX, seen.all.notified()).await;
    ensure!(all.is_ok(), "only {} of {jobs} jobs were run", seen.count.load(Ordering::Relaxed));
    while peer.left(&sql).await? > 0 {
        sleep(Duration::from_millis(2)).await;
    }
    tell(&json!({"bench": "drain", "unit": "jobs/s", "value": rate(jobs, started)}));
    drop(sql);
    if samples > 0 {
        let seen = Arc::new(Seen { until: WARM_UP + samples, ..Seen::default() });
        *now.lock().expect("no holder of the lock panics") = Arc::clone(&seen);
        latency(url, bytes, samples, &seen).await?;
    }
    Ok(())
}

async fn latency(url: &str, bytes: usize, samples: usize, seen: &Seen) -> Result<()> {
    sleep(Duration::from_secs(1)).await;
    let status = tokio::process::Command::new(std::env::current_exe()?)
        .args(["submit", url, &samples.to_string(), &bytes.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .await?;
    ensure!(status.success(), "the other process failed");
    let _ = timeout(GIVE_UP, seen.all.notified()).await;
    let mut waits = seen.waits.lock().expect("no holder of the lock panics").clone();
    waits.sort_by(f64::total_cmp);
    let part = |p: f64| waits.get((waits.len().max(1) as f64 * p - p).round() as usize).copied();
    tell(&json!({"bench": "latency", "unit": "ms", "p50": part(0.5), "p99": part(0.99),
                 "missing": samples - waits.len()}));
    Ok(())
}

async fn submit_side<P: Peer>(url: &str, samples: usize, bytes: usize) -> Result<()> {
    let mut peer = P::open(url).await?;
    for nth in 0..WARM_UP + samples {
        // An interval that does not align with a polling interval.
        sleep(Duration::from_millis(15 + (nth as u64 * 7) % 21)).await;
        peer.submit(Payload::new(bytes, nth)?).await?;
    }
    Ok(())
}

/// The jobs that handlers saw.
#[derive(Default)]
struct Seen {
    until: usize,
    count: AtomicUsize,
    waits: Mutex<Vec<f64>>,
    all: Notify,
}

impl Seen {
    fn add(&self, job: &Payload) {
        if job.nth >= WARM_UP && self.until < 10 * BATCH {
            let wait = micros().saturating_sub(job.at) as f64 / 1e3;
            self.waits.lock().expect("no holder of the lock panics").push(wait);
        }
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.until {
            self.all.notify_one();
        }
    }
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn with_database(server: &str, name: &str) -> Result<String> {
    let authority = server.find("://").context("not a URL")? + 3;
    let end = server[authority..].find(['/', '?']).map_or(server.len(), |at| authority + at);
    let settings = server.find('?').map_or("", |at| &server[at..]);
    Ok(format!("{}/{name}{settings}", &server[..end]))
}

fn micros() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

fn rate(jobs: usize, started: u64) -> f64 {
    jobs as f64 / ((micros() - started) as f64 / 1e6)
}

#[expect(clippy::print_stdout, reason = "figures are what this prints")]
fn tell(figure: &Value) {
    println!("{figure}");
}
