//! Routes about the server itself: health checks, metrics and the OpenAPI document.

use super::{Route, get};
use crate::openapi::Operation;
use crate::openapi::shape::text;
use crate::problem::Code;
use crate::rest::access::{OPEN, READ_ALL};
use crate::rest::{docs, health, metrics};
use serde_json::json;

pub(super) fn routes() -> Vec<Route> {
    let liveness = "Liveness check: is the process running? Does not call the store.";
    let unhealthy =
        "A part of the server is down. The server cannot accept jobs or cannot run jobs.";
    let page = "An HTML page that loads no external resources.";
    vec![
        // Orchestrators have no token; these two checks answer yes or no.
        get(
            "/livez",
            OPEN,
            health::livez,
            Operation::new("livez", liveness).gives(200, "The process is running.", "Live"),
        ),
        get(
            "/readyz",
            OPEN,
            health::readyz,
            Operation::new("readyz", "Readiness check: does the server accept requests?")
                .gives(200, "The server accepts requests.", "Ready")
                .may(&[Code::StoreUnavailable, Code::ShuttingDown]),
        ),
        get(
            "/health",
            READ_ALL,
            health::health,
            Operation::new("health", "Show the health of each part of the server.")
                .gives(200, "No part of the server is down.", "Health")
                .gives(503, unhealthy, "Health")
                .may(&[Code::StoreUnavailable]),
        ),
        get(
            "/metrics",
            READ_ALL,
            metrics::metrics,
            Operation::new("metrics", "Show the metrics in the Prometheus text format.")
                .gives_as(200, "All metrics of this server.", ("text/plain", text()))
                .reads(),
        ),
        get(
            "/openapi.json",
            OPEN,
            docs::document,
            Operation::new("openapi", "Show this OpenAPI document.").gives_as(
                200,
                "The OpenAPI document.",
                ("application/json", json!({"type": "object"})),
            ),
        ),
        get(
            "/docs",
            OPEN,
            docs::page,
            Operation::new("docs", "Show this document as a web page.").gives_as(
                200,
                page,
                ("text/html", text()),
            ),
        ),
    ]
}
