//! Checks the rules of Prometheus against the metrics in the code and the runbooks.

use super::series::{self, Known};
use super::{in_repository, read};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULES: &str = "packaging/prometheus/rewheel.rules.yml";
pub(super) const CASES: &str = "packaging/prometheus/rewheel.rules.test.yml";
const RUNBOOKS: &str = "docs/guide/runbooks";
const RUNBOOKS_URL: &str = "https://github.com/rewheel/rewheel/blob/main/docs/guide/runbooks/";

/// An alert with its expression and its runbook; a recorded series has no runbook.
struct Rule {
    name: String,
    is_alert: bool,
    expression: String,
    runbook: Option<String>,
}

/// Reads the rules. The file has one key per line; an expression may go on in the next lines.
fn rules() -> Vec<Rule> {
    let text = read(RULES);
    let mut rules: Vec<Rule> = Vec::new();
    let mut is_expression = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let (key, value) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
        match key {
            "- alert" | "- record" => rules.push(Rule {
                name: value.to_owned(),
                is_alert: key == "- alert",
                expression: String::new(),
                runbook: None,
            }),
            "runbook_url" => rules.last_mut().unwrap().runbook = Some(value.to_owned()),
            "expr" => rules.last_mut().unwrap().expression = value.replace(">-", ""),
            "for" | "labels" | "annotations" | "summary" | "groups" | "rules" | "- name" => {}
            _ if is_expression => {
                let expression = &mut rules.last_mut().unwrap().expression;
                expression.push(' ');
                expression.push_str(line);
                continue;
            }
            _ => assert!(line.is_empty(), "`{line}` is no key of a rule"),
        }
        is_expression = key == "expr";
    }
    rules
}

/// Returns the series of the engine, and those that the rules record.
fn known(rules: &[Rule]) -> Known {
    let mut known = series::of_engine();
    for rule in rules.iter().filter(|rule| !rule.is_alert) {
        let labels: BTreeSet<&'static str> = match rule.name.split(':').next() {
            Some("job") => ["job"].into(),
            Some("job_kind") => ["job", "kind"].into(),
            Some("instance") => ["instance", "job"].into(),
            other => panic!("{}: what labels does {other:?} stand for?", rule.name),
        };
        known.insert(rule.name.clone(), labels);
    }
    known
}

#[test]
fn every_rule_names_metrics_and_labels_that_exist() {
    let rules = rules();
    let known = known(&rules);
    assert!(rules.len() > 20, "{} rules are too few: were they read?", rules.len());
    for rule in &rules {
        assert!(!rule.expression.is_empty(), "{} has no expression", rule.name);
        assert_eq!(series::faults(&rule.expression, &known), [""; 0], "rule {}", rule.name);
    }
}

/// Series of two fleets in one Prometheus must not be mixed.
#[test]
fn every_rule_keeps_the_fleet() {
    for rule in rules() {
        let by = rule.expression.split(" by (").chain(rule.expression.split(" on ("));
        for labels in by.filter_map(|after| after.split_once(')')).map(|(labels, _)| labels) {
            let is_list = labels.chars().all(|c| c.is_ascii_lowercase() || ", _".contains(c));
            let has_job = labels.split(',').any(|label| label.trim() == "job");
            assert!(!is_list || has_job, "{}: by ({labels})", rule.name);
        }
    }
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_names_its_alerts() {
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for rule in rules().into_iter().filter(|rule| rule.is_alert) {
        let url = rule.runbook.unwrap_or_else(|| panic!("{} has no runbook_url", rule.name));
        let page = url.strip_prefix(RUNBOOKS_URL);
        let page = page.unwrap_or_else(|| panic!("{}: {url} is no runbook", rule.name)).to_owned();
        let path = in_repository(RUNBOOKS).join(&page);
        assert!(path.is_file(), "{}: the page {page} is missing", rule.name);
        wanted.entry(page).or_default().insert(rule.name);
    }
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for page in std::fs::read_dir(in_repository(RUNBOOKS)).unwrap() {
        let path = page.unwrap().path();
        let page = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        // The overview has no alerts of its own.
        let alerts = text.split('`').filter(|word| is_alert(word) && page != "README.md");
        for alert in alerts {
            named.entry(page.clone()).or_default().insert(alert.to_owned());
        }
    }
    assert_eq!(named, wanted, "left: alerts that the pages name; right: alerts of the rules");
}

fn is_alert(word: &str) -> bool {
    let rest = word.strip_prefix("Rewheel").unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_uppercase())
        && rest.chars().all(|c| c.is_ascii_alphanumeric())
}

#[test]
fn every_alert_has_a_case_that_fires_and_one_that_stays_silent() {
    let cases = read(CASES);
    for rule in rules().iter().filter(|rule| rule.is_alert) {
        for what in ["fires", "stays silent"] {
            let name = format!("- name: {} {what}\n", rule.name);
            let case = cases.split_once(&name).map(|(_, after)| after);
            let case = case.unwrap_or_else(|| panic!("no case `{} {what}`", rule.name));
            let case = case.split("- name: ").next().unwrap();
            assert!(case.contains(&format!("alertname=\"{}\"", rule.name)), "{case}");
            assert_eq!(case.contains("exp_samples: []"), what == "stays silent", "{case}");
        }
    }
}
