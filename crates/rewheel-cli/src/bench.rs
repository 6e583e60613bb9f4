//! Benchmarks this machine: the rates at which jobs are submitted, run and started by the timing wheel, and the start latency.

mod store_location;
mod raw;
#[cfg(feature = "postgres")]
mod server;
mod subject;
mod load;
mod callback;
mod scale;
mod report;

use self::load::{Load, Measured};
use self::report::{Report, Row};
use self::store_location::Place;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use rewheel::duration;
use rewheel_core::SecretUrl;
use rewheel_server::telemetry::{Telemetry, TelemetrySettings};
use std::time::Duration;

/// The arguments of `rewheel bench`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// Name the benchmarks to run (default: all except `groups`, `chains`, `waiters` and `scale`)
    #[arg(value_enum)]
    pub(crate) what: Vec<Bench>,
    /// Measure this store (default: a temporary SQLite file); on PostgreSQL, in temporary schemas
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<SecretUrl>,
    /// Run this many jobs per round (default 50000; `scale` stores 10000000 jobs that wait)
    #[arg(long)]
    pub(crate) jobs: Option<usize>,
    /// For the benchmark `scale`: spread the jobs over this many tenants
    #[arg(long, default_value_t = 100_000)]
    pub(crate) tenants: usize,
    /// For the benchmark `scale`: spread the jobs over this many kinds
    #[arg(long, default_value_t = 10_000)]
    pub(crate) kinds: usize,
    /// For the benchmark `scale`: run this many engines on the store
    #[arg(long, default_value_t = 100)]
    pub(crate) nodes: usize,
    /// For the benchmark `scale`: register this many remote workers
    #[arg(long, default_value_t = 1_000)]
    pub(crate) workers: usize,
    /// For the benchmark `scale`: measure idle engines for this long
    #[arg(long, default_value = "20s", value_parser = parse_duration)]
    pub(crate) idle: Duration,
    /// Give each job a payload of this size
    #[arg(long, default_value_t = 200)]
    pub(crate) payload_bytes: usize,
    /// Spread the jobs over this many shard keys; 0 means no shard keys
    #[arg(long, default_value_t = 0)]
    pub(crate) shard_keys: usize,
    /// Run this many rounds, and report the median
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Also measure a plain table on the same disk or PostgreSQL server, for comparison
    #[arg(long)]
    pub(crate) raw: bool,
    /// Keep succeeded jobs for this long
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    pub(crate) keep_succeeded: Duration,
    /// Also drain jobs that give a result of this size, for comparison; needs --keep-succeeded
    #[arg(long, value_name = "NUMBER")]
    pub(crate) result_bytes: Option<usize>,
    /// Send spans and metrics to this OpenTelemetry collector, such as http://127.0.0.1:4318
    #[arg(long)]
    pub(crate) otlp: Option<String>,
}

/// The number of jobs in each group of the benchmark `groups`.
const GROUP_OF: usize = 10;

/// The number of jobs in each chain of the benchmark `chains`.
const CHAIN_OF: usize = 5;

/// The number of callers that wait in the benchmark `waiters`.
const WAITERS: usize = 10_000;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bench {
    /// Submit jobs, a thousand at a time
    Submit,
    /// Claim jobs, run them and store their results
    Drain,
    /// Measure the time from submit to handler, one job at a time
    Latency,
    /// Measure how late delayed jobs start, compared with a plain sleep
    Wheel,
    /// Call a local echo server by HTTP callbacks, compared with `wrk` if that is installed
    Callback,
    /// Submit and drain jobs in groups of ten, compared with the same jobs without groups; not run by default
    Groups,
    /// Run chains of five jobs, where each job submits the next one, compared with the same jobs without chains; not run by default
    Chains,
    /// Drain jobs while 10000 callers wait for other jobs, compared with the same jobs without waiters; not run by default
    Waiters,
    /// Compare a large store with a small store: idle nodes, claims, statistics; not run by default
    Scale,
}

fn parse_duration(text: &str) -> Result<Duration, duration::DurationError> {
    duration::parse(text)
}

impl BenchArgs {
    /// Returns the telemetry settings: no collector, unless one is given.
    fn telemetry(&self) -> TelemetrySettings {
        TelemetrySettings { otlp: self.otlp.clone(), ..TelemetrySettings::default() }
    }

    fn wants(&self, bench: Bench) -> bool {
        let is_rare =
            matches!(bench, Bench::Scale | Bench::Groups | Bench::Chains | Bench::Waiters);
        self.what.contains(&bench) || (self.what.is_empty() && !is_rare)
    }

    fn jobs(&self) -> usize {
        self.jobs.unwrap_or(50_000)
    }
}

/// Runs the benchmarks, and returns the report for `--json` and the table.
pub(crate) async fn run(args: &BenchArgs) -> Result<Report> {
    if args.rounds == 0 || args.jobs() == 0 {
        bail!("--rounds and --jobs must be 1 or more");
    }
    if args.result_bytes.is_some() && args.keep_succeeded.is_zero() {
        bail!("--result-bytes needs --keep-succeeded: results are kept with their jobs");
    }
    if args.otlp.is_some() {
        crate::serve::log(Telemetry::start(&args.telemetry())?.layer());
    }
    let place = Place::of(args).await?;
    let mut rounds = Rounds::default();
    let scale = match args.wants(Bench::Scale) {
        true => Some(scale::run(args, &place).await?),
        false => None,
    };
    for round in 0..args.rounds {
        rounds.add(args, &place, round).await?;
    }
    let mut report = Report::new(place.about().await?);
    rounds.tell(args, &mut report);
    report.scale = scale;
    Ok(report)
}

#[derive(Default)]
struct Rounds {
    submit: Vec<f64>,
    drain: Vec<f64>,
    drain_results: Vec<f64>,
    raw_submit: Vec<f64>,
    raw_drain: Vec<f64>,
    claimed: Vec<f64>,
    direct: Vec<f64>,
    fired: Vec<f64>,
    slept: Vec<f64>,
    called: Vec<f64>,
    wrk: Vec<f64>,
    groups: Compared,
    chains: Compared,
    waiters: Compared,
}

/// A load, and the same jobs as a plain load, in turn.
#[derive(Default)]
struct Compared {
    load: Vec<Measured>,
    plain: Vec<Measured>,
}

impl Compared {
    /// Measures both, one after the other, so that both meet the same disk and the same neighbours.
    async fn add(&mut self, args: &BenchArgs, place: &Place, name: &str, load: Load) -> Result<()> {
        for (load, rounds, what) in
            [(Load::Plain, &mut self.plain, "plain"), (load, &mut self.load, "load")]
        {
            rounds.push(measure(args, place, &format!("{name}_{what}"), load).await?);
        }
        Ok(())
    }

    /// Adds a row for each of both.
    fn tell(
        &self,
        report: &mut Report,
        bench: &'static str,
        [load, plain]: [&'static str; 2],
        rate: fn(&Measured) -> f64,
    ) {
        let rates = |rounds: &[Measured]| rounds.iter().map(rate).collect::<Vec<f64>>();
        let (loaded, plain_rates) = (rates(&self.load), rates(&self.plain));
        report.add(Row::rates(bench, load, loaded).versus(plain, &plain_rates));
        report.add(Row::rates(bench, plain, plain_rates));
    }
}

/// Submits and drains a load once, in a store of its own.
async fn measure(args: &BenchArgs, place: &Place, name: &str, load: Load) -> Result<Measured> {
    let measured = load::round(&place.make(name).await?, args, load).await;
    place.clear(name).await?;
    measured
}

impl Rounds {
    /// Measures everything once, each benchmark in its own store.
    async fn add(&mut self, args: &BenchArgs, place: &Place, round: usize) -> Result<()> {
        let name = |bench: &str| format!("{bench}_{round}");
        if args.wants(Bench::Submit) || args.wants(Bench::Drain) {
            if args.raw {
                let (submit, drain) = place.raw(args, &name("raw")).await?;
                self.raw_submit.push(submit);
                self.raw_drain.push(drain);
            }
            let measured = measure(args, place, &name("drain"), Load::Plain).await?;
            self.submit.push(measured.submit);
            self.drain.push(measured.drain);
            if let Some(bytes) = args.result_bytes {
                let load = Load::WithResults { bytes };
                let measured = measure(args, place, &name("results"), load).await?;
                self.drain_results.push(measured.drain);
            }
        }
        for (bench, compared, of, load) in [
            (Bench::Groups, &mut self.groups, "groups", Load::InGroups { of: GROUP_OF }),
            (Bench::Chains, &mut self.chains, "chains", Load::InChains { of: CHAIN_OF }),
            (Bench::Waiters, &mut self.waiters, "waiters", Load::WithWaiters { waiters: WAITERS }),
        ] {
            if args.wants(bench) {
                compared.add(args, place, &name(of), load).await?;
            }
        }
        if args.wants(Bench::Latency) {
            let name = name("latency");
            let measured = subject::latency(&place.make(&name).await?).await;
            place.clear(&name).await?;
            let (claimed, direct) = measured?;
            self.claimed.extend(claimed);
            self.direct.extend(direct);
        }
        if args.wants(Bench::Wheel) {
            let name = name("wheel");
            let measured = subject::firing(&place.make(&name).await?).await;
            place.clear(&name).await?;
            let (fired, slept) = measured?;
            self.fired.extend(fired);
            self.slept.extend(slept);
        }
        if args.wants(Bench::Callback) {
            let name = name("callback");
            let measured = callback::round(&place.make(&name).await?, args.jobs()).await;
            place.clear(&name).await?;
            let (called, wrk) = measured?;
            self.called.push(called);
            self.wrk.extend(wrk);
        }
        Ok(())
    }

    fn tell(self, args: &BenchArgs, report: &mut Report) {
        let rate = |bench, rounds: Vec<f64>, raw: &[f64]| {
            Row::rates(bench, "rewheel", rounds).versus("raw", raw)
        };
        if args.wants(Bench::Submit) {
            report.add(rate("submit", self.submit, &self.raw_submit));
        }
        if args.wants(Bench::Drain) {
            if args.result_bytes.is_some() {
                let row = Row::rates("drain", "with results", self.drain_results);
                report.add(row.versus("rewheel", &self.drain));
            }
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
        if args.wants(Bench::Groups) {
            let names = ["groups of 10", "no groups"];
            self.groups.tell(report, "submit", names, |measured| measured.submit);
            self.groups.tell(report, "drain", names, |measured| measured.drain);
        }
        if args.wants(Bench::Chains) {
            // Followers are submitted during the drain: both times count.
            self.chains
                .tell(report, "chains", ["chains of 5", "no chains"], |measured| measured.total);
        }
        if args.wants(Bench::Waiters) {
            self.waiters
                .tell(report, "drain", ["10k waiters", "no waiters"], |measured| measured.drain);
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
