//! Incidents: failed jobs by cause.

use super::documents::{Incident, Incidents, Job, Listed, Operation};
use super::frame::{Frame, show};
use super::jobs::{Row, with_query};
use super::operations::OperationRow;
use super::refusal::Refusal;
use super::shown::{Instant, Number, Times, cut};
use super::visitor::Visitor;
use crate::problem::Code;
use askama::Template;
use axum::extract::Path;
use axum::http::Uri;
use axum::response::Response;
use url::form_urlencoded;

/// Incidents in a page of the list.
const PAGE: usize = 50;

/// Incidents among which one is looked up by its id.
const LOOKED_AT: usize = 1_000;

#[derive(Template)]
#[template(path = "incidents.html")]
struct ListPage {
    frame: Frame,
    rows: Vec<IncidentRow>,
    is_complete: bool,
    kind: Option<String>,
    older: Option<String>,
}

/// An incident in a list.
#[derive(Clone, Debug)]
pub(super) struct IncidentRow {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) cause: String,
    pub(super) message: String,
    pub(super) jobs: Number,
    pub(super) dead: Number,
    /// Jobs that try again, or whose end needs no person.
    pub(super) others: Number,
    /// The share of dead letters among its jobs, of 100.
    pub(super) dead_share: u64,
    pub(super) first: Instant,
    pub(super) last: Instant,
}

impl IncidentRow {
    pub(super) fn new(incident: &Incident, times: &Times) -> IncidentRow {
        let code = incident.code.as_deref().unwrap_or_default();
        IncidentRow {
            id: incident.id.clone(),
            kind: incident.kind.clone(),
            cause: format!("{} {code}", incident.category).trim_end().to_owned(),
            message: cut(&incident.message, 160),
            jobs: Number(incident.count),
            dead: Number(incident.dead),
            others: Number(incident.count.saturating_sub(incident.dead)),
            dead_share: incident.dead * 100 / incident.count.max(1),
            first: times.at(&incident.first_seen),
            last: times.at(&incident.last_seen),
        }
    }
}

#[derive(Template)]
#[template(path = "incident.html")]
struct IncidentPage {
    frame: Frame,
    incident: IncidentRow,
    message: String,
    is_complete: bool,
    /// The verbs that fit, with their label and their preview.
    verbs: Vec<(&'static str, String)>,
    jobs: String,
    examples: Vec<Row>,
    running: Vec<OperationRow>,
}

/// `GET /ui/incidents`
pub(super) async fn list(visitor: Visitor, uri: Uri) -> Result<Response, Refusal> {
    let mut sent: Vec<(String, String)> =
        form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    sent.retain(|(name, _)| name != "limit");
    let kept: Vec<_> = sent.iter().filter(|(name, _)| name != "cursor").cloned().collect();
    sent.push(("limit".to_owned(), PAGE.to_string()));
    let found: Incidents = visitor.get(&with_query("/v1/incidents", &sent)).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let older = found.next.map(|next| {
        let cursor = ("cursor".to_owned(), next);
        visitor.link(&with_query("/incidents", &[kept.as_slice(), &[cursor]].concat()))
    });
    Ok(show(&ListPage {
        rows: found.items.iter().map(|one| IncidentRow::new(one, &times)).collect(),
        is_complete: found.complete,
        kind: kept.iter().find(|(name, _)| name == "kind").map(|(_, kind)| kind.clone()),
        older,
        frame: visitor.frame("Incidents", "incidents").live(),
    }))
}

/// `GET /ui/incidents/{id}`
pub(super) async fn page(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Refusal> {
    let found: Incidents = visitor.get(&format!("/v1/incidents?limit={LOOKED_AT}")).await?;
    let incident = found.items.iter().find(|incident| incident.id == id).ok_or_else(|| {
        let detail = "this incident does not exist any more: its jobs ended, were redriven, or fail in another way";
        Refusal::new(Code::NotFound, detail).hint("the list of incidents shows the current causes")
    })?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let mut examples = Vec::new();
    for id in &incident.examples {
        // An example may end while this page is made.
        if let Ok(job) = visitor.get::<Job>(&format!("/v1/jobs/{id}")).await {
            examples.push(Row::new(&job, &times));
        }
    }
    let operations: Listed<Operation> = visitor.get("/v1/operations?limit=20").await?;
    let running = operations.items.iter().filter(|one| one.finished.is_none());
    let mut filter = vec![
        ("kind".to_owned(), incident.kind.clone()),
        ("category".to_owned(), incident.category.clone()),
    ];
    if incident.dead == incident.count {
        filter.push(("state".to_owned(), "dead".to_owned()));
    }
    Ok(show(&IncidentPage {
        message: incident.message.clone(),
        verbs: verbs(&visitor, incident),
        jobs: visitor.link(&with_query("/jobs", &filter)),
        is_complete: found.complete,
        examples,
        running: running.map(|one| OperationRow::new(one, &times)).collect(),
        incident: IncidentRow::new(incident, &times),
        frame: visitor.frame(&format!("Incident of {}", incident.kind), "incidents").live(),
    }))
}

fn verbs(visitor: &Visitor, incident: &Incident) -> Vec<(&'static str, String)> {
    if !visitor.operates() {
        return Vec::new();
    }
    let link = |verb: &str, more: &[(&str, &str)]| {
        let mut query = vec![("incident".to_owned(), incident.id.clone())];
        query.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        visitor.link(&with_query(&format!("/bulk/{verb}"), &query))
    };
    let mut verbs = Vec::new();
    if incident.dead > 0 {
        verbs.push(("Redrive with a canary…", link("redrive", &[("canary", "1,10,100")])));
        verbs.push(("Redrive all…", link("redrive", &[])));
        verbs.push(("Cancel dead letters…", link("cancel", &[("state", "dead")])));
    }
    if incident.count > incident.dead {
        verbs.push(("Hold waiting jobs…", link("pause", &[])));
        verbs.push(("Release held jobs…", link("resume", &[])));
    }
    verbs
}
