//! Bulk operations and their progress.

use super::confirm::{self, Question};
use super::documents::{Listed, Operation};
use super::finish::redirect;
use super::form::Submitted;
use super::frame::{Frame, show};
use super::jobs::with_query;
use super::ladder::{self, StepRow};
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{Instant, Mark, Number, Times, segment, short};
use super::visitor::Visitor;
use askama::Template;
use axum::extract::Path;
use axum::http::{Method, Uri};
use axum::response::Response;
use url::form_urlencoded;

/// Operations in a page of the list.
const PAGE: usize = 50;

/// An operation in a list.
#[derive(Clone, Debug)]
pub(super) struct OperationRow {
    pub(super) id: String,
    pub(super) short: String,
    pub(super) verb: String,
    pub(super) state: Mark,
    pub(super) is_over: bool,
    pub(super) done: Number,
    pub(super) failed: Number,
    pub(super) total: Number,
    /// Of 100.
    pub(super) share: u64,
    pub(super) by: String,
    pub(super) reason: String,
    pub(super) created: Instant,
    pub(super) finished: Option<Instant>,
    pub(super) refused: Vec<(String, Number)>,
    pub(super) steps: Vec<StepRow>,
}

impl OperationRow {
    pub(super) fn new(operation: &Operation, times: &Times) -> OperationRow {
        let state = match operation.state.as_str() {
            "running" => "leased",
            "done" => "succeeded",
            "aborted" => "cancelled",
            "paused" => "paused",
            _ => "failed",
        };
        let worked = operation.done + operation.failed;
        OperationRow {
            short: short(&operation.id),
            id: operation.id.clone(),
            verb: operation.verb.clone(),
            state: Mark::with(state, &operation.state),
            is_over: operation.finished.is_some(),
            done: Number(operation.done),
            failed: Number(operation.failed),
            total: Number(operation.total),
            share: (worked * 100 / operation.total.max(1)).min(100),
            by: operation.by.clone(),
            reason: operation.reason.clone().unwrap_or_default(),
            created: times.at(&operation.created),
            finished: times.maybe(operation.finished.as_deref()),
            refused: operation
                .refused
                .iter()
                .map(|(why, count)| (why.clone(), Number(*count)))
                .collect(),
            steps: ladder::steps(operation),
        }
    }
}

#[derive(Template)]
#[template(path = "operations.html")]
struct ListPage {
    frame: Frame,
    rows: Vec<OperationRow>,
    older: Option<String>,
}

#[derive(Template)]
#[template(path = "operation.html")]
struct OperationPage {
    frame: Frame,
    row: OperationRow,
    can_abort: bool,
}

/// `GET /ui/operations`
pub(super) async fn list(visitor: Visitor, uri: Uri) -> Result<Response, Refusal> {
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut sent: Vec<(String, String)> =
        form_urlencoded::parse(query).into_owned().filter(|(name, _)| name == "cursor").collect();
    sent.push(("limit".to_owned(), PAGE.to_string()));
    let listed: Listed<Operation> = visitor.get(&with_query("/v1/operations", &sent)).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    Ok(show(&ListPage {
        rows: listed.items.iter().map(|one| OperationRow::new(one, &times)).collect(),
        older: listed
            .next
            .map(|next| visitor.link(&with_query("/operations", &[("cursor".to_owned(), next)]))),
        frame: visitor.frame("Operations", "operations").live(),
    }))
}

/// `GET /ui/operations/{id}`
pub(super) async fn page(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Refusal> {
    let operation: Operation = visitor.get(&format!("/v1/operations/{}", segment(&id))).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let row = OperationRow::new(&operation, &times);
    let frame = visitor.frame(&format!("Operation {}", row.short), "operations").live();
    let can_abort = visitor.operates() && !row.is_over;
    Ok(show(&OperationPage { frame, row, can_abort }))
}

/// `GET /ui/operations/{id}/abort`
pub(super) async fn ask(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Refusal> {
    let id = segment(&id);
    let operation: Operation = visitor.get(&format!("/v1/operations/{id}")).await?;
    let page = visitor.link(&format!("/operations/{id}"));
    Ok(confirm::ask(
        &visitor,
        Question {
            title: format!("Abort operation {}", short(&id)),
            here: "operations",
            follows: vec![
                format!(
                    "{} of {} jobs are done; they stay as they are now.",
                    operation.done, operation.total
                ),
                "The other jobs are not touched. To go on later, start a new operation.".to_owned(),
            ],
            action: format!("{page}/abort"),
            button: "Abort".to_owned(),
            back: page,
            fields: Vec::new(),
            is_dangerous: true,
        },
    ))
}

/// `POST /ui/operations/{id}/abort`
pub(super) async fn abort(Path(id): Path<String>, form: Submitted) -> Result<Response, Refusal> {
    let id = segment(&id);
    form.visitor.ask(Method::POST, &format!("/v1/operations/{id}/abort"), Sent::default()).await?;
    Ok(redirect(&form.visitor.link(&format!("/operations/{id}"))))
}
