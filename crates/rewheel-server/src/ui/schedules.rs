//! Schedules, and their pause, resume and fire.

use super::confirm::{self, Question};
use super::documents::{Listed, Schedule};
use super::finish::redirect;
use super::form::Submitted;
use super::frame::{Frame, show};
use super::jobs::with_query;
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{Instant, Mark, Number, Times, segment, short};
use super::visitor::Visitor;
use crate::problem::Code;
use askama::Template;
use axum::extract::Path;
use axum::http::{Method, Uri};
use axum::response::Response;
use serde::Deserialize;
use url::form_urlencoded;

/// Schedules in a page of the list.
const PAGE: usize = 100;

#[derive(Template)]
#[template(path = "schedules.html")]
struct ListPage {
    frame: Frame,
    rows: Vec<ScheduleRow>,
    older: Option<String>,
}

struct ScheduleRow {
    name: String,
    state: Mark,
    timing: String,
    kind: String,
    rules: String,
    next: Option<Instant>,
    last: Option<(Instant, String, String)>,
    fired: Number,
    skipped: Number,
    missed: Number,
    failure: String,
    is_paused: bool,
    is_managed: bool,
    jobs: String,
}

impl ScheduleRow {
    fn new(schedule: &Schedule, times: &Times) -> ScheduleRow {
        let zone = schedule.zone.as_deref().unwrap_or("UTC");
        let timing = match (&schedule.cron, &schedule.every) {
            (Some(cron), _) => format!("{cron} ({zone})"),
            (None, every) => format!("every {}", every.as_deref().unwrap_or("?")),
        };
        let last = schedule.last.as_ref();
        ScheduleRow {
            name: schedule.name.clone(),
            state: if schedule.paused {
                Mark::of("paused")
            } else {
                Mark::with("scheduled", "active")
            },
            timing,
            kind: schedule.job.kind.clone(),
            rules: format!("overlap {}, catch up {}", schedule.overlap, schedule.catch_up),
            next: schedule.next.first().map(|next| times.at(next)).filter(|_| !schedule.paused),
            last: last.map(|last| (times.at(&last.instant), last.job.clone(), short(&last.job))),
            fired: Number(schedule.fired),
            skipped: Number(schedule.skipped),
            missed: Number(schedule.missed),
            failure: schedule.failure.clone().unwrap_or_default(),
            is_paused: schedule.paused,
            is_managed: schedule.managed_by_config,
            jobs: with_query("/jobs", &[("schedule".to_owned(), schedule.name.clone())]),
        }
    }
}

/// `GET /ui/schedules`
pub(super) async fn list(visitor: Visitor, uri: Uri) -> Result<Response, Refusal> {
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut sent: Vec<(String, String)> =
        form_urlencoded::parse(query).into_owned().filter(|(name, _)| name == "cursor").collect();
    let done = form_urlencoded::parse(query)
        .find(|(name, _)| name == "done")
        .map(|(_, done)| done.into_owned());
    sent.push(("limit".to_owned(), PAGE.to_string()));
    let listed: Listed<Schedule> = visitor.get(&with_query("/v1/schedules", &sent)).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let notice = match done.as_deref() {
        Some("pause") => Some("The schedule is paused."),
        Some("resume") => Some("The schedule is resumed."),
        _ => None,
    };
    Ok(show(&ListPage {
        rows: listed.items.iter().map(|one| ScheduleRow::new(one, &times)).collect(),
        older: listed
            .next
            .map(|next| visitor.link(&with_query("/schedules", &[("cursor".to_owned(), next)]))),
        frame: visitor.frame("Schedules", "schedules").live().notice(notice.map(str::to_owned)),
    }))
}

fn known(verb: &str) -> Result<(&'static str, &'static str), Refusal> {
    match verb {
        "pause" => Ok((
            "pause",
            "No instant submits a job until an operator resumes the schedule. Jobs that were submitted stay.",
        )),
        "resume" => Ok(("resume", "The next instant submits a job.")),
        "fire" => {
            Ok(("fire", "One job is submitted now, apart from the instants of the schedule."))
        }
        verb => Err(Refusal::new(Code::NotFound, &format!("there is no page for `{verb}`"))),
    }
}

/// `GET /ui/schedules/{name}/{verb}`
pub(super) async fn ask(
    visitor: Visitor,
    Path((name, verb)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let (name, (verb, follows)) = (segment(&name), known(&verb)?);
    let schedule: Schedule = visitor.get(&format!("/v1/schedules/{name}")).await?;
    Ok(confirm::ask(
        &visitor,
        Question {
            title: format!("{}: {verb}", schedule.name),
            here: "schedules",
            follows: vec![
                follows.to_owned(),
                format!("The schedule submits jobs of kind {}.", schedule.job.kind),
            ],
            action: visitor.link(&format!("/schedules/{name}/{verb}")),
            button: format!("{}{}", verb[..1].to_uppercase(), &verb[1..]),
            back: visitor.link("/schedules"),
            fields: Vec::new(),
            is_dangerous: false,
        },
    ))
}

#[derive(Deserialize)]
struct FiredNow {
    id: String,
}

/// `POST /ui/schedules/{name}/{verb}`
pub(super) async fn change(
    Path((name, verb)): Path<(String, String)>,
    form: Submitted,
) -> Result<Response, Refusal> {
    let (name, (verb, _)) = (segment(&name), known(&verb)?);
    let answer = form
        .visitor
        .ask(Method::POST, &format!("/v1/schedules/{name}/{verb}"), Sent::default())
        .await?;
    if verb == "fire" {
        let fired: FiredNow = answer.read()?;
        return Ok(redirect(&form.visitor.link(&format!("/jobs/{}", fired.id))));
    }
    Ok(redirect(&form.visitor.link(&format!("/schedules?done={verb}"))))
}
