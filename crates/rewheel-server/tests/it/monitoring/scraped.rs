//! Runs the query of every panel in a real Prometheus, which scrapes a server under the load of the demo.

#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use super::engine::ENGINE;
use super::in_repository;
use super::library::LIBRARY;
use super::rules::RULES;
use super::series;
use axum::Router;
use axum::routing::get;
use rewheel::seconds;
use rewheel_server::config::Config;
use rewheel_server::{Server, ServerEvent, Show};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Much longer than it takes on a busy machine: some seconds.
const PATIENCE: Duration = seconds(180);

/// The window of the queries: many scrapes.
const WINDOW: &str = "1m";

/// Counters of what the demo does all the time: their rates are above zero.
const GROWING: [&str; 4] = [
    "rewheel_jobs_submitted_total",
    "rewheel_jobs_settled_total",
    "rewheel_attempts_total",
    "rewheel_store_calls_total",
];

/// Returns whether a query is the rate of something that the demo does all the time. A counter that is always 0 has data too.
fn must_grow(query: &str) -> bool {
    let is_growing = |name: &&str| {
        query.contains(&format!("(rate({name}{{")) || query.contains(&format!("(rate({name}["))
    };
    // Neither a share nor a selection.
    query.matches("rate(").count() == 1
        && GROWING.iter().any(is_growing)
        && !query.contains(['/', '!'])
        && !query.contains("error")
}

/// A Prometheus that scrapes several times a second.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    client: reqwest::Client,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts it; `None` if it is not installed.
    fn start(engine: SocketAddr, library: SocketAddr) -> Option<Prometheus> {
        let folder = tempfile::tempdir().unwrap();
        let rules = in_repository(RULES).canonicalize().unwrap();
        let target = |name: &str, address| json!({"job_name": name, "static_configs": [{"targets": [address]}]});
        // JSON is YAML.
        let config = json!({
            "global": {
                "scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s",
            },
            "rule_files": [rules],
            "scrape_configs": [target("rewheel", engine), target("library", library)],
        });
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config.to_string()).unwrap();
        let address = free_address();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(["--log.level=error"])
            .stdout(Stdio::null())
            .spawn();
        let Ok(process) = process else {
            println!("not tested: there is no prometheus (Debian package `prometheus`)");
            return None;
        };
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Some(Prometheus { process, address, client, _folder: folder })
    }

    /// Requests a path of its API; an error is one that may pass.
    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, String> {
        let mut url = url::Url::parse(&format!("http://{}/api/v1/{path}", self.address)).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let answer = self.client.get(url).send().await.map_err(|error| error.to_string())?;
        let text = answer.text().await.map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&text).map_err(|_| text)?;
        // Nothing but a wrong query is an error that stays.
        assert_ne!(answer["errorType"], "bad_data", "{query:?}: {answer}");
        Ok(answer["data"].clone())
    }

    /// Returns whether a query has at least one number, and one above zero if it must grow.
    async fn has_data(&self, query: &str) -> bool {
        let Ok(data) = self.get("query", &[("query", query)]).await else { return false };
        let series = data["result"].as_array().cloned().unwrap_or_default();
        let mut values =
            series.iter().filter_map(|one| one["value"][1].as_str()?.parse::<f64>().ok());
        values.any(|value| if must_grow(query) { value > 0.0 } else { !value.is_nan() })
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Serves every metric of the library. Each scrape adds one to each counter and bucket.
async fn library(listener: TcpListener) {
    static SCRAPES: AtomicU64 = AtomicU64::new(0);
    let text = || async {
        let count = SCRAPES.fetch_add(1, Ordering::Relaxed) + 1;
        let mut text = String::new();
        for meter in rewheel::otel::Meter::ALL {
            let name = series::library_name(meter);
            let labels: String =
                meter.labels.iter().map(|label| format!(",{label}=\"some\"")).collect();
            let labels = format!("name=\"bank\"{labels}");
            writeln!(text, "# TYPE {name} {}", meter.form).unwrap();
            if meter.form == "histogram" {
                for bound in ["0.1", "+Inf"] {
                    writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}").unwrap();
                }
                writeln!(text, "{name}_sum{{{labels}}} {count}").unwrap();
                writeln!(text, "{name}_count{{{labels}}} {count}").unwrap();
            } else {
                writeln!(text, "{name}{{{labels}}} {count}").unwrap();
            }
        }
        ([("content-type", "text/plain; version=0.0.4")], text)
    };
    axum::serve(listener, Router::new().route("/metrics", get(text))).into_future().await.unwrap();
}

fn config() -> Config {
    let mut config = Config::default();
    config.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.store.url = "memory://".to_owned();
    config.notify = serde_json::from_value(json!({"route": [{"to": "log"}]})).unwrap();
    config
}

#[tokio::test]
async fn every_panel_has_data_when_prometheus_scrapes_the_demo() {
    let server = Server::bind(config()).await.unwrap().show(Show::Demo).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (engine, library_at) = (server.address(), listener.local_addr().unwrap());
    let Some(prometheus) = Prometheus::start(engine, library_at) else { return };
    let (ready, is_ready) = oneshot::channel();
    let mut ready = Some(ready);
    let running = server.run(std::future::pending(), move |said: &ServerEvent| {
        if let (ServerEvent::Ready(_), Some(ready)) = (said, ready.take()) {
            ready.send(()).unwrap();
        }
    });
    let looking = async {
        is_ready.await.unwrap();
        submit(engine).await;
        look(&prometheus).await;
        assert_rules_work(&prometheus).await;
    };
    tokio::select! {
        ran = running => panic!("the server ended: {ran:?}"),
        () = library(listener) => {}
        () = looking => {}
    }
}

/// Submits jobs that the demo submits rarely: some become dead letters, one waits. Those that are due after the horizon are claimed.
async fn submit(engine: SocketAddr) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let broken = [("demo-broken", "0s"); 2].into_iter();
    let claimed = ["6s", "7s", "8s", "10s", "12s"].map(|delay| ("demo-fast", delay));
    for (kind, delay) in broken.chain(claimed).chain([("demo-broken", "1h")]) {
        let body = json!({"kind": kind, "payload": {"order": 1}, "delay": delay}).to_string();
        let request = client.post(format!("http://{engine}/v1/jobs")).body(body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    }
}

/// Waits until every query of the dashboards has data.
async fn look(prometheus: &Prometheus) {
    let mut open = [ENGINE, LIBRARY].map(|dashboard| dashboard.queries(WINDOW)).concat();
    let growing = open.iter().filter(|query| must_grow(query)).count();
    assert!(growing >= GROWING.len(), "{growing} queries must grow: have their names changed?");
    let wait = async {
        while let Some(query) = open.last() {
            if prometheus.has_data(query).await {
                open.pop();
            } else {
                tokio::time::sleep(rewheel::millis(50)).await;
            }
        }
    };
    let is_over = tokio::time::timeout(PATIENCE, wait).await;
    assert!(is_over.is_ok(), "no data after {PATIENCE:?}: {:?}", open.last());
}

async fn assert_rules_work(prometheus: &Prometheus) {
    let evaluated = || async {
        let Ok(data) = prometheus.get("rules", &[]).await else { return None };
        let groups = data["groups"].as_array()?.clone();
        let rules: Vec<Value> = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default())
            .collect();
        let is_done = rules.len() > 20 && rules.iter().all(|rule| rule["health"] != "unknown");
        is_done.then_some(rules)
    };
    let wait = async {
        loop {
            if let Some(rules) = evaluated().await {
                return rules;
            }
            tokio::time::sleep(rewheel::millis(50)).await;
        }
    };
    let rules = tokio::time::timeout(PATIENCE, wait).await.expect("Prometheus runs the rules");
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}
