//! One `rewheel serve` process that a test can kill or pause.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

/// A running node; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) url: String,
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    _listening: JoinSet<()>,
}

impl Node {
    /// Starts a node, and returns once it accepts requests.
    pub(crate) async fn start(config: &Path, name: &str, env: &[(String, String)]) -> Node {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rewheel"))
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(config)
            .env("RUST_LOG", "warn")
            .env("REWHEEL__ENGINE__NAME", name)
            // A header of the callbacks uses this variable.
            .env("NODE", name)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(Vec::new()));
        let mut url = None;
        while url.is_none() {
            let Some(line) = lines.next_line().await.unwrap() else { break };
            url = line.split_once("listening on ").map(|(_, url)| url.trim().to_owned());
            said.lock().unwrap().push(line);
        }
        let url = url.unwrap_or_else(|| panic!("{name} does not listen: {:?}", said.lock()));
        let heard = Arc::clone(&said);
        let mut listening = JoinSet::new();
        // Keep reading: otherwise the node would block on a full pipe.
        listening.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.lock().unwrap().push(line);
            }
        });
        Node { url, child, said, _listening: listening }
    }

    /// SIGKILL: without any cleanup.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// SIGTERM: it shuts down gracefully.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        let ended = tokio::time::timeout(Duration::from_secs(180), self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("it does not end: {:?}", self.said())).unwrap()
    }

    /// SIGSTOP: the process is paused without noticing it.
    pub(crate) fn pause(&self) {
        self.signal("STOP");
    }

    /// SIGCONT: the process continues.
    pub(crate) fn go_on(&self) {
        self.signal("CONT");
    }

    /// Returns the last lines that it wrote to stderr.
    pub(crate) fn said(&self) -> Vec<String> {
        let said = self.said.lock().unwrap();
        said[said.len().saturating_sub(30)..].to_vec()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().expect("it runs").to_string();
        let kill = std::process::Command::new("kill").arg(format!("-{name}")).arg(pid).status();
        assert!(kill.unwrap().success(), "SIG{name} was not sent");
    }
}
