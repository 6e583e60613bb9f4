//! Callbacks to an echo server in this process.

use super::subject::{now, open, rate};
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::routing::any;
use rewheel::{millis, seconds};
use rewheel_core::store::Insert;
use rewheel_core::{KindName, NewJob};
use rewheel_engine::{Engine, EngineSettings, KindSettings, RunnerKind};
use rewheel_server::callback::{Callback, CallbackRunner, Clients};
use serde_json::json;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const PLACES: usize = 64;

/// Returns callbacks per second, and what `wrk` reaches on the same server where it is installed.
pub(super) async fn round(url: &str, jobs: usize) -> Result<(f64, Option<f64>)> {
    let jobs = jobs.min(20_000);
    let called = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&called);
    let echo = Router::new().route(
        "/",
        any(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready("")
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move { axum::serve(listener, echo).await });

    let callback = json!({"url": format!("http://{address}/"), "allow": ["127.0.0.0/8"]});
    let settings = KindSettings {
        runner: RunnerKind::Callback,
        keep_succeeded: millis(0),
        callback: Some(callback),
        ..KindSettings::default()
    };
    let clients = Clients::new();
    let store = open(url).await?;
    let engine = Engine::builder(Arc::clone(&store))
        .settings(EngineSettings { places: PLACES, ..EngineSettings::default() })
        .kind("bench", settings)
        .runners(move |kind, settings| {
            let callback = Callback::parse(settings.callback.as_ref()?).ok()?;
            let runner = CallbackRunner::new(kind.clone(), callback, &clients).ok()?;
            Some(Arc::new(runner))
        })
        .start()
        .await?;
    let kind = KindName::parse("bench")?;
    let started = now();
    for _ in 0..jobs.div_ceil(1_000) {
        let batch: Vec<NewJob> = (0..1_000)
            .map(|_| NewJob::new(engine.new_id(), kind.clone(), b"{}".to_vec()))
            .collect();
        engine.insert(&Insert::new(&batch)).await?;
    }
    let jobs = jobs.div_ceil(1_000) * 1_000;
    while called.load(Ordering::Relaxed) < jobs || engine.status().places_free < PLACES {
        tokio::time::sleep(millis(1)).await;
    }
    let rate = rate(jobs, started);
    engine.shutdown(seconds(5)).await;
    let books = store.books().await?;
    ensure!(books.pruned as usize == jobs, "not every callback succeeded: {books:?}");
    store.close().await?;
    let wrk = tokio::task::spawn_blocking(move || wrk(&format!("http://{address}/"))).await?;
    Ok((rate, wrk.ok()))
}

fn wrk(url: &str) -> Result<f64> {
    let connections = PLACES.to_string();
    let arguments = ["-t1", "-d2s", "-c", connections.as_str(), url];
    let output = Command::new("wrk").args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = said.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    Ok(rate.context("wrk says nothing of requests")?.trim().parse()?)
}
