//! Runs the workers of `examples/`, in their own languages, against a real server.

#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use crate::fleet::{Fleet, until};
use rewheel::seconds;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

async fn count(fleet: &Fleet, state: &str) -> usize {
    let jobs = fleet.get(&format!("/v1/jobs?limit=1000&state={state}")).await;
    jobs["items"].as_array().map_or(0, Vec::len)
}

/// Runs a hundred jobs, some of which fail once or permanently; one worker is killed meanwhile, another ends normally.
async fn works(start: impl Fn(&str) -> Command) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("rewheel.toml");
    let store = folder.path().join("rewheel.db");
    let text = format!(
        r#"
        [store]
        url = "sqlite://{}"
        [engine]
        lease_ttl = "1s"
        housekeeping = "200ms"
        [kinds.parcel]
        runner = "worker"
        "#,
        store.display()
    );
    std::fs::write(&config, text).unwrap();
    let fleet = Fleet::start(&config, 1).await;
    let job = |order: usize| {
        let fail = ["no", "no", "once", "no", "always"][order % 5];
        json!({"kind": "parcel", "payload": {"order": order, "fail": fail}})
    };
    let jobs: Vec<Value> = (0..100).map(job).collect();
    let run = || -> Child {
        start(fleet.url()).stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap()
    };
    let mut killed = run();
    fleet.post("/v1/jobs/batch", json!({ "jobs": jobs[..50] })).await;
    until("it works", async || count(&fleet, "succeeded").await >= 5).await;
    killed.kill().await.unwrap();
    let mut other = run();
    fleet.post("/v1/jobs/batch", json!({ "jobs": jobs[50..] })).await;
    until("all but the hopeless are done", async || count(&fleet, "succeeded").await == 80).await;
    until("the hopeless are dead", async || count(&fleet, "dead").await == 20).await;
    let dead = fleet.get("/v1/jobs?state=dead&limit=1").await;
    assert_eq!(dead["items"][0]["failure"]["code"], "no_such_order");
    let pid = other.id().unwrap().to_string();
    let told = std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    let ended = tokio::time::timeout(seconds(180), other.wait()).await;
    assert!(told.success() && ended.unwrap().unwrap().success(), "it did not end by itself");
    fleet.stop().await;
}

fn runs(program: &str, args: &[&str]) -> bool {
    let ran = std::process::Command::new(program).args(args).output();
    ran.is_ok_and(|output| output.status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_in_python() {
    if !runs("python3", &["--version"]) {
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
    // `cargo xtask test` finds one that is new enough.
    let node = std::env::var("REWHEEL_TEST_NODE").unwrap_or_else(|_| "node".to_owned());
    if !runs(&node, &["--experimental-strip-types", "--eval", "0"]) {
        println!("not tested: examples/worker.ts (node 22.6 or newer is not installed)");
        return;
    }
    works(|url| {
        let mut command = Command::new(&node);
        command.args(["--experimental-strip-types", "--no-warnings"]);
        command.arg(example("worker.ts")).args([url, "parcel"]);
        command
    })
    .await;
}
