//! Measures this machine: how fast jobs are taken in, run, started, and fired.

mod callback;
mod raw;
mod subject;
mod report;

use self::report::{Report, Row};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rewheel::duration;
use std::path::PathBuf;
use std::time::Duration;

/// What `rewheel bench` takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure; everything if it is not said
    #[arg(value_enum)]
    pub(crate) what: Vec<Bench>,
    /// The store; a fresh file in a temporary folder beside you if it is not said
    #[arg(long)]
    pub(crate) store: Option<String>,
    /// How many jobs a round has
    #[arg(long, default_value_t = 50_000)]
    pub(crate) jobs: usize,
    /// How large a payload is
    #[arg(long, default_value_t = 200)]
    pub(crate) payload_bytes: usize,
    /// How many rounds; the median counts
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Also what the same disk does with one table and nothing promised
    #[arg(long)]
    pub(crate) raw: bool,
    /// How long succeeded jobs are kept
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    pub(crate) keep_succeeded: Duration,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bench {
    /// Jobs taken in, a thousand at a time
    Submit,
    /// Jobs claimed, run and settled
    Drain,
    /// From submit to handler, one job at a time
    Latency,
    /// How late jobs with a delay start, beside a plain sleep
    Wheel,
    /// HTTP callbacks to a local echo server, beside `wrk` on the same one where it is installed
    Callback,
}

fn parse_duration(text: &str) -> Result<Duration, duration::DurationError> {
    duration::parse(text)
}

impl BenchArgs {
    fn wants(&self, bench: Bench) -> bool {
        self.what.is_empty() || self.what.contains(&bench)
    }

    /// The store of one round. A file that is named is used as it is, and must be empty.
    fn url(&self, folder: &std::path::Path, round: usize) -> String {
        match &self.store {
            Some(url) => url.clone(),
            None => format!("sqlite://{}", folder.join(format!("{round}.db")).display()),
        }
    }
}

/// Measures, and returns the document that `--json` prints and a table for people.
pub(crate) async fn run(args: &BenchArgs) -> Result<Report> {
    if args.rounds == 0 || args.jobs == 0 {
        bail!("a bench needs at least one round of one job: check --rounds, --jobs");
    }
    if args.store.is_some() && args.rounds > 1 && args.what.len() != 1 {
        bail!("with --store name one bench: its rounds follow each other in that store");
    }
    let folder = Folder::new()?;
    let mut report = Report::new();
    let mut rounds = Rounds::default();
    for round in 0..args.rounds {
        let path = folder.0.as_path();
        if args.raw && (args.wants(Bench::Submit) || args.wants(Bench::Drain)) {
            let file = path.join(format!("raw-{round}.db"));
            let (insert, drain) = raw::round(&file, args.jobs, args.payload_bytes)?;
            rounds.raw_submit.push(insert);
            rounds.raw_drain.push(drain);
        }
        if args.wants(Bench::Submit) || args.wants(Bench::Drain) {
            let url = args.url(path, round);
            let (submit, drain) = subject::round(&url, args).await?;
            rounds.submit.push(submit);
            rounds.drain.push(drain);
        }
        if args.wants(Bench::Latency) {
            let url = args.url(path, 1_000 + round);
            let (claimed, direct) = subject::latency(&url).await?;
            rounds.claimed.extend(claimed);
            rounds.direct.extend(direct);
        }
        if args.wants(Bench::Wheel) {
            let url = args.url(path, 2_000 + round);
            let (fired, slept) = subject::firing(&url).await?;
            rounds.fired.extend(fired);
            rounds.slept.extend(slept);
        }
        if args.wants(Bench::Callback) {
            let url = args.url(path, 3_000 + round);
            let (called, wrk) = callback::round(&url, args.jobs).await?;
            rounds.called.push(called);
            rounds.wrk.extend(wrk);
        }
    }
    rounds.tell(args, &mut report);
    Ok(report)
}

#[derive(Default)]
struct Rounds {
    submit: Vec<f64>,
    drain: Vec<f64>,
    raw_submit: Vec<f64>,
    raw_drain: Vec<f64>,
    claimed: Vec<f64>,
    direct: Vec<f64>,
    fired: Vec<f64>,
    slept: Vec<f64>,
    called: Vec<f64>,
    wrk: Vec<f64>,
}

impl Rounds {
    fn tell(self, args: &BenchArgs, report: &mut Report) {
        let rate = |bench, rounds: Vec<f64>, raw: &[f64]| {
            Row::rates(bench, "rewheel", rounds).versus("raw", raw)
        };
        if args.wants(Bench::Submit) {
            report.add(rate("submit", self.submit, &self.raw_submit));
        }
        if args.wants(Bench::Drain) {
            report.add(rate("drain", self.drain, &self.raw_drain));
        }
        if args.raw {
            report.add(Row::rates("submit", "raw", self.raw_submit));
            report.add(Row::rates("drain", "raw", self.raw_drain));
        }
        if args.wants(Bench::Latency) {
            report.add(Row::times("latency", "claimed", self.claimed));
            report.add(Row::times("latency", "direct", self.direct));
        }
        if args.wants(Bench::Wheel) {
            report.add(Row::times("wheel", "rewheel", self.fired));
            report.add(Row::times("wheel", "tokio sleep", self.slept));
        }
        if args.wants(Bench::Callback) {
            let row = Row::rates("callback", "rewheel", self.called);
            report.add(row.versus("wrk", &self.wrk));
            if !self.wrk.is_empty() {
                report.add(Row::rates("callback", "wrk", self.wrk));
            }
        }
    }
}

/// A folder on the disk that the user stands on: a temporary one is often not a disk.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        let path = PathBuf::from(format!(".rewheel-bench-{}", std::process::id()));
        std::fs::create_dir(&path)
            .with_context(|| format!("cannot make `{}`: go where you may write", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind says so by its name.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
