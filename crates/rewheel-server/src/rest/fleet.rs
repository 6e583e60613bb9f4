//! Serves the list of holders, and statistics.

use super::Page;
use super::cursor::{self, List, largest_first};
use super::query::Parameters;
use crate::app::App;
use crate::problem::Problem;
use crate::rfc3339;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rewheel::duration;
use rewheel_core::Holder;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

/// A holder that is alive or died recently.
#[derive(Debug, Serialize)]
struct HolderDocument {
    id: String,
    name: String,
    role: &'static str,
    state: &'static str,
    /// Whether it belongs to the server that responds.
    here: bool,
    lease_ttl: String,
    renewals: u64,
    joined: String,
    renewed: String,
    died: Option<String>,
}

impl HolderDocument {
    fn new(holder: &Holder, is_here: bool) -> HolderDocument {
        HolderDocument {
            id: holder.id.to_string(),
            name: holder.name.clone(),
            role: holder.role.as_str(),
            state: match (holder.died, holder.expired) {
                (Some(_), _) => "dead",
                (None, true) => "silent",
                (None, false) => "alive",
            },
            here: is_here,
            lease_ttl: duration::text(holder.lease_ttl).to_string(),
            renewals: holder.renewals,
            joined: rfc3339::text(holder.joined),
            renewed: rfc3339::text(holder.renewed),
            died: holder.died.map(rfc3339::text),
        }
    }
}

/// `GET /v1/holders`: live ones first, then those that died recently, newest first.
pub(super) async fn holders(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    let (limit, after) = (parameters.limit(), parameters.after(List::Holders));
    parameters.finish()?;
    let engine = app.engine()?;
    let holders = engine.store().holders().await?;
    // A holder that dies between two pages moves to the second part: it may appear twice, but is not missed.
    let position = |holder: &Holder| {
        let ended = holder.died.unwrap_or(holder.joined).as_millis();
        let ended = largest_first(u64::try_from(ended).unwrap_or(0));
        format!("{} {ended} {}", u8::from(holder.died.is_some()), holder.id)
    };
    let (page, next) = cursor::cut(holders, position, after.as_deref(), limit);
    let here = engine.status().holder;
    let describe = |holder: &Holder| HolderDocument::new(holder, holder.id == here);
    let items: Vec<_> = page.iter().map(describe).collect();
    let next = next.map(|position| List::Holders.cursor(&position));
    Ok(Json(Page { items, next }).into_response())
}

/// `GET /v1/stats`: all jobs by state, and counters of this server since its start.
pub(super) async fn stats(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let engine = app.engine()?;
    let depth = engine.depth().await?;
    let holders = engine.store().holders().await?;
    let alive = holders.iter().filter(|holder| holder.died.is_none() && !holder.expired).count();
    let status = engine.status();
    let decisions: Vec<_> = engine
        .decisions()
        .iter()
        .map(|one| {
            let category = one.category.map(rewheel::Category::as_str);
            json!({ "decision": one.decision, "category": category, "count": one.count })
        })
        .collect();
    let notices: Vec<_> = engine
        .notify_counts()
        .iter()
        .map(|one| {
            json!({
                "notifier": one.name, "sent": one.sent, "suppressed": one.suppressed,
                "failed": one.failed, "summaries": one.summaries,
            })
        })
        .collect();
    let document = json!({
        "jobs": {
            "scheduled": depth.total.scheduled, "leased": depth.total.leased,
            "paused": depth.total.paused, "dead": depth.total.dead,
        },
        "oldest_due": depth.total.oldest_due.map(rfc3339::text),
        "as_of": rfc3339::text(depth.as_of),
        "approximate": depth.approximate,
        "holders": { "alive": alive },
        "here": {
            "holder": status.holder.to_string(), "lease_expired": status.lease_expired, "stopping": status.stopping,
            "concurrency": status.concurrency, "concurrency_free": status.concurrency_free, "waiting": status.waiting,
            "decisions": decisions, "notices": notices,
        },
    });
    Ok(Json(document).into_response())
}
