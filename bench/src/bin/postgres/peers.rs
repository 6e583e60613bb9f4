//! Runs the other queues, each in its own program.

use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use tokio::process::Command;

use crate::queue::figure;
use crate::queue::load::{Figures, Load};
use crate::server::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A file for Node.
    Node(&'static str),
    /// A binary of the peers workspace.
    Rust(&'static str),
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
    figure::run(command).await
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
