//! Routes that show kinds, write their settings, and pause or park them.

use super::{Route, delete, get, patch, post, put};
use crate::openapi::Operation;
use crate::openapi::shape::kind;
use crate::problem::Code;
use crate::rest::access::{ADMIN, OPERATE_ALL, READ_ALL};
use crate::rest::kinds;
use rewheel_core::{Actor, KindChange};

const ETAG: &str = "The version, for If-Match.";
const IF_MATCH: &str = "Change the kind only if it still has this ETag.";

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
                .at("kind", "The kind.", kind())
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
                    "Create a kind, or replace its settings. A masked secret from an earlier response keeps its stored value.",
                ),
            ),
        ),
        patch(
            "/v1/kinds/{kind}",
            ADMIN,
            kinds::patch,
            write("KindPatch", Operation::new("patchKind", "Change some settings of a kind.")),
        ),
        delete(
            "/v1/kinds/{kind}",
            ADMIN,
            kinds::delete,
            Operation::new("deleteKind", "Delete a kind without unfinished jobs.")
                .at("kind", "The kind.", kind())
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
        .at("kind", "The kind.", kind())
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
            Operation::new("pauseKind", "Pause a kind: no job of it starts."),
        ),
        change(
            "/v1/kinds/{kind}/resume",
            |_| KindChange::Resume,
            Operation::new("resumeKind", "Resume the paused jobs."),
        ),
        change(
            "/v1/kinds/{kind}/breaker/open",
            |who| KindChange::Open { reason: format!("opened by {who}") },
            Operation::new(
                "openBreaker",
                "Open the breaker of a kind: it stays parked until it is closed.",
            ),
        ),
        change(
            "/v1/kinds/{kind}/breaker/close",
            |_| KindChange::Close,
            Operation::new(
                "closeBreaker",
                "Close the breaker of a kind: it runs in spite of failures.",
            ),
        ),
        change(
            "/v1/kinds/{kind}/breaker/reset",
            |_| KindChange::Reset,
            Operation::new(
                "resetBreaker",
                "Reset the breaker of a kind: its failures decide again.",
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
        .at("kind", "The kind.", kind())
        .if_match(IF_MATCH)
        .gives(200, "The kind after the change.", "Kind")
        .with("ETag", ETAG)
        .writes()
        .may(&[Code::VersionChanged]);
    post(path, OPERATE_ALL, handler, operation)
}
