//! Routes about the server itself: health checks, metrics and the OpenAPI document.

use super::{Route, get};
use crate::openapi::Operation;
use crate::openapi::shape::text;
use crate::problem::Code;
use crate::rest::access::{OPEN, READ_ALL};
use crate::rest::{docs, health, metrics};
use serde_json::json;

pub(super) fn routes() -> Vec<Route> {
    let liveness = "Liveness check: the process responds. Never calls the store.";
    let unhealthy = "A part of the server is unhealthy: jobs are not accepted or not run.";
    let page = "A page without external resources.";
    vec![
        // Orchestrators have no token; these two checks answer yes or no.
        get(
            "/livez",
            OPEN,
            health::livez,
            Operation::new("livez", liveness).gives(200, "It does.", "Live"),
        ),
        get(
            "/readyz",
            OPEN,
            health::readyz,
            Operation::new("readyz", "Readiness check: the server accepts requests.")
                .gives(200, "They are.", "Ready")
                .may(&[Code::StoreUnavailable, Code::ShuttingDown]),
        ),
        get(
            "/health",
            READ_ALL,
            health::health,
            Operation::new("health", "Health of each part of the server.")
                .gives(200, "Everything is healthy.", "Health")
                .gives(503, unhealthy, "Health")
                .may(&[Code::StoreUnavailable]),
        ),
        get(
            "/metrics",
            READ_ALL,
            metrics::metrics,
            Operation::new("metrics", "Metrics in the Prometheus text format.")
                .gives_as(200, "Meters.", ("text/plain", text()))
                .reads(),
        ),
        get(
            "/openapi.json",
            OPEN,
            docs::document,
            Operation::new("openapi", "This document.").gives_as(
                200,
                "This document.",
                ("application/json", json!({"type": "object"})),
            ),
        ),
        get(
            "/docs",
            OPEN,
            docs::page,
            Operation::new("docs", "This document as a web page.").gives_as(
                200,
                page,
                ("text/html", text()),
            ),
        ),
    ]
}
