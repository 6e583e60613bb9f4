//! Tests `rewheel lab --from`, on jobs that a real engine has run.

use crate::shell::run;
use rewheel::{Backoff, Category, millis, seconds};
use rewheel_engine::store::{Filter, PageRequest};
use rewheel_engine::{Engine, Failure, JobContext, JobKind, KindSettings, Report};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

const JOBS: u32 = 400;

#[derive(Serialize, Deserialize)]
struct Charge {
    number: u32,
}

impl JobKind for Charge {
    const NAME: &'static str = "charge";
}

/// Fails the first attempts of some jobs, as a service does that fails in three of ten calls; one job in forty is not to be repeated.
async fn charge(ctx: JobContext, job: Charge) -> Result<(), Report> {
    let failures = match job.number % 10 {
        0 => 2,
        1 | 2 => 1,
        _ => 0,
    };
    if job.number % 40 == 5 {
        return Err(Report::dead(Failure::new(Category::Rejected, None, "no such card")));
    }
    if ctx.attempt() <= failures {
        return Err(Report::retry(Failure::new(Category::Transient, None, "the bank is busy")));
    }
    Ok(())
}

/// Runs the jobs in a store in this folder.
async fn history(folder: &Path) -> String {
    let url = format!("sqlite://{}", folder.join("jobs.db").display());
    let store = rewheel_stores::connect(&url).await.unwrap();
    let settings = KindSettings {
        attempts_max: 5,
        backoff: Backoff::exponential(millis(20)).max(seconds(1)),
        ..KindSettings::default()
    };
    let engine = Engine::builder(store.clone()).kind("charge", settings).handler(charge);
    let engine = engine.start().await.unwrap();
    for number in 0..JOBS {
        engine.submit(Charge { number }).await.unwrap();
    }
    let live = Filter {
        states: vec![rewheel_core::State::Scheduled, rewheel_core::State::Leased],
        ..Filter::default()
    };
    while !store.list(&live, &PageRequest::first(1)).await.unwrap().items.is_empty() {
        tokio::task::yield_now().await;
    }
    engine.shutdown(seconds(5)).await;
    store.close().await.unwrap();
    url
}

#[tokio::test]
async fn a_replay_of_recorded_jobs_is_like_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let url = history(folder.path()).await;
    let args = ["lab", "--from", &url, "--kind", "charge", "--since", "7d", "--html", "lab.html"];
    let text = run(folder.path(), &args);
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    assert!(text.out.contains("Outside of outages, "), "{}", text.out);
    let document: Value = run(folder.path(), &[&args[..], &["--json"]].concat()).json();
    super::check_rows(&document, "what-if", document["rows"].as_array().unwrap().len());
    let (recorded, replayed) = (&document["rows"][0], &document["rows"][1]);
    assert_eq!(
        (&recorded["policy"], &recorded["calls"]),
        (&"recorded".into(), &f64::from(JOBS).into())
    );
    // 40 jobs fail twice, 80 once; 10 others are not repeated.
    assert_eq!(recorded["amplification"], 560.0 / 400.0);
    assert_eq!(recorded["success"], 390.0 / 400.0);
    for number in ["amplification", "success"] {
        let share = replayed[number].as_f64().unwrap() / recorded[number].as_f64().unwrap();
        assert!((share - 1.0).abs() <= 0.1, "{number}: {replayed} and {recorded}");
    }
    let page = std::fs::read_to_string(folder.path().join("lab.html")).unwrap();
    assert!(page.contains("what-if"));
}

#[tokio::test]
async fn a_store_without_such_jobs_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = format!("sqlite://{}", folder.path().join("none.db").display());
    let ran = run(folder.path(), &["lab", "--from", &missing, "--kind", "charge"]);
    assert!(ran.code == 7 && ran.err.contains("no store exists"), "{}", ran.err);
    let url = history(folder.path()).await;
    let ran = run(folder.path(), &["lab", "--from", &url, "--kind", "mail"]);
    assert!(ran.code == 5 && ran.err.contains("the store has no kind `mail`"), "{}", ran.err);
    assert!(ran.err.contains("kinds of this store: charge"), "{}", ran.err);
    let ran = run(folder.path(), &["lab", "--from", &url, "--kind", "charge", "--since", "1ms"]);
    assert!(ran.code == 1 && ran.err.contains("use a longer `--since`"), "{}", ran.err);
}
