//! Tests that control characters are escaped on a terminal, and kept as they are in JSON output.

use super::fake::Fake;
use crate::shell::command;
use serde_json::{Value, json};
use std::process::{Output, Stdio};

/// A text that clears the screen, sets colours, reorders the line, and forges an error.
const HOSTILE: &str =
    "a\u{1b}[2J\u{9b}31m\u{7f}\u{85}\u{202e}\u{2066}\u{2028}\u{200f}\r\nerror: forged\tz";

const ID: &str = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";

/// Every command that prints text from a server.
const COMMANDS: [&[&str]; 24] = [
    &["jobs", "list"],
    &["jobs", "list", "--all-pages"],
    &["jobs", "show", ID],
    &["jobs", "cancel", ID],
    &["jobs", "cancel", ID, ID],
    &["jobs", "pause", "--kind", "a", "--dry-run"],
    &["jobs", "pause", "--kind", "a", "--detach"],
    &["jobs", "pause", "--kind", "a"],
    &["jobs", "edit", ID, "--priority", "1"],
    &["dead", "list"],
    &["kinds"],
    &["kinds", "show", "a"],
    &["kinds", "pause", "a"],
    &["kinds", "delete", "a", "--yes"],
    &["holders"],
    &["stats"],
    &["incidents"],
    &["operations", "list"],
    &["operations", "show", ID],
    &["audit"],
    &["events"],
    &["token", "list"],
    &["token", "create", "a", "--role", "read"],
    &["submit", "a", "1"],
];

/// A document with every field that the commands read, each with the hostile text.
fn hostile() -> Value {
    let names = [
        "id",
        "kind",
        "state",
        "wanted",
        "key",
        "tenant",
        "shard_key",
        "holder",
        "due",
        "deadline",
        "backoff",
        "created",
        "runner",
        "oldest_due",
        "name",
        "role",
        "joined",
        "message",
        "category",
        "code",
        "last_seen",
        "verb",
        "reason",
        "by",
        "at",
        "who",
        "what",
        "token",
        "expires",
        "attempt",
        "count",
        "total",
        "done",
        "decision",
        "delay",
        "started",
    ];
    let mut document =
        Value::Object(names.iter().map(|name| ((*name).to_owned(), json!(HOSTILE))).collect());
    let inner = document.clone();
    for name in ["failure", "due_because", "jobs", "here", "holders", "breaker", "before", "after"]
    {
        document[name] = json!({ "text": HOSTILE, "category": HOSTILE, "message": HOSTILE, "alive": HOSTILE,
            "scheduled": HOSTILE, "state": HOSTILE, "decisions": [inner], "notices": [inner] });
    }
    document["settings"] = json!({ HOSTILE: HOSTILE });
    document["refused"] = json!({ HOSTILE: 1 });
    document["payload"] = json!({ HOSTILE: HOSTILE });
    document["sample"] = json!([HOSTILE]);
    document["roles"] = json!([HOSTILE]);
    document["attempts"] = json!([inner]);
    document["audit"] = json!([document.clone()]);
    document
}

/// A server whose responses are all hostile.
fn hostile_server() -> Fake {
    Fake::start(|asked| {
        let document = hostile();
        let is_list = |name: &str| {
            asked.line.starts_with(&format!("GET /v1/{name}?"))
                || asked.line == format!("GET /v1/{name}")
        };
        if is_list("events") {
            let data = json!({ "job": HOSTILE, "kind": HOSTILE, "from": HOSTILE, "to": HOSTILE, "at": HOSTILE });
            return (200, format!("event: job\nid: 1\ndata: {data}\n\n"));
        }
        let lists = ["jobs", "kinds", "holders", "incidents", "operations", "audit", "tokens"];
        if lists.into_iter().any(is_list) {
            let next = if asked.line.contains("cursor=") { Value::Null } else { json!(HOSTILE) };
            return (
                200,
                json!({ "items": [document], "next": next, "complete": false }).to_string(),
            );
        }
        (200, document.to_string())
    })
}

fn run(args: &[&str], url: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    command.args(args).args(["--server", url]).stdin(Stdio::null()).output().unwrap()
}

/// Checks that a text has no control characters except line ends.
#[track_caller]
fn assert_harmless(what: &[&str], bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let is_unsafe = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(*c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let left: Vec<char> = text.chars().filter(is_unsafe).collect();
    assert!(left.is_empty(), "{what:?}: {left:?} in\n{text}");
    text
}

#[test]
fn no_command_prints_a_control_character_that_others_wrote() {
    let fake = hostile_server();
    for args in COMMANDS {
        let ran = run(args, &fake.url);
        let out = assert_harmless(args, &ran.stdout);
        let err = assert_harmless(args, &ran.stderr);
        let is_own = args[..2.min(args.len())] == ["kinds", "delete"];
        assert!(
            is_own || out.contains("\\u001b[2J") || err.contains("\\u001b[2J"),
            "{args:?}:\n{out}\n{err}"
        );
        // A failure with several lines is printed in indented lines.
        let is_forged = |line: &str| line.starts_with("error: forged");
        assert!(!out.lines().chain(err.lines()).any(is_forged), "{args:?}:\n{out}\n{err}");
    }
}

#[test]
fn json_has_the_same_value_and_no_control_character() {
    let fake = hostile_server();
    for args in COMMANDS {
        let all = [args, &["--json"]].concat();
        let ran = run(&all, &fake.url);
        let out = assert_harmless(&all, &ran.stdout);
        assert_harmless(&all, &ran.stderr);
        for document in serde_json::Deserializer::from_str(&out).into_iter::<Value>() {
            let text = document.unwrap().to_string();
            assert!(text.contains('\u{9b}') && text.contains('\u{202e}'), "{all:?}: {text}");
        }
        assert!(out.contains("\\u009b"), "{all:?}: {out}");
    }
}

#[test]
fn an_error_of_a_server_is_harmless() {
    let problem = json!({ "detail": HOSTILE, "hint": HOSTILE, "errors": [
        { "field": HOSTILE, "message": HOSTILE }, { "field": HOSTILE, "message": HOSTILE } ] });
    let fake = Fake::start(move |_| (409, problem.to_string()));
    for args in COMMANDS {
        for json in [&[][..], &["--json"]] {
            let all = [args, json].concat();
            let ran = run(&all, &fake.url);
            assert!(matches!(ran.status.code(), Some(3 | 6)), "{all:?}: {ran:?}");
            assert_harmless(&all, &ran.stdout);
            let err = assert_harmless(&all, &ran.stderr);
            assert!(!err.lines().any(|line| line == "error: forged\\tz"), "{all:?}: {err}");
        }
    }
}

#[test]
fn an_argument_that_is_refused_is_harmless() {
    let hostile = HOSTILE.replace(['\r', '\t'], "");
    let ran = run(&["jobs", "shw", &hostile], "http://127.0.0.1:1");
    assert_harmless(&["shw"], &ran.stderr);
    let ran = run(&["jobs", "show", "a", &hostile], "http://127.0.0.1:1");
    assert_eq!(ran.status.code(), Some(2));
    assert_harmless(&["show"], &ran.stderr);
}

/// Documents that change when a program parses and serializes them.
const DELICATE: [&str; 6] = [
    "12345678901234567890.123",
    r#"{"b":1,"a":1.0,"a":1e2}"#,
    "{ \"spaced\" :  [ 1 ,2 ] }",
    "{\n\t\"lines\": [\n\t\t1\n\t]\n}",
    r#""é 😀 \u0000""#,
    "-0.0",
];

#[test]
fn json_is_what_the_server_sent() {
    for payload in DELICATE {
        let job =
            format!(r#"{{"id":"{ID}" , "payload":{payload},"state":"x","settings":{payload}}}"#);
        let list = format!(r#"{{"items":[{job}, {job}],"next":null}}"#);
        let (one, many) = (job.clone(), list.clone());
        let fake = Fake::start(move |asked| {
            let path = asked.line.split('?').next().unwrap();
            let is_list = path.starts_with("GET ") && path.matches('/').count() == 2;
            (200, if is_list { many.clone() } else { one.clone() })
        });
        let lists: [&[&str]; 7] = [
            &["jobs", "list"],
            &["dead", "list"],
            &["holders"],
            &["incidents"],
            &["operations", "list"],
            &["audit"],
            &["token", "list"],
        ];
        for args in lists {
            let out =
                String::from_utf8(run(&[args, &["--json"]].concat(), &fake.url).stdout).unwrap();
            assert_eq!(out, format!("{list}\n"), "{args:?}");
        }
        for args in [
            &["jobs", "show", ID, "--json"][..],
            &["jobs", "cancel", ID, "--json"],
            &["kinds", "show", "a", "--json"],
            &["kinds", "delete", "a", "--yes", "--json"],
            &["submit", "a", "1", "--json"],
            &["token", "create", "a", "--role", "read", "--json"],
        ] {
            let out = String::from_utf8(run(args, &fake.url).stdout).unwrap();
            assert_eq!(out, format!("{job}\n"), "{args:?}");
        }
        for args in [&["jobs", "list", "--all-pages", "--json"][..], &["kinds", "--json"]] {
            let out = String::from_utf8(run(args, &fake.url).stdout).unwrap();
            assert_eq!(out, format!("{{\"items\":[{job},{job}],\"next\":null}}\n"), "{args:?}");
        }
        let out = String::from_utf8(run(&["jobs", "show", ID], &fake.url).stdout).unwrap();
        assert!(out.contains(payload), "{payload}:\n{out}");
    }
}
