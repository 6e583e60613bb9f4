//! The workload that every queue is measured with.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Number of jobs stored at once.
pub const BATCH: usize = 1_000;
/// The first jobs of a process find cold caches; they are not measured.
pub const WARM_UP: usize = 30;
/// A job that has not started this long after the last one was submitted counts as missing.
pub const GIVE_UP: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub jobs: usize,
    pub payload_bytes: usize,
    /// Jobs that are submitted one at a time.
    pub samples: usize,
}

/// The results of one subject in one round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Jobs per second.
    pub submit: Option<f64>,
    /// Jobs per second.
    pub drain: Option<f64>,
    /// Milliseconds.
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    /// Single jobs that were never started.
    pub missing: u64,
}

/// The payload of every job, for every subject.
#[derive(Debug, Serialize, Deserialize)]
pub struct Payload {
    /// When it was created, in microseconds since boot: the same clock in every process.
    pub at: u64,
    pub nth: usize,
    pad: String,
}

impl Payload {
    pub fn json(bytes: usize, nth: usize) -> Result<Vec<u8>> {
        let mut payload = Payload { at: micros(), nth, pad: String::new() };
        let bare = serde_json::to_vec(&payload)?.len();
        payload.pad = "x".repeat(bytes.saturating_sub(bare));
        Ok(serde_json::to_vec(&payload)?)
    }
}

/// A pause between single jobs that does not align with a polling interval.
pub fn pause(nth: usize) -> Duration {
    Duration::from_millis(15 + (nth as u64 * 7) % 21)
}

pub fn micros() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

pub fn rate(jobs: usize, started: u64) -> f64 {
    jobs as f64 / ((micros() - started) as f64 / 1e6)
}

/// Returns the quantile of the figures.
pub fn quantile(figures: &[f64], part: f64) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len().saturating_sub(1) as f64 * part).round() as usize).copied()
}
