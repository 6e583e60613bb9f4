//! The workers of `examples/`, in their own languages, against a real server.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]
#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process that is killed when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn serve(folder: &Path) -> (Process, String) {
    let config = "[engine]\nlease_ttl = \"1s\"\nhousekeeping = \"200ms\"\n[kinds.parcel]\nrunner = \"worker\"\n";
    std::fs::write(folder.join("rewheel.toml"), config).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_rewheel"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.next().unwrap();
    // Whoever stops reading stops the one who writes.
    std::thread::spawn(move || lines.for_each(drop));
    (Process(server), line.trim().strip_prefix("listening on ").unwrap().to_owned())
}

async fn post(url: &str, path: &str, body: &Value) -> Value {
    let request = reqwest::Client::new().post(format!("{url}{path}")).body(body.to_string());
    serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
}

async fn get(url: &str, path: &str) -> Value {
    let answer = reqwest::get(format!("{url}{path}")).await.unwrap();
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

async fn count(url: &str, state: &str) -> usize {
    let jobs = get(url, &format!("/v1/jobs?limit=1000&state={state}")).await;
    jobs["items"].as_array().map_or(0, Vec::len)
}

/// A hundred jobs, some of which fail once or for good; a worker is killed among them, another ends as it should.
async fn works(start: impl Fn(&str) -> Command) {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = serve(folder.path());
    let job = |order: usize| {
        let fail = ["no", "no", "once", "no", "always"][order % 5];
        json!({"kind": "parcel", "payload": {"order": order, "fail": fail}})
    };
    let jobs: Vec<Value> = (0..100).map(job).collect();
    let run = |url: &str| Process(start(url).stdout(Stdio::null()).spawn().unwrap());
    let killed = run(&url);
    post(&url, "/v1/jobs/batch", &json!({ "jobs": jobs[..50] })).await;
    while count(&url, "succeeded").await < 5 {}
    drop(killed);
    let mut other = run(&url);
    post(&url, "/v1/jobs/batch", &json!({ "jobs": jobs[50..] })).await;
    while count(&url, "succeeded").await < 80 || count(&url, "dead").await < 20 {}
    let dead = get(&url, "/v1/jobs?state=dead&limit=1").await;
    assert_eq!(dead["items"][0]["failure"]["code"], "no_such_order");
    let asked = Command::new("kill").args(["-TERM", &other.0.id().to_string()]).status().unwrap();
    assert!(asked.success() && other.0.wait().unwrap().success(), "it did not end by itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_in_python() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("not tested: examples/worker.py (python3 is not installed)");
        return;
    }
    works(|url| {
        let mut command = Command::new("python3");
        command.arg(example("worker.py")).args([url, "parcel"]);
        command
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_in_typescript() {
    let node = |args: &[&str]| Command::new("node").args(args).output();
    let runs = node(&["--experimental-strip-types", "--eval", "0"]);
    if !runs.is_ok_and(|output| output.status.success()) {
        println!("not tested: examples/worker.ts (node 22.6 or newer is not installed)");
        return;
    }
    works(|url| {
        let mut command = Command::new("node");
        command.args(["--experimental-strip-types", "--no-warnings"]);
        command.arg(example("worker.ts")).args([url, "parcel"]);
        command
    })
    .await;
}
