//! Starts a private MariaDB server that a cell may kill.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::Child;

/// The database of the nodes.
const DATABASE: &str = "chaos";

/// How long a killed server may take to read its log.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server with its data in a temporary folder; it ends with the cell.
#[derive(Debug)]
pub(crate) struct Server {
    /// The URL for the nodes.
    pub(crate) store: String,
    program: PathBuf,
    folder: tempfile::TempDir,
    options: Vec<String>,
    port: u16,
    process: Option<Child>,
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::with(&[]).await
    }

    /// Starts a server with options of its own.
    pub(crate) async fn with(options: &[&str]) -> Server {
        let (program, install) = (find("mariadbd"), find("mariadb-install-db"));
        let folder = tempfile::tempdir().unwrap();
        let mut init = Command::new(install);
        init.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        init.args(as_this_user()).arg(format!("--datadir={}", data(&folder).display()));
        run(&mut init);
        std::fs::write(grants(&folder), GRANTS).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let store = format!("mysql://rewheel:rewheel@127.0.0.1:{port}/{DATABASE}");
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Server { store, program, folder, options, port, process: None };
        server.go_on().await;
        server
    }

    /// Starts it again; returns once it accepts clients.
    pub(crate) async fn go_on(&mut self) {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let mut mariadbd = Command::new(&self.program);
        mariadbd.arg("--no-defaults").args(as_this_user()).args([
            format!("--datadir={}", data(&self.folder).display()),
            format!("--init-file={}", grants(&self.folder).display()),
            format!("--socket={}", path("socket")),
            format!("--pid-file={}", path("pid")),
            format!("--port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-name-resolve".to_owned(),
            "--innodb-flush-log-at-trx-commit=1".to_owned(),
        ]);
        mariadbd.args(&self.options);
        let log = std::fs::File::options().create(true).append(true).open(path("log")).unwrap();
        mariadbd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut mariadbd = tokio::process::Command::from(mariadbd);
        self.process = Some(mariadbd.kill_on_drop(true).spawn().unwrap());
        let opened = tokio::time::timeout(START_TIMEOUT, wait_until_open(self.port)).await;
        assert!(opened.is_ok(), "cannot connect to the server: {}", self.said());
    }

    /// SIGKILL: without any cleanup; the log is replayed at the next start.
    pub(crate) async fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().await.unwrap();
    }

    /// Runs statements as an administrator, and returns the rows that they print.
    pub(crate) fn run(&self, sql: &str) -> Vec<String> {
        let socket = self.folder.path().join("socket");
        let mut client = Command::new(find("mariadb"));
        client.args(["--no-defaults", "--user=root", "--skip-column-names", "--batch", "--force"]);
        client.arg(format!("--socket={}", socket.display())).arg("--execute").arg(sql);
        let output = client.output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// Closes all connections of the nodes; returns how many there were.
    pub(crate) fn kill_connections(&self) -> usize {
        let nodes = "SELECT id FROM information_schema.processlist WHERE user = 'rewheel'";
        let found = self.run(nodes);
        // One may have ended by itself: the others are closed all the same.
        self.run(&found.iter().map(|id| format!("KILL {id};")).collect::<String>());
        found.len()
    }

    /// Returns the end of its log.
    fn said(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// Executed at every start.
const GRANTS: &str = "\
CREATE DATABASE IF NOT EXISTS chaos;
CREATE USER IF NOT EXISTS rewheel@'127.0.0.1' IDENTIFIED BY 'rewheel';
GRANT ALL ON chaos.* TO rewheel@'127.0.0.1';
";

fn data(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("data")
}

fn grants(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("grants.sql")
}

/// A server greets its clients only after it has read its log.
async fn wait_until_open(port: u16) {
    loop {
        if let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port)).await
            && matches!(connection.read(&mut [0; 64]).await, Ok(5..))
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// MariaDB refuses to run as root unless it is told to.
fn as_this_user() -> Option<&'static str> {
    let id = Command::new("id").arg("-u").output().unwrap();
    (id.stdout.trim_ascii() == b"0").then_some("--user=root")
}

/// Finds a program in the folders of the environment, or in Debian's folder for servers.
fn find(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join(name)).find(|program| Path::is_file(program));
    found.unwrap_or_else(|| panic!("{name} is not installed: run `cargo xtask test`"))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
