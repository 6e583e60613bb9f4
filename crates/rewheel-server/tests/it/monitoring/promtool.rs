//! Lets `promtool` check the rules and the queries of the dashboards.

#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use super::engine::ENGINE;
use super::in_repository;
use super::library::LIBRARY;
use super::rules::{CASES, RULES};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Runs promtool; `None` if it is not installed.
fn promtool(words: &[&str], file: &Path) -> Option<Result<String, String>> {
    let Ok(output) = Command::new("promtool").args(words).arg(file).output() else {
        println!("not tested: there is no promtool (Debian package `prometheus`)");
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    Some(if output.status.success() { Ok(said) } else { Err(said) })
}

#[test]
fn promtool_accepts_the_rules_and_every_case_passes() {
    for (words, file) in [(["check", "rules"], RULES), (["test", "rules"], CASES)] {
        if let Some(checked) = promtool(&words, &in_repository(file)) {
            checked.unwrap_or_else(|said| panic!("{file}: {said}"));
        }
    }
}

#[test]
fn promtool_accepts_every_query_of_the_dashboards() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queries.yml");
    let mut text = "groups:\n  - name: queries\n    rules:\n".to_owned();
    let queries = [ENGINE, LIBRARY].map(|dashboard| dashboard.queries("5m")).concat();
    for (number, query) in queries.iter().enumerate() {
        // JSON strings are YAML strings.
        let query = serde_json::Value::from(query.as_str());
        writeln!(text, "      - record: query:number:{number}\n        expr: {query}").unwrap();
    }
    std::fs::write(&file, &text).unwrap();
    let Some(checked) = promtool(&["check", "rules"], &file) else { return };
    let said = checked.unwrap_or_else(|said| panic!("{said}"));
    assert!(said.contains(&format!("{} rules found", queries.len())), "{said}");
    std::fs::write(&file, text + "      - record: broken:query\n        expr: sum by (\n").unwrap();
    assert!(promtool(&["check", "rules"], &file).is_some_and(|checked| checked.is_err()));
}
