//! Tests that passwords in URLs are never printed.

use crate::shell::{Ran, command};
use std::process::Stdio;

const SECRET: &str = "hunter2";

/// Runs a command with all log lines enabled, in a folder with this config.
fn run(args: &[&str], env: &[(&str, &str)], config: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rewheel.toml"), config).unwrap();
    let mut command = command(folder.path());
    command.args(args).env("RUST_LOG", "trace").envs(env.iter().copied()).stdin(Stdio::null());
    Ran::of(&command.output().unwrap())
}

/// Checks that a command ends with this code and prints these words but not the password, for people and as JSON.
#[track_caller]
fn check(args: &[&str], code: i32, words: &str) {
    check_so(args, &[], "", code, words);
}

#[track_caller]
fn check_so(args: &[&str], env: &[(&str, &str)], config: &str, code: i32, words: &str) {
    for json in [&[][..], &["--json"]] {
        let ran = run(&[args, json].concat(), env, config);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        assert!(!format!("{ran:?}").contains(SECRET), "{args:?}: {ran:?}");
        assert!(format!("{}{}", ran.out, ran.err).contains(words), "{args:?}: {ran:?}");
    }
}

#[test]
fn of_a_store_with_an_unknown_scheme() {
    let url = "posgres://u:hunter2@db.example/shop";
    let shown = "`posgres://***@db.example/shop` is not the URL of a store";
    let commands: [&[&str]; 7] = [
        &["serve", "--listen", "127.0.0.1:0"],
        &["migrate"],
        &["doctor"],
        &["bench", "submit", "--rounds", "1"],
        &["submit", "mail", "1"],
        &["token", "list"],
        &["token", "create", "a", "--role", "read"],
    ];
    for args in commands {
        check(&[args, &["--store", url]].concat(), 2, shown);
    }
    let config = format!("[store]\nurl = \"{url}\"\n");
    check_so(&["doctor"], &[], &config, 2, shown);
    check_so(&["serve", "--listen", "127.0.0.1:0"], &[], &config, 2, shown);
    check_so(&["doctor"], &[("REWHEEL__STORE__URL", url)], "", 2, shown);
    check_so(&["config", "show"], &[], &config, 0, "posgres://***@db.example/shop");
}

#[test]
fn of_a_store_whose_url_is_wrong() {
    for (url, shown) in [
        ("postgres://u:hunter2@/shop", "`postgres://***@/shop`: the host is missing"),
        ("postgres://u:hunter2", "invalid value for option"),
        ("postgres://u:pw@h/d?schema=A;password=hunter2", "`schema=***`: schema must be"),
        ("postgres://h/d?passwrod=hunter2", "unknown option `passwrod`"),
        ("postgres:/u:hunter2@h/d", "`***@h/d` is not the URL of a store"),
        ("host=h password=hunter2", "`***` is not the URL of a store"),
        ("mysql://u:hunter2/@h/d", "`mysql://***@h/d`: use mysql://HOST/DATABASE"),
        ("oracle://u:hunter2/@h/d", "`oracle://***@h/d` is not the URL of a store"),
    ] {
        check(&["migrate", "--store", url], 2, shown);
        check(&["doctor", "--store", url], 2, shown);
    }
    let sqlite = "sqlite://new.db?password=hunter2";
    check(
        &["migrate", "--store", sqlite],
        2,
        "`password=***` is not a setting of the SQLite store",
    );
    check(&["doctor", "--store", sqlite], 7, "no store exists at sqlite://new.db?password=***");
}

#[test]
fn of_a_store_that_is_unavailable() {
    let down = "the store is unavailable";
    for url in [
        "postgres://u:hunter2@127.0.0.1:1/shop",
        "postgres://u:hunter2%2F@127.0.0.1:1/shop",
        "postgres://127.0.0.1:1/shop?user=u&password=hunter2",
    ] {
        check(&["migrate", "--store", url], 7, down);
        check(&["doctor", "--store", url], 7, down);
        check(&["serve", "--listen", "127.0.0.1:0", "--store", url], 7, down);
        check(&["bench", "submit", "--store", url], 7, "cannot connect");
    }
}

#[test]
fn of_a_server() {
    for (url, code, shown) in [
        ("http://u:hunter2@127.0.0.1:1", 7, "cannot connect to the server http://***@127.0.0.1:1"),
        ("http://hunter2@127.0.0.1:1", 7, "cannot connect to the server http://***@127.0.0.1:1"),
        (
            "https://u:hunter2@127.0.0.1:1/a",
            7,
            "cannot connect to the server https://***@127.0.0.1:1/a",
        ),
        ("htp://u:hunter2@h", 2, "--server htp://***@h: must be an http or https URL"),
        ("http://u:hunter2/@h", 2, "--server http://***@h: "),
        ("http://u:hunter2", 2, "--server http://u:***: "),
        ("u:hunter2@h", 2, "--server ***@h: "),
    ] {
        check(&["kinds", "--server", url], code, shown);
        check(&["top", "--server", url], code, shown);
        check(&["events", "--server", url], code, shown);
        check_so(&["stats"], &[("REWHEEL_SERVER", url)], "", code, shown);
    }
}

#[test]
fn in_arguments_that_are_refused() {
    let url = "postgres://u:hunter2@h/d";
    for args in [&["doctor", url][..], &["kinds", url], &["stats", "--strore", url], &[url]] {
        let ran = run(args, &[], "");
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(!ran.err.contains(SECRET), "{ran:?}");
    }
    let ran = run(&["doctor", "postgres://u:hunter2/x@h/d"], &[], "");
    assert!(ran.err.contains("'postgres://***@h/d'"), "{ran:?}");
}

#[test]
fn in_the_environment_that_help_shows() {
    for args in [&["--help"][..], &["kinds", "--help"], &["serve", "--help"]] {
        let env = [("REWHEEL_SERVER", "http://u:hunter2@h"), ("REWHEEL_TOKEN", "rw_hunter2")];
        let ran = run(args, &env, "");
        assert!(ran.code == 0 && ran.out.contains("REWHEEL_SERVER"), "{ran:?}");
        assert!(!ran.out.contains(SECRET), "{ran:?}");
    }
}
