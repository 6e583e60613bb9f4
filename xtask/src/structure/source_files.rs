//! Checks that every Rust file starts with a sentence and is not too long.

use super::{Finding, TextFile};

const LINES_MAX: usize = 500;

/// Tests are lists of cases: longer, but not harder to read.
const TEST_LINES_MAX: usize = 600;

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.flat_map(|file| [opening(file), length(file)]).flatten().collect()
}

fn opening(file: &TextFile) -> Option<Finding> {
    if file.text.starts_with("//! ") {
        return None;
    }
    let advice = "say what this file is for: begin with `//! ` plus one sentence".to_owned();
    Some(Finding { path: file.path.clone(), line: 1, advice })
}

fn length(file: &TextFile) -> Option<Finding> {
    let max = if is_tests(&file.path) { TEST_LINES_MAX } else { LINES_MAX };
    let lines = file.text.lines().count();
    if lines <= max {
        return None;
    }
    let advice = format!("{lines} lines are more than {max}: split where an idea ends");
    Some(Finding { path: file.path.clone(), line: max + 1, advice })
}

fn is_tests(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| part == "tests" || part == "tests.rs")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, places};
    use super::*;

    fn rust_of(lines: usize) -> String {
        format!("//! Counts.\n{}", "\n".repeat(lines - 1))
    }

    #[track_caller]
    fn check_one(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(places(&check(&[file(path, text)])), expected);
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_for_is_found() {
        check_one("src/a.rs", "use std::fmt;\n", &["src/a.rs:1"]);
        check_one("src/a.rs", "", &["src/a.rs:1"]);
        check_one("src/a.rs", "\n//! Too late.\n", &["src/a.rs:1"]);
        check_one("src/a.rs", "//! Counts.\n", &[]);
        check_one("README.md", "# Title\n", &[]);
    }

    #[test]
    fn a_long_file_is_found_at_its_first_line_too_many() {
        check_one("src/a.rs", &rust_of(500), &[]);
        check_one("src/a.rs", &rust_of(501), &["src/a.rs:501"]);
    }

    #[test]
    fn tests_may_be_longer() {
        check_one("src/a/tests.rs", &rust_of(600), &[]);
        check_one("tests/it/a.rs", &rust_of(600), &[]);
        check_one("tests/it/a.rs", &rust_of(601), &["tests/it/a.rs:601"]);
        check_one("src/contests.rs", &rust_of(600), &["src/contests.rs:501"]);
    }
}
