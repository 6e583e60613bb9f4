//! Builds the OpenAPI 3.1 document of the REST interface.
//!
//! The operations come from the route table, `rest/routes.rs`. Requests are parsed by hand, so no derive
//! could describe them. Tests keep the document correct: its request bodies have exactly the fields
//! that are parsed, and every answer of every REST test has to match it.

pub(crate) mod shape;
mod schemas;
mod requests;
mod tokens;
mod operation;
mod page;
#[cfg(test)]
mod tests;

use crate::rest::{self, Group};
use serde_json::{Map, Value, json};

pub(crate) use self::operation::Operation;
pub(crate) use self::page::html;
pub(crate) use self::schemas::{category, reason, state};

/// Returns the document of `GET /openapi.json`.
///
/// ```
/// let document = rewheel_server::openapi::document();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["paths"]["/v1/jobs"]["post"].is_object());
/// ```
pub fn document() -> Value {
    let groups = rest::groups();
    let tag = |group: &Group| json!({"name": group.tag, "description": group.description});
    let tags: Vec<Value> = groups.iter().map(tag).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rewheel",
            "summary": "A durable retry engine with a REST API for any language.",
            "description": "Times in responses are RFC 3339 in UTC. Durations are integers with units (`1h30m`, `250ms`). The server rejects requests with unknown fields, and the error names the field. Later releases may add fields to responses. Every error is a problem document (RFC 9457): programs should use its `code` to tell errors apart. Responses with status 429 or 503 have a Retry-After header.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server that serves this document."}],
        // The empty entry: a server on a loopback address may have no tokens.
        "security": [{"bearer": []}, {}],
        "tags": tags,
        "paths": paths(&groups),
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http", "scheme": "bearer",
                    "description": "An access token, which begins with `rw_`. Create one with `rewheel token create`.",
                },
            },
            "schemas": schemas::all(),
        },
    })
}

fn paths(groups: &[Group]) -> Value {
    let mut paths = Map::new();
    for group in groups {
        for route in &group.routes {
            let path = paths.entry(route.path).or_insert_with(|| json!({}));
            let method = route.method.as_str().to_lowercase();
            path[method] = route.operation.document(group.tag);
        }
    }
    paths.into()
}
