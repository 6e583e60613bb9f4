//! Kills a server again and again while it works; nothing that it acknowledged may be lost.
//!
//! `cargo xtask chaos --store sqlite --cell kill-node` does it 200 times; `REWHEEL_KILLS` says
//! another number.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a test, which reports what it did")]

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KILLS_DEFAULT: usize = 20;

/// What the callee saw: the fences of each job.
#[derive(Default)]
struct Seen {
    fences: Mutex<BTreeMap<String, BTreeSet<u64>>>,
    calls: AtomicU64,
}

/// Every fifth call fails; some take a moment.
async fn callee(State(seen): State<Arc<Seen>>, headers: HeaderMap) -> StatusCode {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let fence = header("rewheel-fence").parse().unwrap();
    seen.fences.lock().unwrap().entry(header("webhook-id")).or_default().insert(fence);
    let call = seen.calls.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(call % 20)).await;
    if call.is_multiple_of(5) { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

/// A running server; killed when it is dropped.
struct Server {
    child: Child,
    url: String,
    said: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(config: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rewheel"))
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(config)
            .env("RUST_LOG", "warn")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(Vec::new()));
        let mut url = None;
        for line in lines.by_ref() {
            let line = line.unwrap();
            url = line.split_once("listening on ").map(|(_, url)| url.trim().to_owned());
            said.lock().unwrap().push(line);
            if url.is_some() {
                break;
            }
        }
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| heard.lock().unwrap().push(line));
        });
        let url = url.unwrap_or_else(|| panic!("it does not listen: {:?}", said.lock().unwrap()));
        Server { child, url, said }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Cell {
    folder: tempfile::TempDir,
    config: PathBuf,
    client: reqwest::Client,
    acknowledged: BTreeSet<String>,
}

impl Cell {
    fn new(callee: &str) -> Cell {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("rewheel.toml");
        let store = format!("sqlite://{}", folder.path().join("rewheel.db").display());
        let text = format!(
            r#"
            [store]
            url = "{store}"
            [engine]
            lease_ttl = "1s"
            housekeeping = "500ms"
            places = 64
            [kinds.work]
            runner = "callback"
            attempts_max = 50
            attempt_timeout = "2s"
            backoff = "fixed 20ms jitter none"
            keep_succeeded = "1d"
            [kinds.work.callback]
            url = "{callee}/work"
            allow = ["127.0.0.0/8"]
            "#
        );
        std::fs::write(&config, text).unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Cell { folder, config, client, acknowledged: BTreeSet::new() }
    }

    /// Submits until the server is killed in the middle of it.
    async fn work_and_kill(&mut self, round: usize) {
        let mut server = Server::start(&self.config);
        let after = Duration::from_millis(40 + (round as u64 * 67) % 260);
        let killed = tokio::time::sleep(after);
        tokio::pin!(killed);
        loop {
            let jobs: Vec<Value> =
                (0..20).map(|_| json!({"kind": "work", "payload": {}})).collect();
            let request = self
                .client
                .post(format!("{}/v1/jobs/batch", server.url))
                .json(&json!({ "jobs": jobs }))
                .send();
            tokio::select! {
                biased;
                () = &mut killed => break,
                answer = request => {
                    let answer: Value = answer.unwrap().json().await.unwrap();
                    for result in answer["results"].as_array().unwrap() {
                        self.acknowledged.insert(result["id"].as_str().unwrap().to_owned());
                    }
                }
            }
        }
        server.kill();
    }

    async fn get(&self, server: &Server, path: &str) -> Value {
        let answer = self.client.get(format!("{}{path}", server.url)).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Waits until every job has ended.
    async fn drain(&self, server: &Server) {
        for _ in 0..1_200 {
            let path = "/v1/jobs?state=scheduled&state=leased&state=paused&limit=1";
            let left = self.get(server, path).await;
            if left["items"].as_array().unwrap().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("jobs are left after two minutes: {:?}", server.said.lock().unwrap());
    }

    async fn check(&self, server: &Server, seen: &Seen) {
        for id in &self.acknowledged {
            let job = self.get(server, &format!("/v1/jobs/{id}")).await;
            let state = job["state"].as_str().unwrap_or_else(|| panic!("{id} is lost: {job}"));
            assert!(["succeeded", "dead"].contains(&state), "{id} is {state}");
            let largest = seen.fences.lock().unwrap()[id].last().copied();
            assert_eq!(job["fence"].as_u64(), largest, "{id} was settled by a late holder: {job}");
        }
    }

    fn doctor(&self) -> (bool, String) {
        let store = format!("sqlite://{}", self.folder.path().join("rewheel.db").display());
        let output = Command::new(env!("CARGO_BIN_EXE_rewheel"))
            .args(["doctor", "--json", "--store", &store])
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_killing_the_server() {
    let kills = std::env::var("REWHEEL_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills = kills.unwrap_or(KILLS_DEFAULT);
    let seen = Arc::new(Seen::default());
    let app = Router::new().route("/work", post(callee)).with_state(Arc::clone(&seen));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move { axum::serve(listener, app).await.unwrap() });

    let mut cell = Cell::new(&format!("http://{address}"));
    for round in 0..kills {
        cell.work_and_kill(round).await;
    }
    let server = Server::start(&cell.config);
    cell.drain(&server).await;
    cell.check(&server, &seen).await;
    drop(server);
    let (well, books) = cell.doctor();
    assert!(well, "{books}");
    println!(
        "{kills} kills, {} jobs acknowledged, {} calls, none lost; books {books}",
        cell.acknowledged.len(),
        seen.calls.load(Ordering::Relaxed),
    );
    assert!(cell.acknowledged.len() > 20 * kills, "{} jobs are few", cell.acknowledged.len());
}
