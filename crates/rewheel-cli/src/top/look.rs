//! Takes one snapshot of a server's statistics and compares it with the previous ones.

use crate::cli_error::CliError;
use crate::client::Client;
use crate::kinds;
use crate::screen::inline;
use jiff::{Timestamp, Unit};
use rewheel_core::SecretUrl;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of snapshots in the curve.
const CURVE: usize = 240;

/// Interval for reading incidents.
const INCIDENTS_EVERY: Duration = Duration::from_secs(10);

fn items(page: Value) -> Vec<Value> {
    page["items"].as_array().cloned().unwrap_or_default()
}

/// The statistics of a server, all read at about the same time.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) at: Instant,
    pub(super) stats: Value,
    pub(super) kinds: Vec<Value>,
    pub(super) holders: Vec<Value>,
    pub(super) incidents: Vec<Value>,
    /// When incidents were last read.
    pub(super) grouped: Instant,
}

impl Look {
    pub(super) async fn at(client: &Client) -> Result<Look, CliError> {
        let incidents = items(client.get(&["incidents"], &[("limit", "20")]).await?.value);
        Look::with(client, incidents, now()).await
    }

    /// Takes the next snapshot. Incidents are read less often, because the server reads all failed jobs for them.
    pub(super) async fn next(self, client: &Client) -> Result<Look, CliError> {
        if now().duration_since(self.grouped) >= INCIDENTS_EVERY {
            return Look::at(client).await;
        }
        Look::with(client, self.incidents, self.grouped).await
    }

    async fn with(
        client: &Client,
        incidents: Vec<Value>,
        grouped: Instant,
    ) -> Result<Look, CliError> {
        let stats = client.get(&["stats"], &[]).await?.value;
        let kinds = kinds::all(client).await?;
        let holders = items(client.get(&["holders"], &[("limit", "20")]).await?.value);
        Ok(Look { at: now(), stats, kinds, holders, incidents, grouped })
    }

    pub(super) fn document(&self) -> Value {
        let Look { stats, kinds, holders, incidents, .. } = self;
        json!({ "stats": stats, "kinds": kinds, "holders": holders, "incidents": incidents })
    }

    /// Returns how many attempts this server has finished since its start.
    fn finished(&self) -> u64 {
        let counts = self.stats["here"]["decisions"].as_array();
        counts.into_iter().flatten().filter_map(|one| one["count"].as_u64()).sum()
    }
}

/// The snapshots so far.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) server: String,
    pub(super) last: Look,
    /// Finished attempts per second, one value per snapshot.
    pub(super) curve: VecDeque<u64>,
    /// Why there is no newer snapshot.
    pub(super) trouble: Option<String>,
}

impl Watched {
    pub(super) fn new(server: &SecretUrl, first: Look) -> Watched {
        let server = inline(&server.to_string());
        Watched { server, last: first, curve: VecDeque::new(), trouble: None }
    }

    pub(super) fn note(&mut self, look: Result<Look, CliError>) {
        let look = match look {
            Ok(look) => look,
            Err(trouble) => {
                self.trouble = Some(inline(&trouble.message()));
                return;
            }
        };
        let seconds = look.at.duration_since(self.last.at).as_secs_f64().max(0.001);
        // A restarted server counts from zero.
        let more = look.finished().saturating_sub(self.last.finished());
        self.curve.push_back((more as f64 / seconds).round() as u64);
        if self.curve.len() > CURVE {
            self.curve.pop_front();
        }
        self.trouble = None;
        self.last = look;
    }
}

/// Formats how long ago a server timestamp was; `None` if it is in the future.
pub(super) fn ago(time: &Value) -> Option<String> {
    let time: Timestamp = time.as_str()?.parse().ok()?;
    let since = Timestamp::now().since((Unit::Second, time)).ok()?.get_seconds();
    match since {
        ..1 => None,
        1..60 => Some(format!("{since}s")),
        60..3_600 => Some(format!("{}m{:02}s", since / 60, since % 60)),
        3_600..86_400 => Some(format!("{}h{:02}m", since / 3_600, since % 3_600 / 60)),
        _ => Some(format!("{}d{:02}h", since / 86_400, since % 86_400 / 3_600)),
    }
}

#[expect(clippy::disallowed_methods, reason = "only for display: how long ago the data was read")]
pub(super) fn now() -> Instant {
    Instant::now()
}
