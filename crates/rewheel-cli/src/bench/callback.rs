//! Benchmarks callbacks to an echo server in this process.

use super::subject::{now, open, rate};
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use rewheel::{millis, seconds};
use rewheel_core::store::Insert;
use rewheel_core::{KindName, NewJob, SecretUrl};
use rewheel_engine::{Engine, EngineSettings, KindSettings, RunnerKind};
use rewheel_server::callback::{Callback, CallbackRunner, Clients};
use serde_json::json;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The engine's default concurrency.
const PLACES: usize = 256;

const PAYLOAD: &[u8] = b"{}";

/// A server that returns what it receives.
struct Echo {
    address: SocketAddr,
    seen: Arc<Seen>,
    _serving: tokio::task::JoinSet<std::io::Result<()>>,
}

#[derive(Default)]
struct Seen {
    calls: AtomicUsize,
    /// The headers of the first request.
    headers: OnceLock<HeaderMap>,
}

impl Echo {
    async fn start() -> Result<Echo> {
        let seen = Arc::new(Seen::default());
        let sees = Arc::clone(&seen);
        let echo = move |headers: HeaderMap, body: Bytes| {
            sees.calls.fetch_add(1, Ordering::Relaxed);
            sees.headers.get_or_init(|| headers);
            std::future::ready(body)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let mut serving = tokio::task::JoinSet::new();
        let router = Router::new().route("/", post(echo));
        serving.spawn(async move { axum::serve(listener, router).await });
        Ok(Echo { address, seen, _serving: serving })
    }

    /// Returns how many of the same requests `wrk` makes per second, over as many connections.
    fn wrk(&self) -> Result<f64> {
        let headers = self.seen.headers.get().context("the echo server was not called")?;
        // Headers that wrk writes itself are left out.
        let mut script = format!("wrk.method = 'POST'\nwrk.body = '{}'\n", PAYLOAD.escape_ascii());
        let own = [axum::http::header::HOST, axum::http::header::CONTENT_LENGTH];
        for (name, value) in headers.iter().filter(|(name, _)| !own.contains(name)) {
            let value = value.to_str()?;
            script += &format!("wrk.headers['{name}'] = '{}'\n", value.escape_default());
        }
        let folder = std::env::temp_dir().join(format!("rewheel-wrk-{}.lua", std::process::id()));
        std::fs::write(&folder, script)?;
        let connections = PLACES.to_string();
        let url = format!("http://{}/", self.address);
        let ran = Command::new("wrk")
            .args(["-t1", "-d2s", "-c", &connections, "-s"])
            .args([folder.as_os_str(), url.as_ref()])
            .output();
        std::fs::remove_file(&folder)?;
        let said = String::from_utf8_lossy(&ran?.stdout).into_owned();
        ensure!(!said.contains("Non-2xx"), "the server rejected the requests of wrk: {said}");
        let rate = said.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
        Ok(rate.context("the output of wrk has no request count")?.trim().parse()?)
    }
}

/// Returns callbacks per second of waiting jobs, and the rate of `wrk` on the same server, if it is installed.
pub(super) async fn round(url: &SecretUrl, jobs: usize) -> Result<(f64, Option<f64>)> {
    let jobs = jobs.min(20_000).next_multiple_of(1_000);
    let echo = Echo::start().await?;
    let callback = json!({"url": format!("http://{}/", echo.address), "allow": ["127.0.0.0/8"]});
    let settings = KindSettings {
        runner: RunnerKind::Callback,
        keep_succeeded: millis(0),
        callback: Some(callback),
        ..KindSettings::default()
    };
    let store = open(url).await?;
    let kind = KindName::parse("bench")?;
    // An engine that runs nothing: the jobs wait.
    let submitter =
        Engine::builder(Arc::clone(&store)).kind("bench", settings.clone()).start().await?;
    for _ in 0..jobs / 1_000 {
        let job = || NewJob::new(submitter.new_id(), kind.clone(), PAYLOAD.to_vec());
        let batch: Vec<NewJob> = std::iter::repeat_with(job).take(1_000).collect();
        submitter.insert(&Insert::new(&batch)).await?;
    }
    submitter.shutdown(millis(0)).await;

    let clients = Clients::new();
    let started = now();
    let engine = Engine::builder(Arc::clone(&store))
        .settings(EngineSettings { concurrency: PLACES, ..EngineSettings::default() })
        .kind("bench", settings)
        .runners(move |kind, settings| {
            let callback = Callback::parse(settings.callback.as_ref()?).ok()?;
            let runner = CallbackRunner::new(kind.clone(), callback, &clients).ok()?;
            Some(Arc::new(runner))
        })
        .start()
        .await?;
    let calls = || echo.seen.calls.load(Ordering::Relaxed);
    while calls() < jobs || engine.status().concurrency_free < PLACES {
        tokio::time::sleep(millis(1)).await;
    }
    let rate = rate(jobs, started);
    engine.shutdown(seconds(5)).await;
    let books = store.books().await?;
    ensure!(books.pruned as usize == jobs, "not every callback succeeded: {books:?}");
    store.close().await?;
    let is_missing = |error: &anyhow::Error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
    };
    match tokio::task::spawn_blocking(move || echo.wrk()).await? {
        Ok(wrk) => Ok((rate, Some(wrk))),
        Err(error) if is_missing(&error) => Ok((rate, None)),
        Err(error) => Err(error),
    }
}
