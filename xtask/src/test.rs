//! Runs every test.

use anyhow::Result;

use crate::loom;
use crate::repository::{self, Repository};
use crate::steps::Steps;

pub(crate) fn run(repository: &Repository, steps: &mut Steps) -> Result<()> {
    let runner = Runner::installed(repository);
    steps.run("tests", || {
        let targets = match runner {
            // Takes the same targets without being told.
            Runner::Nextest => "",
            // Everything but documentation examples: those are the next step.
            Runner::Cargo => "--lib --bins --tests --examples",
        };
        runner.run(repository, &format!("--workspace --all-features {targets}"))
    })?;
    steps.run("documentation examples", || {
        repository::run(&mut repository.cargo("test --workspace --all-features --doc"))
    })?;
    steps.run("tests without default features", || {
        runner.run(repository, "-p rewheel --no-default-features --lib --tests")
    })?;
    steps.run("loom models", || loom::run(repository))
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

    fn run(self, repository: &Repository, selection: &str) -> Result<()> {
        let command = match self {
            Runner::Nextest => "nextest run",
            Runner::Cargo => "test",
        };
        repository::run(&mut repository.cargo(&format!("{command} {selection}")))
    }
}
