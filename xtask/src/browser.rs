//! Finds what the tests of the dashboard need: Chromium, its driver and axe-core.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::packages;
use crate::repository::{self, Repository};

/// The feature with these tests.
pub(crate) const FEATURE: &str = "test-browser";

/// The variable that tells the tests where axe-core is.
pub(crate) const AXE_VARIABLE: &str = "REWHEEL_TEST_AXE";

/// The programs, each with its Debian package.
const PROGRAMS: [(&str, &str); 2] = [("chromium", "chromium"), ("chromedriver", "chromium-driver")];

/// Other versions have other rules: with a newer one, a page may need changes first.
const AXE: &str = "4.14.1";

/// Installs the browser if it is missing and that is permitted.
pub(crate) fn ensure_installed(repository: &Repository) -> Result<()> {
    let missing = missing(|program| packages::find(program).is_some());
    if missing.is_empty() { Ok(()) } else { packages::install(repository, &missing) }
}

/// Returns the packages of the programs that are not there.
fn missing(is_there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let missing = PROGRAMS.iter().filter(|(program, _)| !is_there(program));
    missing.map(|(_, package)| *package).collect()
}

/// Returns the file of axe-core, which npm brings into the target folder, once.
pub(crate) fn axe(repository: &Repository) -> Result<PathBuf> {
    let folder = repository.target_dir().join("tools/axe").join(AXE);
    let file = folder.join("node_modules/axe-core/axe.min.js");
    if !file.is_file() {
        std::fs::create_dir_all(&folder).context("cannot make a folder for axe-core")?;
        let mut npm = repository.program("npm");
        npm.args("install --ignore-scripts --no-save --no-audit --no-fund --prefix".split(' '));
        repository::run(npm.arg(&folder).arg(format!("axe-core@{AXE}")))?;
    }
    ensure!(file.is_file(), "npm brought no axe.min.js");
    Ok(file)
}

/// Takes pictures of the main pages, and keeps them below the target folder. A person chooses those for the documentation.
pub(crate) fn screenshots(repository: &Repository) -> Result<()> {
    ensure_installed(repository)?;
    let folder = repository.target_dir().join("screenshots");
    std::fs::create_dir_all(&folder).context("cannot create the folder for the pictures")?;
    let tests =
        format!("test --package rewheel-cli --features {FEATURE} --test browser screenshots::");
    repository::run(repository.cargo(&tests).env("REWHEEL_SCREENSHOTS", &folder))?;
    println!("the pictures are in {}", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn a_missing_program_is_installed_from_its_package() {
        assert_eq!(missing(|_| true), [""; 0]);
        assert_eq!(missing(|program| program == "chromium"), ["chromium-driver"]);
        assert_eq!(missing(|_| false), ["chromium", "chromium-driver"]);
    }
}
