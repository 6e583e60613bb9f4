//! Defines the arguments of `rewheel lab`.

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, Subcommand};
use rewheel::duration;
use rewheel_core::SecretUrl;
use rewheel_lab::{Fault, Latency, Policy};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// The forms of a policy, for the help.
const POLICIES: &str = "Policies are written as in config files: `none`, `external_api`, or `4 attempts, exponential 100ms max 10s`. Other policies can follow, \
separated by commas: `timeout 5s`, `hedge 50ms`, `budget 10% floor 1`, `limit 50/s`, `throttle 2`, `breaker`, `bulkhead 4`, `adaptive 1..50`.\nThe same --seed gives the same result.";

#[derive(Debug, ClapArgs)]
#[command(after_help = POLICIES)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: Option<LabCommand>,
    #[command(flatten)]
    pub(crate) recorded: Recorded,
    #[command(flatten)]
    pub(crate) outage: OutageArgs,
    #[command(flatten)]
    pub(crate) common: LabCommon,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Let the dependency fail for 20 seconds (the default scenario)
    Outage(ScenarioArgs<OutageArgs>),
    /// Make twice as many calls for 20 seconds, more than the dependency can serve
    Overload(ScenarioArgs<OverloadArgs>),
    /// Let each request fail with the same probability
    Flaky(ScenarioArgs<FlakyArgs>),
    /// Let many clients update the same row with optimistic locking
    Contention(ScenarioArgs<ContentionArgs>),
    /// Show how retries hold a dependency down after a fault of 5 seconds
    Metastable(ScenarioArgs<OutageArgs>),
    /// Work off a backlog of jobs after an outage, with and without parking and ramp
    Recovery(ScenarioArgs<RecoveryArgs>),
    /// Call a chain of three services that all retry, with and without the guard against nested retries
    Fleet(ScenarioArgs<OutageArgs>),
    /// Show the delays between the attempts of policies
    Delays(DelayArgs),
    /// Compare no retry, retry, and retry with budget and breaker
    Compare(LabCommon),
}

/// The arguments of a scenario, and those that all have.
#[derive(Debug, ClapArgs)]
#[command(after_help = POLICIES)]
pub(crate) struct ScenarioArgs<A: ClapArgs> {
    #[command(flatten)]
    pub(crate) own: A,
    #[command(flatten)]
    pub(crate) common: LabCommon,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LabCommon {
    /// Set the random seed
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Also write a report with charts to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Recorded {
    /// Replay the recorded jobs of this store with other policies, and propose settings
    #[arg(long, value_name = "STORE", requires = "kind", conflicts_with = "traffic")]
    pub(crate) from: Option<SecretUrl>,
    /// Choose the kind of the recorded jobs
    #[arg(long, requires = "from")]
    pub(crate) kind: Option<String>,
    /// Read the jobs that were submitted in this time (default 7d)
    #[arg(long, value_name = "DURATION", requires = "from", value_parser = duration::parse)]
    pub(crate) since: Option<Duration>,
}

/// Clients and their dependency. What is not set has the default of the scenario.
#[derive(Debug, ClapArgs)]
#[group(id = "traffic", multiple = true)]
pub(crate) struct Traffic {
    /// Simulate this policy (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    pub(crate) policies: Vec<Policy>,
    /// Simulate this many client processes (default 100; overload 20; fleet 10)
    #[arg(long)]
    pub(crate) clients: Option<u32>,
    /// Make this many calls per second in total (default 500; overload 800; metastable 600; fleet 100)
    #[arg(long)]
    pub(crate) rate: Option<u32>,
    /// Let the dependency serve this many requests per second (default 1000; flaky 2000)
    #[arg(long)]
    pub(crate) capacity: Option<u32>,
    /// Let a request take this long: `20ms`, `exponential 20ms`, `normal 10ms 2ms` or `lognormal 20ms p99 200ms` (default 20ms)
    #[arg(long)]
    pub(crate) latency: Option<Latency>,
    /// Let the dependency reject requests that would wait longer than this (default: never)
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) sheds_after: Option<Duration>,
    /// Limit the duration of one attempt (default 1s)
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Make calls for this long (default 2m; flaky 1m)
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) lasts: Option<Duration>,
}

#[derive(Debug, ClapArgs)]
#[group(skip)]
pub(crate) struct OutageArgs {
    #[command(flatten)]
    pub(crate) traffic: Traffic,
    /// Let the dependency fail in this period (default 20s..40s; metastable 20s..25s; fleet 20s..30s)
    #[arg(long, value_name = "FROM..TO", value_parser = span, group = "traffic")]
    pub(crate) outage: Option<Range<Duration>>,
    /// Choose the fault: `hangs`, `fails`, or `x10` for ten times as slow (default hangs)
    #[arg(long, value_parser = fault, group = "traffic")]
    pub(crate) fault: Option<Fault>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct OverloadArgs {
    #[command(flatten)]
    pub(crate) traffic: Traffic,
    /// Make more calls in this period
    #[arg(long, value_name = "FROM..TO", default_value = "20s..40s", value_parser = span)]
    pub(crate) surge: Range<Duration>,
    /// Make this many times as many calls
    #[arg(long, default_value_t = 2.0, allow_negative_numbers = true)]
    pub(crate) times: f64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FlakyArgs {
    #[command(flatten)]
    pub(crate) traffic: Traffic,
    /// Let this share of the requests fail, 0 to 1
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    pub(crate) failure_ratio: f64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ContentionArgs {
    /// Simulate this many clients
    #[arg(long, default_value_t = 100)]
    pub(crate) clients: u32,
    /// Print means of this many runs
    #[arg(long, default_value_t = 100)]
    pub(crate) runs: u32,
    /// Simulate this retry instead of the five backoffs (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    pub(crate) policies: Vec<Policy>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RecoveryArgs {
    /// Retry jobs with this policy (default `100 attempts, exponential 1s max 30s`)
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<Policy>,
    /// Simulate this many nodes
    #[arg(long, default_value_t = 4)]
    pub(crate) nodes: usize,
    /// Let each node run this many attempts at the same time
    #[arg(long, default_value_t = 100)]
    pub(crate) slots: usize,
    /// Submit this many jobs per second
    #[arg(long, default_value_t = 250)]
    pub(crate) rate: u32,
    /// Let the service serve this many requests per second
    #[arg(long, default_value_t = 500)]
    pub(crate) capacity: u32,
    /// Let a request take this long
    #[arg(long, default_value = "20ms")]
    pub(crate) latency: Latency,
    /// Limit the duration of one attempt
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    pub(crate) timeout: Duration,
    /// Apply the fault in this period (a fault can also be slow or hang)
    #[arg(long, value_name = "FROM..TO", default_value = "20s..50s", value_parser = span)]
    pub(crate) outage: Range<Duration>,
    /// Choose the fault: `hangs`, `fails`, or `x10` for ten times as slow
    #[arg(long, default_value = "hangs", value_parser = fault)]
    pub(crate) fault: Fault,
    /// Probe a parked kind at this interval
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    pub(crate) probe_every: Duration,
    /// Submit jobs for this long
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = duration::parse)]
    pub(crate) lasts: Duration,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DelayArgs {
    /// Show the delays of this policy, such as `5 attempts, exponential 100ms` (default: each preset)
    #[arg(value_name = "POLICY")]
    pub(crate) policies: Vec<Policy>,
    /// Set the random seed
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

fn span(text: &str) -> Result<Range<Duration>> {
    let (from, to) = text.split_once("..").context("use FROM..TO, such as 20s..40s")?;
    Ok(duration::parse(from)?..duration::parse(to)?)
}

fn fault(text: &str) -> Result<Fault> {
    match text {
        "hangs" => Ok(Fault::Hangs),
        "fails" => Ok(Fault::Fails),
        _ => {
            let times = text.strip_prefix('x').and_then(|times| times.parse().ok());
            times.map(Fault::Slow).context("use `hangs`, `fails`, or a factor such as `x10`")
        }
    }
}
