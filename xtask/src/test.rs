//! Runs every test.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::browser;
use crate::failures;
use crate::features;
use crate::loom;
use crate::node;
use crate::packages;
use crate::repository::{self, Repository};
use crate::services::Session;
use crate::steps::Steps;

pub(crate) fn run(repository: &Repository, steps: &mut Steps) -> Result<()> {
    let (mut session, mut equipment) = (Session::default(), Equipment::default());
    steps.run("services", || {
        session = Session::start(repository);
        Ok(())
    })?;
    steps.run("tools", || {
        equipment.untested = tools(repository);
        Ok(())
    })?;
    steps.except(exceptions(repository));
    steps.run("node", || {
        let found = node::find(repository);
        equipment.variable(node::VARIABLE, "the worker in TypeScript", found);
        Ok(())
    })?;
    steps.run("browser", || {
        if let Err(error) = browser::ensure_installed(repository) {
            equipment.leave_out("the dashboard in a browser", &error);
            equipment.features_off.push(browser::FEATURE);
        }
        let found = browser::axe(repository);
        equipment.variable(browser::AXE_VARIABLE, "accessibility of the dashboard", found);
        Ok(())
    })?;
    steps.leave_out(std::mem::take(&mut equipment.untested));
    let result = tests(repository, steps, &session, &equipment);
    // Also after a failure: no service must stay running.
    let ended = session.end().map(|untested| steps.leave_out(untested));
    result.and(ended)
}

/// What tests use beside services.
#[derive(Debug, Default)]
struct Equipment {
    variables: Vec<(&'static str, PathBuf)>,
    /// The features whose programs are missing.
    features_off: Vec<&'static str>,
    untested: Vec<String>,
}

impl Equipment {
    /// Tells the tests where a tool is, or records what is not tested without it.
    fn variable(&mut self, name: &'static str, subject: &str, found: Result<PathBuf>) {
        match found {
            Ok(path) => self.variables.push((name, path)),
            Err(error) => self.leave_out(subject, &error),
        }
    }

    fn leave_out(&mut self, subject: &str, error: &anyhow::Error) {
        let untested = format!("{subject} ({error:#})");
        println!("not tested: {untested}");
        self.untested.push(untested);
    }
}

fn tests(
    repository: &Repository,
    steps: &mut Steps,
    session: &Session,
    equipment: &Equipment,
) -> Result<()> {
    let runner = Runner::installed(repository);
    let off = [session.features_off(), &equipment.features_off].concat();
    let features = features::all_but(repository, &off)?;
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
        let variables = equipment.variables.iter().map(|(name, path)| (name, path));
        repository::run(session.tell(&mut tests).envs(variables))
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

#[cfg(test)]
mod tests {
    use super::Equipment;
    use anyhow::anyhow;

    #[test]
    fn a_missing_tool_is_named_as_untested() {
        let mut equipment = Equipment::default();
        equipment.variable("A", "a page", Ok("a.js".into()));
        equipment.variable("B", "a browser", Err(anyhow!("not installed")));
        assert_eq!(equipment.variables, [("A", "a.js".into())]);
        assert_eq!(equipment.untested, ["a browser (not installed)"]);
    }
}
