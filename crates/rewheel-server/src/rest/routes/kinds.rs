//! Routes that show kinds, write their settings, and pause or park them.

use super::{Route, delete, get, patch, post, put};
use crate::openapi::Operation;
use crate::openapi::shape::kind;
use crate::problem::Code;
use crate::rest::access::{ADMIN, OPERATE_ALL, READ_ALL};
use crate::rest::kinds;
use rewheel_core::{Actor, KindChange};

const ETAG: &str = "Version of the kind, for the header If-Match of a later request.";
const IF_MATCH: &str =
    "ETag of the kind. The server changes the kind only if it still has this ETag.";

pub(super) fn routes() -> Vec<Route> {
    let mut routes = settings();
    routes.extend(changes());
    routes
}

fn settings() -> Vec<Route> {
    vec![
        get(
            "/v1/kinds",
            READ_ALL,
            kinds::list,
            Operation::new("listKinds", "List kinds by name.")
                .paged()
                .gives(200, "A page of kinds.", "KindPage")
                .reads(),
        ),
        get(
            "/v1/kinds/{kind}",
            READ_ALL,
            kinds::show,
            Operation::new("getKind", "Show a kind.")
                .at("kind", "Name of the kind.", kind())
                .gives(200, "The kind.", "Kind")
                .with("ETag", ETAG)
                .reads(),
        ),
        put(
            "/v1/kinds/{kind}",
            ADMIN,
            kinds::put,
            write(
                "KindSettings",
                Operation::new(
                    "putKind",
                    "Create a kind, or replace all its settings. If you send back a masked secret from a response, the stored secret stays unchanged.",
                ),
            ),
        ),
        patch(
            "/v1/kinds/{kind}",
            ADMIN,
            kinds::patch,
            write(
                "KindPatch",
                Operation::new(
                    "patchKind",
                    "Change some settings of a kind. Settings that are left out stay unchanged.",
                ),
            ),
        ),
        delete(
            "/v1/kinds/{kind}",
            ADMIN,
            kinds::delete,
            Operation::new("deleteKind", "Delete a kind. The kind must not have unfinished jobs.")
                .at("kind", "Name of the kind.", kind())
                .if_match(IF_MATCH)
                .may_take("Nothing")
                .gives(200, "The deleted kind.", "Kind")
                .writes()
                .may(&[Code::ManagedByConfig, Code::VersionChanged, Code::WrongState]),
        ),
    ]
}

/// Describes a write of settings, with the schema of its body.
fn write(body: &str, operation: Operation) -> Operation {
    operation
        .at("kind", "Name of the kind.", kind())
        .if_match(IF_MATCH)
        .takes(body)
        .gives(200, "The kind after the change.", "Kind")
        .with("ETag", ETAG)
        .writes()
        .may(&[Code::ManagedByConfig, Code::VersionChanged])
}

fn changes() -> Vec<Route> {
    vec![
        change(
            "/v1/kinds/{kind}/pause",
            |_| KindChange::Pause,
            Operation::new(
                "pauseKind",
                "Pause a kind. None of its jobs starts until the kind is resumed.",
            ),
        ),
        change(
            "/v1/kinds/{kind}/resume",
            |_| KindChange::Resume,
            Operation::new("resumeKind", "Resume a paused kind. Its jobs can start."),
        ),
        change(
            "/v1/kinds/{kind}/breaker/open",
            |who| KindChange::Open { reason: format!("opened by {who}") },
            Operation::new(
                "openBreaker",
                "Open the circuit breaker of a kind. None of its jobs starts until the breaker is closed or reset.",
            ),
        ),
        change(
            "/v1/kinds/{kind}/breaker/close",
            |_| KindChange::Close,
            Operation::new(
                "closeBreaker",
                "Close the circuit breaker of a kind. The breaker stays closed even if jobs fail, until it is reset.",
            ),
        ),
        change(
            "/v1/kinds/{kind}/breaker/reset",
            |_| KindChange::Reset,
            Operation::new(
                "resetBreaker",
                "Reset the circuit breaker of a kind to automatic. From then on, failures of its jobs can open the breaker again. If the called service asked to wait, this wait ends too.",
            ),
        ),
    ]
}

/// A change of the kind that the path names.
fn change(path: &'static str, change: fn(&Actor) -> KindChange, operation: Operation) -> Route {
    let handler = move |app, name, caller, uri, headers| {
        kinds::change(app, name, caller, (uri, headers), change)
    };
    let operation = operation
        .at("kind", "Name of the kind.", kind())
        .if_match(IF_MATCH)
        .gives(200, "The kind after the change.", "Kind")
        .with("ETag", ETAG)
        .writes()
        .may(&[Code::VersionChanged]);
    post(path, OPERATE_ALL, handler, operation)
}
