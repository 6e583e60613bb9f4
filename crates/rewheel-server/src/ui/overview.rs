//! The overview: does anything need a person?

use super::documents::{Incidents, Kind, Listed, Operation, Stats};
use super::finish::redirect;
use super::frame::{Frame, show};
use super::incidents::IncidentRow;
use super::kinds::{self, KindRow};
use super::operations::OperationRow;
use super::refusal::Refusal;
use super::shown::{Instant, Mark, Number, Times};
use super::visitor::Visitor;
use askama::Template;
use axum::response::Response;

/// More sentences than this are a list, not an answer.
const SENTENCES_MAX: usize = 5;

/// Kinds on the overview: the page of kinds has all.
const KINDS_SHOWN: usize = 12;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    sentences: Vec<Sentence>,
    more: usize,
    stats: Stats,
    due_now: Option<Instant>,
    as_of: Instant,
    used: u64,
    scheduled: Number,
    leased: Number,
    paused: Number,
    dead: Number,
    kinds: Vec<KindRow>,
    hidden_kinds: usize,
    incidents: Vec<IncidentRow>,
    running: Vec<OperationRow>,
    is_empty: bool,
    server: String,
    needs_token: bool,
}

/// Something that needs a person, and where to act.
struct Sentence {
    mark: Mark,
    text: String,
    href: String,
    link: &'static str,
}

/// `GET /ui/`
pub(super) async fn page(visitor: Visitor) -> Result<Response, Refusal> {
    if !visitor.sees_all() {
        return Ok(redirect(&visitor.link("/jobs")));
    }
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let stats: Stats = visitor.get("/v1/stats").await?;
    let (mut rows, kinds, _) = kinds::rows(&visitor).await?;
    let incidents: Incidents = visitor.get("/v1/incidents?limit=5").await?;
    let operations: Listed<Operation> = visitor.get("/v1/operations?limit=20").await?;
    let mut sentences = sentences(&visitor, (&stats, &kinds, &incidents), &times);
    let more = sentences.len().saturating_sub(SENTENCES_MAX);
    sentences.truncate(SENTENCES_MAX);
    let hidden_kinds = rows.len().saturating_sub(KINDS_SHOWN);
    rows.truncate(KINDS_SHOWN);
    let jobs = stats.jobs;
    let host =
        visitor.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:7420");
    let public = visitor.ui.app.config().server.public_url.as_ref();
    let running = operations.items.iter().filter(|one| one.finished.is_none());
    Ok(show(&OverviewPage {
        sentences,
        more,
        due_now: times.maybe(stats.oldest_due.as_deref()),
        as_of: times.at(&stats.as_of),
        used: stats.here.concurrency.saturating_sub(stats.here.concurrency_free),
        scheduled: Number(jobs.scheduled),
        leased: Number(jobs.leased),
        paused: Number(jobs.paused),
        dead: Number(jobs.dead),
        is_empty: jobs.scheduled + jobs.leased + jobs.paused + jobs.dead == 0 && kinds.is_empty(),
        kinds: rows,
        hidden_kinds,
        incidents: incidents.items.iter().map(|one| IncidentRow::new(one, &times)).collect(),
        running: running.map(|one| OperationRow::new(one, &times)).collect(),
        server: public.map_or_else(
            || format!("http://{host}"),
            |url| format!("{}{}", url.origin(), url.path()),
        ),
        needs_token: visitor.caller.has_token(),
        frame: visitor.frame("Overview", "overview").live(),
        stats,
    }))
}

/// Says what needs a person, the most urgent first.
fn sentences(
    visitor: &Visitor,
    (stats, kinds, incidents): (&Stats, &[Kind], &Incidents),
    times: &Times,
) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut say = |state: &str, word: &str, text: String, page: String, link| {
        sentences.push(Sentence {
            mark: Mark::with(state, word),
            text,
            href: visitor.link(&page),
            link,
        });
    };
    if stats.here.lease_expired {
        let text =
            "The lease of this node expired: no attempt starts here until the node renews it.";
        say("dead", "node", text.to_owned(), "/fleet".to_owned(), "fleet");
    }
    for kind in kinds.iter().filter(|kind| kind.parked) {
        let breaker = &kind.breaker;
        let since = breaker
            .since
            .as_deref()
            .map_or_else(String::new, |since| format!(" {}", times.at(since).ago));
        let reason = breaker.reason.as_deref().unwrap_or("its circuit breaker is open");
        let text = format!(
            "{} was parked{since}, {} jobs wait: {reason}",
            kind.kind,
            Number(kind.jobs.scheduled)
        );
        say("parked", "parked", text, format!("/kinds/{}", kind.kind), "kind");
    }
    let is_deadly = |incident: &&super::documents::Incident| incident.dead > 0;
    for incident in incidents.items.iter().filter(is_deadly) {
        let row = IncidentRow::new(incident, times);
        let s = if incident.dead == 1 { "" } else { "s" };
        let text = format!(
            "{} dead letter{s} of {}: {}, latest {}",
            row.dead, row.kind, row.cause, row.last.ago
        );
        say("dead", "dead", text, format!("/incidents/{}", incident.id), "incident");
    }
    for kind in kinds.iter().filter(|kind| !kind.runnable && kind.jobs.scheduled > 0) {
        let text = format!(
            "{} has {} jobs, and this server has no runner for it",
            kind.kind,
            Number(kind.jobs.scheduled)
        );
        say("failed", "not run", text, format!("/kinds/{}", kind.kind), "kind");
    }
    for kind in kinds.iter().filter(|kind| kind.paused && kind.jobs.scheduled > 0) {
        let text = format!(
            "{} is paused by an operator, and {} jobs wait",
            kind.kind,
            Number(kind.jobs.scheduled)
        );
        say("paused", "paused", text, format!("/kinds/{}", kind.kind), "kind");
    }
    sentences
}
