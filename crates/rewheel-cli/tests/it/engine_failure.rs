//! Tests that a server process whose engine fails ends with exit code 1, so that its supervisor restarts it.

use crate::shell::{command, run};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn a_server_whose_engine_fails_ends_with_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    // No process listens on port 1: the attempt fails, and the engine has to settle its result.
    let config = "[kinds.mail]
        runner = \"callback\"
        callback = { url = \"http://127.0.0.1:1/\", allow = [\"127.0.0.0/8\"] }";
    std::fs::write(folder.path().join("rewheel.toml"), config).unwrap();
    let mut server = command(folder.path())
        .args(["serve", "--listen", "127.0.0.1:0", "--store", "memory://panics-in-settle"])
        .args(["--config", "rewheel.toml"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let is_ready = |line: &String| line.starts_with("listening on http://");
    let ready = lines.find(is_ready).expect("it starts");
    let address = ready.trim_start_matches("listening on ").to_owned();
    let args = ["--json", "--server", &address, "submit", "mail", "{}"];
    let submitted = run(folder.path(), &args);
    assert_eq!(submitted.code, 0, "{}", submitted.err);
    assert_eq!(submitted.json()["kind"], "mail");
    // It ends by itself.
    let said: Vec<String> = lines.collect();
    let said = said.join("\n");
    assert_eq!(server.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("engine loop failed: this engine stops"), "the log says it: {said}");
    let error =
        "the settle loop failed: a bug in settle; other nodes can run the jobs of this server";
    assert!(said.contains(error), "{said}");
}
