//! Edits one job: the form, the diff, and what another visitor changed meanwhile.

use super::documents::Job;
use super::finish::redirect;
use super::form::Submitted;
use super::frame::{Frame, show, show_as};
use super::json_text;
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{segment, short};
use super::visitor::Visitor;
use crate::problem::Code;
use askama::Template;
use axum::extract::Path;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[derive(Template)]
#[template(path = "job_edit.html")]
struct EditPage {
    frame: Frame,
    id: String,
    short: String,
    state: String,
    /// The version that the form is for.
    etag: String,
    values: Values,
    diff: Vec<Line>,
    changes: Vec<(&'static str, String, String)>,
    step: Step,
    problem: Option<Refusal>,
}

/// What the page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The form.
    Form,
    /// The diff, to be confirmed.
    Diff,
    /// The job changed meanwhile: the new version beside what was written.
    Changed,
}

/// The fields of the form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Values {
    payload: String,
    priority: String,
    due: String,
    deadline: String,
    attempts_max: String,
}

/// A line of a diff.
struct Line {
    class: &'static str,
    sign: &'static str,
    text: String,
}

impl Values {
    fn of(job: &Job) -> Values {
        let payload = job.payload.as_ref().map_or("null", |payload| payload.get());
        Values {
            payload: json_text::text(&json_text::parts(payload)),
            priority: job.priority.to_string(),
            due: job.due.clone(),
            deadline: job.deadline.clone().unwrap_or_default(),
            attempts_max: job.attempts_max.to_string(),
        }
    }

    fn sent(form: &Submitted) -> Values {
        let text = |name| form.fields.text(name).to_owned();
        let payload = form.fields.exact("payload").unwrap_or_default();
        Values {
            // Browsers send text areas with CRLF.
            payload: payload.replace("\r\n", "\n").trim().to_owned(),
            priority: text("priority"),
            due: text("due"),
            deadline: text("deadline"),
            attempts_max: text("attempts_max"),
        }
    }

    /// Returns the fields that differ, by name.
    fn changes(&self, now: &Values) -> Vec<(&'static str, String, String)> {
        let all = [
            ("priority", &self.priority, &now.priority),
            ("due", &self.due, &now.due),
            ("deadline", &self.deadline, &now.deadline),
            ("attempts_max", &self.attempts_max, &now.attempts_max),
        ];
        let changed = all.into_iter().filter(|(_, before, after)| before != after);
        changed.map(|(name, before, after)| (name, before.clone(), after.clone())).collect()
    }
}

async fn read(visitor: &Visitor, id: &str) -> Result<(Job, String), Refusal> {
    let answer = visitor.ask(Method::GET, &format!("/v1/jobs/{id}"), Sent::default()).await?;
    Ok((answer.read()?, answer.etag.unwrap_or_default()))
}

fn page_of(visitor: &Visitor, job: &Job, etag: String, values: Values) -> EditPage {
    EditPage {
        frame: visitor.frame(&format!("Edit job {}", short(&job.id)), "jobs"),
        id: job.id.clone(),
        short: short(&job.id),
        state: job.state.clone(),
        etag,
        values,
        diff: Vec::new(),
        changes: Vec::new(),
        step: Step::Form,
        problem: None,
    }
}

/// `GET /ui/jobs/{id}/edit`
pub(super) async fn page(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Refusal> {
    let id = segment(&id);
    if !visitor.operates() {
        return Err(Refusal::new(Code::Forbidden, "editing a job needs the role `operate`"));
    }
    let (job, etag) = read(&visitor, &id).await?;
    let values = Values::of(&job);
    Ok(show(&page_of(&visitor, &job, etag, values)))
}

/// `POST /ui/jobs/{id}/edit`: first the diff, then the change.
pub(super) async fn save(Path(id): Path<String>, form: Submitted) -> Result<Response, Refusal> {
    let (visitor, id) = (&form.visitor, segment(&id));
    let (job, current) = read(visitor, &id).await?;
    let (before, after) = (Values::of(&job), Values::sent(&form));
    let etag = form.fields.text("etag").to_owned();
    let mut page = page_of(visitor, &job, etag.clone(), after.clone());
    if form.fields.text("step") == "back" {
        return Ok(show(&page));
    }
    page.diff = diff(&before.payload, &after.payload);
    page.changes = before.changes(&after);
    if etag != current {
        return Ok(changed_meanwhile(page, current));
    }
    let document = match edit(&before, &after) {
        Ok(Some(document)) => document,
        Ok(None) => {
            return Ok(wrong(
                page,
                Refusal::new(Code::InvalidField, "nothing is changed in the form"),
            ));
        }
        Err(refusal) => return Ok(wrong(page, refusal)),
    };
    let is_retry = match form.fields.text("step") {
        "save" => false,
        "save-retry" => true,
        _ => {
            page.step = Step::Diff;
            return Ok(show(&page));
        }
    };
    let sent = Sent { body: &document, if_match: Some(&etag) };
    match visitor.ask(Method::PATCH, &format!("/v1/jobs/{id}"), sent).await {
        Ok(_) => {}
        Err(refusal) if refusal.is(Code::VersionChanged) => {
            let (_, current) = read(visitor, &id).await?;
            return Ok(changed_meanwhile(page, current));
        }
        Err(refusal) if matches!(refusal.status, 400..=499) => return Ok(wrong(page, refusal)),
        Err(refusal) => return Err(refusal),
    }
    if is_retry {
        visitor.ask(Method::POST, &format!("/v1/jobs/{id}/retry"), Sent::default()).await?;
    }
    let done = if is_retry { "edit-retry" } else { "edit" };
    Ok(redirect(&visitor.link(&format!("/jobs/{id}?done={done}"))))
}

fn wrong(mut page: EditPage, refusal: Refusal) -> Response {
    page.step = Step::Form;
    page.problem = Some(refusal);
    show_as(StatusCode::UNPROCESSABLE_ENTITY, &page)
}

/// Shows both versions. The next attempt to save is for the new version.
fn changed_meanwhile(mut page: EditPage, current: String) -> Response {
    page.step = Step::Changed;
    page.etag = current;
    show_as(StatusCode::PRECONDITION_FAILED, &page)
}

/// Returns the body of the request, if something changed. The payload is sent as it was written.
fn edit(before: &Values, after: &Values) -> Result<Option<String>, Refusal> {
    let mut fields: Map<String, Value> = Map::new();
    for (name, _, value) in before.changes(after) {
        let value = match (name, value.parse::<u64>()) {
            ("priority" | "attempts_max", Ok(number)) => Value::from(number),
            ("deadline", _) if value.is_empty() => Value::Null,
            (_, _) => Value::from(value),
        };
        fields.insert(name.to_owned(), value);
    }
    let is_payload_same = before.payload == after.payload;
    if fields.is_empty() && is_payload_same {
        return Ok(None);
    }
    if is_payload_same {
        return Ok(serde_json::to_string(&fields).ok());
    }
    let payload: Result<&RawValue, _> = serde_json::from_str(&after.payload);
    let payload = payload.map_err(|error| {
        Refusal::new(Code::BadJson, &format!("the payload is not valid JSON: {error}"))
    })?;
    // A parsed payload would lose digits of large numbers.
    let rest = serde_json::to_string(&fields).unwrap_or_default();
    let rest = rest.trim_start_matches('{');
    let comma = if rest == "}" { "" } else { "," };
    Ok(Some(format!("{{\"payload\":{}{comma}{rest}", payload.get())))
}

/// Compares two texts line by line: what is common at both ends, and what differs between.
fn diff(before: &str, after: &str) -> Vec<Line> {
    const CONTEXT: usize = 3;
    if before == after {
        return Vec::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(|(old, new)| old == new)
        .count();
    let line = |class, sign| move |text: &&str| Line { class, sign, text: (*text).to_owned() };
    let mut lines: Vec<Line> =
        old[head.saturating_sub(CONTEXT)..head].iter().map(line("", " ")).collect();
    lines.extend(old[head..old.len() - tail].iter().map(line("d-old", "−")));
    lines.extend(new[head..new.len() - tail].iter().map(line("d-new", "+")));
    let after_tail = &old[old.len() - tail..];
    lines.extend(after_tail.iter().take(CONTEXT).map(line("", " ")));
    lines
}

#[cfg(test)]
mod tests {
    use super::{Values, diff, edit};

    #[test]
    fn only_what_changed_is_sent_and_numbers_keep_their_digits() {
        let before = Values {
            payload: "{\"a\": 1}".to_owned(),
            priority: "5".to_owned(),
            deadline: "x".to_owned(),
            ..Values::default()
        };
        assert_eq!(edit(&before, &before).unwrap(), None);
        let mut after = before.clone();
        after.priority = "7".to_owned();
        assert_eq!(edit(&before, &after).unwrap().unwrap(), r#"{"priority":7}"#);
        after.payload = "{\"a\": 12345678901234567890.10}".to_owned();
        let sent = edit(&before, &after).unwrap().unwrap();
        assert_eq!(sent, r#"{"payload":{"a": 12345678901234567890.10},"priority":7}"#);
        after.priority = before.priority.clone();
        after.deadline = String::new();
        assert!(edit(&before, &after).unwrap().unwrap().ends_with(r#","deadline":null}"#));
        after.payload = "{".to_owned();
        assert!(edit(&before, &after).unwrap_err().detail.contains("not valid JSON"));
    }

    #[test]
    fn a_diff_shows_what_differs_with_its_surroundings() {
        let shown: String = diff("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\nx\n6")
            .iter()
            .map(|line| format!("{}{} ", line.sign, line.text))
            .collect();
        assert_eq!(shown, " 2  3  4 −5 +x  6 ");
        assert!(diff("a", "a").is_empty());
        assert_eq!(diff("a\na", "a").len(), 2);
    }
}
