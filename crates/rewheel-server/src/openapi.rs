//! Builds the OpenAPI 3.1 document of the REST interface.
//!
//! Requests are parsed by hand, so no derive macro could describe them. Tests keep this document
//! correct: it has exactly the routes that are served, its request bodies have exactly the fields
//! that are parsed, and every response of every REST test must match it.

mod shape;
mod schemas;
mod requests;
mod tokens;
mod operation;
mod operations;
mod page;
#[cfg(test)]
mod tests;

use self::operation::Operation;
use serde_json::{Map, Value, json};

pub(crate) use self::page::html;

/// The tags of operations, in reading order.
const TAGS: [(&str, &str); 8] = [
    ("jobs", "Submit, read and change jobs."),
    ("bulk", "Change many jobs at once. An operation continues if its node dies."),
    ("incidents", "Failures grouped by cause."),
    ("kinds", "Kinds of jobs and their settings."),
    ("fleet", "Holders, statistics, the audit log and live events."),
    ("workers", "Run jobs in your own process, in any language."),
    ("tokens", "Access tokens and their roles."),
    ("server", "Health checks, metrics and this document."),
];

/// Returns the document of `GET /openapi.json`.
///
/// ```
/// let document = rewheel_server::openapi::document();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["paths"]["/v1/jobs"]["post"].is_object());
/// ```
pub fn document() -> Value {
    let tag =
        |(name, description): &(&str, &str)| json!({"name": name, "description": description});
    let tags: Vec<Value> = TAGS.iter().map(tag).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rewheel",
            "summary": "A durable retry engine for every language.",
            "description": "Times are RFC 3339 in UTC. Durations are integers with units (`1h30m`, `250ms`). A request with an unknown field is rejected, and the error names the field; responses may get new fields in later releases. Every error is a problem document (RFC 9457): decide by its `code`. 429 and 503 carry Retry-After.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server that serves this document."}],
        // The empty entry: a server on a loopback address may have no tokens.
        "security": [{"bearer": []}, {}],
        "tags": tags,
        "paths": paths(&operations::all()),
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http", "scheme": "bearer",
                    "description": "A token such as `rw_…`.",
                },
            },
            "schemas": schemas::all(),
        },
    })
}

fn paths(operations: &[Operation]) -> Value {
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.document();
    }
    paths.into()
}
