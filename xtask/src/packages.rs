//! Installs programs from the system's packages, if that needs no password.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::repository::{self, Repository};

/// Installs Debian packages; on other systems, or without permission, it says what to do.
pub(crate) fn install(repository: &Repository, packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    let how = format!("install it with `sudo apt-get install {names}` or what your system has");
    ensure!(is_debian() && is_root(repository)?, "{names} is missing: {how}");
    repository::run(repository.program("apt-get").arg("update"))?;
    let mut install = repository.program("apt-get");
    install.args(["install", "-y"]).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    repository::run(&mut install)
}

fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists()
}

pub(crate) fn is_root(repository: &Repository) -> Result<bool> {
    Ok(repository::read(repository.program("id").arg("-u"))?.trim() == "0")
}

/// Finds a program on the PATH or in the folders for administrators, which are often not on the
/// PATH.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_program_is_found_by_its_whole_name_only() {
        assert!(find("sh").is_some_and(|program| program.ends_with("sh")));
        assert_eq!(find("sh-that-does-not-exist"), None);
    }
}
