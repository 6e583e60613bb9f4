//! Finds links in Markdown pages that lead to no file or heading of the repository.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, TextFile, numbered};

/// `paths` names all files, also those that are no text, such as images.
pub(super) fn check(files: &[TextFile], paths: &[String]) -> Vec<Finding> {
    let pages: Vec<&TextFile> = files.iter().filter(|file| file.path.ends_with(".md")).collect();
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut findings = Vec::new();
    for page in pages {
        for (line, target) in targets(&page.text) {
            if let Some(advice) = problem(&page.path, target, paths, &anchors) {
                findings.push(Finding { path: page.path.clone(), line, advice });
            }
        }
    }
    findings
}

fn problem(
    page: &str,
    target: &str,
    paths: &[String],
    anchors: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { page.to_owned() } else { resolved(page, path)? };
    let folder = format!("{path}/");
    let exists = paths.iter().any(|file| *file == path || file.starts_with(&folder));
    if !exists {
        return Some(format!("the link to `{target}` leads to no file: there is no `{path}`"));
    }
    let known = anchors.get(path.as_str());
    let is_known = anchor.is_empty() || known.is_none_or(|known| known.contains(anchor));
    (!is_known).then(|| format!("the link to `{target}` leads to no heading of `{path}`"))
}

/// Returns a path from the repository's root; none for an address elsewhere.
fn resolved(page: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns what links and images of a page name, with their lines.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    for (number, line) in outside_fences(text) {
        // Between backticks is code: every second piece.
        let prose = line.split('`').step_by(2);
        for piece in prose {
            let inline = piece.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            let html = ["src=\"", "srcset=\"", "href=\""].into_iter().flat_map(|attribute| {
                piece.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
            });
            targets.extend(inline.chain(html).map(|target| (number, target)));
        }
        if let Some((_, target)) = line.split_once("]: ").filter(|_| line.starts_with('[')) {
            targets.push((number, target.trim()));
        }
    }
    targets
}

/// Returns the anchors that GitHub gives to the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in outside_fences(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.flat_map(char::to_lowercase).collect();
        let anchor = anchor.replace(' ', "-");
        let again = (1..).map(|count| format!("{anchor}-{count}"));
        let mut names = std::iter::once(anchor.clone()).chain(again);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}

fn outside_fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_fence = false;
    numbered(text).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        !in_fence && !is_fence
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, places};
    use super::*;

    fn check_page(text: &str) -> Vec<String> {
        let other = "# Other\n\n## `jobs` list, and more\n\n## Twice\n\n## Twice\n";
        let files = [
            file("docs/page.md", text),
            file("docs/other.md", other),
            file("docs/images/demo.svg", "<svg/>"),
            file("README.md", "# Rewheel\n"),
        ];
        let mut paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        paths.push("docs/images/page.png".to_owned());
        places(&check(&files, &paths))
    }

    #[test]
    fn links_to_files_folders_and_headings_pass() {
        let text = "# Page\n[a](other.md) [b](../README.md#rewheel) [c](#page) [d](images/)\n\
                    ![e](images/page.png) <img src=\"images/demo.svg\">\n\
                    [f](other.md#jobs-list-and-more) [g](other.md#twice-1) [h](https://x.example/y)\n\
                    [i]: other.md\n";
        assert_eq!(check_page(text), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let text = "# Page\n[a](gone.md)\n[b](other.md#gone)\n[c](#gone)\n[d](../docs/gone/)\n\
                    <img src=\"gone.svg\">\n[e]: gone.md\n";
        let lines = [2, 3, 4, 5, 6, 7].map(|line| format!("docs/page.md:{line}"));
        assert_eq!(check_page(text), lines);
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(
            check_page("`[a](gone.md)`\n```text\n[a](gone.md)\n# No heading\n```\n"),
            [""; 0]
        );
        assert_eq!(
            check_page("[a](#no-heading)\n```text\n# No heading\n```\n"),
            ["docs/page.md:1"]
        );
    }
}
