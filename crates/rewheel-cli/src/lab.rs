//! Simulates retry policies against a failing dependency.

mod picture;

use crate::cli_error::{CliError, exit};
use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use rewheel::duration;
use rewheel_lab::{Dependency, Fault, Outcome, Policy, Second, Storm};
use serde_json::{Value, json};
use std::ops::Range;
use std::time::Duration;

/// The policies that are compared by default: from no retries to all features.
const POLICIES: [&str; 5] = [
    "none",
    "10 attempts, fixed 100ms",
    "4 attempts, exponential 100ms max 10s",
    "4 attempts, exponential 100ms max 10s, budget 10% floor 1",
    "4 attempts, exponential 100ms max 10s, budget 10% floor 1, breaker",
];

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// Simulate this retry policy: `none`, or a policy such as `4 attempts, fixed 100ms, budget 10%, breaker` (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<Policy>,
    /// Simulate this many client processes
    #[arg(long, default_value_t = 100)]
    clients: u32,
    /// Make this many calls per second in total
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Let the dependency serve this many requests per second
    #[arg(long, default_value_t = 1_000)]
    capacity: u32,
    /// Let the dependency take this long for a request
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = duration::parse)]
    latency: Duration,
    /// Let the dependency reject requests that would wait longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    sheds_after: Option<Duration>,
    /// Limit the duration of one attempt
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    timeout: Duration,
    /// Let the dependency fail in this period
    #[arg(long, value_name = "FROM..TO", default_value = "20s..40s", value_parser = span)]
    outage: Range<Duration>,
    /// Choose the fault: `hangs`, `fails`, or `x10` for ten times as slow
    #[arg(long, default_value = "hangs", value_parser = fault)]
    fault: Fault,
    /// Make calls for this long
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    lasts: Duration,
    /// Set the random seed; the same seed gives the same result
    #[arg(long, default_value_t = 0)]
    seed: u64,
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

/// A policy and its results.
struct RouteTest {
    policy: Policy,
    outcome: Outcome,
}

pub(crate) fn run(args: LabArgs, output: Output) -> Result<(), CliError> {
    let wrong = |error| CliError::new(exit::USAGE, anyhow::Error::from(error));
    let mut dependency = Dependency::new(args.capacity, args.latency);
    if let Some(wait) = args.sheds_after {
        dependency = dependency.sheds_after(wait);
    }
    let storm = Storm::new(dependency, args.rate)
        .clients(args.clients)
        .lasts(args.lasts)
        .seed(args.seed)
        .outage(args.outage.clone(), args.fault)
        .map_err(wrong)?;
    storm.check().map_err(wrong)?;
    if args.timeout.is_zero() {
        return Err(CliError::usage("--timeout must be longer than 0s".to_owned()));
    }
    let policies = if args.policies.is_empty() {
        POLICIES.iter().filter_map(|text| text.parse().ok()).collect()
    } else {
        args.policies.clone()
    };
    let tried: Vec<RouteTest> = policies
        .into_iter()
        .map(|policy| {
            let outcome = storm.run(|client| policy.pipeline(client, args.timeout));
            RouteTest { policy, outcome }
        })
        .collect();
    output.answer(document(&args, &tried), || picture::draw(&args, &tried));
    Ok(())
}

fn document(args: &LabArgs, tried: &[RouteTest]) -> Value {
    let text = |duration: Duration| duration::text(duration).to_string();
    let fault = match args.fault {
        Fault::Hangs => "hangs".to_owned(),
        Fault::Fails => "fails".to_owned(),
        Fault::Slow(times) => format!("x{times}"),
    };
    json!({
        "storm": {
            "clients": args.clients, "rate": args.rate, "capacity": args.capacity, "latency": text(args.latency),
            "sheds_after": args.sheds_after.map(text), "timeout": text(args.timeout), "fault": fault,
            "outage": {"from": text(args.outage.start), "to": text(args.outage.end)},
            "lasts": text(args.lasts), "seed": args.seed,
        },
        "policies": tried.iter().map(|tried| policy(tried, text)).collect::<Vec<_>>(),
    })
}

fn policy(RouteTest { policy, outcome }: &RouteTest, text: impl Fn(Duration) -> String) -> Value {
    let second = |second: &Second| {
        let Second { offered, succeeded, attempts } = *second;
        json!({"offered": offered, "succeeded": succeeded, "attempts": attempts})
    };
    json!({
        "policy": policy.to_string(), "attempts_max": policy.attempts(),
        "offered": outcome.offered(), "succeeded": outcome.succeeded(), "refused": outcome.refused(),
        "attempts": outcome.attempts(), "served": outcome.served(), "wasted": outcome.wasted(),
        "amplification": outcome.amplification(), "peak": outcome.peak(),
        "recovered_after": outcome.recovered_after().map(&text), "cut_at": outcome.cut_at().map(text),
        "seconds": outcome.seconds().iter().map(second).collect::<Vec<_>>(),
    })
}
