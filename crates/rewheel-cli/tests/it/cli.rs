//! Tests the command as a shell sees it: output and exit codes.

use crate::shell::{Ran, command, run};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use tempfile::TempDir;

/// A folder with a running server.
struct Served {
    folder: TempDir,
    server: Child,
    stderr: BufReader<ChildStderr>,
    url: String,
}

impl Served {
    /// Starts a server with a kind `mail` without a runner.
    fn start() -> Served {
        Served::start_with("[kinds.mail]\nattempts_max = 3\n")
    }

    fn start_with(config: &str) -> Served {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rewheel.toml"), config).unwrap();
        Served::start_in(folder)
    }

    fn start_in(folder: TempDir) -> Served {
        Served::start_so(folder, &[])
    }

    fn start_so(folder: TempDir, more: &[&str]) -> Served {
        let mut server = command(folder.path())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(server.stderr.take().unwrap());
        let mut served = Served { folder, server, stderr, url: String::new() };
        let line = served.line();
        let url = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}"));
        served.url = url.to_owned();
        served
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut all = args.to_vec();
        all.extend(["--server", &self.url]);
        run(self.folder.path(), &all)
    }

    fn interrupt(&self) {
        let pid = self.server.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Stops the server, and returns the rest of its output.
    fn end(mut self) -> (Ran, TempDir) {
        self.interrupt();
        let mut err = String::new();
        self.stderr.read_to_string(&mut err).unwrap();
        let code = self.server.wait().unwrap().code().unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        (Ran { code, out: String::new(), err }, folder)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_job_is_submitted_listed_shown_and_cancelled() {
    let served = Served::start();
    let submitted =
        served.run(&["submit", "mail", r#"{"to":"a"}"#, "--key", "k", "--priority", "7"]);
    assert_eq!((submitted.code, submitted.err.as_str()), (0, ""));
    let id = submitted.out.as_str();
    let again = served.run(&["submit", "mail", r#"{"to":"a"}"#, "--key", "k"]);
    assert_eq!((again.code, again.out.as_str()), (0, id));
    assert!(again.err.contains("a job with this key already exists"), "{again:?}");

    let list = served.run(&["jobs", "list", "--state", "scheduled", "--kind", "mail"]);
    assert!(list.out.contains(id) && list.out.contains("STATE"), "{list:?}");
    let shown = served.run(&["jobs", "show", id]);
    let first = shown.out.lines().next().unwrap_or_default();
    assert!(first.starts_with("waits because no node can run jobs of this kind; due "), "{first}");
    assert!(first.ends_with("(submitted to run immediately)"), "{first}");
    assert!(shown.out.contains(r#"{"to":"a"}"#));
    let json = served.run(&["jobs", "show", id, "--json"]).json();
    assert_eq!((&json["priority"], &json["attempts_max"]), (&7.into(), &3.into()));

    let kinds = served.run(&["kinds"]);
    assert!(kinds.out.contains("mail") && kinds.out.contains("not runnable"), "{kinds:?}");
    let cancelled = served.run(&["jobs", "cancel", id]);
    assert_eq!((cancelled.code, cancelled.out), (0, format!("{id} cancelled")));
    let shown = served.run(&["jobs", "show", id]);
    assert!(shown.out.starts_with("cancelled by "), "{shown:?}");
    let conflict = served.run(&["jobs", "retry", id]);
    assert_eq!(conflict.code, 6, "{conflict:?}");
    let partly = served.run(&["jobs", "cancel", id, "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e"]);
    assert_eq!(partly.code, 3, "{partly:?}");
}

#[test]
fn mistakes_have_their_exit_codes() {
    let served = Served::start();
    let unknown = served.run(&["submit", "post", "1"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.starts_with("error: kind `post` does not exist\nhint: "), "{unknown:?}");
    let field = served.run(&["submit", "mail", "1", "--priority", "10", "--delay", "-5s"]);
    assert_eq!(field.code, 2);
    assert!(field.err.contains("/priority must be 0..9") && field.err.contains("/delay must not"));
    let json = served.run(&["submit", "mail", "1", "--priority", "10", "--json"]);
    let problem: Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, &problem["code"]), (2, &"invalid_field".into()));
    let query = served.run(&["jobs", "list", "--due-after", "soon"]);
    assert_eq!(query.code, 2, "{query:?}");
    assert_eq!(served.run(&["submit", "mail", "not json"]).code, 2);
    assert_eq!(served.run(&["submit", "mail", "@nowhere.json"]).code, 2);
    assert_eq!(served.run(&["submit"]).code, 2);
    assert_eq!(served.run(&["jobs", "show", "17"]).code, 5);
    let folder = tempfile::tempdir().unwrap();
    let alone = run(folder.path(), &["kinds", "--server", "http://127.0.0.1:1"]);
    assert_eq!(alone.code, 7, "{alone:?}");
    assert!(alone.err.contains("hint: start a server with `rewheel serve`"));
    assert_eq!(run(folder.path(), &["kinds", "--server", "nonsense"]).code, 2);
    let scheme = served.url.replace("http://", "https://");
    let scheme = run(folder.path(), &["kinds", "--server", &scheme]);
    assert!(
        scheme.code == 7 && scheme.err.contains("does not use TLS: begin its URL with http://")
    );
}

#[test]
fn a_payload_comes_from_a_file_or_a_pipe() {
    let served = Served::start();
    let folder = served.folder.path();
    std::fs::write(folder.join("payload.json"), "{\"from\":  \"file\"}\n").unwrap();
    let job = served.run(&["submit", "mail", "@payload.json", "--json"]);
    assert!(job.out.contains(r#""payload":{"from":  "file"}"#), "{job:?}");
    let mut piped = command(folder)
        .args(["submit", "mail", "-", "--json", "--server", &served.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(b"[1,2]").unwrap();
    let ran = Ran::of(&piped.wait_with_output().unwrap());
    assert_eq!(ran.json()["payload"], serde_json::json!([1, 2]));
}

#[test]
fn an_interrupted_server_says_what_it_gave_back() {
    let served = Served::start();
    assert_eq!(served.run(&["submit", "mail", "1"]).code, 0);
    let (ended, folder) = served.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.err.contains("released 0"), "{ended:?}");
    let doctor = run(folder.path(), &["doctor", "--json"]);
    assert_eq!((doctor.code, &doctor.json()["ok"]), (0, &true.into()), "{doctor:?}");
    assert_eq!(doctor.json()["books"]["live"], 1);
}

/// A server that is waiting for a callback that never responds.
fn busy(grace: &str) -> (Served, TcpStream) {
    let callee = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", callee.local_addr().unwrap());
    let served = Served::start_with(&format!(
        "[server]\nshutdown_grace = \"{grace}\"\n[kinds.hook]\nrunner = \"callback\"\n\
         [kinds.hook.callback]\nurl = \"{url}\"\nallow = [\"127.0.0.0/8\"]\n"
    ));
    assert_eq!(served.run(&["submit", "hook", "1"]).code, 0);
    let (call, _) = callee.accept().unwrap();
    (served, call)
}

/// Checks that the only job of a store exists and has used no attempt.
fn nothing_was_charged(folder: &Path) {
    let books = run(folder, &["doctor", "--json"]);
    assert_eq!((books.code, &books.json()["books"]["live"]), (0, &1.into()), "{books:?}");
}

#[test]
fn a_second_interrupt_stops_at_once() {
    let (mut served, _call) = busy("1h");
    served.interrupt();
    assert_eq!(
        served.line(),
        "shutting down: waiting for running jobs; press Ctrl-C again to stop immediately"
    );
    served.interrupt();
    let code = served.server.wait().unwrap().code();
    assert_eq!(code, Some(130));
    assert!(served.line().starts_with("error: shutdown was interrupted"));
    nothing_was_charged(served.folder.path());
}

#[test]
fn an_attempt_that_takes_too_long_is_given_up_and_not_charged() {
    let (served, _call) = busy("50ms");
    let (ended, folder) = served.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    nothing_was_charged(folder.path());
    // No runner runs it now.
    std::fs::write(folder.path().join("rewheel.toml"), "[kinds.hook]\n").unwrap();
    let second = Served::start_in(folder);
    let list = second.run(&["jobs", "list", "--json"]).json();
    let job = &list["items"][0];
    assert_eq!((&job["state"], &job["attempt"]), (&"scheduled".into(), &0.into()), "{list}");
    assert_eq!((&job["failure"], &job["takeovers"]), (&Value::Null, &0.into()), "{list}");
}

#[test]
fn a_store_is_used_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = ["--store", "sqlite://rewheel.db"];
    let with = |args: &[&str]| run(folder.path(), &[args, &store].concat());
    let none = with(&["doctor"]);
    assert_eq!(none.code, 7, "{none:?}");
    assert!(!folder.path().join("rewheel.db").exists(), "looking must not make a store");
    assert_eq!(with(&["migrate"]).code, 0);
    let unknown = with(&["submit", "mail", "1"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.err.contains("kind `mail` does not exist"));
    let doctor = with(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert!(doctor.out.contains("all 0 jobs are accounted for"));
    let weak = run(folder.path(), &["doctor", "--store", "sqlite://rewheel.db?synchronous=normal"]);
    assert_eq!(weak.code, 1, "{weak:?}");
    assert_eq!(run(folder.path(), &["doctor", "--store", "mongodb://x"]).code, 2);
}

#[test]
fn commands_that_only_look_migrate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.db");
    std::fs::write(&file, "").unwrap();
    let store = "sqlite://empty.db";
    for args in [&["doctor", "--store", store][..], &["lab", "--from", store, "--kind", "mail"]] {
        let ran = run(folder.path(), args);
        assert_ne!(ran.code, 0, "{args:?}");
        assert!(ran.err.contains("has no tables of Rewheel"), "{}", ran.err);
        assert!(ran.err.contains("run `rewheel migrate`"), "{}", ran.err);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 0, "{args:?}");
    }
    assert_eq!(run(folder.path(), &["migrate", "--store", store]).code, 0);
    // The file is not private, which is a finding.
    let doctor = run(folder.path(), &["doctor", "--store", store]);
    assert!(doctor.out.contains("all 0 jobs are accounted for"), "{doctor:?}");
}

#[test]
fn jobs_are_submitted_beside_a_server() {
    let served = Served::start();
    let beside = |args: &[&str]| run(served.folder.path(), args);
    let store = "sqlite://rewheel.db";
    let job = beside(&["submit", "mail", "1", "--key", "k", "--store", store]);
    assert_eq!(job.code, 0, "{job:?}");
    let json = beside(&["submit", "mail", "1", "--key", "k", "--store", store, "--json"]).json();
    assert_eq!((&json["id"], &json["duplicate"]), (&job.out.as_str().into(), &true.into()));
    assert_eq!(served.run(&["jobs", "show", &job.out]).code, 0);
}

#[test]
fn the_demo_shows_jobs_that_run() {
    let mut served = Served::start_so(tempfile::tempdir().unwrap(), &["--demo"]);
    assert!(served.line().starts_with("demo: "));
    let kinds = served.run(&["kinds", "--json"]).json();
    let kinds = kinds["items"].as_array().unwrap();
    assert!(kinds.len() > 2 && kinds.iter().all(|kind| kind["runnable"] == true), "{kinds:?}");
    let (ended, folder) = served.end();
    assert!(ended.code == 0 && ended.err.contains("released"), "{ended:?}");
    assert_eq!(run(folder.path(), &["doctor"]).code, 0);
}

#[test]
fn a_bad_config_is_told_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rewheel.toml"), "[engine]\nplace = 1\n").unwrap();
    let bad = run(folder.path(), &["serve"]);
    assert_eq!(bad.code, 2);
    assert!(bad.err.starts_with("error: rewheel.toml:2: engine.place: unknown key"), "{bad:?}");
    std::fs::write(folder.path().join("rewheel.toml"), "").unwrap();
    let open = run(folder.path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.code, 2, "{open:?}");
    assert!(open.err.contains("cannot listen on 0.0.0.0:0 without tokens"));
    assert!(!folder.path().join("rewheel.db").exists());
    assert_eq!(
        run(folder.path(), &["serve", "--store", "nonsense", "--listen", "127.0.0.1:0"]).code,
        2
    );
}

/// A log pipe that its reader closed must not stop the server.
#[test]
fn a_server_whose_log_is_not_read_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[kinds.hook]\nrunner = \"callback\"\nattempts_max = 1\n\
                  [kinds.hook.callback]\nurl = \"http://127.0.0.1:1/\"\nallow = [\"127.0.0.0/8\"]\n";
    std::fs::write(folder.path().join("rewheel.toml"), config).unwrap();
    let mut server = command(folder.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("RUST_LOG", "debug")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let url = lines.find_map(|line| Some(line.unwrap().strip_prefix("listening on ")?.to_owned()));
    drop(lines);
    let url = url.unwrap();
    let run = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--server", &url]);
        run(folder.path(), &all)
    };
    for _ in 0..20 {
        let id = run(&["submit", "hook", "1"]).out;
        while run(&["jobs", "show", &id, "--json"]).json()["state"] != "dead" {}
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_kind_and_its_jobs_are_run_from_a_shell() {
    let served = Served::start_with("");
    let done = |args: &[&str]| {
        let ran = served.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        ran.out
    };
    assert_eq!(done(&["kinds"]), "no kinds");
    done(&["kinds", "put", "post", r#"{"attempts_max":2}"#]);
    assert_eq!(done(&["kinds", "pause", "post"]), "post paused, breaker closed");
    assert_eq!(
        done(&["kinds", "breaker", "open", "post"]),
        "post paused, breaker open (set by an operator)"
    );
    let shown = done(&["kinds", "show", "post"]);
    assert!(shown.contains("attempts_max     2"), "{shown}");
    done(&["kinds", "breaker", "reset", "post"]);
    assert_eq!(done(&["kinds", "resume", "post"]), "post not runnable, breaker closed");

    let jobs = "{\"kind\":\"post\",\"payload\":1.0}\n".repeat(3);
    std::fs::write(served.folder.path().join("jobs.jsonl"), jobs).unwrap();
    let ids = done(&["submit", "--batch", "jobs.jsonl"]);
    let all = done(&["jobs", "list", "--limit", "1", "--all-pages"]);
    assert!(ids.lines().count() == 3 && ids.lines().all(|id| all.contains(id)), "{all}");
    let filter = ["--kind", "post", "--state", "scheduled"];
    let refused = served.run(&[&["jobs", "cancel"], &filter[..]].concat());
    assert!(refused.code == 2 && refused.err.contains("--yes"), "{refused:?}");
    let counted = done(&[&["jobs", "cancel", "--dry-run"], &filter[..]].concat());
    assert!(counted.starts_with("3 jobs would be changed"), "{counted}");
    let cancelled = done(&[&["jobs", "cancel", "--yes"], &filter[..]].concat());
    assert!(cancelled.starts_with("operation cancel is done: 3 of 3 jobs changed"), "{cancelled}");
    let audit = done(&["audit", "--what", "cancel", "--kind", "post"]);
    assert!(ids.lines().all(|id| audit.contains(id)), "{audit}");
    assert_eq!(done(&["audit", "--who", "unknown"]), "no entries");
}
