//! Runs every test.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::failures;
use crate::features;
use crate::loom;
use crate::node;
use crate::packages;
use crate::repository::{self, Repository};
use crate::services::Session;
use crate::steps::Steps;

pub(crate) fn run(repository: &Repository, steps: &mut Steps) -> Result<()> {
    let mut session = Session::default();
    let (mut untested, mut node, mut no_node) = (Vec::new(), None, Vec::new());
    steps.run("services", || {
        session = Session::start(repository);
        Ok(())
    })?;
    steps.run("tools", || {
        untested = tools(repository);
        Ok(())
    })?;
    steps.leave_out(untested);
    steps.except(exceptions(repository));
    steps.run("node", || {
        match node::find(repository) {
            Ok(found) => node = Some(found),
            Err(error) => {
                let untested = format!("the worker in TypeScript ({error:#})");
                println!("not tested: {untested}");
                no_node.push(untested);
            }
        }
        Ok(())
    })?;
    steps.leave_out(no_node);
    let result = tests(repository, steps, &session, node.as_deref());
    // Also after a failure: no service must stay running.
    let ended = session.end().map(|untested| steps.leave_out(untested));
    result.and(ended)
}

fn tests(
    repository: &Repository,
    steps: &mut Steps,
    session: &Session,
    node: Option<&Path>,
) -> Result<()> {
    let runner = Runner::installed(repository);
    let features = features::all_but(repository, session.features_off())?;
    runner.forget_failures(repository);
    steps.run_and_go_on("tests", || {
        let targets = match runner {
            // It takes the same targets by default.
            Runner::Nextest => "",
            // Everything except documentation examples, which are the next step.
            Runner::Cargo => "--lib --bins --tests --examples",
        };
        let selection = format!("--workspace {features} {targets}");
        let mut tests = runner.command(repository, &selection);
        repository::run(session.tell(&mut tests).envs(node.map(|node| (node::VARIABLE, node))))
    });
    steps.name_failures(runner.failures(repository));
    steps.run_and_go_on("documentation examples", || {
        let examples = format!("test --workspace {features} --doc --no-fail-fast");
        repository::run(session.tell(&mut repository.cargo(&examples)))
    });
    runner.forget_failures(repository);
    steps.run_and_go_on("tests without default features", || {
        let selection = "-p rewheel --no-default-features --lib --tests";
        repository::run(&mut runner.command(repository, selection))
    });
    steps.name_failures(runner.failures(repository));
    steps.run_and_go_on("loom models", || loom::run(repository));
    steps.ensure_passed()
}

/// A program that some tests use if it is installed.
#[derive(Debug)]
struct Tool {
    program: &'static str,
    /// The Debian package that contains it.
    package: &'static str,
    /// What is not tested without it.
    subject: &'static str,
}

const fn tool(program: &'static str, package: &'static str, subject: &'static str) -> Tool {
    Tool { program, package, subject }
}

const TOOLS: [Tool; 5] = [
    tool("faketime", "faketime", "nodes whose clocks differ"),
    // With promtool.
    tool("prometheus", "prometheus", "the alert rules and the queries of the dashboards"),
    tool("pgbouncer", "pgbouncer", "PostgreSQL behind a pooler"),
    tool("python3", "python3", "the worker in Python"),
    tool("systemd-analyze", "systemd", "the systemd unit"),
];

/// Installs the tools if that is permitted; returns what cannot be tested.
fn tools(repository: &Repository) -> Vec<String> {
    let absent = |tool: &&Tool| packages::find(tool.program).is_none();
    let missing: Vec<_> = TOOLS.iter().filter(absent).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    let said = packages::install(repository, &names).err().map(|error| format!("{error:#}"));
    // A package may be there without its program.
    let untested = missing.into_iter().filter(absent);
    untested
        .map(|Tool { program, subject, .. }| {
            let why = said.clone().unwrap_or_else(|| format!("there is no {program}"));
            format!("{subject} ({why})")
        })
        .collect()
}

/// Commands that are no Debian packages, each with what is not tested without it. The tests say so themselves, but only to those who read
/// the output of a test that passed.
const OPTIONAL_TOOLS: [(&str, &str); 4] = [
    ("kubectl kustomize --help", "the Kubernetes manifests"),
    ("docker compose version", "compose.yaml"),
    ("docker buildx version", "the Dockerfile"),
    ("actionlint -version", "the workflows"),
];

/// Returns what cannot be tested because a tool is missing that CI does not require.
fn exceptions(repository: &Repository) -> Vec<String> {
    let works = |command: &str| {
        let mut words = command.split(' ');
        let Some(program) = words.next().filter(|program| packages::find(program).is_some()) else {
            return false;
        };
        repository.program(program).args(words).output().is_ok_and(|said| said.status.success())
    };
    let missing = OPTIONAL_TOOLS.iter().filter(|(command, _)| !works(command));
    missing.map(|(command, subject)| format!("{subject} (`{command}` fails)")).collect()
}

/// The test runner: nextest if it is installed, otherwise cargo.
#[derive(Debug, Clone, Copy)]
enum Runner {
    Nextest,
    Cargo,
}

impl Runner {
    fn installed(repository: &Repository) -> Runner {
        if repository.has_cargo_command("nextest") { Runner::Nextest } else { Runner::Cargo }
    }

    /// Removes the report of an earlier run, so that it is not mistaken for the current one.
    fn forget_failures(self, repository: &Repository) {
        match self {
            Runner::Nextest => drop(std::fs::remove_file(failures::report(repository))),
            Runner::Cargo => {}
        }
    }

    /// Returns the names of the tests that failed in the last run; cargo does not store them.
    fn failures(self, repository: &Repository) -> Vec<String> {
        match self {
            Runner::Nextest => failures::read(repository),
            Runner::Cargo => Vec::new(),
        }
    }

    fn command(self, repository: &Repository, selection: &str) -> Command {
        let command = match self {
            Runner::Nextest => "nextest run --no-fail-fast",
            Runner::Cargo => "test --no-fail-fast",
        };
        repository.cargo(&format!("{command} {selection}"))
    }
}
