//! Runs all checks that need no tests: formatting, lints, docs, structure.

use anyhow::Result;

use crate::repository::{self, Repository};
use crate::steps::Steps;
use crate::structure;

/// Runs the checks, the quickest first.
pub(crate) fn run(repository: &Repository, steps: &mut Steps) -> Result<()> {
    steps.run("format", || format(repository))?;
    steps.run("structure", || structure::run(repository))?;
    steps.run("clippy", || clippy(repository))?;
    steps.run("documentation", || documentation(repository))?;
    steps.run("benchmarks compile", || benchmarks(repository))?;
    if !repository.has_cargo_command("deny") {
        println!("\n== dependency rules: skipped, `cargo deny` is not installed");
        steps.except(vec!["the dependency rules (`cargo deny` is not installed)".to_owned()]);
        return Ok(());
    }
    steps.run("dependency rules", || dependency_rules(repository))
}

fn format(repository: &Repository) -> Result<()> {
    repository::run(&mut repository.cargo("fmt --all --check"))?;
    if repository.has_benchmarks() {
        // Without `--all`, which would follow the path dependency back into the workspace.
        repository::run(&mut repository.cargo("fmt --manifest-path bench/Cargo.toml --check"))?;
    }
    Ok(())
}

fn clippy(repository: &Repository) -> Result<()> {
    let all = "clippy --workspace --all-targets --all-features -- -D warnings";
    repository::run(&mut repository.cargo(all))?;
    for alone in FEATURES_ALONE {
        let alone = format!("clippy --no-default-features --lib {alone} -- -D warnings");
        repository::run(&mut repository.cargo(&alone))?;
    }
    Ok(())
}

/// Crates with one feature or none: all features at once hide what only one of them needs.
const FEATURES_ALONE: [&str; 12] = [
    "-p rewheel --tests",
    "-p rewheel-stores",
    "-p rewheel-stores --features sqlite",
    "-p rewheel-stores --features mysql",
    "-p rewheel-stores --features postgres",
    "-p rewheel-stores --features redis",
    "-p rewheel-engine",
    "-p rewheel-lock",
    "-p rewheel-lock --features sqlite",
    "-p rewheel-lock --features postgres",
    "-p rewheel-lock --features mysql",
    "-p rewheel-lock --features redis",
];

/// Every target of `bench/` with the features that it is run with: all at once would hide one that is missing.
const BENCHMARKS: [&str; 5] = [
    "--bin report --benches --tests",
    "--bin sqlite --features sqlite",
    "--bin postgres --features postgres",
    "--bin redis --features redis",
    "--bin wheel --features wheel",
];

fn benchmarks(repository: &Repository) -> Result<()> {
    if !repository.has_benchmarks() {
        return Ok(());
    }
    for target in BENCHMARKS {
        let check = format!("check --locked --manifest-path bench/Cargo.toml {target}");
        repository::run(&mut repository.cargo(&check))?;
    }
    Ok(())
}

/// Checks that the drivers of other queues compile. Only CI does this: from an empty folder it takes two cores about two minutes (two
/// versions of sqlx and their dependencies). The drivers use nothing of Rewheel, so few changes can break them.
pub(crate) fn peers(repository: &Repository, steps: &mut Steps) -> Result<()> {
    steps.run("drivers of other queues compile", || {
        let check = "check --locked --manifest-path bench/peers/Cargo.toml --all-targets";
        repository::run(&mut repository.cargo(check))
    })
}

fn documentation(repository: &Repository) -> Result<()> {
    let mut doc = repository.cargo("doc --workspace --no-deps --all-features");
    repository::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

fn dependency_rules(repository: &Repository) -> Result<()> {
    // The rules cover all platforms, but a build downloads only the packages of its own platform.
    repository::run(&mut repository.cargo("fetch"))?;
    // Offline mode leaves out advisories: they change without a commit, so they must not fail one.
    repository::run(&mut repository.cargo("deny --offline check bans licenses sources"))
}
