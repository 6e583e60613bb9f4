//! The overview: does anything need a person?

use super::chart::{Charts, Timeline};
use super::documents::{Held, Incidents, Job, Kind, Listed, Operation, Stats};
use super::finish::redirect;
use super::frame::{Frame, show};
use super::incidents::IncidentRow;
use super::jobs::with_query;
use super::kinds::{self, KindRow};
use super::operations::OperationRow;
use super::refusal::Refusal;
use super::shown::{Instant, Mark, Number, Times};
use super::visitor::Visitor;
use crate::rfc3339;
use askama::Template;
use axum::http::Uri;
use axum::response::Response;
use std::time::Duration;

/// More sentences than this are a list, not an answer.
const SENTENCES_MAX: usize = 5;

/// Kinds on the overview: the page of kinds has all.
const KINDS_SHOWN: usize = 12;

/// Kinds without a runner of which one job is read.
const SUSPECTS_MAX: usize = 8;

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
    /// Dead letters of the last hour.
    dead_in_an_hour: Number,
    charts: Charts,
}

/// Something that needs a person, and where to act.
struct Sentence {
    mark: Mark,
    text: String,
    href: String,
    link: &'static str,
}

/// `GET /ui/`
pub(super) async fn page(visitor: Visitor, uri: Uri) -> Result<Response, Refusal> {
    if !visitor.sees_all() {
        return Ok(redirect(&visitor.link("/jobs")));
    }
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let stats: Stats = visitor.get("/v1/stats").await?;
    let (mut rows, kinds, _) = kinds::rows(&visitor).await?;
    let incidents: Incidents = visitor.get("/v1/incidents?limit=5").await?;
    let operations: Listed<Operation> = visitor.get("/v1/operations?limit=20").await?;
    let timeline = Timeline::read(&visitor, None, &uri).await?;
    let idle = idle(&visitor, &kinds).await;
    let mut sentences = sentences(&visitor, (&stats, &kinds, &incidents), &idle, &times);
    let more = sentences.len().saturating_sub(SENTENCES_MAX);
    sentences.truncate(SENTENCES_MAX);
    let hidden_kinds = rows.len().saturating_sub(KINDS_SHOWN);
    rows.truncate(KINDS_SHOWN);
    let jobs = stats.jobs;
    let running = operations.items.iter().filter(|one| one.finished.is_none());
    Ok(show(&OverviewPage {
        sentences,
        more,
        // A job that is due later is not late.
        due_now: times.maybe(stats.oldest_due.as_deref()).filter(|due| !due.ago.starts_with("in ")),
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
        server: visitor.server(),
        needs_token: visitor.caller.has_token(),
        dead_in_an_hour: Number(timeline.dead_in_an_hour()),
        charts: Charts::new(
            visitor.link("/"),
            &timeline,
            vec![
                timeline.settled("c-settled", "Jobs per minute"),
                timeline.lateness("c-late", "From due to start"),
            ],
        ),
        frame: visitor.frame("Overview", "overview").live(),
        stats,
    }))
}

/// Returns the kinds with due jobs that no node can run, and why. Another node or its workers may run a kind that this node cannot run.
async fn idle(visitor: &Visitor, kinds: &[Kind]) -> Vec<(Kind, String)> {
    let mut idle = Vec::new();
    // A job may be due in this very millisecond.
    let now = rfc3339::text(visitor.now.plus(Duration::from_millis(1)));
    let suspects = kinds.iter().filter(|kind| !kind.runnable && kind.jobs.scheduled > 0);
    for kind in suspects.take(SUSPECTS_MAX) {
        let query = [
            ("kind", kind.kind.as_str()),
            ("state", "scheduled"),
            ("due_before", &now),
            ("limit", "1"),
        ];
        let query = query.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let jobs: Result<Listed<Job>, _> = visitor.get(&with_query("/v1/jobs", &query)).await;
        let held = jobs.ok().and_then(|jobs| jobs.items.into_iter().next()?.held_because);
        let is_idle =
            |held: &Held| held.reason == "no_runner" && !held.text.contains("another node");
        idle.extend(held.filter(is_idle).map(|held| (kind.clone(), held.text)));
    }
    idle
}

/// Says what needs a person, the most urgent first.
fn sentences(
    visitor: &Visitor,
    (stats, kinds, incidents): (&Stats, &[Kind], &Incidents),
    idle: &[(Kind, String)],
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
    for (kind, held) in idle {
        let due = match kind.jobs.scheduled {
            1 => "1 waiting job".to_owned(),
            count => format!("{} waiting jobs", Number(count)),
        };
        let text = format!("{} has {due}, and {held}", kind.kind);
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
