//! Starts a private MariaDB, from the system's packages.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::{Service, memory};
use crate::packages;
use crate::repository::Repository;

pub(super) const SERVICE: Service = Service {
    name: "MariaDB",
    variable: "REWHEEL_TEST_MYSQL",
    feature: "test-mysql",
    subject: "MySQL/MariaDB store",
    harm: "MariaDB that is killed",
    installed: |_| Ok(programs().is_some()),
    packages: &["mariadb-server"],
    running,
    start,
    stop,
};

/// Maximum number of tries: another process may take a free port before the server does.
const STARTS_MAX: usize = 5;

/// Maximum time until a new server answers.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Executed at every start.
const GRANTS: &str = "\
CREATE DATABASE IF NOT EXISTS rewheel;
CREATE USER IF NOT EXISTS rewheel@'127.0.0.1' IDENTIFIED BY 'rewheel';
GRANT ALL ON *.* TO rewheel@'127.0.0.1';
";

/// Returns the server, and the program that makes its first files.
fn programs() -> Option<(PathBuf, PathBuf)> {
    Some((packages::find("mariadbd")?, packages::find("mariadb-install-db")?))
}

fn folder(repository: &Repository) -> PathBuf {
    repository.target_dir().join("services/mariadb")
}

/// The data may be in memory; where the server is and what it logs is in [`folder`].
fn data(repository: &Repository) -> PathBuf {
    memory::folder(repository, "mariadb").join("data")
}

fn url(port: u16) -> String {
    format!("mysql://rewheel:rewheel@127.0.0.1:{port}/rewheel")
}

/// The port of this repository's server, stored beside its data.
fn noted(repository: &Repository) -> Option<u16> {
    fs::read_to_string(folder(repository).join("port")).ok()?.trim().parse().ok()
}

/// The process that the server itself has noted, if it still runs.
fn process(repository: &Repository) -> Option<u32> {
    let text = fs::read_to_string(folder(repository).join("pid")).ok()?;
    let process = text.trim().parse().ok()?;
    let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    // The number may belong to another program by now.
    String::from_utf8_lossy(&line).contains("mariadbd").then_some(process)
}

fn running(repository: &Repository) -> Result<Option<String>> {
    let Some(port) = noted(repository) else { return Ok(None) };
    Ok(process(repository).map(|_| url(port)))
}

fn start(repository: &Repository) -> Result<String> {
    if programs().is_none() {
        packages::install(repository, SERVICE.packages)?;
    }
    let (server, install) = programs().context("MariaDB is installed, but where?")?;
    // Delete what a crashed machine left behind.
    stop(repository)?;
    let (folder, data) = (folder(repository), data(repository));
    fs::create_dir_all(&folder).context("cannot make a folder for the server")?;
    fs::create_dir_all(&data).context("cannot make a folder for the data")?;
    fs::write(folder.join("grants.sql"), GRANTS).context("cannot write the grants")?;
    let user = packages::is_root(repository)?.then_some("--user=root");
    let mut init = Command::new(install);
    init.args(["--no-defaults", "--auth-root-authentication-method=normal"]).args(user);
    init.arg(format!("--datadir={}", data.display()));
    let output = init.stdin(Stdio::null()).output().context("cannot make the first files")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{init:?} failed: {}", complaint.trim_end());
    for _ in 0..STARTS_MAX {
        let port = free_port()?;
        fs::write(folder.join("port"), port.to_string())
            .context("cannot note where the server is")?;
        let log = fs::File::options().create(true).append(true).open(folder.join("log"));
        let mut command = Command::new(&server);
        command.arg("--no-defaults").args(user).args(options(&folder, &data, port));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.context("cannot log")?);
        // Ctrl-C must reach the tests, not the server.
        let mut process = command.process_group(0).spawn().context("cannot start MariaDB")?;
        if answers(port, || process.try_wait().is_ok_and(|ended| ended.is_none())) {
            return Ok(url(port));
        }
        // It does not answer, or has ended: then there is nothing to kill.
        drop(process.kill());
        drop(process.wait());
    }
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    stop(repository)?;
    bail!("MariaDB does not start: {}", log.lines().last().unwrap_or("it says nothing"))
}

/// Waits until the server greets a client, as long as it runs.
fn answers(port: u16, mut runs: impl FnMut() -> bool) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let greets = || {
        let mut connection = TcpStream::connect_timeout(&address, START_TIMEOUT).ok()?;
        connection.set_read_timeout(Some(START_TIMEOUT)).ok()?;
        connection.read_exact(&mut [0; 5]).ok()
    };
    let tries = START_TIMEOUT.as_millis() / 50;
    (0..tries).any(|_| {
        if !runs() {
            return false;
        }
        let greeted = greets().is_some();
        if !greeted {
            // The clock of a developer's tool is the machine's.
            #[expect(clippy::disallowed_methods, reason = "nothing else waits for the server")]
            std::thread::sleep(Duration::from_millis(50));
        }
        greeted
    })
}

/// The options that differ from the defaults: addresses and files.
fn options(folder: &Path, data: &Path, port: u16) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--datadir={}", data.display()),
        format!("--init-file={}", path("grants.sql")),
        format!("--pid-file={}", path("pid")),
        format!("--port={port}"),
        // Beside its data: a path below `target` may be too long for a socket.
        "--socket=socket".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--skip-name-resolve".to_owned(),
        // Tests run side by side, each with some connections.
        "--max-connections=1000".to_owned(),
    ]
}

fn stop(repository: &Repository) -> Result<()> {
    if let Some(process) = process(repository) {
        // The data is deleted next: a clean shutdown is not needed.
        let mut kill = repository.program("kill");
        let status =
            kill.args(["-KILL", &process.to_string()]).status().context("cannot run kill")?;
        ensure!(status.success(), "cannot stop MariaDB (process {process})");
    }
    for folder in memory::folders(repository, "mariadb") {
        if folder.exists() {
            fs::remove_dir_all(&folder).context("cannot remove the data")?;
        }
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
    use std::path::Path;

    #[test]
    fn only_this_machine_can_connect() {
        let options = options(Path::new("/x"), Path::new("/y"), 7);
        assert!(options.contains(&"--bind-address=127.0.0.1".to_owned()));
        assert!(options.contains(&"--port=7".to_owned()));
    }

    #[test]
    fn the_address_names_a_database() {
        assert_eq!(url(3307), "mysql://rewheel:rewheel@127.0.0.1:3307/rewheel");
    }
}
