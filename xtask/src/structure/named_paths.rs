//! Finds paths in ARCHITECTURE.md and CONTRIBUTING.md that do not exist.

use super::{Finding, TextFile, numbered};

const MAPS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Stands for a name that the reader chooses.
const CHOSEN: &str = "NAME";

/// Names with these endings are files even without a directory.
const FILE_ENDINGS: [&str; 5] = [".rs", ".md", ".toml", ".sql", ".lua"];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for map in files.iter().filter(|file| MAPS.contains(&file.path.as_str())) {
        for (line, name) in names_in_backticks(&map.text) {
            if looks_like_a_path(name) && !leads_somewhere(name, files) {
                let advice = format!("`{name}` does not exist: name the file it became");
                findings.push(Finding { path: map.path.clone(), line, advice });
            }
        }
    }
    findings
}

/// Returns inline code with its line. Fenced blocks are skipped: they contain code, not paths.
fn names_in_backticks(text: &str) -> Vec<(usize, &str)> {
    let mut in_fence = false;
    let mut names = Vec::new();
    for (number, line) in numbered(text) {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            names.extend(line.split('`').skip(1).step_by(2).map(|name| (number, name)));
        }
    }
    names
}

fn looks_like_a_path(name: &str) -> bool {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    // A leading slash marks a route of the API.
    let is_relative = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
    let is_place = name.contains('/') || FILE_ENDINGS.iter().any(|ending| name.ends_with(ending));
    is_plain && is_relative && is_place && !name.contains(CHOSEN)
}

/// Accepts a path from the root, or the end of one: code maps omit the folder in their heading.
fn leads_somewhere(name: &str, files: &[TextFile]) -> bool {
    let inside = format!("/{}/", name.trim_end_matches('/'));
    files.iter().any(|file| format!("/{}/", file.path).contains(&inside))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, places};
    use super::*;

    fn files_with(map: &str) -> Vec<TextFile> {
        vec![file(MAPS[0], map), file("crates/rewheel/src/retry/step.rs", ""), file(".ci/run", "")]
    }

    #[test]
    fn a_path_that_leads_nowhere_is_found() {
        let map =
            "See `crates/rewheel`.\n\nThe loop is `retry/gone.rs`, then `gone/`, `GONE.md`.\n";
        let places = places(&check(&files_with(map)));
        assert_eq!(places, ["ARCHITECTURE.md:3", "ARCHITECTURE.md:3", "ARCHITECTURE.md:3"]);
    }

    #[test]
    fn part_of_a_name_is_not_the_name() {
        let findings = check(&files_with("`crates/rewhee` `tep.rs`"));
        assert_eq!(findings.len(), 2);
    }

    #[test]
    fn paths_that_exist_pass_from_the_root_or_from_a_heading() {
        let map =
            "`crates/rewheel/src/retry/` `retry/step.rs` `step.rs` `.ci/run` `ARCHITECTURE.md`";
        assert_eq!(check(&files_with(map)), []);
    }

    #[test]
    fn a_guide_may_name_a_file_that_the_reader_makes() {
        let guide = [file(MAPS[1], "`crates/rewheel/src/NAME.rs`\n`crates/gone/NAMED`\n`gone.rs`")];
        assert_eq!(places(&check(&guide)), ["CONTRIBUTING.md:3"]);
    }

    #[test]
    fn other_code_is_no_path() {
        let map = "`Retry::EXTERNAL_API` `/v1/kinds` `cargo xtask ci` `a/*.rs` `<x>/y`\n\
                   ```text\n`not/there.rs`\n```\n";
        assert_eq!(check(&files_with(map)), []);
    }
}
