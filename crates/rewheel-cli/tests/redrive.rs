//! Dead letters are put back to work from a shell: with care, and whatever becomes of the server.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]
#![expect(clippy::disallowed_methods, reason = "who is called ends with the test")]

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const DEAD: u64 = 412;

/// Somebody to call who knows no order until he is mended, for so many calls.
async fn shop() -> (String, Arc<AtomicUsize>) {
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
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, mended)
}

/// A server that is killed when it is dropped.
struct Served {
    server: Child,
    url: String,
}

impl Served {
    fn start(folder: &Path, store: &str) -> Served {
        let mut server = command(folder)
            .args(["serve", "--listen", "127.0.0.1:0", "--store", store])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.next().unwrap();
        // Whoever stops reading stops the one who writes.
        std::thread::spawn(move || lines.for_each(drop));
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Served { server, url }
    }

    /// Runs a command, and returns its exit code with what it said.
    fn run(&self, folder: &Path, args: &[&str]) -> (i32, String, String) {
        let ran = command(folder).args(args).args(["--server", &self.url]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (ran.status.code().unwrap(), text(&ran.stdout), text(&ran.stderr))
    }

    async fn get(&self, path: &str) -> Value {
        let text = reqwest::get(format!("{}{path}", self.url)).await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    async fn dead(&self) -> u64 {
        self.get("/v1/kinds/parcel").await["jobs"]["dead"].as_u64().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rewheel"));
    command.current_dir(folder).env_remove("REWHEEL_SERVER").env_remove("RUST_LOG");
    command
}

fn folder(hook: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    // A short lease, so that who comes after a kill does not wait long.
    let config = format!(
        "[engine]\nlease_ttl = \"1s\"\nhousekeeping = \"200ms\"\n[kinds.parcel]\nrunner = \"callback\"\n\
         [kinds.parcel.callback]\nurl = \"{hook}\"\nallow = [\"127.0.0.0/8\"]\n"
    );
    std::fs::write(folder.path().join("rewheel.toml"), config).unwrap();
    folder
}

async fn redrive(store: impl Fn(&Path) -> String) {
    let (hook, mended) = shop().await;
    let folder = folder(&hook);
    let (folder, store) = (folder.path(), store(folder.path()));
    let served = Served::start(folder, &store);
    let jobs = vec![json!({"kind": "parcel", "payload": {"order": 17}}); DEAD as usize];
    let batch = reqwest::Client::new().post(format!("{}/v1/jobs/batch", served.url));
    let answer = batch.body(json!({ "jobs": jobs }).to_string()).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
    while served.dead().await < DEAD {}

    let (code, out, _) = served.run(folder, &["dead", "redrive", "--kind", "parcel", "--dry-run"]);
    assert!(code == 0 && out.starts_with("412 jobs would be changed\namong them:\n"), "{out}");
    let (code, _, err) = served.run(folder, &["dead", "redrive"]);
    assert!(code == 2 && err.contains("hint: --kind, --incident, …, or --all"), "{err}");
    let (_, out, _) = served.run(folder, &["dead", "redrive", "--all", "--dry-run"]);
    assert!(out.starts_with("412 jobs"), "{out}");
    let (_, out, _) = served.run(folder, &["dead", "list", "--kind", "parcel", "--limit", "3"]);
    assert_eq!(out.lines().filter(|line| line.contains("rejected 404")).count(), 3, "{out}");

    // One goes well, then some of ten do not: the others are left alone.
    mended.store(5, Ordering::SeqCst);
    let (code, out, err) =
        served.run(folder, &["dead", "redrive", "--kind", "parcel", "--canary", "1,10,100"]);
    assert!(code == 3 && err == "error: it did not come to its end", "{code} {err}");
    assert!(out.starts_with("redrive is aborted: 11 of 412 jobs changed"), "{out}");
    let says_why = out.contains("step 2 of 3 of the canary failed: ")
        && out.contains(" of its 10 jobs failed again (rejected 404: ")
        && out.ends_with("11 were redriven, 401 are left as they were");
    assert!(says_why, "{out}");
    while served.dead().await < DEAD - 5 {}

    // The server dies in the middle of it, and another goes on where it was.
    mended.store(usize::MAX, Ordering::SeqCst);
    let args = ["dead", "redrive", "--kind", "parcel", "--rate", "200/s", "--detach"];
    let (code, id, err) = served.run(folder, &args);
    assert_eq!(code, 0, "{err}");
    let path = format!("/v1/operations/{id}");
    while served.get(&path).await["done"].as_u64().unwrap() < 100 {}
    drop(served);
    let served = Served::start(folder, &store);
    let operation = loop {
        let operation = served.get(&path).await;
        if operation["state"] != "running" {
            break operation;
        }
    };
    let figures = ["state", "total", "done", "failed"].map(|name| operation[name].clone());
    assert_eq!(figures, [json!("done"), json!(DEAD - 5), json!(DEAD - 5), json!(0)]);
    assert_eq!(served.dead().await, 0);
    let (_, out, _) = served.run(folder, &["operations", "list"]);
    assert_eq!(out.lines().count(), 3, "{out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_redriven_with_care_on_sqlite() {
    redrive(|folder| format!("sqlite://{}", folder.join("rewheel.db").display())).await;
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_redriven_with_care_on_postgres() {
    let schema = rewheel_testkit::Schema::fresh();
    redrive(|_| schema.url().to_owned()).await;
}
