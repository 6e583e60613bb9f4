//! Finds leftovers of local development, such as absolute paths.

use super::{Finding, TextFile, numbered};

/// Folders in which developers keep checkouts. Each is written in two pieces, so that this file
/// does not find itself.
const MACHINES: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

const PLACEHOLDERS: [&str; 4] = [
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (line, text) in numbered(&file.text) {
            let advice = advice_for(text);
            findings.extend(advice.map(|advice| Finding { path: file.path.clone(), line, advice }));
        }
    }
    findings
}

fn advice_for(line: &str) -> Option<String> {
    if let Some(place) = MACHINES.into_iter().find(|place| contains_absolute(line, place)) {
        return Some(format!("`{place}` is on one machine only: write a path from the root here"));
    }
    let placeholder = PLACEHOLDERS.into_iter().find(|word| line.contains(word))?;
    Some(format!("`{placeholder}` is unfinished: finish it, or open an issue then remove it"))
}

/// Distinguishes an absolute path from a directory that happens to have the same name.
fn contains_absolute(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, places};
    use super::*;

    #[test]
    fn every_leftover_is_found_on_its_line() {
        for needle in MACHINES.into_iter().chain(PLACEHOLDERS) {
            let text = format!("fine\nsee \"{needle}x\"\n");
            assert_eq!(places(&check(&[file("notes.md", &text)])), ["notes.md:2"], "{needle}");
        }
    }

    #[test]
    fn a_leftover_at_the_start_of_a_line_is_found() {
        assert_eq!(check(&[file("a", MACHINES[0])]).len(), 1);
    }

    #[test]
    fn a_directory_of_the_same_name_is_no_leftover() {
        let place = MACHINES[2];
        let text = format!("store{place}claim.sql ${{OUT}}{place}x https://example.org{place}");
        assert_eq!(check(&[file("notes.md", &text)]), []);
    }

    #[test]
    fn this_file_does_not_find_itself() {
        assert_eq!(check(&[file("leftovers.rs", include_str!("leftovers.rs"))]), []);
    }
}
