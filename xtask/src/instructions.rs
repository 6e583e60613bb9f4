//! Fails when a hot path executes more instructions than its limit.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::packages;
use crate::repository::{self, Repository};
use crate::steps::Steps;

pub(crate) fn run(repository: &Repository, steps: &mut Steps) -> Result<()> {
    let mut runner = None;
    steps.run("instruction counting set-up", || {
        ensure!(repository.has_benchmarks(), "bench/Cargo.toml is missing: restore it from git");
        ensure_valgrind(repository)?;
        runner = Some(ensure_runner(repository)?);
        Ok(())
    })?;
    steps.run("instruction limits", || {
        let runner = runner.context("the set-up step leaves a runner")?;
        let mut bench = repository.cargo("bench --manifest-path bench/Cargo.toml");
        // Read when the benchmark is compiled, so it must be an absolute path that stays valid.
        repository::run(bench.args(["--bench", "instructions"]).env("GUNGRAUN_RUNNER", runner))
    })
}

fn ensure_valgrind(repository: &Repository) -> Result<()> {
    if repository.has_program("valgrind") {
        return Ok(());
    }
    ensure!(cfg!(target_os = "linux"), "instructions are counted on Linux only");
    packages::install(repository, &["valgrind"])?;
    ensure!(repository.has_program("valgrind"), "valgrind is still not on the PATH");
    Ok(())
}

/// Returns the path of a runner with the library's version, and installs it once.
fn ensure_runner(repository: &Repository) -> Result<PathBuf> {
    let mut tree = repository.cargo("tree --manifest-path bench/Cargo.toml --package gungraun");
    let tree = repository::read(tree.args(["--depth", "0", "--prefix", "none"]))?;
    let Some(version) = version_in(&tree) else {
        bail!("cannot tell gungraun's version from {tree:?}: is it a dependency of bench?");
    };

    // The version is part of the path: library and runner must have the same version.
    let root = repository.target_dir().join(format!("tools/gungraun-runner-{version}"));
    let runner = root.join("bin").join("gungraun-runner");
    if !runner.is_file() {
        // Not optimized: it only starts valgrind, so only the build time matters.
        let mut install = repository.cargo("install gungraun-runner --locked --debug");
        repository::run(install.args(["--version", version, "--root"]).arg(&root))?;
    }
    Ok(runner)
}

/// Reads `0.20.0` from `gungraun v0.20.0`.
fn version_in(tree: &str) -> Option<&str> {
    let (name, rest) = tree.lines().next()?.split_once(' ')?;
    let version = rest.split_whitespace().next()?.strip_prefix('v')?;
    (name == "gungraun").then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_comes_from_the_dependency_tree() {
        assert_eq!(version_in("gungraun v0.20.0\n"), Some("0.20.0"));
        assert_eq!(version_in("gungraun v0.21.0 (*)\n"), Some("0.21.0"));
        assert_eq!(version_in("other v0.20.0\n"), None);
        assert_eq!(version_in(""), None);
    }
}
