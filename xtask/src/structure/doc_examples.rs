//! Finds pages whose Rust examples no test compiles.

use super::{Finding, TextFile, numbered};

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        let example = numbered(&page.text).find(|(_, line)| line.trim_start() == "```rust");
        let Some((line, _)) = example else { continue };
        if !files.iter().any(|file| compiles(file, &page.path)) {
            let advice = "no test compiles its Rust examples: include the page as documentation \
                          of an item under `#[cfg(doctest)]`, or run it in examples/tests";
            findings.push(Finding { path: page.path.clone(), line, advice: advice.to_owned() });
        }
    }
    findings
}

/// Tells whether a source file includes the page as documentation, or runs it as a guide.
fn compiles(file: &TextFile, page: &str) -> bool {
    if !file.path.ends_with(".rs") {
        return false;
    }
    let runs =
        file.path.starts_with("examples/tests/") && file.text.contains(&format!("\"{page}\""));
    // A crate's own README is beside its sources; other pages are named from the root.
    let crate_page = file.path.split_once("/src/").map(|(folder, _)| format!("{folder}/README.md"));
    let name = if crate_page.as_deref() == Some(page) { "../README.md" } else { page };
    let included = file.text.lines().filter(|line| line.starts_with("#[doc = include_str!(\""));
    let named = |line: &str| {
        let path = line.split('"').nth(1).unwrap_or_default();
        path == name || (name == page && path == format!("../../../{page}"))
    };
    runs || included.into_iter().any(named)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, places};
    use super::*;

    const EXAMPLE: &str = "# Page\n\n```rust\nlet a = 1;\n```\n";

    #[test]
    fn a_page_that_no_test_compiles_is_found() {
        let other = "#[doc = include_str!(\"../../../docs/a.md\")]\nstruct A;\n";
        let files = [
            file("docs/a.md", EXAMPLE),
            file("docs/b.md", EXAMPLE),
            file("README.md", EXAMPLE),
            file("crates/x/README.md", EXAMPLE),
            file("crates/x/src/lib.rs", other),
        ];
        assert_eq!(places(&check(&files)), ["docs/b.md:3", "README.md:3", "crates/x/README.md:3"]);
    }

    #[test]
    fn pages_that_are_included_or_run_pass() {
        let lib = "#[doc = include_str!(\"../../../README.md\")]\nstruct A;\n\
                   #[doc = include_str!(\"../README.md\")]\nstruct B;\n";
        let files = [
            file("README.md", EXAMPLE),
            file("crates/x/README.md", EXAMPLE),
            file("crates/x/src/lib.rs", lib),
            file("docs/guide/a.md", EXAMPLE),
            file("examples/tests/guides.rs", "runs(\"docs/guide/a.md\");\n"),
            file("docs/text.md", "```text\nrust\n```\n"),
        ];
        assert_eq!(check(&files), []);
    }
}
