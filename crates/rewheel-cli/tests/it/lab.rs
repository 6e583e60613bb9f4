//! Tests `rewheel lab`, which needs no server.

use crate::shell::run;
use serde_json::Value;

mod recorded;

/// The fields of a row, as scripts read them.
const FIELDS: [&str; 9] = [
    "amplification",
    "calls",
    "completed_ms",
    "p50_ms",
    "p99_ms",
    "policy",
    "recovered_ms",
    "success",
    "wasted",
];

/// Runs the command, and returns its document.
fn lab(args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &[&["lab"], args, &["--json"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    ran.json()
}

#[track_caller]
fn check_rows(document: &Value, scenario: &str, rows: usize) {
    let mut fields: Vec<_> = document.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["rows", "scenario"]);
    assert_eq!(document["scenario"], scenario);
    let all = document["rows"].as_array().unwrap();
    assert_eq!(all.len(), rows, "{scenario}");
    for row in all {
        let mut fields: Vec<_> = row.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(fields, FIELDS, "{scenario}");
        for share in ["success", "wasted"] {
            let share = row[share].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&share), "{row}");
        }
    }
}

#[test]
fn policies_are_compared_on_a_storm() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["lab", "--lasts", "1m", "--outage", "10s..15s"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(
        ran.out.starts_with("100 clients together make 500 calls/s to a dependency"),
        "{}",
        ran.out
    );
    let row = |policy: &str| {
        let mut rows = ran.out.lines().filter(|line| line.starts_with(policy));
        rows.next_back().unwrap().trim_start_matches(policy).trim().to_owned()
    };
    assert!(row("10 attempts, fixed 100ms").ends_with("never"), "{}", ran.out);
    assert!(row("none").ends_with('s'), "{}", ran.out);
    assert!(ran.out.contains("- `10 attempts, fixed 100ms` keeps the dependency down"));
}

#[test]
fn every_scenario_prints_the_same_fields() {
    let short = ["--lasts", "12s", "--rate", "50", "--policy", "none"];
    let of = |name, more: &[&'static str]| lab(&[&[name][..], &short[..], more].concat());
    check_rows(&of("outage", &["--outage", "2s..4s"]), "outage", 1);
    check_rows(&of("overload", &["--surge", "2s..4s", "--times", "3"]), "overload", 1);
    check_rows(&of("flaky", &["--failure-ratio", "0.5"]), "flaky", 1);
    check_rows(&of("metastable", &["--outage", "2s..4s", "--fault", "x20"]), "metastable", 1);
    check_rows(&of("fleet", &["--outage", "2s..4s"]), "fleet", 1);
    let recovery = ["--lasts", "20s", "--outage", "2s..6s", "--rate", "20"];
    check_rows(&lab(&[&["recovery"][..], &recovery].concat()), "recovery", 3);
    check_rows(&lab(&["contention", "--clients", "10", "--runs", "3"]), "contention", 5);
}

#[test]
fn contention_counts_writes_and_the_time_until_all_have_written() {
    let document = lab(&["contention", "--clients", "20"]);
    let row = |nth: usize| &document["rows"][nth];
    assert_eq!(row(0)["policy"], "no backoff");
    assert_eq!(row(3)["policy"], "full");
    let number = |nth: usize, name: &str| row(nth)[name].as_f64().unwrap();
    assert!(number(0, "calls") > number(3, "calls"));
    assert!(number(1, "completed_ms") > 2.0 * number(3, "completed_ms"));
    assert!((0..5).all(|nth| number(nth, "success") == 1.0));
}

#[test]
fn a_comparison_says_which_is_which() {
    let document = lab(&["compare"]);
    check_rows(&document, "compare", 6);
    let policies: Vec<_> =
        (0..6).map(|nth| document["rows"][nth]["policy"].as_str().unwrap()).collect();
    assert_eq!(policies[0], "independent failures: no retry");
    assert_eq!(policies[5], "outage: retry + budget + breaker");
}

#[test]
fn the_same_seed_is_the_same_result() {
    let with = |seed| lab(&["flaky", "--lasts", "10s", "--seed", seed]);
    assert_eq!(with("7"), with("7"));
    assert_ne!(with("7"), with("8"));
}

#[test]
fn delays_are_a_table_with_a_plot() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["lab", "delays", "4 attempts, exponential 100ms jitter none"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let rows: Vec<_> = ran.out.lines().filter(|line| line.contains('●')).collect();
    assert_eq!(rows.len(), 3, "{}", ran.out);
    assert!(rows[2].starts_with('3') && rows[2].ends_with("700ms"), "{}", rows[2]);
    let document = lab(&["delays"]);
    assert_eq!(document["rows"].as_array().unwrap().len(), 4, "one for each preset");
    assert_eq!(document["rows"][0]["delays"][0]["attempt"], 1);
}

#[test]
fn a_report_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["lab", "flaky", "--lasts", "10s", "--html", "report.html"];
    let ran = run(folder.path(), &args);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg"));
    let missing = run(folder.path(), &["lab", "flaky", "--lasts", "10s", "--html", "no/such"]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("cannot write no/such"), "{}", missing.err);
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], why: &str| {
        let ran = run(folder.path(), &[&["lab"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.err.contains(why), "{}", ran.err);
    };
    refused(&["--policy", "4 attempts, fixd 1s"], "is not a policy");
    refused(&["--outage", "40s..20s"], "the outage must end after it starts");
    refused(&["--outage", "40s"], "use FROM..TO, such as 20s..40s");
    refused(&["--lasts", "42s"], "must last until at least 5s after the outage");
    refused(&["--fault", "sulks"], "use `hangs`, `fails`, or a factor such as `x10`");
    refused(&["--rate", "0"], "clients must be 1 to 100000");
    refused(&["--clients", "4294967295"], "clients must be 1 to 100000");
    refused(&["--capacity", "4294967295", "--latency", "1h"], "must be at most 100000 requests");
    refused(&["--rate", "4000000"], "the simulation allows 1 to 1000000 calls");
    refused(&["--timeout", "0s"], "timeout must be longer than 0s");
    refused(&["--latency", "soon"], "is not a latency: use `20ms`");
    refused(&["flaky", "--failure-ratio", "2"], "the failure ratio must be 0 to 1");
    refused(&["flaky", "--failure-ratio", "-1"], "the failure ratio must be 0 to 1");
    refused(&["overload", "--times", "-1"], "the surge must have a factor of 0 to 1000");
    refused(&["contention", "--clients", "0"], "clients and runs must be 1 or more");
    refused(&["contention", "--policy", "none, breaker"], "is not a retry alone");
    refused(&["recovery", "--nodes", "0"], "nodes must be 1 to 1000");
    for factor in ["x-1", "xnan", "xinf", "x0.5", "x1e9"] {
        refused(&["recovery", "--fault", factor], "a factor of 1 to 1000");
        refused(&["--fault", factor], "a factor of 1 to 1000");
    }
    refused(&["recovery", "--outage", "500s..600s"], "at least 5s after the outage ends");
    refused(&["--latency", "lognormal 1ns p99 1h"], "is not a latency");
    refused(&["recovery", "--latency", "lognormal 1ns p99 1h"], "is not a latency");
    refused(&["--latency", "normal 1ns 1000000h"], "is not a latency");
    refused(&["delays", "none"], "is not a retry alone");
    refused(&["storm"], "unrecognized subcommand");
    refused(&["--kind", "mail"], "--from");
    refused(&["--from", "memory://", "--kind", "mail", "--rate", "5"], "cannot be used with");
}

#[test]
fn options_that_a_subcommand_would_not_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = ["--from", "memory://", "--kind", "mail"];
    let before = [
        &["--seed", "7"][..],
        &["--html", "r.html"],
        &["--rate", "50"],
        &["--policy", "none"],
        &["--fault", "fails"],
        &["--outage", "1s..2s"],
        &store,
    ];
    for options in before {
        let ran = run(folder.path(), &[&["lab"], options, &["flaky", "--lasts", "5s"]].concat());
        assert_eq!(ran.code, 2, "{options:?}: {}", ran.err);
        assert!(ran.err.contains("the subcommand 'flaky' cannot be used with"), "{}", ran.err);
        assert!(ran.err.contains(options[0]), "{}", ran.err);
    }
    assert!(!folder.path().join("r.html").exists());
    for json in [&["--json", "lab", "flaky"][..], &["lab", "flaky", "--json"]] {
        let ran = run(folder.path(), &[json, &["--lasts", "5s"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{json:?}");
        check_rows(&ran.json(), "flaky", ran.json()["rows"].as_array().unwrap().len());
    }
}
