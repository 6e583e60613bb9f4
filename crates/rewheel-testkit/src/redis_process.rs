//! A Redis or Valkey server as a process that a test may kill, pause or restart.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The programs of Redis and of Valkey.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// How often to look whether a server is ready, 20 ms apart. Only a failing test looks so often.
const LOOKS_MAX: usize = 3_000;

/// The bus of a cluster uses the port plus this number.
const BUS: u16 = 10_000;

/// A server with its own data and port. It is killed when it is dropped.
#[derive(Debug)]
pub struct RedisProcess {
    process: Option<Child>,
    folder: PathBuf,
    port: u16,
    settings: String,
}

impl RedisProcess {
    /// Starts a server with these settings. Its data is in the folder, which must exist.
    pub fn start(folder: &Path, settings: &str) -> RedisProcess {
        let port = free_port();
        let folder = folder.to_owned();
        let mut server =
            RedisProcess { process: None, folder, port, settings: settings.to_owned() };
        server.restart();
        server
    }

    /// Starts the server again, with the data that it has written, and returns once it has loaded them.
    pub fn restart(&mut self) {
        self.process = PROGRAMS.iter().find_map(|program| self.spawn(program));
        assert!(self.process.is_some(), "redis-server is not installed: run `cargo xtask test`");
        wait_for("the server answers", || self.ping().is_some());
    }

    fn spawn(&self, program: &str) -> Option<Child> {
        let mut command = Command::new(program);
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(self.settings.split(' ').filter(|word| !word.is_empty()));
        command.current_dir(&self.folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok()
    }

    fn ping(&self) -> Option<String> {
        let mut connection = redis::Client::open(self.url()).ok()?.get_connection().ok()?;
        redis::cmd("PING").query(&mut connection).ok()
    }

    /// SIGKILL: as a crash of the server would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// SIGSTOP: its connections stay open, and it does not answer.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// SIGCONT: it continues.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        let kill = Command::new("kill").arg(format!("-{name}")).arg(pid).status();
        assert!(kill.unwrap().success(), "SIG{name} was not sent");
    }

    /// Returns whether it was started and not killed since.
    pub const fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the port of the server.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder with its data.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a command that must work.
    pub fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_command(words).unwrap()
    }

    /// Runs a command.
    ///
    /// # Errors
    /// What the server or the connection says.
    pub fn try_command<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let mut connection = redis::Client::open(self.url())?.get_connection()?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut connection)
    }
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a port that is free together with its port for the bus of a cluster.
fn free_port() -> u16 {
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        if port.checked_add(BUS).is_some_and(is_free) {
            return port;
        }
    }
}

/// Looks until something is true.
#[expect(clippy::disallowed_methods, reason = "only the other process makes it true")]
pub(crate) fn wait_for(what: &str, is_true: impl Fn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_true() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("in vain: {what}");
}
