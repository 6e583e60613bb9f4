//! Starts the server under attack, and its clients.

use rewheel::seconds;
use serde_json::Value;
use std::process::{Command as Shell, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

/// Timeout for anything in these tests, also on a busy machine.
pub(crate) const PATIENCE: Duration = seconds(60);

/// A store and a folder that no server uses yet.
pub(crate) struct Attack {
    pub(crate) folder: TempDir,
    pub(crate) store: String,
}

impl Attack {
    pub(crate) fn new(folder: TempDir, store: String) -> Attack {
        Attack { folder, store }
    }

    /// Starts a server with a config file that has these sections besides `[store]`. There are no tokens.
    pub(crate) async fn serve(self, config: &str) -> Server {
        self.serve_with(config, &[]).await
    }

    /// Starts a server with additional environment variables.
    pub(crate) async fn serve_with(self, config: &str, env: &[(&str, &str)]) -> Server {
        let path = self.folder.path().join("rewheel.toml");
        std::fs::write(&path, format!("{config}\n[store]\nurl = \"{}\"\n", self.store)).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_rewheel"))
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(path)
            .current_dir(self.folder.path())
            .env("RUST_LOG", "info")
            .envs(env.iter().copied())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let logged = Arc::new(Mutex::new(String::new()));
        let url = loop {
            let line = lines.next_line().await.unwrap();
            let line =
                line.unwrap_or_else(|| panic!("it does not listen: {}", logged.lock().unwrap()));
            logged.lock().unwrap().push_str(&format!("{line}\n"));
            if let Some((_, url)) = line.split_once("listening on ") {
                break url.trim().to_owned();
            }
        };
        let (log, mut reading) = (Arc::clone(&logged), JoinSet::new());
        reading.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                log.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Server { attack: self, url, client, process, logged, _reading: reading }
    }
}

/// A running server; killed when it is dropped.
pub(crate) struct Server {
    pub(crate) attack: Attack,
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
    process: Child,
    logged: Arc<Mutex<String>>,
    _reading: JoinSet<()>,
}

impl Server {
    /// Sends a request without a token. The body is sent as it is.
    pub(crate) async fn send(&self, method: &str, path: &str, body: &str) -> Answer {
        self.send_as(None, method, path, body).await
    }

    /// Sends a request with a token.
    pub(crate) async fn send_as(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: &str,
    ) -> Answer {
        let mut request =
            self.client.request(method.parse().unwrap(), format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        Answer::of(request.body(body.to_owned()).send().await.unwrap()).await
    }

    /// Creates a token. The first one must have the role `admin`.
    pub(crate) async fn token(&self, by: Option<&str>, body: &str) -> String {
        let made = self.send_as(by, "POST", "/v1/tokens", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["token"].as_str().unwrap().to_owned()
    }

    /// Runs the command line against this server.
    pub(crate) fn run(&self, args: &[&str]) -> std::process::Output {
        self.run_alone(&[args, &["--server", &self.url]].concat())
    }

    /// Runs the command line without the option `--server`.
    pub(crate) fn run_alone(&self, args: &[&str]) -> std::process::Output {
        let mut shell = Shell::new(env!("CARGO_BIN_EXE_rewheel"));
        for name in ["REWHEEL_SERVER", "REWHEEL_TOKEN", "REWHEEL_TOKEN_FILE", "RUST_LOG"] {
            shell.env_remove(name);
        }
        shell.current_dir(self.attack.folder.path()).args(args).stdin(Stdio::null());
        shell.output().unwrap()
    }

    /// Returns everything that the server has logged so far.
    pub(crate) fn logged(&self) -> String {
        self.logged.lock().unwrap().clone()
    }

    /// Fails if the server process ended.
    pub(crate) fn assert_running(&mut self) {
        assert!(self.process.try_wait().unwrap().is_none(), "the server ended: {}", self.logged());
    }

    /// Waits until a condition holds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let wait = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        assert!(waited.is_ok(), "{what}: not after {PATIENCE:?}\n{}", self.logged());
    }
}

/// A response of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> Answer {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap() }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the `code` of the problem document; empty if it is none.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Fails unless this is a problem with this status and code.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{self:?}");
    }

    /// Fails unless the request succeeded, and returns the document.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.json()
    }
}
