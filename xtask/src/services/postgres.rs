//! Starts a private PostgreSQL with default settings, from the system's packages.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::{Service, memory};
use crate::packages;
use crate::repository::{self, Repository};

pub(super) const SERVICE: Service = Service {
    name: "PostgreSQL",
    variable: "REWHEEL_TEST_POSTGRES",
    feature: "test-postgres",
    subject: "PostgreSQL store",
    harm: "PostgreSQL that is restarted or has no connection left",
    installed: |repository| Ok(Programs::find(repository)?.is_some()),
    packages: &["postgresql"],
    running,
    start,
    stop,
};

/// Debian's folder with a subfolder for each major version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The variable with the folder of the programs of another server, such as an older version.
pub(crate) const BIN: &str = "REWHEEL_POSTGRES_BIN";

/// Maximum number of tries: another process may take a free port before the server does.
const STARTS_MAX: usize = 5;

/// The location of this repository's server, stored beside its data.
#[derive(Debug, PartialEq)]
struct Place {
    folder: PathBuf,
    port: u16,
}

impl Place {
    fn parse(text: &str) -> Option<Place> {
        let (port, folder) = text.trim_end().split_once('\n')?;
        Some(Place { folder: folder.into(), port: port.parse().ok()? })
    }

    fn text(&self) -> String {
        format!("{}\n{}\n", self.port, self.folder.display())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

fn note(repository: &Repository) -> PathBuf {
    repository.target_dir().join(format!("services/{}.place", folder_name()))
}

/// The folder of the data. A server of other programs runs beside the usual one.
fn folder_name() -> &'static str {
    if env::var_os(BIN).is_some() { "postgres-other" } else { "postgres" }
}

fn noted(repository: &Repository) -> Option<Place> {
    Place::parse(&fs::read_to_string(note(repository)).ok()?)
}

fn running(repository: &Repository) -> Result<Option<String>> {
    let (Some(place), Some(programs)) = (noted(repository), Programs::find(repository)?) else {
        return Ok(None);
    };
    let mut status = programs.command(&place.folder, "pg_ctl");
    status.arg("status").arg("-D").arg(place.data());
    let runs = status.stdout(Stdio::null()).stderr(Stdio::null()).status();
    Ok(runs.is_ok_and(|status| status.success()).then(|| place.url()))
}

fn start(repository: &Repository) -> Result<String> {
    let programs = match Programs::find(repository)? {
        Some(programs) => programs,
        None => {
            packages::install(repository, SERVICE.packages)?;
            Programs::find(repository)?.context("PostgreSQL is installed, but where?")?
        }
    };
    // Delete what a crashed machine left behind.
    stop(repository)?;
    let folder = programs.folder(repository)?;
    fs::create_dir_all(repository.target_dir().join("services"))
        .context("cannot make a folder for the note")?;
    let mut place = Place { folder, port: 0 };
    let mut init = programs.command(&place.folder, "initdb");
    // The defaults except for the locale, which would depend on the terminal.
    init.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"]);
    quietly(init.arg("-D").arg(place.data()))?;

    for _ in 0..STARTS_MAX {
        place.port = free_port()?;
        fs::write(note(repository), place.text()).context("cannot note where the server is")?;
        let mut start = programs.command(&place.folder, "pg_ctl");
        start.arg("start").arg("-w").arg("-D").arg(place.data());
        start.arg("-l").arg(place.folder.join("log")).arg("-o").arg(options(place.port));
        if quietly(&mut start).is_ok() {
            return Ok(place.url());
        }
    }
    let log = fs::read_to_string(place.folder.join("log")).unwrap_or_default();
    stop(repository)?;
    bail!("PostgreSQL does not start: {}", log.lines().last().unwrap_or("it says nothing"))
}

fn stop(repository: &Repository) -> Result<()> {
    let Some(place) = noted(repository) else { return Ok(()) };
    if running(repository)?.is_some() {
        let programs = Programs::find(repository)?.context("PostgreSQL is not installed")?;
        // The data is deleted next: a clean shutdown is not needed.
        let mut stop = programs.command(&place.folder, "pg_ctl");
        quietly(stop.args(["stop", "-m", "immediate", "-D"]).arg(place.data()))?;
    }
    if place.folder.exists() {
        fs::remove_dir_all(&place.folder).context("cannot remove the data")?;
    }
    fs::remove_file(note(repository)).context("cannot forget the server")
}

/// The only options that differ from the defaults: the addresses.
///
/// No socket file: a path below `target` may be too long for one.
fn options(port: u16) -> String {
    format!("-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''")
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("there is no free port")?;
    Ok(listener.local_addr()?.port())
}

/// The server's programs, and the user that may run them.
#[derive(Debug)]
struct Programs {
    /// Empty if they are on the PATH.
    bin: PathBuf,
    /// PostgreSQL refuses to run as root, so root must switch to its user.
    as_postgres: bool,
}

impl Programs {
    fn find(repository: &Repository) -> Result<Option<Programs>> {
        let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
        let names = versions.filter_map(|entry| entry.file_name().into_string().ok());
        let installed = names.filter(|name| bin_of(name).join("initdb").is_file());
        let bin = match (env::var_os(BIN), newest(installed)) {
            (Some(bin), _) => bin.into(),
            (None, Some(version)) => bin_of(&version),
            (None, None) if packages::find("initdb").is_some() => PathBuf::new(),
            (None, None) => return Ok(None),
        };
        Ok(Some(Programs { bin, as_postgres: packages::is_root(repository)? }))
    }

    /// Prepares a program of the server, as the user that may run it.
    fn command(&self, folder: &Path, name: &str) -> Command {
        let program = self.bin.join(name);
        let mut command =
            if self.as_postgres { as_postgres(program) } else { Command::new(program) };
        // The other user may not have access to the developer's current folder.
        command.current_dir(folder);
        command
    }

    /// Returns an empty folder that belongs to the server's user.
    fn folder(&self, repository: &Repository) -> Result<PathBuf> {
        let folder = memory::folder(repository, folder_name());
        if folder.exists() {
            fs::remove_dir_all(&folder).context("cannot remove old data")?;
        }
        fs::create_dir_all(&folder).context("cannot make a folder for the data")?;
        if !self.as_postgres {
            return Ok(folder);
        }
        quietly(repository.program("chown").arg("postgres:").arg(&folder))?;
        let mut enter = as_postgres("test".into());
        if enter.arg("-w").arg(&folder).current_dir("/").status().is_ok_and(|test| test.success()) {
            return Ok(folder);
        }
        fs::remove_dir(&folder).context("cannot remove the folder again")?;
        let mut temporary = as_postgres("mktemp".into());
        temporary.args(["-d", "--suffix=.rewheel-postgres"]).current_dir("/");
        let temporary = PathBuf::from(repository::read(&mut temporary)?.trim_end());
        println!(
            "# the user `postgres` cannot enter {}: the data is in {}",
            folder.display(),
            temporary.display()
        );
        Ok(temporary)
    }
}

fn bin_of(version: &str) -> PathBuf {
    Path::new(VERSIONS).join(version).join("bin")
}

fn as_postgres(program: PathBuf) -> Command {
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

/// Returns the highest version by number, not by name: 9.6 is older than 15.
fn newest(versions: impl Iterator<Item = String>) -> Option<String> {
    versions
        .filter_map(|version| Some((version.parse::<f32>().ok()?, version)))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, version)| version)
}

/// Runs a program, and prints its output only if it fails.
fn quietly(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", complaint.trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_largest_number() {
        let newest = |names: &[&str]| super::newest(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(newest(&["9.6", "15", "13"]).as_deref(), Some("15"));
        assert_eq!(newest(&["lib", "9.6"]).as_deref(), Some("9.6"));
        assert_eq!(newest(&["lib"]), None);
    }

    #[test]
    fn a_noted_place_is_read_back() {
        let place = Place { folder: "a folder/b".into(), port: 5433 };
        assert_eq!(Place::parse(&place.text()), Some(place));
        for broken in ["", "5433", "port\n/tmp/x\n", "99999\n/tmp/x\n"] {
            assert_eq!(Place::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn the_address_is_one_that_clients_understand() {
        let place = Place { folder: "x".into(), port: 5433 };
        assert_eq!(place.url(), "postgres://postgres@127.0.0.1:5433/postgres");
    }

    #[test]
    fn durability_is_the_servers_default() {
        assert_eq!(options(7), "-p 7 -c listen_addresses=127.0.0.1 -c unix_socket_directories=''");
    }
}
