//! Starts a private Redis that loses nothing, from the system's packages.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::Service;
use crate::packages;
use crate::repository::Repository;

pub(super) const SERVICE: Service = Service {
    name: "Redis",
    variable: "REWHEEL_TEST_REDIS",
    feature: "test-redis",
    subject: "Redis store",
    harm: "Redis that is killed, full or has other settings",
    installed: |_| Ok(program().is_some()),
    packages: &["redis-server"],
    running,
    start,
    stop,
};

/// The programs of Redis and of Valkey, which are the same for tests.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// Maximum number of tries: another process may take a free port before the server does.
const STARTS_MAX: usize = 5;

/// Maximum time until a new server answers.
const START_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn program() -> Option<PathBuf> {
    PROGRAMS.iter().find_map(|name| packages::find(name))
}

fn folder(repository: &Repository) -> PathBuf {
    repository.target_dir().join("services/redis")
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

/// The port of this repository's server, stored beside its data.
fn noted(repository: &Repository) -> Option<u16> {
    fs::read_to_string(folder(repository).join("port")).ok()?.trim().parse().ok()
}

/// The process that the server itself has noted beside its data, if it still runs.
pub(super) fn process_in(folder: &Path) -> Option<u32> {
    let text = fs::read_to_string(folder.join("pid")).ok()?;
    let process = text.trim().parse().ok()?;
    let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    // The number may belong to another program by now.
    PROGRAMS.iter().any(|name| String::from_utf8_lossy(&line).contains(name)).then_some(process)
}

fn running(repository: &Repository) -> Result<Option<String>> {
    let Some(port) = noted(repository) else { return Ok(None) };
    Ok(process_in(&folder(repository)).map(|_| url(port)))
}

fn start(repository: &Repository) -> Result<String> {
    if program().is_none() {
        packages::install(repository, SERVICE.packages)?;
    }
    let program = program().context("Redis is installed, but where?")?;
    // Delete what a crashed machine left behind.
    stop(repository)?;
    let folder = folder(repository);
    fs::create_dir_all(&folder).context("cannot make a folder for the data")?;
    for _ in 0..STARTS_MAX {
        let port = free_port()?;
        fs::write(folder.join("port"), port.to_string())
            .context("cannot note where the server is")?;
        let mut server = Command::new(&program);
        server.args(options(port)).current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null());
        let status = server.status().with_context(|| format!("cannot start {server:?}"))?;
        if status.success() && answers(port) {
            return Ok(url(port));
        }
    }
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    stop(repository)?;
    bail!("Redis does not start: {}", log.lines().last().unwrap_or("it says nothing"))
}

/// Waits until the server listens: it becomes a background process before it does.
pub(super) fn answers(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let tries = START_TIMEOUT.as_millis() / 20;
    (0..tries).any(|_| {
        let connected = TcpStream::connect_timeout(&address, START_TIMEOUT).is_ok();
        if !connected {
            // The clock of a developer's tool is the machine's.
            #[expect(clippy::disallowed_methods, reason = "nothing else waits for the server")]
            std::thread::sleep(Duration::from_millis(20));
        }
        connected
    })
}

/// Every write is on the disk before it is answered, and no job is ever evicted.
pub(super) fn options(port: u16) -> Vec<String> {
    let options = format!(
        "--port {port} --bind 127.0.0.1 --daemonize yes --pidfile pid --logfile log --appendonly yes --appendfsync always"
    );
    let mut options: Vec<String> = options.split(' ').map(str::to_owned).collect();
    options.extend(["--save".to_owned(), String::new()]);
    options
}

fn stop(repository: &Repository) -> Result<()> {
    if let Some(process) = process_in(&folder(repository)) {
        // The data is deleted next: a clean shutdown is not needed.
        let mut kill = repository.program("kill");
        let status =
            kill.args(["-KILL", &process.to_string()]).status().context("cannot run kill")?;
        ensure!(status.success(), "cannot stop Redis (process {process})");
    }
    let folder = folder(repository);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the data")?;
    }
    Ok(())
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("there is no free port")?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::{options, url};

    #[test]
    fn nothing_that_was_answered_is_lost() {
        let options = options(7);
        let has = |name: &str, value: &str| options.windows(2).any(|pair| pair == [name, value]);
        assert!(has("--appendonly", "yes") && has("--appendfsync", "always") && has("--save", ""));
        assert!(has("--port", "7") && has("--bind", "127.0.0.1"));
    }

    #[test]
    fn the_address_is_one_that_clients_understand() {
        assert_eq!(url(6380), "redis://127.0.0.1:6380");
    }
}
