//! The audit log.

use super::documents::{Audit, Listed};
use super::frame::{Frame, show};
use super::job::AuditRow;
use super::jobs::with_query;
use super::refusal::Refusal;
use super::shown::Times;
use super::visitor::Visitor;
use askama::Template;
use axum::http::Uri;
use axum::response::Response;
use url::form_urlencoded;

/// Entries in a page.
const PAGE: usize = 100;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    rows: Vec<AuditRow>,
    who: String,
    what: String,
    kind: String,
    older: Option<String>,
}

/// `GET /ui/audit`
pub(super) async fn page(visitor: Visitor, uri: Uri) -> Result<Response, Refusal> {
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut sent: Vec<(String, String)> = form_urlencoded::parse(query).into_owned().collect();
    // An empty field of the form is no condition.
    sent.retain(|(name, value)| name != "limit" && !value.trim().is_empty());
    let kept: Vec<_> = sent.iter().filter(|(name, _)| name != "cursor").cloned().collect();
    sent.push(("limit".to_owned(), PAGE.to_string()));
    let listed: Listed<Audit> = visitor.get(&with_query("/v1/audit", &sent)).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let of = |name: &str| {
        kept.iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.clone())
            .unwrap_or_default()
    };
    Ok(show(&AuditPage {
        rows: listed.items.iter().map(|entry| AuditRow::new(entry, &times)).collect(),
        who: of("who"),
        what: of("what"),
        kind: of("kind"),
        older: listed.next.map(|next| {
            let cursor = ("cursor".to_owned(), next);
            visitor.link(&with_query("/audit", &[kept.as_slice(), &[cursor]].concat()))
        }),
        frame: visitor.frame("Audit log", "audit"),
    }))
}
