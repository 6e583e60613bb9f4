//! Requests of pages that failed.

use crate::problem::{Code, Problem};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

/// Why a page cannot be shown, or a change was rejected: the problem document of REST.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: Box<str>,
    pub(super) detail: String,
    #[serde(default)]
    pub(super) errors: Vec<WrongField>,
    pub(super) hint: Option<String>,
    #[serde(default)]
    pub(super) request_id: String,
    /// Whether the visitor has to sign in first.
    #[serde(skip)]
    pub(super) needs_sign_in: bool,
}

/// One wrong field.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct WrongField {
    pub(super) field: String,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: Code, detail: &str) -> Refusal {
        Refusal::from(Problem::new(code, detail))
    }

    pub(super) fn hint(mut self, hint: &str) -> Refusal {
        self.hint = Some(hint.to_owned());
        self
    }

    pub(super) fn is(&self, code: Code) -> bool {
        &*self.code == code.as_str()
    }

    /// Returns what happened, in a few words.
    pub(super) fn title(&self) -> String {
        self.code.replace('_', " ")
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let errors = problem.errors.iter();
        Refusal {
            status: problem.code.status(),
            code: problem.code.as_str().into(),
            detail: problem.detail.clone(),
            errors: errors
                .map(|error| WrongField {
                    field: error.field.clone(),
                    message: error.message.clone(),
                })
                .collect(),
            hint: problem.hint,
            request_id: String::new(),
            needs_sign_in: false,
        }
    }
}

impl IntoResponse for Refusal {
    /// Passes the refusal to `finish`, which makes a page of it.
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A path without a page.
pub(super) async fn no_page(uri: Uri) -> Refusal {
    Refusal::new(Code::NotFound, &format!("the page {} does not exist", uri.path()))
}
