//! Checks that SQL files and conformance cases are named, listed and used.

use super::{Finding, TextFile, numbered};

/// The folders with cases, and the list that runs them.
const SUITES: [(&str, &str); 2] = [
    ("crates/rewheel-testkit/src/conformance/", "crates/rewheel-testkit/src/conformance/cases.rs"),
    (IDEMPOTENCY, IDEMPOTENCY),
];
const IDEMPOTENCY: &str = "crates/rewheel-testkit/src/idempotency.rs";

/// The crates with SQL files.
const SQL_USERS: [&str; 2] = ["crates/rewheel-stores/src/", "crates/rewheel-lock/src/"];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        SUITES.iter().flat_map(|(suite, list)| cases(files, suite, list)).collect();
    findings.extend(sql(files));
    findings
}

/// Finds cases that are not in the list: they would never run.
fn cases(files: &[TextFile], suite: &str, list: &str) -> Vec<Finding> {
    let Some(names) = files.iter().find(|file| file.path == list) else { return Vec::new() };
    let listed: Vec<&str> = names.text.split([',', '\n']).map(str::trim).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(suite)) {
        for (line, text) in numbered(&file.text) {
            let Some(rest) = text.strip_prefix("pub async fn ") else { continue };
            let name = rest.split('(').next().unwrap_or(rest);
            if !listed.contains(&name) {
                let advice = format!("`{name}` runs nowhere: list it in {list}");
                findings.push(Finding { path: file.path.clone(), line, advice });
            }
        }
    }
    findings
}

/// Checks that an SQL file is named after what it does, starts with that name, and is used.
fn sql(files: &[TextFile]) -> Vec<Finding> {
    let sources: Vec<&str> = files
        .iter()
        .filter(|file| SQL_USERS.iter().any(|user| file.path.starts_with(user)) && is_rust(file))
        .map(|file| file.text.as_str())
        .collect();
    let mut findings = Vec::new();
    for file in files {
        let Some((_, name)) = file.path.rsplit_once("/sql/") else { continue };
        let Some(verb) = name.strip_suffix(".sql") else { continue };
        let mut say = |advice: String| {
            findings.push(Finding { path: file.path.clone(), line: 1, advice });
        };
        if !file.text.starts_with(&format!("-- {verb}: ")) {
            say(format!("begin with `-- {verb}: ` and what it does"));
        }
        let used = format!("sql/{name}\"");
        if !sources.iter().any(|source| source.contains(&used)) {
            say("no code uses it: delete it".to_owned());
        }
    }
    findings
}

fn is_rust(file: &TextFile) -> bool {
    std::path::Path::new(&file.path).extension().is_some_and(|extension| extension == "rs")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::structure::testing::{file, places};

    #[test]
    fn a_case_that_is_not_listed_is_found() {
        let suite = "crates/rewheel-testkit/src/conformance/claim.rs";
        let files = [
            file("crates/rewheel-testkit/src/conformance/cases.rs", "claim {\n    takes_one,\n}\n"),
            file(suite, "pub async fn takes_one(s: &S) {}\npub async fn takes_two(s: &S) {}\n"),
        ];
        assert_eq!(places(&check(&files)), [format!("{suite}:2")]);
    }

    #[test]
    fn a_case_of_the_keys_that_is_not_listed_is_found() {
        let suite = "crates/rewheel-testkit/src/idempotency.rs";
        let text =
            "takes_one,\npub async fn takes_one(s: &S) {}\npub async fn takes_two(s: &S) {}\n";
        assert_eq!(places(&check(&[file(suite, text)])), [format!("{suite}:3")]);
    }

    #[test]
    fn sql_that_is_unused_or_unnamed_is_found() {
        let folder = "crates/rewheel-stores/src/sqlite/sql";
        let files = [
            file("crates/rewheel-stores/src/a.rs", "include_str!(\"sql/good.sql\") sql/odd.sql\""),
            file(&format!("{folder}/good.sql"), "-- good: does it.\nSELECT 1;"),
            file(&format!("{folder}/odd.sql"), "SELECT 1;"),
            file(&format!("{folder}/alone.sql"), "-- alone: is.\nSELECT 1;"),
        ];
        let found = places(&check(&files));
        assert_eq!(found, [format!("{folder}/odd.sql:1"), format!("{folder}/alone.sql:1")]);
    }
}
