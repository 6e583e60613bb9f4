//! The results of a scenario: one row for each policy.

use crate::outcome::{Outcome, Second};
use std::ops::Range;
use std::time::Duration;

/// What a scenario showed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the scenario.
    pub scenario: &'static str,
    /// What was simulated, in sentences.
    pub about: String,
    /// When the dependency failed or was overloaded.
    pub trouble: Option<Range<Duration>>,
    /// How long calls arrived.
    pub lasts: Duration,
    /// One row for each policy.
    pub rows: Vec<Row>,
    /// What the rows mean, in sentences.
    pub findings: Vec<String>,
}

/// The results of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy.
    pub policy: String,
    /// Number of calls; in the scenario `contention`, of writes that reached the row. A mean if the scenario was run several times.
    pub calls: f64,
    /// When all work was done, if the scenario has an end.
    pub completed: Option<Duration>,
    /// Share of the calls that succeeded, 0 to 1.
    pub success: f64,
    /// Median time of a call, whether it succeeded or not.
    pub p50: Option<Duration>,
    /// The time in which 99 % of the calls ended.
    pub p99: Option<Duration>,
    /// Average number of requests per call.
    pub amplification: f64,
    /// Share of the requests that were served although their client had given up, 0 to 1.
    pub wasted: f64,
    /// Whether the calls succeeded again afterwards.
    pub recovered: Recovered,
    /// What happened in each second, or in each [`seconds_each`](Row::seconds_each) seconds.
    pub seconds: Vec<Second>,
    /// Number of seconds of an entry of [`seconds`](Row::seconds): more than one only for recorded jobs of a long time.
    pub seconds_each: usize,
    pub(crate) peak: u64,
    /// When the simulation was stopped because of too many requests.
    pub cut_at: Option<Duration>,
}

/// Whether the calls succeeded again after an outage or an overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// There was nothing to recover from.
    NoTrouble,
    /// 99 % of the calls succeeded again after this time, for five seconds in a row.
    After(Duration),
    /// They did not, until the end of the simulation.
    Never,
}

impl Report {
    /// Returns the length in seconds of the parts into which charts divide the time: at most this many parts.
    pub fn part_width(&self, parts_max: usize) -> usize {
        let seconds = self.lasts.as_secs_f64().ceil() as usize;
        let each = self.rows.iter().map(|row| row.seconds_each).max().unwrap_or(1);
        seconds.div_ceil(parts_max.max(1)).max(1).next_multiple_of(each)
    }
}

impl Recovered {
    /// Returns the time; `None` if there is none.
    pub const fn after(self) -> Option<Duration> {
        match self {
            Recovered::After(time) => Some(time),
            Recovered::NoTrouble | Recovered::Never => None,
        }
    }
}

impl Row {
    /// Creates the row of a simulated storm.
    pub fn of(policy: impl Into<String>, outcome: Outcome) -> Row {
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        let recovered = match (outcome.had_trouble(), outcome.recovered_after()) {
            (false, _) => Recovered::NoTrouble,
            (true, Some(after)) => Recovered::After(after),
            (true, None) => Recovered::Never,
        };
        Row {
            policy: policy.into(),
            calls: outcome.offered() as f64,
            completed: None,
            success: share(outcome.succeeded(), outcome.offered()),
            p50: outcome.quantile(0.5),
            p99: outcome.quantile(0.99),
            amplification: outcome.amplification(),
            wasted: share(outcome.wasted(), outcome.served()),
            recovered,
            cut_at: outcome.cut_at(),
            peak: outcome.seconds().iter().map(|second| second.attempts).max().unwrap_or(0),
            seconds: outcome.into_seconds(),
            seconds_each: 1,
        }
    }

    /// Returns the most requests in a second.
    pub const fn peak(&self) -> u64 {
        self.peak
    }

    /// Returns the requests per second and the share of successes in each of these parts of the time. `width` is the length of a part in
    /// seconds, a multiple of [`seconds_each`](Row::seconds_each).
    pub fn parts(&self, width: usize) -> impl Iterator<Item = (f64, f64)> {
        self.seconds.chunks((width / self.seconds_each).max(1)).map(|part| {
            let sum = |of: fn(&Second) -> u64| part.iter().map(of).sum::<u64>() as f64;
            let requests = sum(|second| second.attempts) / (part.len() * self.seconds_each) as f64;
            let succeeded = sum(|second| second.succeeded) / sum(|second| second.offered).max(1.0);
            (requests, succeeded)
        })
    }
}
