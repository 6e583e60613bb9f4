//! Tests tokens and certificates through the command line.

#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const STORE: &str = "sqlite://rewheel.db";

/// The output and the exit code of a command.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rewheel"));
    for name in ["REWHEEL_SERVER", "REWHEEL_TOKEN", "REWHEEL_TOKEN_FILE", "REWHEEL_CA", "RUST_LOG"]
    {
        command.env_remove(name);
    }
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Ran {
        code: output.status.code().unwrap(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

fn run(folder: &Path, args: &[&str]) -> Ran {
    ran(command(folder).args(args))
}

/// A server with its recorded output.
struct Served {
    folder: TempDir,
    server: Child,
    url: String,
    said: Arc<Mutex<String>>,
    hearing: JoinHandle<()>,
}

impl Served {
    fn start(folder: TempDir, args: &[&str], env: &[(&str, &str)]) -> Served {
        let mut server = command(folder.path())
            .args(["serve", "--store", STORE])
            .args(args)
            .env("RUST_LOG", "trace")
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let mut stdout = server.stdout.take().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let mut url = None;
        while url.is_none() {
            let line = lines.next().expect("it listens").unwrap();
            url = line.strip_prefix("listening on ").map(str::to_owned);
            said.lock().unwrap().push_str(&line);
        }
        let heard = Arc::clone(&said);
        let hearing = std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| heard.lock().unwrap().push_str(&line));
            stdout.read_to_string(&mut heard.lock().unwrap()).unwrap();
        });
        let url = url.unwrap().replace("0.0.0.0", "127.0.0.1");
        Served { folder, server, url, said, hearing }
    }

    fn run(&self, token: Option<&str>, args: &[&str]) -> Ran {
        let mut command = command(self.folder.path());
        if let Some(token) = token {
            command.env("REWHEEL_TOKEN", token);
        }
        ran(command.args(args).args(["--server", &self.url]))
    }

    /// Stops it, and returns its whole output.
    fn end(mut self) -> (String, TempDir) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        self.hearing.join().unwrap();
        (self.said.lock().unwrap().clone(), self.folder)
    }
}

fn migrated() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["migrate", "--store", STORE]).code, 0);
    folder
}

#[test]
fn the_first_token_comes_from_the_store_and_the_others_from_a_server() {
    let folder = migrated();
    let missing = run(folder.path(), &["token", "list", "--store", "sqlite://other.db"]);
    assert_eq!(missing.code, 7, "{missing:?}");
    let first =
        run(folder.path(), &["token", "create", "ops", "--role", "admin", "--store", STORE]);
    assert!(first.code == 0 && first.out.starts_with("rw_"), "{first:?}");
    assert_eq!(first.err, "created ops with admin; the token is not shown again");
    let admin = first.out.as_str();
    let served = Served::start(folder, &["--listen", "0.0.0.0:0"], &[]);

    assert_eq!(served.run(None, &["stats"]).code, 4);
    assert_eq!(served.run(Some(admin), &["stats"]).code, 0);
    let flag = ["stats", "--token", admin];
    assert_eq!(served.run(None, &flag).code, 0);
    std::fs::write(served.folder.path().join("token"), format!("{admin}\n")).unwrap();
    let mut named = command(served.folder.path());
    let named = named.args(["stats", "--server", &served.url]).env("REWHEEL_TOKEN_FILE", "token");
    assert_eq!(ran(named).code, 0);

    let create = ["token", "create", "shop", "--role", "submit,read", "--tenant", "shop", "--json"];
    let made: Value = serde_json::from_str(&served.run(Some(admin), &create).out).unwrap();
    let shop = made["token"].as_str().unwrap();
    assert_eq!(served.run(Some(shop), &["jobs", "list"]).code, 0);
    let refused = served.run(Some(shop), &["kinds"]);
    assert!(refused.code == 4 && refused.err.contains("limited to tenant `shop`"), "{refused:?}");
    let listed = served.run(Some(admin), &["token", "list"]).out;
    assert!(listed.contains("submit,read") && !listed.contains(shop), "{listed}");
    assert_eq!(served.run(Some(admin), &["token", "revoke", "unknown"]).code, 5);
    let revoked = served.run(Some(admin), &["token", "revoke", shop]);
    assert_eq!((revoked.code, revoked.out.as_str()), (0, "revoked shop"));
    assert_eq!(served.run(Some(shop), &["jobs", "list"]).code, 4);

    // Revoked directly in the store: the server rejects it within about a second.
    let (path, started) = (served.folder.path(), now());
    assert_eq!(run(path, &["token", "revoke", "ops", "--store", STORE]).out, "revoked ops");
    while served.run(Some(admin), &["stats"]).code != 4 {
        assert!(started.elapsed() < Duration::from_secs(180), "it is still let in");
    }
    let left = run(path, &["token", "list", "--store", STORE, "--json"]).out;
    let left: Value = serde_json::from_str(&left).unwrap();
    let states: Vec<_> =
        left["items"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["revoked", "revoked"]);
    served.end();
}

#[expect(clippy::disallowed_methods, reason = "a real process is waited for, with a bound")]
fn now() -> Instant {
    Instant::now()
}

/// Tries everything that could repeat a secret, then searches all output for it.
#[test]
fn a_secret_is_nowhere_but_in_the_answer_that_makes_it() {
    let folder = migrated();
    let config = "0123456789abcdef-config-0123456789abcdef";
    let env = [("REWHEEL__SERVER__ADMIN_TOKEN", config)];
    let served = Served::start(folder, &["--listen", "127.0.0.1:0"], &env);
    let create = ["token", "create", "ops", "--role", "admin"];
    let admin = served.run(Some(config), &create).out;
    let secret = admin.splitn(3, '_').nth(2).unwrap().to_owned();
    let mut said = String::new();
    let wrong = format!("{admin}x");
    for token in [Some(admin.as_str()), Some(config), Some(&wrong), None] {
        for args in [
            &["stats"][..],
            &["jobs", "list"],
            &["jobs", "show", &admin],
            &["jobs", "list", "--q", "x"],
            &["jobs", "list", "--limit", &admin],
            &["submit", "nothing", "1"],
            &["token", "list"],
            &["token", "list", "--json"],
            &["token", "create", "ops", "--role", "admin"],
            &["token", "create", "x", "--role", "admin", "--tenant", "t"],
            &["token", "revoke", &wrong],
            &["operations", "show", &admin],
            &["stats", "--server", "http://127.0.0.1:1"],
        ] {
            let ran = served.run(token, args);
            // A mistyped argument may be shown to the user who typed it.
            let is_typed = args.iter().any(|arg| arg.contains(&secret));
            if !is_typed || args[0] == "token" {
                said.push_str(&format!("{} {}", ran.out, ran.err));
            }
        }
    }
    said.push_str(&served.run(Some(&admin), &["token", "revoke", "ops", "--json"]).out);
    let (log, folder) = served.end();
    said.push_str(&log);
    for secret in [&secret[..16], "0123456789abcdef-config"] {
        assert!(!said.contains(secret), "{said}");
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let is_there = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!is_there, "it is in {}", path.display());
        }
    }
}

#[test]
fn a_worker_of_the_examples_shows_its_token() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("not tested: examples/worker.py (python3 is not installed)");
        return;
    }
    let folder = migrated();
    let config = "[kinds.parcel]\nrunner = \"worker\"\n";
    std::fs::write(folder.path().join("rewheel.toml"), config).unwrap();
    let create = |role: &str| {
        let args = ["token", "create", role, "--role", role, "--store", STORE];
        run(folder.path(), &args).out
    };
    let (admin, worker) = (create("admin"), create("work"));
    let served = Served::start(folder, &["--listen", "127.0.0.1:0"], &[]);
    let id = served.run(Some(&admin), &["submit", "parcel", r#"{"order":17}"#]).out;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/worker.py");
    let mut python = Command::new("python3");
    let python = python.arg(example).args([&served.url, "parcel"]).stdout(Stdio::null());
    let mut python = python.env("REWHEEL_TOKEN", worker).spawn().unwrap();
    let started = now();
    while !served.run(Some(&admin), &["jobs", "show", &id]).out.contains("succeeded") {
        assert!(started.elapsed() < Duration::from_secs(180), "the job did not run");
    }
    python.kill().unwrap();
    python.wait().unwrap();
    served.end();
}

fn certificate(folder: &Path) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    std::fs::write(folder.join("server.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("server.key"), made.signing_key.serialize_pem()).unwrap();
    let config = "[server]\ntls = { certificate = \"server.pem\", key = \"server.key\" }\n";
    std::fs::write(folder.join("rewheel.toml"), config).unwrap();
}

#[test]
fn a_server_proves_itself_by_its_certificate() {
    let folder = migrated();
    certificate(folder.path());
    let served = Served::start(folder, &["--listen", "127.0.0.1:0"], &[]);
    assert!(served.url.starts_with("https://"), "{}", served.url);
    let strange = served.run(None, &["stats"]);
    assert!(
        strange.code == 7 && strange.err.contains("hint: trust its CA with --ca FILE"),
        "{strange:?}"
    );
    let trusting = served.run(None, &["stats", "--ca", "server.pem"]);
    assert_eq!(trusting.code, 0, "{trusting:?}");
    let none = served.run(None, &["stats", "--ca", "rewheel.toml"]);
    assert!(none.code == 2 && none.err.contains("--ca rewheel.toml: contains no cert"), "{none:?}");
    // A new one is taken up without a restart.
    let old = std::fs::read(served.folder.path().join("server.pem")).unwrap();
    std::fs::write(served.folder.path().join("old.pem"), old).unwrap();
    certificate(served.folder.path());
    let started = now();
    while served.run(None, &["stats", "--ca", "server.pem"]).code != 0 {
        assert!(started.elapsed() < Duration::from_secs(180), "it is still the old one");
    }
    assert_eq!(served.run(None, &["stats", "--ca", "old.pem"]).code, 7);
    let (_, folder) = served.end();

    std::fs::write(folder.path().join("server.key"), "secret").unwrap();
    let bad = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(bad.code, 2);
    assert!(
        bad.err.starts_with("error: server.tls: server.key: contains no private key"),
        "{bad:?}"
    );
}
