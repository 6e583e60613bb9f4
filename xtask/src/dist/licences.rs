//! Collects the licence texts of the dependencies from their sources, without the network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::repository::{self, Repository};

/// How the names of licence files begin, in lower case.
const BEGINNINGS: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// Sources of C libraries with licences of their own are in folders of a package, such as `c_src/mimalloc/v2`.
const DEPTH_MAX: u32 = 3;

/// Folders whose files are no part of the program.
const NOT_USED: [&str; 4] = ["tests", "test", "examples", "benches"];

/// A dependency of the program.
#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    licence: String,
    /// The texts in its sources.
    texts: Vec<String>,
}

/// Returns one text: each package with its licence, then each licence text once, with the packages that have it.
pub(super) fn texts(repository: &Repository) -> Result<String> {
    let packages = packages(repository)?;
    ensure!(packages.len() > 50, "{} dependencies are too few: were they read?", packages.len());
    Ok(document(&packages))
}

fn packages(repository: &Repository) -> Result<Vec<Package>> {
    // Only what is compiled into the program on this platform.
    let mut tree = repository.cargo("tree --locked --edges normal --prefix none -p rewheel-cli");
    let tree = repository::read(tree.args(["--format", "{p}"]))?;
    let used: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
    // Not `--offline`: the list has the packages of all platforms, and a build downloads only those of its own.
    let mut metadata = repository.cargo("metadata --format-version 1 --locked");
    let metadata: Value = serde_json::from_str(&repository::read(&mut metadata)?)
        .context("cargo metadata printed no JSON")?;
    let all = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut packages = Vec::new();
    for package in all {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        // Packages of this repository have no source; their licence files are in the release.
        if package["source"].is_null() || !used.contains(&(text("name"), text("version"))) {
            continue;
        }
        let folder =
            Path::new(text("manifest_path")).parent().context("a package has no folder")?;
        packages.push(Package {
            name: text("name").to_owned(),
            version: text("version").to_owned(),
            licence: text("license").to_owned(),
            texts: licence_files(folder)?,
        });
    }
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(packages)
}

/// Reads a line of `cargo tree`, such as `tokio v1.54.1 (*)`.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    Some((name, version.strip_prefix('v')?))
}

fn licence_files(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    find_licences(folder, DEPTH_MAX, &mut files)?;
    files.sort();
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    files.iter().map(read).collect::<Result<_, _>>().context("cannot read a licence")
}

fn find_licences(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder)
        .with_context(|| format!("the sources in {} are missing", folder.display()))?;
    for entry in entries {
        let path = entry.context("cannot read a folder of sources")?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let name = name.unwrap_or_default();
        let is_licence = BEGINNINGS.iter().any(|start| name.starts_with(start));
        // A source file, such as `license.rs`, is no text.
        let is_source =
            ["rs", "c", "h"].iter().any(|end| path.extension().is_some_and(|is| is == *end));
        if path.is_file() && is_licence && !is_source {
            files.push(path);
        } else if path.is_dir() && depth > 0 && !NOT_USED.contains(&name.as_str()) {
            find_licences(&path, depth - 1, files)?;
        }
    }
    Ok(())
}

fn document(packages: &[Package]) -> String {
    let mut text = "Licences of the libraries that the program `rewheel` contains.\n\n".to_owned();
    let mut owners: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, licence, texts } = package;
        let note = if texts.is_empty() { "; its sources contain no text" } else { "" };
        text.push_str(&format!("{name} {version}: {licence}{note}\n"));
        for one in texts {
            owners.entry(one).or_default().push(format!("{name} {version}"));
        }
    }
    for (licence, owners) in owners {
        let line = "=".repeat(80);
        text.push_str(&format!("\n{line}\n{}\n{line}\n\n{licence}\n", owners.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargo_tree_is_read() {
        assert_eq!(name_and_version("tokio v1.54.1"), Some(("tokio", "1.54.1")));
        assert_eq!(name_and_version("tokio v1.54.1 (*)"), Some(("tokio", "1.54.1")));
        assert_eq!(name_and_version(""), None);
    }

    #[test]
    fn a_text_that_packages_share_is_in_the_document_once() {
        let package = |name: &str, texts: &[&str]| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let text = document(&[
            package("a", &["same text"]),
            package("b", &["same text"]),
            package("c", &[]),
        ]);
        assert_eq!(text.matches("same text").count(), 1, "{text}");
        assert!(text.contains("\na 1.0.0, b 1.0.0\n"), "{text}");
        assert!(text.contains("c 1.0.0: MIT; its sources contain no text\n"), "{text}");
    }

    #[test]
    fn the_sources_of_this_build_have_the_licences() {
        let texts = texts(&Repository::of_this_run().unwrap()).unwrap();
        for expected in [
            "\ntokio 1.",
            "\nrusqlite 0.",
            "Permission is hereby granted",
            "Apache License",
            // In a folder of the C sources that `libmimalloc-sys` contains.
            "Microsoft Corporation, Daan Leijen",
        ] {
            assert!(texts.contains(expected), "{expected}");
        }
        assert!(!texts.contains("\nproptest "), "tests are not part of the program");
    }
}
