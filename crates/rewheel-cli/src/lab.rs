//! Simulates retry policies.

mod delay_table;
mod picture;
mod recorded;

use crate::args::{
    ContentionArgs, FlakyArgs, LabArgs, LabCommand, LabCommon, OutageArgs, OverloadArgs,
    RecoveryArgs, Traffic,
};
use crate::cli_error::{CliError, exit};
use crate::output::Output;
use anyhow::Context;
use rewheel_lab::{
    Contention, Dependency, Policy, Recovery, Report, Row, Scenario, StormError, compare, html,
};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

pub(crate) async fn run(args: LabArgs, output: Output) -> Result<(), CliError> {
    let LabArgs { command, recorded, outage: default, common } = args;
    if let (Some(store), Some(kind)) = (&recorded.from, &recorded.kind) {
        let report = recorded::report(store, kind, recorded.since, common.seed, output).await?;
        return print(&report, common.html.as_deref(), output);
    }
    let (report, html) = match command {
        None => (outage(Scenario::outage(), default, common.seed), common.html),
        Some(LabCommand::Outage(args)) => {
            (outage(Scenario::outage(), args.own, args.common.seed), args.common.html)
        }
        Some(LabCommand::Metastable(args)) => {
            (outage(Scenario::metastable(), args.own, args.common.seed), args.common.html)
        }
        Some(LabCommand::Fleet(args)) => {
            (outage(Scenario::fleet(), args.own, args.common.seed), args.common.html)
        }
        Some(LabCommand::Overload(args)) => {
            (overload(args.own, args.common.seed), args.common.html)
        }
        Some(LabCommand::Flaky(args)) => (flaky(args.own, args.common.seed), args.common.html),
        Some(LabCommand::Contention(args)) => {
            (contention(&args.own, args.common.seed), args.common.html)
        }
        Some(LabCommand::Recovery(args)) => {
            (recovery(args.own, args.common.seed), args.common.html)
        }
        Some(LabCommand::Compare(LabCommon { seed, html })) => (compare(seed).map_err(wrong), html),
        Some(LabCommand::Delays(args)) => return delay_table::run(&args, output),
    };
    print(&report?, html.as_deref(), output)
}

fn wrong(error: StormError) -> CliError {
    CliError::new(exit::USAGE, error)
}

impl Traffic {
    /// Changes a scenario as the arguments say.
    fn apply(self, scenario: Scenario, seed: u64) -> Scenario {
        let policies = if self.policies.is_empty() { scenario.policies } else { self.policies };
        Scenario {
            policies,
            clients: self.clients.unwrap_or(scenario.clients),
            rate: self.rate.unwrap_or(scenario.rate),
            capacity: self.capacity.unwrap_or(scenario.capacity),
            latency: self.latency.unwrap_or(scenario.latency),
            sheds_after: self.sheds_after.or(scenario.sheds_after),
            timeout: self.timeout.unwrap_or(scenario.timeout),
            lasts: self.lasts.unwrap_or(scenario.lasts),
            seed,
            ..scenario
        }
    }
}

fn outage(scenario: Scenario, args: OutageArgs, seed: u64) -> Result<Report, CliError> {
    let mut scenario = args.traffic.apply(scenario, seed);
    if let Some((when, fault)) = &mut scenario.outage {
        *when = args.outage.unwrap_or(when.clone());
        *fault = args.fault.unwrap_or(*fault);
    }
    scenario.run().map_err(wrong)
}

fn overload(args: OverloadArgs, seed: u64) -> Result<Report, CliError> {
    let mut scenario = args.traffic.apply(Scenario::overload(), seed);
    scenario.surge = Some((args.surge, args.times));
    scenario.run().map_err(wrong)
}

fn flaky(args: FlakyArgs, seed: u64) -> Result<Report, CliError> {
    let mut scenario = args.traffic.apply(Scenario::flaky(), seed);
    scenario.failure_ratio = args.failure_ratio;
    scenario.run().map_err(wrong)
}

fn contention(args: &ContentionArgs, seed: u64) -> Result<Report, CliError> {
    let contention = Contention::new(args.clients, args.runs, seed).map_err(wrong)?;
    if args.policies.is_empty() {
        return Ok(contention.report());
    }
    let row = |policy: &Policy| {
        let retry = only_retry(policy)?;
        Ok(contention.run(&policy.to_string(), &retry))
    };
    Ok(contention.report_of(args.policies.iter().map(row).collect::<Result<_, CliError>>()?))
}

fn recovery(args: RecoveryArgs, seed: u64) -> Result<Report, CliError> {
    let default = Recovery::default();
    let retry = args.policy.as_ref().map(only_retry).transpose()?.unwrap_or(default.retry);
    let recovery = Recovery {
        dependency: Dependency::new(args.capacity, args.latency),
        retry,
        nodes: args.nodes,
        slots: args.slots,
        rate: args.rate,
        timeout: args.timeout,
        outage: args.outage,
        fault: args.fault,
        probe_every: args.probe_every,
        lasts: args.lasts,
        seed,
    };
    recovery.report().map_err(wrong)
}

/// Returns the retry of a policy that consists of nothing else.
fn only_retry(policy: &Policy) -> Result<rewheel::Retry, CliError> {
    let retry = policy.retry().filter(|_| policy.is_plain());
    retry.ok_or_else(|| {
        CliError::usage(format!(
            "`{policy}` is not a retry alone: use a policy such as `5 attempts, exponential 100ms`"
        ))
    })
}

fn print(report: &Report, file: Option<&Path>, output: Output) -> Result<(), CliError> {
    if let Some(file) = file {
        let written = std::fs::write(file, html(report));
        let written = written.with_context(|| format!("cannot write {}", file.display()));
        written.map_err(|error| CliError::new(exit::FAILED, error))?;
    }
    output.answer(document(report), || picture::draw(report));
    Ok(())
}

fn document(report: &Report) -> Value {
    json!({
        "scenario": report.scenario,
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &Row) -> Value {
    json!({
        "policy": row.policy,
        "calls": row.calls,
        "completed_ms": row.completed.map(millis),
        "success": row.success,
        "p50_ms": row.p50.map(millis),
        "p99_ms": row.p99.map(millis),
        "amplification": row.amplification,
        "wasted": row.wasted,
        "recovered_ms": row.recovered.after().map(millis),
    })
}

/// Returns milliseconds, rounded to microseconds.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
