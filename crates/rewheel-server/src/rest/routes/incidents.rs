//! Routes that show failures by cause, and that change the jobs of one cause.

use super::{Route, get, post};
use crate::openapi::Operation;
use crate::openapi::shape::{kind, list, name, word};
use crate::problem::Code;
use crate::rest::access::{OPERATE, READ};
use crate::rest::{incidents, operations};
use rewheel_engine::BulkVerb;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get(
            "/v1/incidents",
            READ,
            incidents::list,
            Operation::new(
                "listIncidents",
                "List the failures of the newest jobs, grouped by cause.",
            )
            .paged()
            .query("kind", "Only failures of these kinds.", list(kind()))
            .query("tenant", "Only failures of this tenant.", name(128))
            .gives(
                200,
                "A page of incidents, those with the most dead letters first.",
                "IncidentPage",
            )
            .reads(),
        ),
        get(
            "/v1/incidents/{id}",
            READ,
            incidents::show,
            Operation::new(
                "getIncident",
                "Show one incident: how many of the newest failed jobs have this cause.",
            )
            .at("id", "Id of the incident.", word())
            .gives(200, "The incident.", "Incident")
            .reads()
            .may(&[Code::NotFound]),
        ),
        order(
            "/v1/incidents/{id}/hold",
            (BulkVerb::Pause, "IncidentOrder"),
            Operation::new(
                "holdIncident",
                "Pause the jobs of an incident that wait for their next attempt.",
            ),
        ),
        order(
            "/v1/incidents/{id}/release",
            (BulkVerb::Resume, "IncidentOrder"),
            Operation::new("releaseIncident", "Resume the paused jobs of an incident."),
        ),
        order(
            "/v1/incidents/{id}/redrive",
            (BulkVerb::Redrive, "IncidentRedrive"),
            Operation::new("redriveIncident", "Redrive the dead letters of an incident."),
        ),
    ]
}

/// A change of the jobs of the incident that the path names, with the schema of its body.
fn order(path: &'static str, (verb, body): (BulkVerb, &str), operation: Operation) -> Route {
    let handler = move |app, id, caller, uri, body| {
        operations::order_incident(app, id, caller, uri, body, verb)
    };
    let operation = operation.at("id", "Id of the incident.", word()).may_take(body);
    post(path, OPERATE, handler, operation.starts_operation())
}
