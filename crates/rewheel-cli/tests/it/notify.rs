//! Tests `rewheel notify`.

use serde_json::Value;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use tempfile::TempDir;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Responds to every request with this text, and forwards the bodies.
fn receiver(answer: &'static str) -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, bodies) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let body = body(&mut stream);
            let length = answer.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
            let head = format!("content-length: {length}\r\nconnection: close\r\n\r\n");
            let answer = answer.replacen("\r\n\r\n", &format!("\r\n{head}"), 1);
            stream.write_all(answer.as_bytes()).unwrap();
            if told.send(body).is_err() {
                return;
            }
        }
    });
    (address, bodies)
}

fn body(stream: &mut TcpStream) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rewheel"));
    command.current_dir(folder).env_remove("REWHEEL_SERVER").env_remove("RUST_LOG");
    command
}

fn run(config: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rewheel.toml"), config).unwrap();
    command(folder.path()).args(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

const OK: &str = "HTTP/1.1 200 OK\r\n\r\nok";
const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\n\r\ninvalid_token";

#[test]
fn a_test_goes_through_every_route() {
    let (address, bodies) = receiver(OK);
    let config = format!(
        "[[notify.route]]\nto = \"slack\"\nurl = \"http://{address}/s3cret\"\n\
         severity = \"critical\"\n[[notify.route]]\nto = \"log\"\n"
    );
    let ran = run(&config, &["notify", "test"]);
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(0), "{out}\n{err}");
    let sent = bodies.recv_timeout(PATIENCE).unwrap();
    assert!(sent["text"].as_str().unwrap().starts_with("[info] test: "), "{sent}");
    assert!(out.contains("RESULT") && out.contains("slack") && out.contains("sent"), "{out}");
    assert!(err.contains("test notification"), "the log has nothing: {err}");
    assert!(!out.contains("s3cret"), "{out}");
}

#[test]
fn a_route_that_fails_is_named_and_the_others_are_tried() {
    let (good, _bodies) = receiver(OK);
    let (bad, _bodies_too) = receiver(FORBIDDEN);
    let route =
        |address| format!("[[notify.route]]\nto = \"slack\"\nurl = \"http://{address}/\"\n");
    let config = format!("{}{}", route(bad), route(good));
    let ran = run(&config, &["notify", "test", "--json"]);
    assert_eq!(ran.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(document["ok"], false);
    let routes = document["routes"].as_array().unwrap();
    assert_eq!((&routes[0]["ok"], &routes[1]["ok"]), (&false.into(), &true.into()));
    assert_eq!(routes[0]["error"], "403 Forbidden: invalid_token");
    assert_eq!((&routes[1]["to"], &routes[1]["error"]), (&"slack".into(), &Value::Null));
    assert!(text(&ran.stderr).contains("the test notification failed for 1 of 2 routes"));
}

#[test]
fn no_route_and_a_bad_route_are_mistakes_of_the_config() {
    let none = run("", &["notify", "test"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).starts_with("error: the config has no [[notify.route]]"));
    let bad = run("[[notify.route]]\nto = \"slack\"\n", &["notify", "test"]);
    assert_eq!(bad.status.code(), Some(2));
    let error = text(&bad.stderr);
    assert!(error.starts_with("error: rewheel.toml:1: notify.route.0.url: is required"), "{error}");
}

/// A server whose jobs of kind `hook` die after one attempt; it ends with the test.
struct Served {
    folder: TempDir,
    server: Child,
    url: String,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Served {
    fn start(store: &str, folder: TempDir, notify: &str) -> Served {
        let config = format!(
            "[engine]\nlease_ttl = \"1s\"\n[kinds.hook]\nrunner = \"callback\"\n\
             attempts_max = 1\n[kinds.hook.callback]\nurl = \"http://127.0.0.1:1/\"\n\
             allow = [\"127.0.0.0/8\"]\n{notify}"
        );
        std::fs::write(folder.path().join("rewheel.toml"), config).unwrap();
        let mut server = command(folder.path());
        server.args(["serve", "--listen", "127.0.0.1:0", "--store", store]).stderr(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let url = first.strip_prefix("listening on ").unwrap_or_else(|| panic!("{first}"));
        Served { folder, server, url: url.to_owned(), lines }
    }

    fn submit(&self) -> String {
        let args = ["submit", "hook", "1", "--server", &self.url];
        let submitted = command(self.folder.path()).args(args).output().unwrap();
        assert!(submitted.status.success(), "{submitted:?}");
        text(&submitted.stdout)
    }

    /// Kills it, and keeps its folder for the next one.
    fn kill(mut self) -> TempDir {
        self.server.kill().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn route(address: SocketAddr, event: &str) -> String {
    let to = format!("to = \"webhook\"\nurl = \"http://{address}/\"");
    format!("[[notify.route]]\n{to}\nevents = [\"{event}\"]\n")
}

fn tells_of_a_dead_letter(store: &str) {
    let (address, bodies) = receiver(OK);
    let route = route(address, "attempts_exhausted");
    let notify = format!("{route}[[notify.route]]\nto = \"log\"\n");
    let mut served = Served::start(store, tempfile::tempdir().unwrap(), &notify);
    let job = served.submit();
    let notice = bodies.recv_timeout(PATIENCE).unwrap();
    assert_eq!((&notice["event"], &notice["kind"]), (&"dead_letter".into(), &"hook".into()));
    assert_eq!(notice["job"].as_str(), Some(job.as_str()));
    assert_eq!((&notice["reason"], &notice["attempt"]), (&"attempts_exhausted".into(), &1.into()));
    let mut lines = served.lines.by_ref().map(Result::unwrap);
    let logged = lines.find(|line| line.contains("is dead after 1 attempt"));
    assert!(logged.unwrap().contains(&job));
}

/// The process is killed while it sends a notice: the next process sends it again.
fn tells_what_a_killed_server_did_not(store: &str) {
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let first = Served::start(store, folder, &route(deaf.local_addr().unwrap(), "dead_letter"));
    let job = first.submit();
    let (_call, _) = deaf.accept().unwrap();
    let folder = first.kill();
    let (address, bodies) = receiver(OK);
    let _second = Served::start(store, folder, &route(address, "dead_letter"));
    let notice = bodies.recv_timeout(PATIENCE).unwrap();
    assert_eq!(notice["job"].as_str(), Some(job.as_str()));
}

/// Every dead letter is reported or counted, once.
fn sums_up_what_is_too_much(store: &str) {
    let (address, bodies) = receiver(OK);
    let route = route(address, "dead_letter");
    let notify = format!("[notify]\nwindow = \"1s\"\nwindow_max = 3\n{route}");
    let served = Served::start(store, tempfile::tempdir().unwrap(), &notify);
    let jobs = vec![r#"{"kind":"hook","payload":1}"#; 500].join(",");
    post(&served.url, "/v1/jobs/batch", &format!(r#"{{"jobs":[{jobs}]}}"#));
    let (mut told, mut more) = (0, 0);
    while told + more < 500 {
        let notice = bodies.recv_timeout(PATIENCE).unwrap();
        match notice["more"].as_u64() {
            Some(count) => more += count,
            None => told += 1,
        }
    }
    assert_eq!(told + more, 500);
    assert!(told < 100, "{told} messages for 500 dead letters");
}

fn post(url: &str, path: &str, body: &str) {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

/// Runs each test with the server as users run it.
macro_rules! on_a_store {
    ($store:expr) => {
        #[test]
        fn a_server_tells_of_a_dead_letter() {
            super::tells_of_a_dead_letter($store.url());
        }

        #[test]
        fn what_a_killed_server_did_not_tell_is_told_by_the_next() {
            super::tells_what_a_killed_server_did_not($store.url());
        }

        #[test]
        fn what_is_too_much_is_summed_up() {
            super::sums_up_what_is_too_much($store.url());
        }
    };
}

mod sqlite {
    /// A file in the folder.
    struct File;

    impl File {
        fn url(&self) -> &str {
            "sqlite://rewheel.db"
        }
    }

    on_a_store!(File);
}

#[cfg(feature = "test-postgres")]
mod postgres {
    use rewheel_testkit::Schema;

    on_a_store!(Schema::fresh());
}
