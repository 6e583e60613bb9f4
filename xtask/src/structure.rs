//! Checks the structure of the repository.

mod named_paths;
mod crate_edges;
mod source_files;
mod leftovers;
mod plain_words;
mod decisions;
mod links;
mod doc_examples;
mod stores;

use std::fmt;

use anyhow::{Context, Result, ensure};

use crate::repository::Repository;

/// Prints every finding, then fails if there was one.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    let files = read_files(repository)?;
    let mut findings = named_paths::check(&files);
    findings.extend(source_files::check(&files));
    findings.extend(leftovers::check(&files));
    findings.extend(plain_words::check(&files));
    findings.extend(decisions::check(&files));
    findings.extend(links::check(&files, &repository.files()?));
    findings.extend(doc_examples::check(&files));
    findings.extend(stores::check(&files));
    findings.extend(crate_edges::check(repository)?);

    for finding in &findings {
        eprintln!("{finding}");
    }
    ensure!(findings.is_empty(), "{} structural findings, listed above", findings.len());
    println!("{} files are as they should be", files.len());
    Ok(())
}

/// A text file of the repository.
#[derive(Debug)]
struct TextFile {
    /// The path from the repository's root, with forward slashes.
    path: String,
    text: String,
}

/// A problem to fix.
#[derive(Debug, PartialEq)]
struct Finding {
    path: String,
    line: usize,
    advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.advice)
    }
}

fn read_files(repository: &Repository) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    for path in repository.files()? {
        let bytes = std::fs::read(repository.path(&path))
            .with_context(|| format!("cannot read `{path}`"))?;
        // Images are not text; no check applies to them.
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(TextFile { path, text });
        }
    }
    Ok(files)
}

/// Numbers lines from 1, as editors do.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

#[cfg(test)]
mod testing {
    use super::{Finding, TextFile};

    pub(super) fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns the locations of the findings, as `path:line`.
    pub(super) fn places(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{doc_examples, links, read_files};
    use crate::repository::Repository;

    #[test]
    fn every_link_of_this_repository_leads_somewhere_and_a_test_compiles_every_page() {
        let repository = Repository::of_this_run().unwrap();
        let files = read_files(&repository).unwrap();
        assert_eq!(links::check(&files, &repository.files().unwrap()), []);
        assert_eq!(doc_examples::check(&files), []);
    }
}
