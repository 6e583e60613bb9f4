//! Tests listing, editing and redriving dead letters, also across server crashes.

use crate::fleet::{Fleet, until};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

const DEAD: u64 = 412;

/// A callee that rejects every order until it is repaired, for a number of calls.
async fn shop() -> (String, Arc<AtomicUsize>, JoinSet<()>) {
    let mended = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&mended);
    let answer = move || async move {
        let spend = |left: usize| left.checked_sub(1);
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend) {
            Ok(_) => StatusCode::OK,
            Err(_) => StatusCode::NOT_FOUND,
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let app = Router::new().route("/hook", post(answer));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, mended, serving)
}

/// A fleet of one node, used from a shell.
struct Shell(Fleet);

impl Shell {
    /// Runs a command, and returns its exit code and output.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rewheel"));
        let ran = command.args(args).args(["--server", self.0.url()]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (ran.status.code().unwrap(), text(&ran.stdout), text(&ran.stderr))
    }

    /// Runs a command that must succeed, and returns its output.
    #[track_caller]
    fn done(&self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {err}");
        out
    }

    async fn dead(&self) -> u64 {
        self.0.kind("parcel").await["jobs"]["dead"].as_u64().unwrap()
    }

    async fn ended(&self, id: &str) -> Value {
        let path = format!("/v1/operations/{id}");
        until("it ends", async || self.0.get(&path).await["state"] != "running").await;
        self.0.get(&path).await
    }
}

/// A config with short leases, so that the next node does not wait long after a kill.
fn config(folder: &Path, store: &str, hook: &str) -> std::path::PathBuf {
    let text = format!(
        r#"
        [store]
        url = "{store}"
        [engine]
        lease_ttl = "1s"
        housekeeping = "200ms"
        [kinds.parcel]
        runner = "callback"
        [kinds.parcel.callback]
        url = "{hook}"
        allow = ["127.0.0.0/8"]
        "#
    );
    let path = folder.join("rewheel.toml");
    std::fs::write(&path, text).unwrap();
    path
}

async fn redrive(folder: &Path, store: &str) {
    let (hook, mended, _serving) = shop().await;
    let shell = Shell(Fleet::start(&config(folder, store, &hook), 1).await);
    let job = json!({"kind": "parcel", "payload": {"order": 17}});
    shell.0.post("/v1/jobs/batch", json!({ "jobs": vec![job; DEAD as usize] })).await;
    until("they are dead", async || shell.dead().await == DEAD).await;
    look(&shell);
    canary(&shell, &mended).await;
    let mut shell = shell;
    outlive(&mut shell, &mended).await;
    mend(&shell, &mended).await;
    shell.0.stop().await;
}

fn look(shell: &Shell) {
    let out = shell.done(&["dead", "redrive", "--kind", "parcel", "--dry-run"]);
    assert!(out.starts_with("412 jobs would be changed\namong them:\n"), "{out}");
    let out = shell.done(&["dead", "redrive", "--all", "--dry-run"]);
    assert!(out.starts_with("412 jobs"), "{out}");
    let (code, _, err) = shell.run(&["dead", "redrive"]);
    assert!(
        code == 2 && err.contains("hint: use --kind, --incident or another filter, or --all"),
        "{err}"
    );
    let out = shell.done(&["dead", "list", "--kind", "parcel", "--limit", "3"]);
    assert_eq!(out.lines().filter(|line| line.contains("rejected 404")).count(), 3, "{out}");
}

/// One job succeeds, then some of ten fail: the others stay untouched.
async fn canary(shell: &Shell, mended: &AtomicUsize) {
    mended.store(5, Ordering::SeqCst);
    let (code, out, err) =
        shell.run(&["dead", "redrive", "--kind", "parcel", "--canary", "1,10,100"]);
    assert!(code == 3 && err == "error: the operation was aborted", "{code} {err}");
    assert!(out.starts_with("operation redrive is aborted: 11 of 412 jobs changed"), "{out}");
    let says_why = out.contains("step 2 of 3 of the canary failed: ")
        && out.contains(" of its 10 jobs failed again (rejected 404: ")
        && out.ends_with("jobs redriven in total: 11, not changed: 401");
    assert!(says_why, "{out}");
    until("they are dead again", async || shell.dead().await == DEAD - 5).await;
}

/// The server dies in the middle of the operation, and another continues it.
async fn outlive(shell: &mut Shell, mended: &AtomicUsize) {
    mended.store(usize::MAX, Ordering::SeqCst);
    let id = shell.done(&["dead", "redrive", "--all", "--rate", "200/s", "--detach"]);
    let path = format!("/v1/operations/{id}");
    until("it is halfway", async || shell.0.get(&path).await["done"].as_u64() >= Some(100)).await;
    shell.0.kill("0-0").await;
    let operation = shell.ended(&id).await;
    let figures = ["state", "total", "done", "failed"].map(|name| operation[name].clone());
    assert_eq!(figures, [json!("done"), json!(DEAD - 5), json!(DEAD - 5), json!(0)]);
    assert_eq!(shell.dead().await, 0);
    assert_eq!(shell.done(&["operations", "list"]).lines().count(), 3);
}

/// Waiting jobs with a failure are held, edited and released; dead letters are redriven by their
/// cause.
async fn mend(shell: &Shell, mended: &AtomicUsize) {
    mended.store(0, Ordering::SeqCst);
    let id = shell.done(&["submit", "parcel", r#"{"order":18}"#]);
    until("it is dead", async || shell.dead().await == 1).await;
    let incidents: Value = serde_json::from_str(&shell.done(&["incidents", "--json"])).unwrap();
    let incident = incidents["items"][0]["id"].as_str().unwrap();
    let (code, _, err) = shell.run(&["incidents", "hold", incident]);
    assert!(code == 5 && err.contains("has no jobs to"), "{err}");

    let edited =
        shell.done(&["jobs", "edit", &id, "--payload", r#"{"order":19}"#, "--priority", "9"]);
    assert_eq!(edited, format!("{id} dead"));
    let (code, _, err) = shell.run(&["jobs", "edit", &id, "--priority", "1", "--if-version", "1"]);
    assert!(code == 6 && err.contains("its version is now 3"), "{err}");
    let out = shell.done(&["incidents", "redrive", incident, "--dry-run"]);
    assert!(out.starts_with("1 jobs would be changed"), "{out}");
    mended.store(1, Ordering::SeqCst);
    let out = shell.done(&["incidents", "redrive", incident, "--canary", "1"]);
    assert!(out.starts_with("operation redrive is done: 1 of 1 jobs changed"), "{out}");
    let job = shell.0.get(&format!("/v1/jobs/{id}")).await;
    assert_eq!((&job["payload"]["order"], &job["state"]), (&json!(19), &json!("succeeded")));

    let id = shell.done(&["submit", "parcel", "{}", "--delay", "1h"]);
    assert_eq!(shell.done(&["jobs", "pause", &id]), format!("{id} paused"));
    assert_eq!(shell.done(&["jobs", "resume", &id]), format!("{id} scheduled"));
    let (code, _, _) = shell.run(&["operations", "abort", &id]);
    assert_eq!(code, 5, "that is a job, not an operation");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_redriven_with_care_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite://{}", folder.path().join("rewheel.db").display());
    redrive(folder.path(), &store).await;
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_redriven_with_care_on_postgres() {
    let (folder, schema) = (tempfile::tempdir().unwrap(), rewheel_testkit::Schema::fresh());
    redrive(folder.path(), schema.url()).await;
}
