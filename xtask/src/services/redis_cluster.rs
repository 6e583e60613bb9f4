//! Starts a private Redis Cluster with three primaries and three replicas, from the system's packages.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Service;
use super::redis::{answers, options, process_in, program};
use crate::packages;
use crate::repository::{self, Repository};

pub(super) const SERVICE: Service = Service {
    name: "Redis-Cluster",
    variable: "REWHEEL_TEST_REDIS_CLUSTER",
    feature: "test-redis-cluster",
    subject: "Redis store in a cluster",
    harm: "Redis Cluster whose nodes are killed",
    installed: |_| Ok(program().is_some() && cli().is_some()),
    packages: &["redis-server", "redis-tools"],
    running,
    start,
    stop,
};

/// Three primaries, and a replica of each.
const NODES: usize = 6;

/// The bus of a cluster uses the port plus this number.
const BUS: u16 = 10_000;

/// The programs that make a cluster of servers.
const TOOLS: [&str; 2] = ["redis-cli", "valkey-cli"];

fn cli() -> Option<PathBuf> {
    TOOLS.iter().find_map(|name| packages::find(name))
}

fn folder(repository: &Repository) -> PathBuf {
    repository.target_dir().join("services/redis-cluster")
}

fn url(ports: &[u16]) -> String {
    format!("redis+cluster://{}", addresses(ports).join(","))
}

fn addresses(ports: &[u16]) -> Vec<String> {
    ports.iter().map(|port| format!("127.0.0.1:{port}")).collect()
}

/// The ports of this repository's cluster, stored beside its data.
fn noted(repository: &Repository) -> Option<Vec<u16>> {
    let text = fs::read_to_string(folder(repository).join("ports")).ok()?;
    text.split_whitespace().map(|port| port.parse().ok()).collect()
}

fn running(repository: &Repository) -> Result<Option<String>> {
    let Some(ports) = noted(repository) else { return Ok(None) };
    let all =
        ports.iter().all(|port| process_in(&folder(repository).join(port.to_string())).is_some());
    Ok(all.then(|| url(&ports)))
}

fn start(repository: &Repository) -> Result<String> {
    if program().is_none() || cli().is_none() {
        packages::install(repository, SERVICE.packages)?;
    }
    let program = program().context("Redis is installed, but where?")?;
    let cli = cli().context("redis-cli is installed, but where?")?;
    // Delete what a crashed machine left behind.
    stop(repository)?;
    let mut ports = Vec::new();
    while ports.len() < NODES {
        let port = free_port()?;
        // Nothing listens yet, so the system may give the same one again.
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    for port in &ports {
        let folder = folder(repository).join(port.to_string());
        fs::create_dir_all(&folder).context("cannot make a folder for the data")?;
        let mut server = Command::new(&program);
        server.args(options(*port)).args(["--cluster-enabled", "yes"]);
        // A busy machine must not look like a dead node.
        server.args(["--cluster-node-timeout", "60000"]);
        server.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null());
        let status = server.status().with_context(|| format!("cannot start {server:?}"))?;
        ensure!(status.success() && answers(*port), "a node of the Redis Cluster does not start");
    }
    let noted: Vec<String> = ports.iter().map(u16::to_string).collect();
    fs::write(folder(repository).join("ports"), noted.join(" "))
        .context("cannot note where the servers are")?;
    let mut create = Command::new(cli);
    create.args(["--cluster", "create"]).args(addresses(&ports));
    create.args(["--cluster-replicas", "1", "--cluster-yes"]);
    // It returns once all nodes agree.
    repository::read(&mut create).context("cannot make a cluster of the servers")?;
    Ok(url(&ports))
}

fn stop(repository: &Repository) -> Result<()> {
    let folder = folder(repository);
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry.context("cannot read the folder of the data")?;
        if let Some(process) = process_in(&entry.path()) {
            // The data is deleted next: a clean shutdown is not needed.
            let mut kill = repository.program("kill");
            let status =
                kill.args(["-KILL", &process.to_string()]).status().context("cannot run kill")?;
            ensure!(status.success(), "cannot stop Redis (process {process})");
        }
    }
    fs::remove_dir_all(&folder).context("cannot remove the data")
}

/// Returns a port that is free together with its port for the bus.
fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let listener = TcpListener::bind("127.0.0.1:0").context("there is no free port")?;
        let port = listener.local_addr()?.port();
        let bus = port.checked_add(BUS);
        if bus.is_some_and(|bus| TcpListener::bind(("127.0.0.1", bus)).is_ok()) {
            return Ok(port);
        }
    }
    anyhow::bail!("there is no pair of free ports")
}

#[cfg(test)]
mod tests {
    use super::url;

    #[test]
    fn the_address_is_one_that_the_store_understands() {
        assert_eq!(url(&[1, 2]), "redis+cluster://127.0.0.1:1,127.0.0.1:2");
    }
}
