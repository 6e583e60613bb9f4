//! The page of one job.

use super::documents::{Attempt, Audit, Incident, Job, Listed};
use super::frame::{Frame, show};
use super::job_change::{Verb, notice};
use super::jobs::{mark, with_query};
use super::json_text::{self, Part};
use super::outlook::{self, Outlook};
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{Instant, Mark, Times, segment, short, took};
use super::visitor::Visitor;
use crate::job_explanation;
use crate::rfc3339;
use askama::Template;
use axum::extract::Path;
use axum::http::{Method, Uri};
use axum::response::Response;
use rewheel::duration;

/// Attempts that are shown at the top and at the bottom of a long history.
const ATTEMPTS_SHOWN: usize = 50;

/// A longer payload is folded.
const PAYLOAD_OPEN_BYTES: usize = 4 * 1024;

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage {
    frame: Frame,
    job: Job,
    mark: Mark,
    sentence: String,
    verbs: Vec<Verb>,
    can_edit: bool,
    facts: Vec<Fact>,
    attempts: Vec<AttemptRow>,
    hidden: usize,
    timeline: Timeline,
    payload: Vec<Part>,
    is_payload_open: bool,
    audit: Vec<AuditRow>,
    commands: Vec<(&'static str, String)>,
    follow_ups: usize,
    incident: Option<(String, u64)>,
    outlook: Option<Outlook>,
}

/// A line of the facts, perhaps with a link.
struct Fact {
    name: &'static str,
    value: String,
    href: Option<String>,
    title: String,
}

struct AttemptRow {
    attempt: u32,
    started: Instant,
    duration: String,
    cause: String,
    message: String,
    decision: String,
    state: Mark,
    holder: String,
    holder_short: String,
}

/// An entry of the audit log.
pub(super) struct AuditRow {
    pub(super) at: Instant,
    pub(super) who: String,
    pub(super) what: String,
    pub(super) changes: Vec<(String, String, String)>,
    pub(super) subject: Option<(String, String)>,
}

impl AuditRow {
    pub(super) fn new(entry: &Audit, times: &Times) -> AuditRow {
        let mut names: Vec<&String> = entry.before.keys().chain(entry.after.keys()).collect();
        names.sort();
        names.dedup();
        let value = |side: &std::collections::BTreeMap<String, Option<String>>, name: &String| {
            side.get(name).cloned().flatten().unwrap_or_else(|| "–".to_owned())
        };
        let changes = names
            .into_iter()
            .map(|name| (name.clone(), value(&entry.before, name), value(&entry.after, name)))
            .filter(|(_, before, after)| before != after)
            .collect();
        let subject = match (&entry.job, &entry.kind) {
            (Some(job), _) => Some((format!("/jobs/{job}"), short(job))),
            (None, Some(kind)) => Some((format!("/kinds/{kind}"), kind.clone())),
            (None, None) => None,
        };
        AuditRow {
            at: times.at(&entry.at),
            who: entry.who.clone(),
            what: entry.what.clone(),
            changes,
            subject,
        }
    }
}

/// The life of a job as a line: attempts, and the waits between them.
#[derive(Default)]
pub(super) struct Timeline {
    bars: Vec<Bar>,
    text: String,
}

struct Bar {
    x: u32,
    width: u32,
    class: &'static str,
    title: String,
}

/// `GET /ui/jobs/{id}`
pub(super) async fn page(
    visitor: Visitor,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let id = segment(&id);
    let answer = visitor.ask(Method::GET, &format!("/v1/jobs/{id}"), Sent::default()).await?;
    let job: Job = answer.read()?;
    let sentence = job_explanation::sentence(&answer.read()?);
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let payload = job.payload.as_ref().map_or("null", |payload| payload.get());
    let children = format!("/v1/jobs?parent={id}&limit=100");
    let follow_ups = visitor.get::<Listed<Job>>(&children).await.map_or(0, |page| page.items.len());
    let rows: Vec<AttemptRow> =
        job.attempts.iter().rev().map(|one| attempt_row(one, &times)).collect();
    let hidden = rows.len().saturating_sub(ATTEMPTS_SHOWN);
    let page = JobPage {
        mark: mark(&job),
        sentence: capitalized(&readable(&sentence, &job, &times)),
        verbs: if visitor.operates() { Verb::of_state(&job.state).to_vec() } else { Vec::new() },
        can_edit: visitor.operates()
            && matches!(job.state.as_str(), "scheduled" | "paused" | "dead"),
        facts: facts(&visitor, &job, &times),
        attempts: rows,
        hidden,
        timeline: timeline(&job.attempts, &times),
        is_payload_open: payload.len() <= PAYLOAD_OPEN_BYTES,
        payload: json_text::parts(payload),
        audit: job.audit.iter().map(|entry| AuditRow::new(entry, &times)).collect(),
        commands: commands(&visitor, &job),
        follow_ups,
        incident: incident(&visitor, &job).await,
        outlook: outlook::of(&visitor, &job, &times).await,
        frame: visitor
            .frame(&format!("Job {}", short(&job.id)), "jobs")
            .live()
            .notice(notice(&uri)),
        job,
    };
    Ok(show(&page))
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Replaces the times of the sentence by those of the visitor's zone, with their distance.
fn readable(sentence: &str, job: &Job, times: &Times) -> String {
    let known = [
        Some(job.due.as_str()),
        job.finished.as_deref(),
        job.held_because.as_ref().and_then(|held| held.until.as_deref()),
    ];
    known.into_iter().flatten().fold(sentence.to_owned(), |text, at| {
        let shown = times.at(at);
        text.replace(at, &format!("{} ({})", shown.at, shown.ago))
    })
}

/// Returns the incident of a job that needs or gets another attempt, and how many other jobs it has.
async fn incident(visitor: &Visitor, job: &Job) -> Option<(String, u64)> {
    let is_over = matches!(job.state.as_str(), "succeeded" | "failed" | "cancelled");
    let id = job.incident.as_deref().filter(|_| !is_over)?;
    // It may be an incident of older jobs than the server reads.
    let found: Incident = visitor.get(&format!("/v1/incidents/{}", segment(id))).await.ok()?;
    Some((found.id, found.count.saturating_sub(1)))
}

fn attempt_row(attempt: &Attempt, times: &Times) -> AttemptRow {
    let cause = [attempt.category.as_deref(), attempt.code.as_deref()];
    let state = match (attempt.decision.as_str(), attempt.category.is_some()) {
        ("dead", _) => "dead",
        ("retry", _) => "retried",
        (_, false) => "succeeded",
        ("pause", _) => "paused",
        ("cancel", _) => "cancelled",
        _ => "failed",
    };
    let decision = match &attempt.delay {
        Some(delay) => format!("{} in {delay}", attempt.decision),
        None => attempt.decision.clone(),
    };
    AttemptRow {
        attempt: attempt.attempt,
        started: times.at(&attempt.started),
        duration: took(&attempt.duration),
        cause: cause.into_iter().flatten().collect::<Vec<_>>().join(" "),
        message: attempt.message.clone().unwrap_or_default(),
        state: Mark::with(state, &decision),
        decision,
        holder_short: short(&attempt.holder),
        holder: attempt.holder.clone(),
    }
}

fn facts(visitor: &Visitor, job: &Job, times: &Times) -> Vec<Fact> {
    let plain = |name, value: String| Fact { name, value, href: None, title: String::new() };
    let timed = |name, at: &str| {
        let shown = times.at(at);
        Fact { name, value: format!("{} ({})", shown.at, shown.ago), href: None, title: shown.iso }
    };
    let linked = |name, value: &str, page: String| Fact {
        name,
        value: value.to_owned(),
        href: Some(visitor.link(&page)),
        title: String::new(),
    };
    let by = |name: &str, value: &str| with_query("/jobs", &[(name.to_owned(), value.to_owned())]);
    let mut facts = vec![match visitor.sees_all() {
        true => linked("kind", &job.kind, format!("/kinds/{}", job.kind)),
        false => plain("kind", job.kind.clone()),
    }];
    facts.extend(job.key.iter().map(|key| linked("key", key, by("key", key))));
    facts.extend(job.tenant.iter().map(|tenant| linked("tenant", tenant, by("tenant", tenant))));
    facts.extend(job.group_key.iter().map(|group| linked("group", group, by("group_key", group))));
    facts.extend(job.shard_key.iter().map(|key| plain("shard key", key.clone())));
    facts.extend(
        job.parent.iter().map(|parent| linked("parent", parent, format!("/jobs/{parent}"))),
    );
    facts.extend(job.instant.iter().map(|instant| timed("instant", instant)));
    facts.push(timed("created", &job.created));
    facts.push(timed("due", &job.due));
    facts.push(plain("due because", job.due_because.text.clone()));
    facts.extend(job.deadline.iter().map(|deadline| timed("deadline", deadline)));
    facts.extend(job.finished.iter().map(|finished| timed("finished", finished)));
    facts.push(plain("attempts", format!("{} of {}", job.attempt, job.attempts_max)));
    facts.push(plain("attempt timeout", job.attempt_timeout.clone()));
    facts.push(plain("backoff", job.backoff.clone()));
    facts.push(plain("priority", job.priority.to_string()));
    facts.extend(job.holder.iter().map(|holder| plain("holder", holder.clone())));
    facts.extend(job.wanted.iter().map(|wanted| plain("requested", wanted.clone())));
    facts.push(plain("fence", job.fence.to_string()));
    if job.takeovers > 0 {
        facts.push(plain("takeovers", job.takeovers.to_string()));
    }
    facts.push(plain("version", job.version.to_string()));
    if let Some(result) = &job.result {
        facts.push(plain("result", format!("{} bytes of {}", result.bytes, result.content_type)));
    }
    facts.extend(job.result_dropped.iter().map(|why| plain("result dropped", why.clone())));
    facts
}

/// The same job in other tools, safe to paste into a shell.
fn commands(visitor: &Visitor, job: &Job) -> Vec<(&'static str, String)> {
    let (server, token) = (visitor.server(), visitor.curl_token());
    let curl = format!("curl -fsS{token} {}", shell(&format!("{server}/v1/jobs/{}", job.id)));
    let cli = format!("rewheel jobs show {} --server {}", shell(&job.id), shell(&server));
    vec![("CLI", cli), ("curl", curl)]
}

/// Quotes a text for a POSIX shell.
pub(super) fn shell(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&byte));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Attempts that are drawn; earlier ones are in the table only.
const DRAWN_MAX: usize = 24;

/// The width of the line, and of the shortest attempt.
const WIDTH: u32 = 1_000;
const WIDTH_MIN: u32 = 4;

/// Draws the latest attempts and the waits between them to scale. A short attempt is a tick.
fn timeline(attempts: &[Attempt], times: &Times) -> Timeline {
    let millis = |text: &str| {
        let length = duration::parse(text).map_or(0, |length| length.as_millis());
        i64::try_from(length).unwrap_or(i64::MAX)
    };
    let drawn = &attempts[attempts.len().saturating_sub(DRAWN_MAX)..];
    let spans: Vec<(i64, i64, &Attempt)> = drawn
        .iter()
        .filter_map(|one| {
            let start = rfc3339::parse(&one.started).ok()?.as_millis();
            Some((start, start.saturating_add(millis(&one.duration)), one))
        })
        .collect();
    let (Some(from), Some(until)) =
        (spans.iter().map(|span| span.0).min(), spans.iter().map(|span| span.1).max())
    else {
        return Timeline::default();
    };
    let total = until.saturating_sub(from).max(1);
    let place = |millis: i64| {
        let share = i128::from(millis) * i128::from(WIDTH - WIDTH_MIN) / i128::from(total);
        u32::try_from(share).unwrap_or(0)
    };
    let bar = |&(start, end, one): &(i64, i64, &Attempt)| {
        let class = match (one.decision.as_str(), one.category.is_some()) {
            (_, false) => "b-done",
            ("dead", true) => "b-dead",
            (_, true) => "b-retried",
        };
        let x = place(start.saturating_sub(from));
        let width = place(end.saturating_sub(from)).saturating_sub(x).max(WIDTH_MIN);
        let at = times.at(&one.started).at;
        Bar {
            x,
            width,
            class,
            title: format!("attempt {}: {} at {at}", one.attempt, took(&one.duration)),
        }
    };
    Timeline {
        bars: spans.iter().map(bar).collect(),
        text: format!(
            "{} attempts within {}, oldest first; attempts and waits are drawn to scale",
            spans.len(),
            super::shown::duration(total.unsigned_abs())
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, shell, timeline};
    use crate::ui::documents::Attempt;
    use crate::ui::shown::{Times, Zone};
    use rewheel_core::Timestamp;

    #[test]
    fn attempts_and_waits_are_drawn_to_scale() {
        let attempt = |number: u32, started: &str, took: &str| {
            serde_json::json!({ "attempt": number, "fence": number, "holder": "a", "started": started, "duration": took,
                "category": "timeout", "message": "", "decision": "retry", "delay": null, "code": null })
        };
        let attempts = serde_json::json!([
            attempt(1, "2026-11-19T12:00:00.000Z", "10s"),
            attempt(2, "2026-11-19T12:01:30.000Z", "1ms"),
            attempt(3, "2026-11-19T12:01:40.000Z", "0ms"),
        ]);
        let attempts: Vec<Attempt> = serde_json::from_value(attempts).unwrap();
        let times = Times { zone: Zone::of(None), now: Timestamp::from_millis(0) };
        let line = timeline(&attempts, &times);
        let drawn: Vec<(u32, u32)> = line.bars.iter().map(|bar| (bar.x, bar.width)).collect();
        assert_eq!(drawn, [(0, 99), (896, 4), (996, 4)]);
        assert!(drawn.iter().all(|(x, width)| x + width <= WIDTH));
        assert!(line.text.contains("3 attempts within 1 m 40 s"), "{}", line.text);
    }

    #[test]
    fn commands_are_quoted_for_a_shell() {
        assert_eq!(shell("http://a:1/v1/jobs/x-1"), "http://a:1/v1/jobs/x-1");
        for text in ["", "it's", "$(id)", "a b", "`id`", "a;b", "é\n\"\\"] {
            let line = format!("printf %s {}", shell(text));
            let ran = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), text);
        }
    }
}
