//! Runs jobs at a steady rate for a long time, and judges whether sizes stay flat and statements stay as fast as they were.

mod plot;

use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::machine::{self, Machine};
use crate::queue::load::{micros, quantile};
use crate::server::{About, Database, Server, StatementTotals};
use crate::steady::{Pace, Steady};

/// The time between two samples.
const EVERY: Duration = Duration::from_secs(5);
/// Sizes are judged from the time when the first jobs have been deleted, and this much later.
const SETTLED: Duration = Duration::from_secs(60);
/// Statements are judged after this time: before, plans and caches are cold.
const WARM_UP: Duration = Duration::from_secs(30);
/// Maximum size or mean time at the end, relative to the start.
const TARGET: f64 = 1.1;
/// Fewer calls than this in the first or last part are not judged.
const CALLS_MIN: f64 = 100.0;
/// Relations below this size are not judged: some pages more or less change the ratio.
const BYTES_MIN: i64 = 8 << 20;

#[derive(Debug, Serialize)]
struct Soak {
    machine: Machine,
    store: About,
    rate: usize,
    seconds: u64,
    keep_seconds: u64,
    payload_bytes: usize,
    jobs: usize,
    verdicts: Vec<Verdict>,
    samples: Vec<Sample>,
}

/// What was measured in one interval, or at its end.
#[derive(Clone, Debug, Serialize)]
struct Sample {
    /// Since the start.
    seconds: f64,
    p50_ms: f64,
    p99_ms: f64,
    table_bytes: i64,
    index_bytes: i64,
    dead_rows: i64,
    /// Tables with their TOAST data, and indexes.
    relations: BTreeMap<String, i64>,
    statements: BTreeMap<String, StatementTotals>,
}

#[derive(Debug, Serialize)]
struct Verdict {
    what: String,
    first: f64,
    last: f64,
    ratio: f64,
    target: f64,
    pass: bool,
}

/// Writes the samples to `OUT.json` and a plot to `OUT.svg`, and prints the verdicts.
pub async fn print(server: &Server, pace: Pace, lasts: Duration, out: &str) -> Result<()> {
    let database = server.create("soak").await?;
    let measured = measure(server, &database, pace, lasts).await;
    server.drop(database).await?;
    let (jobs, samples) = measured?;
    let soak = Soak {
        machine: machine::describe(),
        store: server.about.clone(),
        rate: pace.rate,
        seconds: lasts.as_secs(),
        keep_seconds: pace.keep.as_secs(),
        payload_bytes: pace.payload_bytes,
        jobs,
        verdicts: judge(&samples, pace.keep),
        samples,
    };
    write(Path::new(out), "json", &serde_json::to_string_pretty(&soak)?)?;
    write(Path::new(out), "svg", &plot::svg(&soak.samples))?;
    println!("{jobs} jobs at {}/s, kept for {:?}; {out}.json, {out}.svg", pace.rate, pace.keep);
    println!("{:<36}{:>12}{:>12}{:>8}{:>8}", "", "first", "last", "ratio", "target");
    for Verdict { what, first, last, ratio, target, pass } in &soak.verdicts {
        let word = if *pass { "pass" } else { "MISS" };
        println!("{what:<36}{first:>12.3}{last:>12.3}{ratio:>8.2}{target:>8}  {word}");
    }
    if soak.verdicts.iter().all(|verdict| verdict.what != TABLES) {
        println!("too short to judge sizes: run longer than twice the retention");
    }
    Ok(())
}

fn write(out: &Path, ending: &str, text: &str) -> Result<()> {
    let file = out.with_extension(ending);
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

async fn measure(
    server: &Server,
    database: &Database,
    pace: Pace,
    lasts: Duration,
) -> Result<(usize, Vec<Sample>)> {
    let mut steady = Steady::start(database, pace).await?;
    let started = micros();
    let elapsed = || Duration::from_micros(micros().saturating_sub(started));
    let mut samples: Vec<Sample> = Vec::new();
    let mut before = server.statement_totals(database).await;
    while elapsed() < lasts {
        let waits = steady.run(EVERY).await?;
        let after = server.statement_totals(database).await;
        let relations = database.relations().await?;
        let total = |is_index| {
            let of_sort = relations.iter().filter(|relation| relation.is_index == is_index);
            of_sort.map(|relation| relation.bytes).sum()
        };
        let figure = |part| quantile(&waits, part).unwrap_or(f64::NAN);
        let sample = Sample {
            seconds: elapsed().as_secs_f64(),
            p50_ms: figure(0.5),
            p99_ms: figure(0.99),
            table_bytes: total(false),
            index_bytes: total(true),
            dead_rows: database.dead_rows().await?,
            relations: relations.into_iter().map(|one| (one.name, one.bytes)).collect(),
            statements: since(&before, &after),
        };
        println!(
            "{:>6.0} s  tables {:>6} MB  indexes {:>6} MB  dead rows {:>8}  p50 {:.1} ms  p99 {:.1} ms",
            sample.seconds,
            sample.table_bytes >> 20,
            sample.index_bytes >> 20,
            sample.dead_rows,
            sample.p50_ms,
            sample.p99_ms
        );
        samples.push(sample);
        before = after;
    }
    let jobs = steady.submitted();
    steady.end().await?;
    Ok((jobs, samples))
}

/// Returns what was counted between two readings, by statement.
fn since(
    before: &BTreeMap<String, StatementTotals>,
    after: &BTreeMap<String, StatementTotals>,
) -> BTreeMap<String, StatementTotals> {
    let since = |(name, after): (&String, &StatementTotals)| {
        let before = before.get(name).copied().unwrap_or_default();
        let counted =
            StatementTotals { calls: after.calls - before.calls, ms: after.ms - before.ms };
        (name.clone(), counted)
    };
    after.iter().map(since).collect()
}

const TABLES: &str = "tables, MB";

fn judge(samples: &[Sample], keep: Duration) -> Vec<Verdict> {
    let end = samples.last().map_or(0.0, |sample| sample.seconds);
    let mut verdicts = judge_sizes(samples, (keep + SETTLED).as_secs_f64(), end);
    verdicts.extend(judge_statements(samples, end));
    verdicts
}

/// Compares the largest sizes of the first quarter and the last one.
fn judge_sizes(samples: &[Sample], start: f64, end: f64) -> Vec<Verdict> {
    let quarter = (end - start) / 4.0;
    let first = between(samples, start, start + quarter);
    let last = between(samples, end - quarter, end);
    if quarter <= 0.0 || first.is_empty() || end < 2.0 * start {
        return Vec::new();
    }
    let largest = |of: &[&Sample], size: &dyn Fn(&Sample) -> i64| {
        of.iter().map(|sample| size(sample)).max().unwrap_or_default()
    };
    let mut verdicts = Vec::new();
    let mut add = |what: String, size: &dyn Fn(&Sample) -> i64| {
        let (first, last) = (largest(&first, size), largest(&last, size));
        if last >= BYTES_MIN {
            let mb = |bytes: i64| bytes as f64 / f64::from(1 << 20);
            verdicts.push(Verdict::new(what, mb(first), mb(last)));
        }
    };
    add(TABLES.to_owned(), &|sample| sample.table_bytes);
    add("indexes, MB".to_owned(), &|sample| sample.index_bytes);
    for name in last.last().map(|sample| sample.relations.keys()).into_iter().flatten() {
        // What did not exist then is part of the sum.
        if first.iter().any(|sample| sample.relations.contains_key(name)) {
            let size = |sample: &Sample| sample.relations.get(name).copied().unwrap_or_default();
            add(format!("{name}, MB"), &size);
        }
    }
    verdicts
}

/// Compares the mean times of the first tenth and the last one.
fn judge_statements(samples: &[Sample], end: f64) -> Vec<Verdict> {
    let start = WARM_UP.as_secs_f64().min(end / 10.0);
    let tenth = (end - start) / 10.0;
    let (first, last) =
        (between(samples, start, start + tenth), between(samples, end - tenth, end));
    let sum = |of: &[&Sample], name: &String| {
        let totals = of.iter().filter_map(|sample| sample.statements.get(name));
        totals.fold(StatementTotals::default(), |sum, one| StatementTotals {
            calls: sum.calls + one.calls,
            ms: sum.ms + one.ms,
        })
    };
    let names = last.last().map(|sample| sample.statements.keys()).into_iter().flatten();
    let mut verdicts = Vec::new();
    for name in names {
        let (first, last) = (sum(&first, name), sum(&last, name));
        if first.calls.min(last.calls) >= CALLS_MIN {
            verdicts.push(Verdict::new(format!("{name}, ms"), first.mean(), last.mean()));
        }
    }
    verdicts
}

fn between(samples: &[Sample], from: f64, until: f64) -> Vec<&Sample> {
    samples.iter().filter(|sample| (from..=until).contains(&sample.seconds)).collect()
}

impl Verdict {
    fn new(what: String, first: f64, last: f64) -> Verdict {
        let ratio = last / first;
        Verdict { what, first, last, ratio, target: TARGET, pass: ratio <= TARGET }
    }
}
