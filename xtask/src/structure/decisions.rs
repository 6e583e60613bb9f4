//! Finds decision records that are missing from the index.

use super::{Finding, TextFile};

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let index = files.iter().find(|file| file.path == INDEX).map_or("", |file| &file.text);
    let names = files.iter().filter_map(|file| file.path.strip_prefix(FOLDER));
    names
        .filter(|name| is_record(name) && !index.contains(name))
        .map(|name| Finding {
            path: format!("{FOLDER}{name}"),
            line: 1,
            advice: format!("not in the index: add `{name}` to {INDEX}"),
        })
        .collect()
}

/// Returns whether a file is a record such as `0001-job-not-task.md`.
fn is_record(name: &str) -> bool {
    let Some((number, title)) = name.split_once('-') else { return false };
    number.len() == 4 && number.bytes().all(|b| b.is_ascii_digit()) && title.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, places};
    use super::*;

    #[test]
    fn a_record_that_the_index_leaves_out_is_found() {
        let files = [
            file(INDEX, "- [job, not task](0001-job-not-task.md)\n"),
            file("docs/decisions/0001-job-not-task.md", ""),
            file("docs/decisions/0002-one-clock.md", ""),
            file("docs/decisions/template.md", ""),
        ];
        assert_eq!(places(&check(&files)), ["docs/decisions/0002-one-clock.md:1"]);
    }

    #[test]
    fn without_an_index_every_record_is_found() {
        assert_eq!(check(&[file("docs/decisions/0001-job-not-task.md", "")]).len(), 1);
    }
}
