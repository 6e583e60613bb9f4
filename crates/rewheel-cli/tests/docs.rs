//! Runs the commands in the pages of the documentation.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]
#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

#[path = "support/page.rs"]
mod page;

use self::page::{Page, root};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Starts the demo, and waits until it answers.
const DEMO: &str = "
rewheel serve --demo 2> server.log &
until curl -sf 127.0.0.1:7420/readyz > ready; do sleep 0.1; done";

/// Runs a page; the commands need all of `tools`.
fn runs(page: &str, setup: &str, tools: &[&str]) {
    for tool in tools {
        if Command::new(tool).arg("--version").output().is_err() {
            println!("not tested: the commands in {page} ({tool} is not installed)");
            return;
        }
    }
    let rewheel = Path::new(env!("CARGO_BIN_EXE_rewheel")).parent().unwrap();
    Page::read(page).run(setup, &[rewheel]);
}

#[test]
fn the_readme_runs() {
    runs("README.md", DEMO, &["curl"]);
}

#[test]
fn the_guide_to_the_server_survives_a_kill() {
    runs("docs/guide/start-server.md", "", &["curl", "python3"]);
}

#[test]
fn the_guide_to_follow_ups_runs() {
    runs("docs/guide/follow-ups.md", "", &["curl", "python3"]);
}

#[test]
fn the_page_about_rest_runs() {
    runs("docs/rest.md", DEMO, &["curl", "python3"]);
}

/// Many pages show commands that need a place of their own: a systemd unit, a database, an outage. Those are not run, but a command or
/// a flag that was renamed is found.
#[test]
fn every_command_and_flag_on_a_page_exists() {
    let git = Command::new("git").args(["ls-files", "*.md"]).current_dir(root()).output().unwrap();
    let pages = String::from_utf8(git.stdout).unwrap();
    let (mut helps, mut wrong, mut count) = (BTreeMap::new(), Vec::new(), 0);
    for page in pages.lines() {
        for command in Page::read(page).commands("rewheel") {
            count += 1;
            let mut check = || {
                let (path, flags) = split(&command);
                let help = helps.entry(path.clone()).or_insert_with(|| help(&path));
                let lost = flags.iter().find(|flag| !has_flag(help, flag));
                (help.is_empty() || lost.is_some()).then(|| format!("{page}: {command}"))
            };
            wrong.extend(check());
        }
    }
    assert!(count > 20, "found only {count} commands");
    assert!(wrong.is_empty(), "no such command or flag:\n{}", wrong.join("\n"));
}

/// Tells the names of commands in front from the flags behind.
fn split(command: &str) -> (Vec<String>, Vec<String>) {
    let words = command.split_whitespace().skip(1);
    let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let path = words.clone().take_while(|word| is_name(word) && !word.starts_with('-'));
    let flags = words.filter_map(|word| word.split('=').next().filter(|f| f.starts_with("--")));
    (path.map(str::to_owned).collect(), flags.map(str::to_owned).collect())
}

/// Returns the help of a command; of the longest one in front where words follow that are its arguments. Empty if there is none.
fn help(path: &[String]) -> String {
    (1..=path.len().max(1))
        .rev()
        .find_map(|length| {
            let names = &path[..length.min(path.len())];
            let mut command = Command::new(env!("CARGO_BIN_EXE_rewheel"));
            let output = command.args(names).arg("--help").output().unwrap();
            output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
        })
        .unwrap_or_default()
}

fn has_flag(help: &str, flag: &str) -> bool {
    let mut words = help.split([' ', ',', '=', '[', ']', '\n', '.']);
    words.any(|word| word == flag) || flag == "--help" || flag == "--version"
}

#[test]
fn a_command_that_does_not_exist_has_no_help() {
    let names = |names: &str| names.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(help(&names("jobs list")).contains("--kind"));
    assert!(help(&names("token create depot")).contains("--role"));
    assert_eq!(help(&names("task list")), "");
    assert!(!has_flag(&help(&names("jobs list")), "--kin"));
}
