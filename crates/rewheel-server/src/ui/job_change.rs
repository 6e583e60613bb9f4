//! Changes of one job, and of ticked jobs.

use super::confirm::{self, Question};
use super::finish::redirect;
use super::form::Submitted;
use super::frame::{Frame, show};
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{segment, short};
use super::visitor::Visitor;
use crate::problem::Code;
use askama::Template;
use axum::extract::Path;
use axum::http::{Method, Uri};
use axum::response::Response;
use url::form_urlencoded;

/// The value of the button that a browser presses when Enter is pressed in a tick box.
const NO_VERB: &str = "none";

/// Maximum number of ticked jobs: each is one change.
const TICKED_MAX: usize = 100;

/// A change of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Retry,
    Pause,
    Resume,
    Cancel,
}

impl Verb {
    pub(super) fn parse(text: &str) -> Option<Verb> {
        [Verb::Retry, Verb::Pause, Verb::Resume, Verb::Cancel]
            .into_iter()
            .find(|verb| verb.as_str() == text)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Verb::Retry => "retry",
            Verb::Pause => "pause",
            Verb::Resume => "resume",
            Verb::Cancel => "cancel",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Verb::Retry => "Retry now",
            Verb::Pause => "Pause",
            Verb::Resume => "Resume",
            Verb::Cancel => "Cancel…",
        }
    }

    /// Returns whether a page asks first: this cannot be undone.
    pub(super) fn asks(self) -> bool {
        self == Verb::Cancel
    }

    /// Returns the changes that fit a state.
    pub(super) fn of_state(state: &str) -> &'static [Verb] {
        match state {
            "scheduled" => &[Verb::Retry, Verb::Pause, Verb::Cancel],
            "leased" => &[Verb::Pause, Verb::Cancel],
            "paused" => &[Verb::Resume, Verb::Cancel],
            "dead" => &[Verb::Retry, Verb::Cancel],
            _ => &[],
        }
    }

    fn done(self) -> &'static str {
        match self {
            Verb::Retry => "The job is due now.",
            Verb::Pause => "The job is paused, or will be when its attempt ends.",
            Verb::Resume => "The job is resumed.",
            Verb::Cancel => "The job is cancelled, or will be when its attempt ends.",
        }
    }
}

/// Returns what the visitor has just done, from the address of the page.
pub(super) fn notice(uri: &Uri) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    let done = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "done")?.1;
    let done = match (Verb::parse(&done), &*done) {
        (Some(verb), _) => verb.done(),
        (None, "edit") => "The job is changed.",
        (None, "edit-retry") => "The job is changed, and due now.",
        (None, _) => return None,
    };
    Some(done.to_owned())
}

fn known(verb: &str) -> Result<Verb, Refusal> {
    Verb::parse(verb)
        .ok_or_else(|| Refusal::new(Code::NotFound, &format!("there is no page for `{verb}`")))
}

/// `GET /ui/jobs/{id}/{verb}`
pub(super) async fn ask(
    visitor: Visitor,
    Path((id, verb)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let (id, verb) = (segment(&id), known(&verb)?);
    let job: super::documents::Job = visitor.get(&format!("/v1/jobs/{id}")).await?;
    let what = format!("{} job {}", capital(verb), short(&id));
    let follows = match verb {
        Verb::Cancel => vec![
            format!("The job of kind {} is {} now.", job.kind, job.state),
            "A cancelled job never runs again. This cannot be undone.".to_owned(),
            "If an attempt is running, it is asked to stop; if it succeeds first, the job is succeeded.".to_owned(),
        ],
        Verb::Retry => vec!["The job is due now and runs as soon as a slot is free.".to_owned()],
        Verb::Pause => vec!["The job does not run until an operator resumes it.".to_owned()],
        Verb::Resume => vec!["The job runs when it is due.".to_owned()],
    };
    let page = visitor.link(&format!("/jobs/{id}"));
    Ok(confirm::ask(
        &visitor,
        Question {
            title: what.clone(),
            here: "jobs",
            follows,
            action: format!("{page}/{}", verb.as_str()),
            button: what,
            back: page,
            fields: Vec::new(),
            is_dangerous: verb == Verb::Cancel,
        },
    ))
}

fn capital(verb: Verb) -> &'static str {
    match verb {
        Verb::Retry => "Retry",
        Verb::Pause => "Pause",
        Verb::Resume => "Resume",
        Verb::Cancel => "Cancel",
    }
}

/// `POST /ui/jobs/{id}/{verb}`
pub(super) async fn change(
    Path((id, verb)): Path<(String, String)>,
    form: Submitted,
) -> Result<Response, Refusal> {
    let (visitor, id, verb) = (&form.visitor, segment(&id), known(&verb)?);
    let path = format!("/v1/jobs/{id}/{}", verb.as_str());
    visitor.ask(Method::POST, &path, Sent::default()).await?;
    Ok(redirect(&visitor.link(&format!("/jobs/{id}?done={}", verb.as_str()))))
}

#[derive(Template)]
#[template(path = "ticked.html")]
struct TickedPage {
    frame: Frame,
    verb: &'static str,
    done: usize,
    rows: Vec<(String, String, Option<String>)>,
    back: String,
}

/// `POST /ui/jobs/ticked`: one change for each ticked job. Cancel asks first.
pub(super) async fn ticked(form: Submitted) -> Result<Response, Refusal> {
    let (visitor, fields) = (&form.visitor, &form.fields);
    let back = visitor.ui.base.next(fields.text("back"));
    if fields.text("verb") == NO_VERB {
        return Ok(redirect(&back));
    }
    let verb = known(fields.text("verb"))?;
    let ids: Vec<String> = fields.all("job").map(str::to_owned).collect();
    if ids.is_empty() || ids.len() > TICKED_MAX {
        let detail = format!("{} jobs are ticked: tick 1 to {TICKED_MAX}", ids.len());
        return Err(Refusal::new(Code::InvalidField, &detail));
    }
    if verb.asks() && fields.exact("sure").is_none() {
        let count = ids.len();
        let mut again: Vec<(String, String)> =
            ids.into_iter().map(|id| ("job".to_owned(), id)).collect();
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        again.extend([field("verb", verb.as_str()), field("sure", "yes"), field("back", &back)]);
        return Ok(confirm::ask(
            visitor,
            Question {
                title: format!("Cancel {count} jobs"),
                here: "jobs",
                follows: vec!["Cancelled jobs never run again. This cannot be undone.".to_owned()],
                action: visitor.link("/jobs/ticked"),
                button: format!("Cancel {count} jobs"),
                back,
                fields: again,
                is_dangerous: true,
            },
        ));
    }
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        let path = format!("/v1/jobs/{}/{}", segment(&id), verb.as_str());
        let changed = visitor.ask(Method::POST, &path, Sent::default()).await;
        rows.push((short(&id), id, changed.err().map(|refusal| refusal.detail)));
    }
    let done = rows.iter().filter(|(_, _, refused)| refused.is_none()).count();
    let frame = visitor.frame("Ticked jobs", "jobs");
    Ok(show(&TickedPage { frame, verb: verb.as_str(), done, rows, back }))
}
