//! Runs BullMQ in its own program.

use anyhow::{Result, ensure};
use std::path::Path;
use tokio::process::Command;

use crate::queue::figure;
use crate::queue::load::{Figures, Load};
use crate::server::Server;

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
    figure::run(command).await
}
