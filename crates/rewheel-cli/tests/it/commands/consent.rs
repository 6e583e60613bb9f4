//! Tests confirmation: on a terminal, commands that change many jobs ask first; without one, irreversible commands need `--yes`.

use super::fake::Fake;
use crate::shell::{Ran, run};
use std::process::{Command, Stdio};

const ID: &str = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";

fn fake() -> Fake {
    Fake::start(|asked| {
        let document = if asked.body.contains(r#""dry_run":true"#) {
            r#"{"count":412,"sample":[],"complete":true}"#.to_owned()
        } else {
            format!(
                r#"{{"id":"{ID}","kind":"mail","jobs":{{"scheduled":3,"dead":4}},"state":"done","failed":0,"done":412,"total":412}}"#
            )
        };
        (200, document)
    })
}

#[test]
fn without_a_terminal_only_what_can_be_undone_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let fake = fake();
    for args in [
        &["jobs", "cancel", "--kind", "mail"][..],
        &["jobs", "cancel", "--all"],
        &["kinds", "delete", "mail"],
    ] {
        let ran = run(folder.path(), &[args, &["--server", &fake.url]].concat());
        assert!(ran.code == 2 && ran.err.contains("add --yes"), "{args:?}: {ran:?}");
        assert!(fake.asked().is_empty(), "{args:?}");
        let ran = run(folder.path(), &[args, &["--yes", "--server", &fake.url]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        assert!(!fake.asked().is_empty(), "{args:?}");
    }
    let others: [&[&str]; 8] = [
        &["jobs", "cancel", "--kind", "mail", "--dry-run"],
        &["jobs", "cancel", ID],
        &["jobs", "pause", "--kind", "mail"],
        &["jobs", "resume", "--kind", "mail"],
        &["jobs", "retry", "--kind", "mail"],
        &["dead", "redrive", "--kind", "mail"],
        &["incidents", "hold", "i"],
        &["incidents", "redrive", "i"],
    ];
    for args in others {
        let ran = run(folder.path(), &[args, &["--server", &fake.url]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    }
}

/// Runs a command on its own terminal, and types an answer. Returns `None` if `script` is not installed.
fn on_terminal(args: &str, url: &str, answer: &str) -> Option<Ran> {
    let line = format!("{} {args} --server {url}", env!("CARGO_BIN_EXE_rewheel"));
    let script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut script = script.ok()?;
    std::io::Write::write_all(&mut script.stdin.take().unwrap(), answer.as_bytes()).unwrap();
    Some(Ran::of(&script.wait_with_output().unwrap()))
}

#[test]
fn on_a_terminal_the_count_is_shown_and_the_answer_counts() {
    for (args, question) in [
        ("jobs cancel --kind mail", "Cancel 412 jobs? [y/N]"),
        ("jobs cancel --all", "Cancel 412 jobs? [y/N]"),
        ("jobs pause --kind mail", "Pause 412 jobs? [y/N]"),
        ("jobs retry --kind mail", "Retry 412 jobs? [y/N]"),
        ("dead redrive --kind mail", "Redrive 412 jobs? [y/N]"),
        ("incidents hold i", "Pause 412 jobs? [y/N]"),
        ("kinds delete mail", "Delete the kind mail, which has 7 jobs? [y/N]"),
    ] {
        let fake = fake();
        let Some(no) = on_terminal(args, &fake.url, "n\n") else { return };
        assert!(no.code == 1 && no.out.contains(question), "{args}: {no:?}");
        assert!(no.out.contains("not confirmed: nothing was changed"), "{args}: {no:?}");
        assert_eq!(fake.asked().len(), 1, "{args}: it only counted");
        let yes = on_terminal(args, &fake.url, "y\n").unwrap();
        assert!(yes.code == 0 && yes.out.contains(question), "{args}: {yes:?}");
        assert!(fake.asked().len() > 1, "{args}");
        let sure = on_terminal(&format!("{args} --yes"), &fake.url, "").unwrap();
        assert!(sure.code == 0 && !sure.out.contains("[y/N]"), "{args}: {sure:?}");
    }
}
