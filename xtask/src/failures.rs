//! Reads the names of failed tests from the report of nextest.

use std::fs;
use std::path::PathBuf;

use crate::repository::Repository;

/// Returns the path of nextest's report, set in `.config/nextest.toml`.
pub(crate) fn report(repository: &Repository) -> PathBuf {
    repository.target_dir().join("nextest/default/junit.xml")
}

/// Returns the tests that failed in the last run. Without a report there are no names, but the failed step is still named.
pub(crate) fn read(repository: &Repository) -> Vec<String> {
    fs::read_to_string(report(repository)).map(|report| names(&report)).unwrap_or_default()
}

/// Parses the report. It has an element `testcase` for each test, with `failure` or `error` inside if the test failed.
fn names(report: &str) -> Vec<String> {
    let cases = report.split("<testcase ").skip(1);
    let failed = cases.filter(|case| {
        let case = case.split("</testcase>").next().unwrap_or_default();
        case.contains("<failure") || case.contains("<error")
    });
    let name = |case: &str| {
        let attribute = |name: &str| {
            let start = case.split_once(&format!("{name}=\"")).map(|(_, rest)| rest)?;
            start.split_once('"').map(|(value, _)| value.to_owned())
        };
        Some(format!("{} {}", attribute("classname")?, attribute("name")?))
    };
    failed.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn failed_tests_are_named() {
        let report = r#"<testsuites><testsuite name="a">
            <testcase name="one::passes" classname="a" time="0.1">
            </testcase>
            <testcase name="one::fails" classname="a::b" time="0.1">
                <failure type="test failure">no &lt;failure</failure>
            </testcase>
            <testcase name="one::ends" classname="a" time="0.1"/>
            <testcase name="two::hangs" classname="a" time="0.1"><error type="timeout"/></testcase>
            </testsuite></testsuites>"#;
        assert_eq!(names(report), ["a::b one::fails", "a two::hangs"]);
        assert!(names("").is_empty());
    }
}
