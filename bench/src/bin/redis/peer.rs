//! Runs BullMQ in its own program.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

use crate::load::{Figures, Load};
use crate::server::Server;

/// A program that takes longer than this has failed.
const ROUND_MAX: Duration = Duration::from_secs(300);

/// One line that the program prints.
#[derive(Debug, Deserialize)]
#[serde(tag = "bench", rename_all = "snake_case")]
enum Figure {
    Submit { value: f64 },
    Drain { value: f64 },
    Latency { p50: Option<f64>, p99: Option<f64>, missing: u64 },
}

/// `keep` says what becomes of succeeded jobs: `keep` or `drop`.
pub async fn round(server: &Server, load: &Load, keep: &str) -> Result<Figures> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    // Not the system's Node, which is often too old.
    let node = folder.join("node_modules/node/bin/node");
    let is_installed = node.is_file() && folder.join("node_modules/bullmq").is_dir();
    ensure!(is_installed, "run `npm install` in {}", folder.display());
    let mut command = Command::new(node);
    command.arg(folder.join("bullmq.mjs")).args([&server.url, keep]);
    command.args([load.jobs, load.payload_bytes, load.samples].map(|number| number.to_string()));
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    let output = tokio::time::timeout(ROUND_MAX, command.output()).await;
    let output = output.with_context(|| format!("not done after {ROUND_MAX:?}"))??;
    if !output.status.success() {
        bail!("ended with {}", output.status);
    }
    let mut figures = Figures::default();
    for line in String::from_utf8(output.stdout)?.lines() {
        match serde_json::from_str(line).with_context(|| format!("it said `{line}`"))? {
            Figure::Submit { value } => figures.submit = Some(value),
            Figure::Drain { value } => figures.drain = Some(value),
            Figure::Latency { p50, p99, missing } => {
                (figures.p50, figures.p99, figures.missing) = (p50, p99, missing);
            }
        }
    }
    Ok(figures)
}
