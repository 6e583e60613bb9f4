//! Starts a server process for hostile clients.

use flate2::Compression;
use flate2::write::GzEncoder;
use rewheel::{millis, seconds};
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Timeout for anything in these tests, also on a busy machine.
pub(crate) const PATIENCE: Duration = seconds(180);

/// A server with one kind and no runner. It is killed with its test.
pub(crate) struct Server {
    process: Child,
    address: String,
    _folder: TempDir,
}

impl Server {
    /// Starts it with some limits.
    pub(crate) async fn start(limits: &str) -> Server {
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("rewheel.toml");
        let text =
            format!("[store]\nurl = \"memory://\"\n[server.limits]\n{limits}\n[kinds.mail]\n");
        std::fs::write(&config, text).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_rewheel"))
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(config)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next_line().await.unwrap().expect("it listens");
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        // Its later output is ignored, but must be read so that it does not block.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Server { process, address, _folder: folder }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.unwrap()
    }

    /// Sends data on a new connection, and returns the whole response.
    pub(crate) async fn say(&self, said: &[u8]) -> String {
        let mut client = self.connect().await;
        // The server may respond and disconnect before everything is sent.
        let _ = client.write_all(said).await;
        answer(&mut client).await
    }

    /// As [`say`](Server::say), but closes the sending side.
    pub(crate) async fn say_only(&self, said: &[u8]) -> String {
        let mut client = self.connect().await;
        let _ = client.write_all(said).await;
        let _ = client.shutdown().await;
        answer(&mut client).await
    }

    /// Submits a thousand jobs at once.
    pub(crate) async fn submit_many(&self) {
        let jobs = vec![r#"{"kind":"mail","payload":{}}"#; 1_000].join(",");
        let body = format!("{{\"jobs\":[{jobs}]}}");
        let head = format!(
            "POST /v1/jobs/batch HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let told = self.say(format!("{head}{body}").as_bytes()).await;
        assert_eq!(status(&told), 201, "{told}");
    }

    /// Returns its current memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let process = self.process.id().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Returns the number of its open files and connections.
    pub(crate) fn files(&self) -> usize {
        let process = self.process.id().unwrap();
        std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
    }
}

/// Reads until the server closes the connection.
pub(crate) async fn answer(client: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    // A reset after the response does not matter.
    let _ = timeout(PATIENCE, client.read_to_end(&mut heard)).await.expect("the server answers");
    String::from_utf8_lossy(&heard).into_owned()
}

/// Returns the status of a response.
#[track_caller]
pub(crate) fn status(answer: &str) -> u16 {
    let status = answer.strip_prefix("HTTP/1.1 ").or(answer.strip_prefix("HTTP/1.0 "));
    status.and_then(|rest| rest.get(..3)).unwrap_or_else(|| panic!("{answer:?}")).parse().unwrap()
}

/// Returns the code of a problem document; empty if it is none.
pub(crate) fn code(answer: &str) -> &str {
    let code = answer.split_once("\"code\":\"").map(|(_, rest)| rest);
    code.and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(millis(50)).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}: it never happened"));
}

/// Returns this many spaces, compressed.
pub(crate) fn bomb(bytes: usize) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let blanks = vec![b' '; 1024 * 1024];
    for _ in 0..bytes / blanks.len() {
        packed.write_all(&blanks).unwrap();
    }
    packed.finish().unwrap()
}
