//! A private Redis server for one test, which may be killed.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The programs of Redis and of Valkey.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// A server with its own data. Dropping it kills it.
pub(super) struct Server {
    process: Option<Child>,
    folder: TempDir,
    port: u16,
    settings: String,
}

impl Server {
    /// Starts a server with these settings.
    pub(super) async fn start(settings: &str) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut server = Server { process: None, folder, port, settings: settings.to_owned() };
        server.restart().await;
        server
    }

    /// Starts the server again, with the data that it has written.
    pub(super) async fn restart(&mut self) {
        self.process = PROGRAMS.iter().find_map(|program| self.spawn(program));
        assert!(self.process.is_some(), "redis-server is not installed: run `cargo xtask test`");
        crate::subject::eventually(async || self.answers()).await;
    }

    fn spawn(&self, program: &str) -> Option<Child> {
        let mut command = Command::new(program);
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(self.settings.split(' ').filter(|word| !word.is_empty()));
        command.current_dir(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok()
    }

    /// Returns whether the server has loaded its data.
    fn answers(&self) -> bool {
        let Ok(client) = redis::Client::open(self.url()) else { return false };
        let connection = client.get_connection_with_timeout(Duration::from_secs(5));
        connection.is_ok_and(|mut open| redis::cmd("PING").query::<String>(&mut open).is_ok())
    }

    /// Kills the server, as a crash would.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it was started here");
        }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Runs a command by hand.
    pub(super) fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(self.url()).expect("a URL");
        let mut connection = client.get_connection().expect("the server answers");
        redis::cmd(words[0]).arg(&words[1..]).query(&mut connection).expect("the command works")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
