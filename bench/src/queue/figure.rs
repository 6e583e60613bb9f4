//! Runs another queue in its own program, and reads the figures that it prints.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

use super::load::Figures;

/// A program that takes longer than this has failed.
const ROUND_MAX: Duration = Duration::from_secs(300);

/// One line that a program prints.
#[derive(Debug, Deserialize)]
#[serde(tag = "bench", rename_all = "snake_case")]
enum Figure {
    Submit { value: f64 },
    Drain { value: f64 },
    Latency { p50: Option<f64>, p99: Option<f64>, missing: u64 },
}

/// Runs the program.
///
/// # Errors
/// Fails with what the program did instead of printing figures.
pub async fn run(mut command: Command) -> Result<Figures> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    let output = tokio::time::timeout(ROUND_MAX, command.output()).await;
    let output = output.with_context(|| format!("not done after {ROUND_MAX:?}"))??;
    if !output.status.success() {
        bail!("ended with {}", output.status);
    }
    read(&String::from_utf8(output.stdout)?)
}

fn read(lines: &str) -> Result<Figures> {
    let mut figures = Figures::default();
    for line in lines.lines() {
        let figure = serde_json::from_str(line).with_context(|| format!("it said `{line}`"))?;
        match figure {
            Figure::Submit { value } => figures.submit = Some(value),
            Figure::Drain { value } => figures.drain = Some(value),
            Figure::Latency { p50, p99, missing } => {
                (figures.p50, figures.p99, figures.missing) = (p50, p99, missing);
            }
        }
    }
    Ok(figures)
}
