//! Starts the database servers that tests need.
//!
//! A service is one small file below: its name, the variable with its address for tests, and how to
//! start and stop it.

mod memory;
mod postgres;
mod mariadb;
mod redis;
mod redis_cluster;

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::packages;
use crate::repository::Repository;

pub(crate) use self::postgres::BIN as POSTGRES_BIN;

const ALL: &[Service] =
    &[postgres::SERVICE, mariadb::SERVICE, redis::SERVICE, redis_cluster::SERVICE];

/// A server that some tests need.
#[derive(Debug)]
struct Service {
    name: &'static str,
    /// The variable with its address; a developer who sets it uses their own server.
    variable: &'static str,
    /// The cargo feature that enables the tests which need it.
    feature: &'static str,
    /// What is not tested without it.
    subject: &'static str,
    /// What is not tested with the developer's own server: tests that damage a server need a
    /// private one.
    harm: &'static str,
    /// Returns whether its programs are installed.
    installed: fn(&Repository) -> Result<bool>,
    /// The Debian packages with these programs.
    packages: &'static [&'static str],
    /// Returns the address of the server that `start` started, if it still runs.
    running: fn(&Repository) -> Result<Option<String>>,
    /// Starts a server with its own data, and returns its address.
    start: fn(&Repository) -> Result<String>,
    /// Stops the server and deletes its data; does nothing if none runs.
    stop: fn(&Repository) -> Result<()>,
}

/// Who started a server, which decides who stops it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Origin {
    Environment,
    EarlierRun,
    ThisRun,
}

/// Starts the services that are not running, and prints the variables for a shell.
pub(crate) fn up(repository: &Repository) -> Result<()> {
    for service in ALL {
        let (url, origin) = match find(repository, service)? {
            Some(found) => found,
            None => ((service.start)(repository)?, Origin::ThisRun),
        };
        println!("# {}: {}", service.name, explanation(origin));
        println!("export {}={url}", service.variable);
    }
    Ok(())
}

/// Stops the services that `up` started, and deletes their data.
pub(crate) fn down(repository: &Repository) -> Result<()> {
    for service in ALL {
        let was = (service.running)(repository)?;
        (service.stop)(repository).with_context(|| format!("cannot stop {}", service.name))?;
        println!("# {}: {}", service.name, if was.is_some() { "stopped" } else { "did not run" });
    }
    Ok(())
}

/// Installs the programs of the services whose features begin with a name, if that is permitted, for tests that start servers of their own.
///
/// # Errors
///
/// Fails if they are missing: a test without its server would pass and test nothing.
pub(crate) fn ensure_installed(repository: &Repository, features: &str) -> Result<()> {
    for service in ALL.iter().filter(|service| service.feature.starts_with(features)) {
        service.ensure_installed(repository)?;
    }
    Ok(())
}

impl Service {
    fn ensure_installed(&self, repository: &Repository) -> Result<()> {
        if (self.installed)(repository)? {
            return Ok(());
        }
        packages::install(repository, self.packages)
            .with_context(|| format!("not tested: {}", self.harm))
    }
}

/// Starts the named service, reports it, waits until the parent process is gone, then stops it.
///
/// It is a separate process with a pipe, not a signal handler: the pipe closes however the parent
/// ends, even if it is killed. It starts the server itself, so that the server never runs
/// unguarded.
pub(crate) fn guard(repository: &Repository, name: &str) -> Result<()> {
    let service = ALL.iter().find(|service| service.name == name);
    let service = service.with_context(|| format!("there is no service `{name}`"))?;
    match (service.start)(repository) {
        Ok(url) => println!("{STARTED}{url}"),
        Err(error) => println!("{FAILED}{}", format!("{error:#}").replace('\n', " ")),
    }
    std::io::stdin().read_to_end(&mut Vec::new()).context("cannot wait for the end")?;
    (service.stop)(repository)
}

/// The prefixes of a guard's messages; other lines are output of installing and starting.
const STARTED: &str = "started: ";
const FAILED: &str = "failed: ";

/// Finds a server that is already running.
fn find(repository: &Repository, service: &Service) -> Result<Option<(String, Origin)>> {
    if let Some(url) = own(env::var(service.variable).ok()) {
        return Ok(Some((url, Origin::Environment)));
    }
    Ok((service.running)(repository)?.map(|url| (url, Origin::EarlierRun)))
}

/// Returns the variable's value. Shells and CI files use an empty variable for "not set".
fn own(variable: Option<String>) -> Option<String> {
    variable.filter(|url| !url.trim().is_empty())
}

fn explanation(origin: Origin) -> &'static str {
    match origin {
        Origin::Environment => "nothing started, this is set already",
        Origin::EarlierRun => "runs already",
        Origin::ThisRun => "started; `cargo xtask services down` stops it",
    }
}

/// The services of a test run. Dropping it stops those that were started for it.
#[derive(Debug, Default)]
pub(crate) struct Session {
    variables: Vec<(&'static str, String)>,
    /// The features whose service does not run.
    features_off: Vec<&'static str>,
    untested: Vec<String>,
    guards: Vec<Guard>,
}

impl Session {
    /// Starts the services; one that cannot start is not an error, but reported as a gap.
    pub(crate) fn start(repository: &Repository) -> Session {
        let mut session = Session::default();
        for service in ALL {
            match session.join(repository, service) {
                Ok(origin) => println!("{} {}", service.name, said(origin)),
                Err(error) => session.missing(service, &format!("{error:#}")),
            }
        }
        session
    }

    fn join(&mut self, repository: &Repository, service: &Service) -> Result<Origin> {
        if let Some((url, origin)) = find(repository, service)? {
            self.variables.push((service.variable, url));
            if !(service.installed)(repository)? {
                self.leave_out(service.harm, "its programs are not on this machine");
            }
            return Ok(origin);
        }
        let (guard, url) = Guard::start(service.name)?;
        self.variables.push((service.variable, url));
        self.guards.push(guard);
        Ok(Origin::ThisRun)
    }

    fn missing(&mut self, service: &Service, reason: &str) {
        self.leave_out(service.subject, reason);
        self.features_off.push(service.feature);
    }

    fn leave_out(&mut self, subject: &str, reason: &str) {
        let line = format!("{subject} ({})", reason.replace('\n', " "));
        println!("not tested: {line}");
        self.untested.push(line);
    }

    /// Passes the addresses of the servers to a program.
    pub(crate) fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.variables.iter().map(|(name, url)| (name, url)))
    }

    /// Returns the features whose tests would not find a server.
    pub(crate) fn features_off(&self) -> &[&'static str] {
        &self.features_off
    }

    /// Stops the services that were started.
    ///
    /// # Errors
    ///
    /// Fails if something may still be running.
    pub(crate) fn end(self) -> Result<Vec<String>> {
        self.guards.into_iter().try_for_each(Guard::end)?;
        Ok(self.untested)
    }
}

fn said(origin: Origin) -> &'static str {
    match origin {
        Origin::Environment => "is the environment's",
        Origin::EarlierRun => "ran already, and goes on",
        Origin::ThisRun => "is started for this run",
    }
}

/// The process that stops the servers when this one ends.
#[derive(Debug)]
struct Guard {
    process: Child,
}

impl Guard {
    /// Returns the server's address once it runs.
    fn start(name: &str) -> Result<(Guard, String)> {
        let program = env::current_exe().context("cannot tell which program this is")?;
        let mut command = Command::new(program);
        command.args(["services", "guard", name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Outside of the terminal's process group: Ctrl-C must reach the tests, not the guard.
        let mut process = command.process_group(0).spawn().context("cannot start the guard")?;
        let said = process.stdout.take().context("the guard has no voice")?;
        let guard = Guard { process };
        for line in BufReader::new(said).lines() {
            let line = line.context("the guard does not answer")?;
            match answer(&line) {
                Some(Ok(url)) => return Ok((guard, url.to_owned())),
                Some(Err(reason)) => bail!("{reason}"),
                None => println!("{line}"),
            }
        }
        bail!("the guard ended without an answer")
    }

    fn end(mut self) -> Result<()> {
        let status = self.stop().context("the guard is gone")?;
        ensure!(status.success(), "services may still run: try `cargo xtask services down`");
        Ok(())
    }

    fn stop(&mut self) -> std::io::Result<std::process::ExitStatus> {
        drop(self.process.stdin.take());
        self.process.wait()
    }
}

/// Parses a guard's message.
fn answer(line: &str) -> Option<Result<&str, &str>> {
    let started = line.strip_prefix(STARTED).map(Ok);
    started.or_else(|| line.strip_prefix(FAILED).map(Err))
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_names_no_server() {
        assert_eq!(own(None), None);
        assert_eq!(own(Some(" ".to_owned())), None);
        assert_eq!(own(Some("postgres://x".to_owned())), Some("postgres://x".to_owned()));
    }

    #[test]
    fn a_program_that_is_installed_is_not_installed_again() {
        let there = Service { installed: |_| Ok(true), packages: &[], ..mariadb::SERVICE };
        there.ensure_installed(&Repository::of_this_run().unwrap()).unwrap();
        let all_name_packages = ALL.iter().all(|service| !service.packages.is_empty());
        assert!(all_name_packages, "the others could not be installed");
    }

    #[test]
    fn a_guards_answer_is_told_from_what_it_prints() {
        assert_eq!(answer("started: postgres://x"), Some(Ok("postgres://x")));
        assert_eq!(answer("failed: no PostgreSQL"), Some(Err("no PostgreSQL")));
        assert_eq!(answer("$ apt-get update"), None);
    }

    #[test]
    fn a_missing_server_turns_its_tests_off_with_a_reason() {
        let mut session = Session::default();
        session.missing(&postgres::SERVICE, "not\ninstalled");
        assert_eq!(session.features_off(), ["test-postgres"]);
        assert_eq!(session.end().unwrap(), ["PostgreSQL store (not installed)"]);
    }

    #[test]
    fn a_program_is_told_where_the_servers_are() {
        let variables = vec![("REWHEEL_TEST_POSTGRES", "postgres://x".to_owned())];
        let session = Session { variables, ..Session::default() };
        let mut command = Command::new("cargo");
        let told: Vec<_> = session.tell(&mut command).get_envs().collect();
        assert_eq!(told, [("REWHEEL_TEST_POSTGRES".as_ref(), Some("postgres://x".as_ref()))]);
    }
}
