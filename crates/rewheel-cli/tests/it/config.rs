//! Tests `rewheel config`.

use crate::shell::{Ran, command, run};
use std::fs;

#[test]
fn a_mistake_is_told_by_key_and_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rewheel.toml"), "[engine]\nconcurrency = 8\nplaecs = 9\n")
        .unwrap();
    for verb in ["check", "show"] {
        let ran = run(folder.path(), &["config", verb]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        let said = "error: rewheel.toml:3: engine.plaecs: unknown key `plaecs`, expected one of";
        assert!(ran.err.starts_with(said), "{}", ran.err);
    }
    let ran = run(folder.path(), &["config", "check", "--config", "other.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error: other.toml: failed to read the file"), "{}", ran.err);
}

#[test]
fn what_is_in_force_is_shown_with_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["config", "check"]).code, 0);
    fs::write(folder.path().join("rewheel.toml"), "[engine]\nconcurrency = 8\n").unwrap();
    assert_eq!(run(folder.path(), &["config", "check"]).out, "rewheel.toml: ok");
    let show = |args: &[&str]| {
        let mut command = command(folder.path());
        command.env("REWHEEL__ENGINE__POLL", "2s").args(["config", "show"]).args(args);
        Ran::of(&command.output().unwrap())
    };
    let shown = show(&[]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    let rows: Vec<Vec<&str>> =
        shown.out.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        ["KEY", "VALUE", "FROM"],
        ["engine.concurrency", "8", "rewheel.toml:2"],
        ["engine.poll", "\"2s\"", "REWHEEL__ENGINE__POLL"],
        ["engine.overdue_grace", "\"30s\"", "default"],
        ["store.pool_max", "-", "default"],
    ] {
        assert!(rows.contains(&row.to_vec()), "{row:?} is not in\n{}", shown.out);
    }
    let items = show(&["--json"]).json()["items"].clone();
    let concurrency =
        items.as_array().unwrap().iter().find(|item| item["key"] == "engine.concurrency");
    assert_eq!(concurrency.unwrap()["value"], 8);
}

#[test]
fn the_example_is_a_config() {
    let folder = tempfile::tempdir().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rewheel.example.toml");
    let ran = run(folder.path(), &["config", "check", "--config", example]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn shells_are_told_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(folder.path(), &["completions", shell]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("redrive") && ran.out.contains("completions"), "{shell}");
    }
    assert_eq!(run(folder.path(), &["completions", "cmd"]).code, 2);
}

#[test]
fn a_password_of_any_form_is_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let urls = [
        "postgres://u:a/bS3CRET@127.0.0.1:1/db",
        "postgres://u:a#S3CRET@127.0.0.1:1/db",
        "postgres://u:a?S3CRET@127.0.0.1:1/db",
        "postgres://127.0.0.1:1/db?foo=S3CRET",
        "user:S3CRET@127.0.0.1",
    ];
    for url in urls {
        for args in [&["config", "show"][..], &["config", "show", "--json"]] {
            let mut command = command(folder.path());
            command.env("REWHEEL__STORE__URL", url).args(args);
            let ran = Ran::of(&command.output().unwrap());
            assert!(!format!("{ran:?}").contains("S3CRET"), "{url}: {ran:?}");
        }
    }
}
