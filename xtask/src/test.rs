//! Runs every test.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::features;
use crate::loom;
use crate::node;
use crate::packages;
use crate::repository::{self, Repository};
use crate::services::Session;
use crate::steps::Steps;

pub(crate) fn run(repository: &Repository, steps: &mut Steps) -> Result<()> {
    let mut session = Session::default();
    let (mut untested, mut node) = (Vec::new(), None);
    steps.run("services", || {
        session = Session::start(repository);
        Ok(())
    })?;
    steps.run("tools", || {
        untested = tools(repository);
        Ok(())
    })?;
    steps.leave_out(untested);
    steps.run("node", || {
        // Nothing that a system has by itself, and nothing that a store depends on: without it the rest is tested.
        match node::find(repository) {
            Ok(found) => node = Some(found),
            Err(error) => println!("not tested: the worker in TypeScript ({error:#})"),
        }
        Ok(())
    })?;
    let result = tests(repository, steps, &session, node.as_deref());
    // Also after a failure: nothing is left running.
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
    steps.run("tests", || {
        let targets = match runner {
            // Takes the same targets without being told.
            Runner::Nextest => "",
            // Everything but documentation examples: those are the next step.
            Runner::Cargo => "--lib --bins --tests --examples",
        };
        let selection = format!("--workspace {features} {targets}");
        let mut tests = runner.command(repository, &selection);
        repository::run(session.tell(&mut tests).envs(node.map(|node| (node::VARIABLE, node))))
    })?;
    steps.run("documentation examples", || {
        let examples = format!("test --workspace {features} --doc");
        repository::run(session.tell(&mut repository.cargo(&examples)))
    })?;
    steps.run("tests without default features", || {
        let selection = "-p rewheel --no-default-features --lib --tests";
        repository::run(&mut runner.command(repository, selection))
    })?;
    steps.run("loom models", || loom::run(repository))
}

/// Programs that some tests use where they are, each with what stays untested without it.
const TOOLS: [(&str, &str); 3] = [
    ("faketime", "nodes whose clocks differ"),
    ("pgbouncer", "PostgreSQL behind a pooler"),
    ("python3", "the worker in Python"),
];

/// Installs the tools where that is allowed; returns what cannot be tested.
fn tools(repository: &Repository) -> Vec<String> {
    let absent = |(tool, _): &&(&str, &str)| packages::find(tool).is_none();
    let missing: Vec<_> = TOOLS.iter().filter(absent).collect();
    let names: Vec<&str> = missing.iter().map(|(tool, _)| *tool).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let Err(error) = packages::install(repository, &names) else { return Vec::new() };
    missing.iter().map(|(_, subject)| format!("{subject} ({error:#})")).collect()
}

/// What runs tests: the better one where it is installed, so that nobody has to install it.
#[derive(Debug, Clone, Copy)]
enum Runner {
    Nextest,
    Cargo,
}

impl Runner {
    fn installed(repository: &Repository) -> Runner {
        if repository.has_cargo_command("nextest") { Runner::Nextest } else { Runner::Cargo }
    }

    fn command(self, repository: &Repository, selection: &str) -> Command {
        let command = match self {
            Runner::Nextest => "nextest run",
            Runner::Cargo => "test",
        };
        repository.cargo(&format!("{command} {selection}"))
    }
}
