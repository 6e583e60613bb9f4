//! A client of chromedriver: WebDriver is JSON over HTTP.

use crate::PATIENCE;
use serde_json::{Value, json};
use std::fmt;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Options of the browser. It runs as root in containers, talks only to this machine, and treats a window behind another one as any other.
const OPTIONS: [&str; 16] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    "--lang=en-US",
    "--window-size=1200,900",
];

/// A running browser; it ends when this value is dropped.
pub(crate) struct Session {
    client: reqwest::Client,
    driver: Child,
    port: u16,
    id: String,
    _folder: TempDir,
}

/// An error of chromedriver.
#[derive(Debug)]
pub(crate) struct Refused {
    /// A code of the WebDriver specification, such as `stale element reference`.
    pub(crate) error: String,
    message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.message.lines().next().unwrap_or_default();
        write!(f, "{}: {first}", self.error)
    }
}

impl Session {
    /// Starts chromedriver and a browser with an empty profile.
    pub(crate) async fn start() -> Session {
        let folder = TempDir::new().unwrap();
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("TZ", "UTC")
            // It creates the profile there.
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("chromedriver: {error}. Debian's packages are chromium and chromium-driver")
            });
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next_line().await.unwrap().expect("chromedriver starts");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim_end_matches('.').parse().unwrap();
            }
        };
        // Read on, so that it does not block.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let mut session = Session { client, driver, port, id: String::new(), _folder: folder };
        let wanted = json!({
            "goog:chromeOptions": { "args": OPTIONS },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            "timeouts": { "script": 60_000, "pageLoad": 60_000 },
        });
        let body = json!({ "capabilities": { "alwaysMatch": wanted } });
        let started = session.send("POST", String::new(), &body).await;
        let started = started.unwrap_or_else(|refused| panic!("no browser: {refused}"));
        started["sessionId"].as_str().unwrap().clone_into(&mut session.id);
        session
    }

    /// Sends a command, such as `/url`.
    pub(crate) async fn post(&self, command: &str, body: Value) -> Result<Value, Refused> {
        self.send("POST", format!("/{}{command}", self.id), &body).await
    }

    pub(crate) async fn get(&self, command: &str) -> Result<Value, Refused> {
        self.send("GET", format!("/{}{command}", self.id), &Value::Null).await
    }

    async fn send(&self, method: &str, path: String, body: &Value) -> Result<Value, Refused> {
        let url = format!("http://127.0.0.1:{}/session{path}", self.port);
        let request = self.client.request(method.parse().unwrap(), url);
        let request = if body.is_null() {
            request
        } else {
            request.header("content-type", "application/json").body(body.to_string())
        };
        let answer = request.send().await.unwrap();
        let is_success = answer.status().is_success();
        let mut answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let value = answer["value"].take();
        if is_success {
            return Ok(value);
        }
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Err(Refused { error: text("error"), message: text("message") })
    }

    /// Ends the browser. It does not end by itself when chromedriver is killed.
    fn quit(&self) -> std::io::Result<()> {
        let mut driver = std::net::TcpStream::connect(("127.0.0.1", self.port))?;
        driver.set_read_timeout(Some(Duration::from_secs(10)))?;
        let head = format!("DELETE /session/{} HTTP/1.1\r\n", self.id);
        driver.write_all(head.as_bytes())?;
        driver.write_all(b"host: 127.0.0.1\r\n\r\n")?;
        // The answer begins when the browser has ended; chromedriver keeps the connection.
        driver.read(&mut [0; 64]).map(drop)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.quit();
        let _ = self.driver.start_kill();
    }
}
