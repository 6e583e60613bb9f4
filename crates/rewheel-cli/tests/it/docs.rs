//! Runs the commands in the pages of the documentation.

#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use crate::page::{Page, root};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Starts the demo, and waits until it answers.
const DEMO: &str = "
rewheel serve --demo 2> server.log &
until curl -sf 127.0.0.1:7420/readyz > ready; do sleep 0.1; done";

/// Starts a server with a config, waits until it answers, and runs `then`.
fn served(config: &str, then: &str) -> String {
    format!(
        "
cat > rewheel.toml <<'END OF CONFIG'
{config}
END OF CONFIG
rewheel serve 2> server.log &
until curl -sf 127.0.0.1:7420/readyz > ready; do sleep 0.1; done
{then}"
    )
}

/// Many jobs that wait, for the commands that change them.
fn commands() -> String {
    served(
        "[kinds.charge-card]",
        r#"
rewheel kinds put mail '{"runner":"worker"}'
for order in $(seq 412); do
    echo '{"kind":"charge-card","payload":{},"tenant":"shop","delay":"1h"}'
done | rewheel submit --batch - > submitted"#,
    )
}

/// A callee that rejects the first call of each job, dead letters of several kinds, and jobs of another kind that wait after a failure.
fn dead_letters() -> String {
    let kind = |kind: &str| {
        format!(
            r#"
[kinds.{kind}]
runner = "callback"
[kinds.{kind}.callback]
url = "http://127.0.0.1:8080/{kind}"
allow = ["127.0.0.0/8"]
"#
        )
    };
    let callee = r#"
cat > callee.py <<'END OF CALLEE'
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen = set()

class Callee(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        job = self.headers["webhook-id"]
        if self.path == "/report":
            self.send_response(503)
            self.send_header("retry-after", "3600")
        else:
            self.send_response(200 if job in seen else 422)
        self.end_headers()
        seen.add(job)

ThreadingHTTPServer(("127.0.0.1", 8080), Callee).serve_forever()
END OF CALLEE
python3 callee.py 2> callee.log &
until curl -s 127.0.0.1:8080 > ready; do sleep 0.1; done
for kind in charge-card mail refund report; do
    for order in $(seq 20); do echo '{"kind":"'$kind'","payload":{"order":'$order'}}'; done
done | rewheel submit --batch - > submitted
until [ "$(rewheel dead list --limit 100 --json | jq '.items | length')" = 60 ]; do sleep 0.1; done
until [ "$(rewheel incidents --json | jq '.items[] | select(.kind == "report") | .count')" = 20 ]; do sleep 0.1; done"#;
    served(&["charge-card", "mail", "refund", "report"].map(kind).concat(), callee)
}

/// A kind that has had its one start of this hour.
fn limits() -> String {
    let config = r#"
[kinds.charge-card]
runner = "callback"
rate = "1/h"
attempts_max = 1
[kinds.charge-card.callback]
url = "http://127.0.0.1:8080/charge"
allow = ["127.0.0.0/8"]"#;
    served(
        config,
        "
rewheel submit charge-card '{}'
until rewheel dead list | grep charge-card; do sleep 0.1; done",
    )
}

/// A store with jobs that wait, its backup, and no server.
fn backup() -> String {
    let config = r#"[kinds.mail]
runner = "callback"
[kinds.mail.callback]
url = "http://127.0.0.1:8080/mail"
allow = ["127.0.0.0/8"]"#;
    served(
        config,
        "
server=$!
for order in 1 2 3; do rewheel submit mail '{}' --delay 1h; done
kill $server
wait $server
mkdir backup
cp rewheel.db* backup",
    )
}

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

/// Makes a test of each page, and the list of them all.
macro_rules! pages {
    ($($test:ident($page:literal, $setup:expr, $tools:expr);)+) => {
        $(
            #[test]
            fn $test() {
                runs($page, &$setup, &$tools);
            }
        )+

        const PAGES: &[&str] = &[$($page),+];
    };
}

pages! {
    the_readme_runs("README.md", DEMO, ["curl"]);
    the_guide_to_the_server_survives_a_kill("docs/guide/start-server.md", "", ["curl", "python3"]);
    the_page_about_rest_runs("docs/rest.md", DEMO, ["curl", "python3"]);
    the_page_about_tokens_runs("docs/auth.md", "", ["curl", "openssl"]);
    the_page_about_the_command_line_runs("docs/cli.md", commands(), ["curl"]);
    the_page_about_dead_letters_runs("docs/dead-letters.md", dead_letters(), ["curl", "jq", "python3"]);
    the_page_about_the_lab_runs("docs/lab.md", "", []);
    the_page_about_limits_runs("docs/limits.md", limits(), ["curl", "jq"]);
    the_page_about_workers_runs("docs/workers.md", "", ["curl", "jq"]);
    the_guide_to_follow_ups_runs("docs/guide/follow-ups.md", "", ["curl", "python3"]);
    the_guide_to_duplicates_runs("docs/guide/duplicates.md", "", ["curl", "jq"]);
    the_guide_to_results_runs("docs/guide/results.md", "", ["curl", "python3"]);
    the_guide_to_schedules_runs("docs/guide/schedules.md", "", ["curl", "python3"]);
    the_guide_to_refunds_runs("docs/guide/refunds.md", "", ["curl", "python3"]);
    the_runbook_of_a_restore_runs("docs/guide/runbooks/restore.md", backup(), ["curl"]);
    the_guide_to_holds_runs("docs/guide/holds.md", "", ["curl", "jq", "python3"]);
    the_guide_to_defaults_runs("docs/guide/defaults.md", "", ["curl", "jq"]);
    the_guide_to_groups_runs("docs/guide/groups.md", "", ["curl", "python3"]);
}

/// Pages that a test of the examples runs, because it has the programs that they show.
const GUIDES: [&str; 2] = ["docs/guide/start-library.md", "docs/guide/start-rust-service.md"];

/// How many blocks no test runs. A new one needs a reason in the page, and a look at whether a test could run it after all.
const NOT_RUN: usize = 26;

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let guides = std::fs::read_to_string(root().join("examples/tests/guides.rs")).unwrap();
    for guide in GUIDES {
        assert!(guides.contains(&format!("runs(\"{guide}\")")), "no test runs {guide}");
    }
    let (mut silent, mut reasons) = (Vec::new(), Vec::new());
    for name in tracked_pages() {
        let is_run = PAGES.contains(&name.as_str()) || GUIDES.contains(&name.as_str());
        let page = Page::read(&name);
        for block in page.blocks().iter().filter(|block| block.has_commands()) {
            match block.not_run {
                Some(reason) => reasons.push(format!("{name}: {reason}")),
                None if is_run => {}
                None => silent.push(format!("{name}: {}", block.lines[0])),
            }
        }
    }
    let silent = silent.join("\n");
    assert!(silent.is_empty(), "no test runs these; run the page or say why not:\n{silent}");
    assert_eq!(reasons.len(), NOT_RUN, "{}", reasons.join("\n"));
}

fn tracked_pages() -> Vec<String> {
    let git = Command::new("git").args(["ls-files", "*.md"]).current_dir(root()).output().unwrap();
    String::from_utf8(git.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Also in the blocks that are not run a command or a flag that was renamed is found.
#[test]
fn every_command_and_flag_on_a_page_exists() {
    let (mut helps, mut wrong, mut count) = (BTreeMap::new(), Vec::new(), 0);
    for page in tracked_pages() {
        for command in Page::read(&page).commands("rewheel") {
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
