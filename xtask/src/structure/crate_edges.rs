//! Checks that each crate depends only on the crates it may depend on.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::{Finding, numbered};
use crate::repository::{self, Repository};

const LIBRARY: &str = "crates/rewheel/Cargo.toml";
const CORE: &str = "crates/rewheel-core/Cargo.toml";

/// Crates that every user of the library compiles.
const ALWAYS: &[&str] = &[
    "rewheel",
    "bitflags",
    "fastrand",
    "foldhash",
    "futures-timer",
    "hashbrown",
    "httpdate",
    "linux-raw-sys",
    "pin-project-lite",
    "proc-macro2",
    "quote",
    "rustix",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
];

/// Crates of the default features, for users who have them anyway.
const BY_DEFAULT: &[&str] = &["tokio"];

/// Additional crates for the core types. Neither tokio nor SQL nor HTTP.
const BY_CORE: &[&str] = &["rewheel-core", "async-trait", "uuid"];

/// Forbidden dependencies: the engine names no store, and a store knows nothing of its users. Locks need no engine.
const BLIND: &[(&str, &[&str])] = &[
    ("rewheel-engine", &["rewheel-stores", "rewheel-server"]),
    ("rewheel-stores", &["rewheel-engine", "rewheel-server", "rewheel-lock"]),
    ("rewheel-lock", &["rewheel-engine", "rewheel-server"]),
];

pub(super) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let tree = |package: &str, bare: bool| {
        let mut tree = repository.cargo("tree --edges normal --prefix none --package");
        tree.arg(package);
        repository::read(if bare { tree.arg("--no-default-features") } else { &mut tree })
    };
    let mut findings = Vec::new();
    for name in outside(&tree("rewheel", false)?, &[ALWAYS, BY_DEFAULT]) {
        let advice = format!("`{name}` is new in the library: do without it, or allow it in xtask");
        findings.push(finding(repository, LIBRARY, name, advice)?);
    }
    for name in outside(&tree("rewheel", true)?, &[ALWAYS]) {
        let advice = format!("`{name}` is needed without default features: put it behind one");
        findings.push(finding(repository, LIBRARY, name, advice)?);
    }
    for name in outside(&tree("rewheel-core", false)?, &[ALWAYS, BY_CORE]) {
        let advice = format!("`{name}` is new in the core: do without it, or allow it in xtask");
        findings.push(finding(repository, CORE, name, advice)?);
    }
    for (package, unseen) in BLIND {
        let tree = tree(package, false)?;
        for name in unseen.iter().filter(|name| outside(&tree, &[]).contains(*name)) {
            let advice = format!("`{package}` must not know `{name}`: look the other way");
            findings.push(finding(
                repository,
                &format!("crates/{package}/Cargo.toml"),
                name,
                advice,
            )?);
        }
    }
    Ok(findings)
}

/// Returns the crates of a `cargo tree` that are on no list.
fn outside<'a>(tree: &'a str, allowed: &[&[&str]]) -> BTreeSet<&'a str> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| !allowed.iter().any(|list| list.contains(name)))
        .collect()
}

fn finding(repository: &Repository, path: &str, name: &str, advice: String) -> Result<Finding> {
    let manifest = std::fs::read_to_string(repository.path(path))
        .with_context(|| format!("cannot read `{path}`"))?;
    Ok(Finding { path: path.to_owned(), line: line_of(&manifest, name), advice })
}

/// Returns the line of a manifest that names a dependency.
fn line_of(manifest: &str, name: &str) -> usize {
    numbered(manifest)
        .skip_while(|(_, line)| *line != "[dependencies]")
        .find(|(_, line)| line.split(['.', ' ']).next() == Some(name))
        // It is an indirect dependency: use the first line of the manifest.
        .map_or(1, |(line, _)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "rewheel v0.1.0 (somewhere)\n\
                        tokio v1.54.1\n\
                        pin-project-lite v0.2.17\n\
                        left-pad v1.0.0\n\
                        left-pad v1.0.0 (*)\n";

    #[test]
    fn a_crate_that_no_list_allows_is_found_once() {
        assert_eq!(outside(TREE, &[ALWAYS, BY_DEFAULT]), BTreeSet::from(["left-pad"]));
    }

    #[test]
    fn tokio_is_not_allowed_without_default_features() {
        assert!(outside(TREE, &[ALWAYS]).contains("tokio"));
    }

    #[test]
    fn the_finding_points_to_the_dependency_in_the_manifest() {
        let manifest =
            "[features]\npad = []\n[dependencies]\npad-left.workspace = true\npad = \"1\"\n";
        let lines = ["pad", "pad-left", "indirect"].map(|name| line_of(manifest, name));
        assert_eq!(lines, [5, 4, 1]);
    }
}
