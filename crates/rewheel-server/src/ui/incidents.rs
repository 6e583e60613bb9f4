//! Incidents: failed jobs by cause.

use super::chart::{Charts, Timeline};
use super::documents::{Incident, Incidents, Job, Listed, Operation};
use super::frame::{Frame, show};
use super::jobs::{Row, with_query};
use super::operations::OperationRow;
use super::refusal::Refusal;
use super::shown::{Instant, Number, Times, cut, segment};
use super::visitor::Visitor;
use crate::problem::Code;
use askama::Template;
use axum::extract::Path;
use axum::http::Uri;
use axum::response::Response;
use url::form_urlencoded;

/// Incidents in a page of the list.
const PAGE: usize = 50;

/// Operations that are searched for those of an incident.
const OPERATIONS_SEARCHED: usize = 50;

/// Operations that the page of an incident shows: the newest.
const OPERATIONS_SHOWN: usize = 3;

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
    /// The history of the kind, for those who may see all tenants.
    charts: Option<Charts>,
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
pub(super) async fn page(
    visitor: Visitor,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let path = format!("/v1/incidents/{}", segment(&id));
    let incident: Incident = visitor.get(&path).await.map_err(|refusal| match refusal.is(Code::NotFound) {
        true => {
            let detail = "this incident is over: its jobs ended, were redriven, or fail in another way now";
            let hint = "the list of incidents shows the current causes";
            Refusal { detail: detail.to_owned(), hint: Some(hint.to_owned()), ..refusal }
        }
        false => refusal,
    })?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let mut examples = Vec::new();
    for id in &incident.examples {
        // An example may end while this page is made.
        if let Ok(job) = visitor.get::<Job>(&format!("/v1/jobs/{id}")).await {
            examples.push(Row::new(&job, &times));
        }
    }
    let path = format!("/v1/operations?limit={OPERATIONS_SEARCHED}");
    let operations: Listed<Operation> = visitor.get(&path).await?;
    let is_own = |one: &&Operation| one.incident.as_ref() == Some(&incident.id);
    let own = operations.items.iter().filter(is_own).take(OPERATIONS_SHOWN);
    let mut charts = None;
    if visitor.sees_all() {
        let timeline = Timeline::read(&visitor, Some(&incident.kind), &uri).await?;
        let title = format!("All jobs of {} per minute", incident.kind);
        let page = visitor.link(&format!("/incidents/{}", incident.id));
        charts = Some(Charts::new(page, &timeline, vec![timeline.settled("c-settled", &title)]));
    }
    let filter = [("incident".to_owned(), incident.id.clone())];
    Ok(show(&IncidentPage {
        message: incident.message.clone(),
        verbs: verbs(&visitor, &incident),
        jobs: visitor.link(&with_query("/jobs", &filter)),
        is_complete: incident.complete.unwrap_or(true),
        examples,
        charts,
        running: own.map(|one| OperationRow::new(one, &times)).collect(),
        incident: IncidentRow::new(&incident, &times),
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
