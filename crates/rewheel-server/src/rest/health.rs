//! Serves the liveness and readiness checks.

use crate::app::App;
use crate::disk::disk_space;
use crate::problem::{Code, Problem};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use rewheel::Clock;
use rewheel::axum::{Health, HealthChecks};
use rewheel_engine::{Engine, EngineStatus};
use serde_json::json;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

/// A store that does not return its time within this timeout counts as unavailable.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// `GET /livez`: the process responds. It never calls the store: a restart would not fix that.
pub(super) async fn livez() -> Response {
    Json(json!({ "live": true })).into_response()
}

/// `GET /readyz`: the server accepts requests.
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let engine = app.engine_for_work()?;
    if let Some(name) = engine.status().failed {
        let why = format!("the {name} loop of the engine failed; this server is stopping");
        return Err(Problem::new(Code::ShuttingDown, why));
    }
    let store = engine.store();
    match tokio::time::timeout(STORE_TIMEOUT, store.now()).await {
        Ok(Ok(_)) => Ok(Json(json!({ "ready": true })).into_response()),
        Ok(Err(error)) => {
            let problem = Problem::from(error);
            Err(Problem { code: Code::StoreUnavailable, ..problem })
        }
        Err(_) => Err(Problem::new(
            Code::StoreUnavailable,
            format!("the store did not respond within {} s", STORE_TIMEOUT.as_secs()),
        )),
    }
}

/// `GET /health`: the state of each part, for people. 503 if a part prevents jobs from being run or accepted.
pub(super) async fn health(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let engine = app.engine()?;
    let (store, status, lease) = (engine.clone(), engine.status(), engine.status());
    let jobs = engine.clone();
    let slots = engine.status();
    let mut checks = HealthChecks::new()
        .timeout(STORE_TIMEOUT)
        .check("store", move || ask_store(store.clone()))
        .check("jobs", move || jobs_health(jobs.clone()))
        .check("engine", move || ready(engine_health(&status)))
        .check("lease", move || ready(lease_health(&lease)))
        .check("concurrency", move || ready(concurrency_health(&slots)));
    let config = app.config();
    if let Some(space) = disk_space(config) {
        let health = space.map_or_else(Health::degraded, Health::ok);
        checks = checks.check("disk", move || ready(health.clone()));
    }
    // This is a normal response, not a problem document: the caller wants all checks.
    let mut response = checks.run().await.response();
    response.extensions_mut().insert(super::answer::AsItIs);
    Ok(response)
}

async fn ask_store(engine: Engine) -> Health {
    let clock = Clock::system();
    let asked = clock.now();
    match engine.store().now().await {
        // Rounded up to a millisecond.
        Ok(_) => Health::ok(format!(
            "the store responded within {} ms",
            clock.now().since(asked).as_millis() + 1
        )),
        Err(error) => Health::down(error.with_causes()),
    }
}

async fn jobs_health(engine: Engine) -> Health {
    match engine.store().unreadable().await {
        Ok(None) => Health::ok("all job rows are readable"),
        Ok(Some(risk)) => Health::degraded(risk.message),
        // The check of the store reports why it does not respond.
        Err(error) => {
            Health::degraded(format!("failed to check the job rows: {}", error.with_causes()))
        }
    }
}

fn engine_health(status: &EngineStatus) -> Health {
    match status.failed {
        Some(name) => {
            Health::down(format!("the {name} loop of the engine failed; this server is stopping"))
        }
        None => Health::ok("all loops of the engine are running"),
    }
}

fn lease_health(status: &EngineStatus) -> Health {
    if status.lease_expired {
        return Health::down(
            "the lease of this server expired; no attempt starts until the server renews the lease",
        );
    }
    Health::ok(format!("the lease of holder {} is valid", status.holder))
}

fn concurrency_health(status: &EngineStatus) -> Health {
    let used = status.concurrency - status.concurrency_free.min(status.concurrency);
    Health::ok(format!("{used} of {} slots are in use", status.concurrency))
}
