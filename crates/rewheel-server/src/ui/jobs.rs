//! The list of jobs, with its filter box.

use super::documents::{Job, Kind, Listed, Stats};
use super::filter_box;
use super::finish::redirect;
use super::frame::{Frame, show, show_as};
use super::refusal::Refusal;
use super::shown::{Instant, Mark, Number, Times, cut, short};
use super::visitor::Visitor;
use crate::problem::Code;
use crate::rest::searched_until;
use crate::rfc3339;
use askama::Template;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use rewheel_core::{JobId, State};
use rewheel_engine::BulkVerb;
use url::form_urlencoded;

/// Jobs in a page of the list.
const PAGE: usize = 50;

/// Kinds that the filter box suggests.
const SUGGESTED_MAX: usize = 100;

#[derive(Template)]
#[template(path = "jobs.html")]
struct JobsPage {
    frame: Frame,
    text: String,
    wrong: Option<String>,
    suggestions: Vec<String>,
    tabs: Vec<Tab>,
    rows: Vec<Row>,
    /// The links that change all jobs of the filter.
    verbs: Vec<(&'static str, String)>,
    newest: Option<String>,
    older: Option<String>,
    /// Until when the search looked back, if it stopped before the end of the list.
    looked_back: Option<Instant>,
    is_filtered: bool,
    rest: String,
}

/// The link to the jobs of one state.
struct Tab {
    name: &'static str,
    href: String,
    is_here: bool,
    count: Option<Number>,
}

/// A job in a list.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) short: String,
    pub(super) mark: Mark,
    pub(super) kind: String,
    pub(super) key: String,
    pub(super) tenant: Option<String>,
    pub(super) attempt: u32,
    pub(super) attempts_max: u32,
    pub(super) why: String,
    pub(super) created: Instant,
}

impl Row {
    pub(super) fn new(job: &Job, times: &Times) -> Row {
        Row {
            short: short(&job.id),
            mark: mark(job),
            kind: job.kind.clone(),
            key: cut(job.key.as_deref().unwrap_or_default(), 40),
            tenant: job.tenant.clone(),
            attempt: job.attempt,
            attempts_max: job.attempts_max,
            why: cut(&why(job, times), 120),
            created: times.at(&job.created),
            id: job.id.clone(),
        }
    }
}

pub(super) fn mark(job: &Job) -> Mark {
    match job.held_because.as_ref().map(|held| held.reason.as_str()) {
        Some("parked") => Mark::with("parked", "parked"),
        _ if job.blocked => Mark::with("scheduled", "blocked"),
        _ => Mark::of(&job.state),
    }
}

/// Says in some words what a person wants to know of a job in this state.
fn why(job: &Job, times: &Times) -> String {
    let failure = job.failure.as_ref().map(|failure| match &failure.code {
        Some(code) => format!("{} {code}", failure.category),
        None => failure.category.clone(),
    });
    match (job.state.as_str(), &job.held_because) {
        ("scheduled", Some(held)) => match &held.until {
            Some(until) => format!("{} ({})", held.text, times.at(until).ago),
            None => held.text.clone(),
        },
        ("scheduled", None) => format!("due {}: {}", times.at(&job.due).ago, job.due_because.text),
        ("dead" | "failed", _) => failure.unwrap_or_default(),
        ("leased", _) => match &job.wanted {
            Some(wanted) => format!("running, {wanted} requested"),
            None => failure.map_or_else(String::new, |failure| format!("after {failure}")),
        },
        _ => String::new(),
    }
}

/// `GET /ui/jobs`
pub(super) async fn page(visitor: Visitor, uri: Uri) -> Result<Response, Refusal> {
    let query = uri.query().unwrap_or_default();
    let mut sent: Vec<(String, String)> =
        form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    if let Some((_, text)) = sent.iter().find(|(name, _)| name == "filter") {
        let text = text.trim();
        if text.parse::<JobId>().is_ok() {
            return Ok(redirect(&visitor.link(&format!("/jobs/{text}"))));
        }
        return match filter_box::parameters(text, visitor.now) {
            Ok(found) => Ok(redirect(&visitor.link(&with_query("/jobs", &found)))),
            Err(wrong) => list(&visitor, &sent, Some((text.to_owned(), wrong))).await,
        };
    }
    sent.retain(|(_, value)| !value.is_empty());
    match list(&visitor, &sent, None).await {
        Err(refusal) if refusal.is(Code::BadQuery) => {
            let text = filter_box::text(&sent);
            list(&visitor, &[], Some((text, wrong_parameter(&refusal)))).await
        }
        listed => listed,
    }
}

fn wrong_parameter(refusal: &Refusal) -> String {
    let named = |error: &super::refusal::WrongField| {
        format!("{} {}", error.field.trim_start_matches('/'), error.message)
    };
    refusal.errors.first().map_or_else(|| refusal.detail.clone(), named)
}

/// Shows the jobs of a filter; or no jobs, if the text of the box is wrong.
async fn list(
    visitor: &Visitor,
    sent: &[(String, String)],
    wrong: Option<(String, String)>,
) -> Result<Response, Refusal> {
    let is_condition = |name: &str| !matches!(name, "cursor" | "limit" | "filter");
    let filter: Vec<_> = sent.iter().filter(|(name, _)| is_condition(name)).cloned().collect();
    let (rows, next) = match &wrong {
        Some(_) => (Vec::new(), None),
        None => {
            let mut asked = sent.to_vec();
            asked.retain(|(name, _)| name != "limit");
            asked.push(("limit".to_owned(), PAGE.to_string()));
            let listed: Listed<Job> = visitor.get(&with_query("/v1/jobs", &asked)).await?;
            (listed.items, listed.next)
        }
    };
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let stopped = next.as_deref().filter(|_| rows.len() < PAGE);
    let looked_back = stopped.map(|next| {
        searched_until(next).map_or_else(Instant::default, |at| times.at(&rfc3339::text(at)))
    });
    let older = next.map(|next| {
        let cursor = ("cursor".to_owned(), next);
        visitor.link(&with_query("/jobs", &[filter.as_slice(), &[cursor]].concat()))
    });
    let is_later = sent.iter().any(|(name, _)| name == "cursor");
    let newest = is_later.then(|| visitor.link(&with_query("/jobs", &filter)));
    let status = if wrong.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let (text, wrong) = match wrong {
        Some((text, wrong)) => (text, Some(wrong)),
        None => (filter_box::text(&filter), None),
    };
    let page = JobsPage {
        text,
        suggestions: suggestions(visitor).await,
        tabs: tabs(visitor, &filter).await,
        rows: rows.iter().map(|job| Row::new(job, &times)).collect(),
        verbs: if wrong.is_none() && (!rows.is_empty() || older.is_some()) {
            verbs(visitor, &filter)
        } else {
            Vec::new()
        },
        wrong,
        newest,
        older,
        looked_back,
        is_filtered: !filter.is_empty(),
        rest: with_query("/v1/jobs", &filter),
        frame: visitor.frame("Jobs", "jobs").live(),
    };
    Ok(if status == StatusCode::OK { show(&page) } else { show_as(status, &page) })
}

pub(super) fn with_query(path: &str, parameters: &[(String, String)]) -> String {
    match parameters {
        [] => path.to_owned(),
        parameters => format!("{path}?{}", filter_box::query(parameters)),
    }
}

async fn suggestions(visitor: &Visitor) -> Vec<String> {
    let mut words: Vec<String> = filter_box::examples().map(str::to_owned).collect();
    words.extend(State::ALL.iter().map(|state| format!("state:{state}")));
    if visitor.sees_all() {
        let kinds: Result<Listed<Kind>, _> =
            visitor.get(&format!("/v1/kinds?limit={SUGGESTED_MAX}")).await;
        words.extend(
            kinds
                .into_iter()
                .flat_map(|kinds| kinds.items)
                .map(|kind| format!("kind:{}", kind.kind)),
        );
    }
    words.dedup();
    words
}

/// The states as links. Counts are those of all jobs, or of one kind: other filters are not counted.
async fn tabs(visitor: &Visitor, filter: &[(String, String)]) -> Vec<Tab> {
    let others: Vec<_> = filter.iter().filter(|(name, _)| name != "state").cloned().collect();
    let here: Vec<&str> = filter
        .iter()
        .filter(|(name, _)| name == "state")
        .map(|(_, state)| state.as_str())
        .collect();
    let counts = match others.as_slice() {
        [] if visitor.sees_all() => {
            visitor.get::<Stats>("/v1/stats").await.ok().map(|stats| stats.jobs)
        }
        [(name, kind)] if name == "kind" && visitor.sees_all() => {
            let kind = visitor.get::<Kind>(&format!("/v1/kinds/{kind}")).await;
            kind.ok().map(|kind| kind.jobs)
        }
        _ => None,
    };
    let count = |state: &State| {
        let counts = counts?;
        match state {
            State::Scheduled => Some(Number(counts.scheduled)),
            State::Leased => Some(Number(counts.leased)),
            State::Paused => Some(Number(counts.paused)),
            State::Dead => Some(Number(counts.dead)),
            // Ended jobs are not counted: that would read all of them.
            State::Succeeded | State::Failed | State::Cancelled => None,
        }
    };
    let all = Tab {
        name: "all",
        href: visitor.link(&with_query("/jobs", &others)),
        is_here: here.is_empty(),
        count: None,
    };
    let of_state = |state: &State| {
        let one = ("state".to_owned(), state.as_str().to_owned());
        Tab {
            name: state.as_str(),
            href: visitor.link(&with_query("/jobs", &[&[one], others.as_slice()].concat())),
            is_here: here == [state.as_str()],
            count: count(state),
        }
    };
    std::iter::once(all).chain(State::ALL.iter().map(of_state)).collect()
}

/// The verbs that fit the shown states, as links to their preview.
fn verbs(visitor: &Visitor, filter: &[(String, String)]) -> Vec<(&'static str, String)> {
    if !visitor.operates() {
        return Vec::new();
    }
    let states: Vec<State> = filter
        .iter()
        .filter(|(name, _)| name == "state")
        .filter_map(|(_, state)| state.parse().ok())
        .collect();
    let fits = |verb: &BulkVerb| match states.as_slice() {
        [] => true,
        [State::Dead] => matches!(verb, BulkVerb::Redrive | BulkVerb::Cancel),
        states => states.iter().all(|state| verb.states().contains(state)),
    };
    // These are no conditions of a bulk request.
    if filter.iter().any(|(name, _)| matches!(name.as_str(), "schedule" | "holder")) {
        return Vec::new();
    }
    let order =
        [BulkVerb::Redrive, BulkVerb::Retry, BulkVerb::Pause, BulkVerb::Resume, BulkVerb::Cancel];
    let link = |verb: BulkVerb| {
        (verb.as_str(), visitor.link(&with_query(&format!("/bulk/{verb}"), filter)))
    };
    order.into_iter().filter(fits).map(link).collect()
}
