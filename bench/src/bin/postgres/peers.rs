//! Runs the other queues, each in its own program.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

use crate::load::{Figures, Load};
use crate::server::Server;

/// A program that takes longer than this has failed.
const ROUND_MAX: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A file for Node.
    Node(&'static str),
    /// A binary of the peers workspace.
    Rust(&'static str),
}

/// One line that a program prints.
#[derive(Debug, Deserialize)]
#[serde(tag = "bench", rename_all = "snake_case")]
enum Figure {
    Submit { value: f64 },
    Drain { value: f64 },
    Latency { p50: Option<f64>, p99: Option<f64>, missing: u64 },
}

/// Builds the program if necessary, and checks that it can run.
///
/// # Errors
/// Fails with what to do first.
pub async fn prepare(program: Program) -> Result<()> {
    match program {
        Program::Node(_) => {
            ensure!(node().is_file(), "run `npm install` in {}", folder().display());
        }
        Program::Rust(name) => {
            let mut build = cargo("build", name);
            ensure!(build.status().await?.success(), "{build:?} failed");
        }
    }
    Ok(())
}

pub async fn round(server: &Server, load: &Load, program: Program) -> Result<Figures> {
    let mut command = match program {
        Program::Node(file) => {
            let mut command = Command::new(node());
            command.arg(folder().join(file));
            command
        }
        Program::Rust(name) => {
            let mut command = cargo("run", name);
            command.arg("--");
            command
        }
    };
    command.arg(server.bare_url());
    command.args([load.jobs, load.payload_bytes, load.samples].map(|number| number.to_string()));
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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// Not the system's Node, which is often too old.
fn node() -> PathBuf {
    folder().join("node_modules/node/bin/node")
}

fn cargo(verb: &str, name: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args([verb, "--quiet", "--release", "--bin", name, "--manifest-path"]);
    cargo.arg(folder().join("Cargo.toml"));
    cargo
}
