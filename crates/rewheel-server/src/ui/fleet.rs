//! The fleet: holders, notifiers and the health of this node.

use super::documents::{Health, Holder, Listed, Stats};
use super::frame::{Frame, show};
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{Instant, Mark, Number, Times, short};
use super::visitor::Visitor;
use askama::Template;
use axum::http::Method;
use axum::response::Response;

#[derive(Template)]
#[template(path = "fleet.html")]
struct FleetPage {
    frame: Frame,
    rows: Vec<HolderRow>,
    is_cut: bool,
    health: Vec<(String, Mark, String)>,
    stats: Stats,
    used: u64,
    alive: Number,
}

struct HolderRow {
    id: String,
    short: String,
    name: String,
    role: String,
    state: Mark,
    is_here: bool,
    lease_ttl: String,
    joined: Instant,
    renewed: Instant,
    died: Option<Instant>,
}

/// `GET /ui/fleet`
pub(super) async fn page(visitor: Visitor) -> Result<Response, Refusal> {
    let listed: Listed<Holder> = visitor.get("/v1/holders?limit=200").await?;
    let stats: Stats = visitor.get("/v1/stats").await?;
    // A node that is not well answers 503, with the same document.
    let (_, health) = visitor.exchange(Method::GET, "/health", Sent::default()).await?;
    let parts = health.read::<Health>().map(|health| health.components).unwrap_or_default();
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let state = |state: &str| match state {
        "ok" | "up" => Mark::with("succeeded", "ok"),
        "degraded" => Mark::with("paused", "degraded"),
        other => Mark::with("dead", other),
    };
    Ok(show(&FleetPage {
        rows: listed.items.iter().map(|holder| row(holder, &times)).collect(),
        is_cut: listed.next.is_some(),
        health: parts
            .into_iter()
            .map(|(name, part)| (name, state(&part.state), part.message))
            .collect(),
        used: stats.here.concurrency.saturating_sub(stats.here.concurrency_free),
        alive: Number(stats.holders.alive),
        stats,
        frame: visitor.frame("Fleet", "fleet").live(),
    }))
}

fn row(holder: &Holder, times: &Times) -> HolderRow {
    HolderRow {
        short: short(&holder.id),
        id: holder.id.clone(),
        name: holder.name.clone(),
        role: holder.role.clone(),
        state: match holder.state.as_str() {
            "alive" => Mark::with("succeeded", "alive"),
            "silent" => Mark::with("paused", "silent"),
            other => Mark::with("cancelled", other),
        },
        is_here: holder.here,
        lease_ttl: holder.lease_ttl.clone(),
        joined: times.at(&holder.joined),
        renewed: times.at(&holder.renewed),
        died: times.maybe(holder.died.as_deref()),
    }
}
