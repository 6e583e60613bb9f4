//! Serves the history: what happened to jobs, minute by minute.

use super::query::Parameters;
use crate::app::App;
use crate::conditions::Conditions;
use crate::problem::Problem;
use crate::rfc3339;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rewheel::duration;
use rewheel_core::{HistoryPoint, HistorySlot, KindCounts, KindName};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of kinds of one request: the counts of each point are their sum.
const KINDS_MAX: usize = 100;

/// The history of a kind, of several or of all together.
#[derive(Debug, Serialize)]
struct HistoryDocument {
    as_of: String,
    /// The upper bounds of all buckets but the last, in milliseconds.
    bounds_ms: Vec<f64>,
    points: Vec<PointDocument>,
}

#[derive(Debug, Serialize)]
struct PointDocument {
    start: String,
    minutes: u32,
    /// In how many of these minutes a node reported.
    reported: u32,
    /// Null if no node reported: the counts are unknown, not zero.
    counts: Option<CountsDocument>,
}

#[derive(Debug, Serialize)]
struct CountsDocument {
    submitted: u64,
    attempts: u64,
    succeeded: u64,
    retried: u64,
    snoozed: u64,
    failed: u64,
    dead: u64,
    cancelled: u64,
    concurrency_max: u64,
    duration: DistributionDocument,
    lateness: DistributionDocument,
}

#[derive(Debug, Serialize)]
struct DistributionDocument {
    /// Null without attempts.
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    buckets: [u64; KindCounts::BUCKETS],
}

/// `GET /v1/history`
pub(super) async fn show(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["kind", "since"])?;
    let mut kinds = parameters.all("kind", KindName::parse);
    let since = parameters.one("since", parse_since).unwrap_or(HistorySlot::KEPT);
    kinds.sort();
    kinds.dedup();
    if kinds.len() > KINDS_MAX {
        parameters.wrong("kind", format!("occurs too often: send at most {KINDS_MAX} kinds"));
    }
    parameters.finish()?;
    let history = app.engine()?.history(&kinds, since).await?;
    let document = HistoryDocument {
        as_of: rfc3339::text(history.now),
        bounds_ms: KindCounts::BOUNDS_MICROS.iter().map(|bound| *bound as f64 / 1e3).collect(),
        points: history.points.iter().map(PointDocument::new).collect(),
    };
    Ok(Json(document).into_response())
}

fn parse_since(text: &str) -> Result<Duration, String> {
    let since = duration::parse(text).map_err(|error| error.to_string())?;
    if since < HistorySlot::MINUTE || since > HistorySlot::KEPT {
        let (least, most) = (HistorySlot::MINUTE, HistorySlot::KEPT);
        return Err(format!("must be {} to {}", duration::text(least), duration::text(most)));
    }
    Ok(since)
}

impl PointDocument {
    fn new(point: &HistoryPoint) -> PointDocument {
        let counts = || {
            let mut counts = KindCounts::default();
            // Kinds run at the same time.
            point.slot.kinds.values().for_each(|kind| counts.add_beside(kind));
            CountsDocument::new(&counts)
        };
        PointDocument {
            start: rfc3339::text(point.start),
            minutes: point.slot.minutes,
            reported: point.slot.reported,
            counts: (!point.is_gap()).then(counts),
        }
    }
}

impl CountsDocument {
    fn new(counts: &KindCounts) -> CountsDocument {
        CountsDocument {
            submitted: counts.submitted,
            attempts: counts.attempts,
            succeeded: counts.succeeded,
            retried: counts.retried,
            snoozed: counts.snoozed,
            failed: counts.failed,
            dead: counts.dead,
            cancelled: counts.cancelled,
            concurrency_max: counts.concurrency_max,
            duration: DistributionDocument::new(&counts.durations),
            lateness: DistributionDocument::new(&counts.lateness),
        }
    }
}

impl DistributionDocument {
    fn new(buckets: &[u64; KindCounts::BUCKETS]) -> DistributionDocument {
        let quantile =
            |part| KindCounts::quantile(buckets, part).map(|bound| bound.as_micros() as f64 / 1e3);
        DistributionDocument { p50_ms: quantile(0.5), p95_ms: quantile(0.95), buckets: *buckets }
    }
}
