//! Submitted forms, which have a code of their page.

use super::Ui;
use super::refusal::Refusal;
use super::visitor::Visitor;
use crate::problem::Code;
use axum::extract::{FromRequest, FromRequestParts, Request};
use std::sync::Arc;
use url::form_urlencoded;

/// The name of the field with the code.
const CODE: &str = "code";

/// The fields of a form.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn read(text: &str) -> Fields {
        Fields(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns a field, without spaces around it; empty if it is missing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.exact(name).unwrap_or_default().trim()
    }

    /// Returns a field as it was sent.
    pub(super) fn exact(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

/// A form, from a page that this visitor got. Every handler of a form takes one.
#[derive(Debug)]
pub(super) struct Submitted {
    pub(super) visitor: Visitor,
    pub(super) fields: Fields,
}

impl FromRequest<Arc<Ui>> for Submitted {
    type Rejection = Refusal;

    async fn from_request(request: Request, ui: &Arc<Ui>) -> Result<Submitted, Refusal> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, ui).await?;
        let fields = read(Request::from_parts(parts, body), ui).await?;
        check(visitor.secret.accepts(fields.text(CODE)))?;
        Ok(Submitted { visitor, fields })
    }
}

/// Reads the fields of a form.
pub(super) async fn read(request: Request, ui: &Ui) -> Result<Fields, Refusal> {
    Ok(Fields::read(&crate::rest::form(request, &ui.app).await?))
}

pub(super) fn check(is_own: bool) -> Result<(), Refusal> {
    if is_own {
        return Ok(());
    }
    let detail =
        "the form is not of a page that this browser opened in this session; nothing was changed";
    Err(Refusal::new(Code::Forbidden, detail).hint("open the page again, and send its form"))
}
