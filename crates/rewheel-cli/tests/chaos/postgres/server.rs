//! Starts a private PostgreSQL server that a cell may stop.

mod standby;
mod backup;

pub(crate) use self::standby::REPLICATED;

use crate::postgres::database::wait_until_open;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::process::Child;

/// A server with its data in a temporary folder; it ends with the cell.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    programs: Programs,
    folder: tempfile::TempDir,
    port: u16,
    options: Vec<&'static str>,
    process: Option<Child>,
}

impl Server {
    /// Returns `None` and prints it if PostgreSQL is not installed.
    pub(crate) async fn start(cell: &str, options: &[&'static str]) -> Option<Server> {
        Server::start_with(Programs::find("REWHEEL_POSTGRES_BIN"), cell, options).await
    }

    /// Starts a server to move to: another version, if the environment names one.
    pub(crate) async fn start_next(cell: &str, options: &[&'static str]) -> Option<Server> {
        let next = std::env::var_os("REWHEEL_POSTGRES_NEXT_BIN").is_some();
        let variable = if next { "REWHEEL_POSTGRES_NEXT_BIN" } else { "REWHEEL_POSTGRES_BIN" };
        Server::start_with(Programs::find(variable), cell, options).await
    }

    async fn start_with(
        programs: Option<Programs>,
        cell: &str,
        options: &[&'static str],
    ) -> Option<Server> {
        let Some(programs) = programs else {
            println!("not tested: {cell} on PostgreSQL (its programs are not on this machine)");
            return None;
        };
        let mut server = Server::prepare(programs, options);
        let mut init = server.command("initdb");
        init.args([
            "--username=postgres",
            "--auth=trust",
            "--data-checksums",
            "--encoding=UTF8",
            "--no-locale",
        ]);
        run(init.arg("-D").arg(server.data()));
        server.go_on().await;
        Some(server)
    }

    /// Chooses a folder and a port.
    fn prepare(programs: Programs, options: &[&'static str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        if programs.as_postgres {
            run(Command::new("chown").arg("postgres:").arg(folder.path()));
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        Server { url, programs, folder, port, options: options.to_vec(), process: None }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, name: &str) -> Command {
        self.programs.command(self.folder.path(), name)
    }

    /// Returns what the server has logged since its first start.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Starts it again; returns once it accepts clients.
    pub(crate) async fn go_on(&mut self) {
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data());
        postgres.args(["-p", &self.port.to_string()]);
        let fixed = ["listen_addresses=127.0.0.1", "unix_socket_directories="];
        for option in fixed.iter().chain(&self.options) {
            postgres.args(["-c", option]);
        }
        let log = self.folder.path().join("log");
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut postgres = tokio::process::Command::from(postgres);
        self.process = Some(postgres.kill_on_drop(true).spawn().unwrap());
        wait_until_open(&self.url, Duration::from_secs(30)).await;
    }

    /// Stops it as `pg_ctl -m immediate` does: without notice to clients; the log is replayed at the next start.
    pub(crate) async fn stop(&mut self) {
        let mut process = self.process.take().expect("it runs");
        quit(&process);
        process.wait().await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.is_none() {
            return;
        }
        // A failed cell may have paused it.
        self.signal("CONT", &self.children());
        let Some(mut process) = self.process.take() else { return };
        // With SIGKILL its child processes would end later on their own.
        quit(&process);
        for _ in 0..200 {
            if !matches!(process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn quit(process: &Child) {
    let Some(pid) = process.id() else { return };
    let _ = Command::new("kill").args(["-QUIT", &pid.to_string()]).status();
}

/// The server's programs, and the user that may run them.
#[derive(Clone, Debug)]
struct Programs {
    bin: PathBuf,
    /// PostgreSQL refuses to run as root.
    as_postgres: bool,
}

impl Programs {
    /// Finds the programs where a variable says, or those of the system.
    fn find(variable: &str) -> Option<Programs> {
        let chosen = std::env::var_os(variable).map(PathBuf::from);
        // Debian's folder with a subfolder for each major version.
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let versioned = versions.map(|version| version.path().join("bin"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let system = versioned.chain(std::env::split_paths(&path));
        let bin = chosen.into_iter().chain(system).find(|bin| has_server(bin))?;
        let id = Command::new("id").arg("-u").output().unwrap();
        Some(Programs { bin, as_postgres: id.stdout.trim_ascii() == b"0" })
    }

    fn command(&self, folder: &Path, name: &str) -> Command {
        let program = self.bin.join(name);
        let mut command = if self.as_postgres {
            // It replaces itself by the program, so that a signal reaches the program.
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(folder);
        command
    }
}

fn has_server(bin: &Path) -> bool {
    bin.join("initdb").is_file() && bin.join("postgres").is_file()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
