//! Runs programs in the repository's root folder.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The repository of this run.
#[derive(Debug)]
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Finds the repository from the variables that `cargo run` sets.
    pub(crate) fn of_this_run() -> Result<Repository> {
        // Read at run time, not at compile time: a checkout may be moved together with its
        // `target`.
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
            .context("the repository is unknown: start this as `cargo xtask <command>`")?;
        let root = Path::new(&manifest_dir).parent().context("xtask has no parent directory")?;
        Ok(Repository { root: root.to_owned() })
    }

    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns cargo's target folder, which the developer may have changed.
    pub(crate) fn target_dir(&self) -> PathBuf {
        self.path(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
    }

    pub(crate) fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(name);
        command.current_dir(&self.root);
        command
    }

    /// Prepares a call of the cargo that started this run, with arguments separated by spaces.
    pub(crate) fn cargo(&self, line: &str) -> Command {
        let mut command = self.program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(line.split_whitespace());
        command
    }

    /// Returns whether `program --version` works.
    pub(crate) fn has_program(&self, name: &str) -> bool {
        answers(self.program(name).arg("--version"))
    }

    /// Returns whether `cargo <name> --version` works.
    pub(crate) fn has_cargo_command(&self, name: &str) -> bool {
        answers(self.cargo(name).arg("--version"))
    }

    pub(crate) fn has_benchmarks(&self) -> bool {
        self.path("bench/Cargo.toml").is_file()
    }

    /// Lists the files that git tracks or would track, as paths with forward slashes.
    ///
    /// New files count before they are added, so that a check fails before the commit.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let mut git = self.program("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let mut files: Vec<String> = read(&mut git)?
            .split_terminator('\0')
            .filter(|path| self.path(path).is_file())
            .map(str::to_owned)
            .collect();
        // A file in the middle of a merge is listed once per side.
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }
}

/// Prints and runs a command, and fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line_of(command);
    println!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    ensure!(status.success(), "`{line}` failed with {status}");
    Ok(())
}

/// Runs a command and returns its output; its errors go to the terminal.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let line = line_of(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed no UTF-8"))
}

/// Returns whether a command succeeds, without its output.
pub(crate) fn answers(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Formats a command as one would type it, including its variables.
fn line_of(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = value?.to_string_lossy();
        let quote = if value.contains(' ') { "\"" } else { "" };
        Some(format!("{}={quote}{value}{quote}", name.to_string_lossy()))
    });
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned());
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("some/where/cargo");
        command.args(["test", "--lib"]).env("RUSTFLAGS", "--cfg loom");
        assert_eq!(line_of(&command), "RUSTFLAGS=\"--cfg loom\" cargo test --lib");
    }
}
