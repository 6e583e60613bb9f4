//! Tests metrics in the Prometheus format.

#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use super::served::{Api, config, served};
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, RunnerKind};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

async fn metrics(api: &Api) -> String {
    let answer = api.get("/metrics").await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    answer.body.as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn assert_told(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|told| told == *line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn meters_tell_what_the_fleet_has() {
    served(config(), async |api| {
        api.submit(r#","delay":"1h""#).await;
        let text = metrics(&api).await;
        assert_told(
            &text,
            &[
                r#"rewheel_jobs{kind="mail",state="scheduled"} 1"#,
                r#"rewheel_jobs{kind="mail",state="dead"} 0"#,
                r#"rewheel_kind_parked{kind="mail"} 0"#,
                r#"rewheel_holders{role="engine"} 1"#,
                "rewheel_store_up 1",
                "# TYPE rewheel_jobs_settled_total counter",
                "rewheel_concurrency_max 256",
                "rewheel_concurrency_free 256",
                "rewheel_wheel_jobs 0",
                "rewheel_lease_expired 0",
            ],
        );
        check(&text);
    })
    .await;
}

#[tokio::test]
async fn meters_count_what_became_of_jobs() {
    let mut config = config();
    let settings = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    config.kinds.insert(KindName::parse("mail").unwrap(), settings);
    served(config, async |api| {
        let (first, _) = (api.submit(r#","key":"a""#).await, api.submit("").await);
        let body = r#"{"kind":"mail","payload":{"to":"a"},"key":"a"}"#;
        assert_eq!(api.post("/v1/jobs", body).await.status, 200);
        let other = r#"{"kind":"mail","payload":1,"key":"a"}"#;
        assert_eq!(api.post("/v1/jobs", other).await.problem(), "key_reused");
        let unknown = r#"{"kind":"unknown-kind","payload":1}"#;
        assert_eq!(api.post("/v1/jobs", unknown).await.problem(), "unknown_kind");
        let ask = r#"{"holder":null,"name":"py","kinds":["mail"],"max":9,"wait":"5s"}"#;
        let claimed = api.post("/v1/workers/claim", ask).await.body;
        let verdict = |id: &str| if id == first { "done" } else { "dead" };
        let result = |job: &serde_json::Value| {
            let verdict = verdict(job["id"].as_str().unwrap_or_default());
            json!({"id": job["id"], "fence": job["fence"], "verdict": verdict, "category": "io"})
        };
        let results: Vec<_> =
            claimed["jobs"].as_array().into_iter().flatten().map(result).collect();
        assert_eq!(results.len(), 2, "{claimed}");
        let mut results = results;
        results.iter_mut().filter(|one| one["verdict"] == "done").for_each(|one| {
            one.as_object_mut().map(|one| one.remove("category"));
        });
        let settle = json!({"holder": claimed["holder"], "results": results}).to_string();
        let settled = api.post("/v1/workers/settle", &settle).await;
        assert_eq!(settled.status, 200, "{settled:?}");
        let text = metrics(&api).await;
        assert_told(
            &text,
            &[
                r#"rewheel_jobs_submitted_total{kind="mail",outcome="created"} 2"#,
                r#"rewheel_jobs_submitted_total{kind="mail",outcome="duplicate"} 1"#,
                r#"rewheel_jobs_submitted_total{kind="mail",outcome="refused"} 1"#,
                r#"rewheel_jobs_started_total{kind="mail"} 2"#,
                r#"rewheel_attempts_total{kind="mail"} 2"#,
                r#"rewheel_attempt_duration_seconds_count{kind="mail"} 2"#,
                r#"rewheel_jobs_settled_total{kind="mail",decision="succeed",category="none"} 1"#,
                r#"rewheel_jobs_settled_total{kind="mail",decision="dead",category="io"} 1"#,
                r#"rewheel_jobs_dead_total{kind="mail",category="io"} 1"#,
                r#"rewheel_store_calls_total{verb="insert",outcome="error"} 0"#,
                r#"rewheel_holders{role="worker"} 1"#,
            ],
        );
        assert!(!text.contains("unknown-kind"), "a client could create labels");
        check(&text);
    })
    .await;
}

/// Checks a text against the rules of the classic format, and with `promtool` if it is installed.
#[track_caller]
fn check(text: &str) {
    let mut seen = BTreeSet::new();
    let mut lines = text.lines().peekable();
    while let Some(help) = lines.next() {
        let name = help.strip_prefix("# HELP ").and_then(|rest| rest.split(' ').next());
        let name = name.unwrap_or_else(|| panic!("{help} is no help"));
        assert!(seen.insert(name), "{name} comes twice");
        let form = lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")));
        let form = form.unwrap_or_else(|| panic!("{name} has no type"));
        assert_eq!(form == "counter", name.ends_with("_total"), "{name} is a {form}");
        let mut series = BTreeSet::new();
        let mut buckets: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let (sample, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(series.insert(sample), "{sample} comes twice");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            let (own, labels) = sample.split_once('{').unwrap_or((sample, "}"));
            let suffix = own.strip_prefix(name).unwrap_or_else(|| panic!("{line} under {name}"));
            match (form, suffix) {
                ("counter" | "gauge", "") | ("histogram", "_sum") => {}
                ("histogram", "_bucket") => {
                    let (others, bound) = labels.split_once("le=\"").unwrap_or_default();
                    let bound: f64 = bound.trim_end_matches("\"}").parse().unwrap_or(f64::NAN);
                    let before = buckets.entry(others.trim_end_matches(',').to_owned());
                    let last = before.or_insert((f64::NEG_INFINITY, 0.0));
                    assert!(last.0 < bound && last.1 <= value, "{line} after {last:?}");
                    *last = (bound, value);
                }
                ("histogram", "_count") => {
                    let last = buckets.get(labels.trim_end_matches('}')).copied();
                    assert_eq!(last, Some((f64::INFINITY, value)), "{line}");
                }
                _ => panic!("{line} is no sample of a {form}"),
            }
        }
    }
    promtool(text);
}

#[track_caller]
fn promtool(text: &str) {
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("not tested: there is no promtool");
        return;
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
