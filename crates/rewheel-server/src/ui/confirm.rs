//! A page that says what follows from a change, and asks.

use super::frame::{Frame, show};
use super::visitor::Visitor;
use askama::Template;
use axum::response::Response;

/// What a page asks.
pub(super) struct Question {
    pub(super) title: String,
    pub(super) here: &'static str,
    /// What follows, one sentence each.
    pub(super) follows: Vec<String>,
    /// Where the form goes.
    pub(super) action: String,
    /// The word on the button.
    pub(super) button: String,
    /// Where "back" leads.
    pub(super) back: String,
    /// Fields that come back with the form.
    pub(super) fields: Vec<(String, String)>,
    pub(super) is_dangerous: bool,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    frame: Frame,
    question: Question,
}

/// Shows the page.
pub(super) fn ask(visitor: &Visitor, question: Question) -> Response {
    let frame = visitor.frame(&question.title, question.here);
    show(&ConfirmPage { frame, question })
}
