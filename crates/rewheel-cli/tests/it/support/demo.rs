//! Runs the demo on a store, as a user does who tries it.

use crate::shell::{command, run};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// Starts the demo, and waits until one of its jobs has run.
pub(crate) fn runs_on(folder: &Path, url: &str) {
    let mut child = command(folder)
        .args(["serve", "--demo", "--listen", "127.0.0.1:0", "--store", url])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let is_address = |line: &String| line.starts_with("listening on ");
    let first = lines.find(is_address).expect("an address");
    let address = first.trim_start_matches("listening on ");
    assert!(lines.next().unwrap().starts_with("demo: "));
    // It prints what happens to its jobs.
    assert!(lines.any(|line| line.contains("succeeded")), "no job ran");
    let stats = run(folder, &["stats", "--server", address, "--json"]);
    assert_eq!(stats.code, 0, "{stats:?}");
    let list = run(folder, &["jobs", "list", "--state", "succeeded", "--server", address]);
    assert!(list.out.contains("demo-"), "{list:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}
