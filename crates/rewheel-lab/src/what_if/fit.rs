//! Fits failures, durations and outages to recorded attempts.

mod outages;

use crate::chance::Chance;
use crate::history::{History, PastAttempt, PastResult};
use crate::latency::Latency;
use rewheel::duration;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// What was fitted to recorded attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// When most attempts failed.
    outages: Vec<Range<Duration>>,
    normal: Behaviour,
    outage: Behaviour,
}

/// How attempts behave, either normally or in an outage.
#[derive(Clone, Debug, Default, PartialEq)]
struct Behaviour {
    attempts: u64,
    failed: u64,
    /// Of the failed attempts, those that were not to be repeated.
    stopped: u64,
    succeeded_in: Option<Latency>,
    failed_in: Option<Latency>,
    /// Time from when a first attempt or a retry is due until it starts.
    first_lag: Option<Latency>,
    retry_lag: Option<Latency>,
}

impl Fit {
    /// Fits a history.
    pub fn of(history: &History) -> Fit {
        let outages = outages::find(history);
        let is_in = |at: Duration| outages.iter().any(|outage| outage.contains(&at));
        let normal = Behaviour::of(history, |at| !is_in(at));
        let outage = Behaviour::of(history, is_in);
        Fit { outages, normal, outage }
    }

    /// Returns the share of the attempts that fail outside of outages.
    pub fn failure_ratio(&self) -> f64 {
        self.normal.failure_ratio()
    }

    /// Returns the outages, from the start of the history.
    pub fn outages(&self) -> &[Range<Duration>] {
        &self.outages
    }

    pub(super) fn outage_end(&self) -> Option<Duration> {
        self.outages.last().map(|outage| outage.end)
    }

    pub(super) fn longest_outage(&self) -> Option<Range<Duration>> {
        self.outages.iter().max_by_key(|outage| outage.end - outage.start).cloned()
    }

    fn at(&self, at: Duration) -> &Behaviour {
        let is_outage = self.outages.iter().any(|outage| outage.contains(&at));
        if is_outage { &self.outage } else { &self.normal }
    }

    /// Draws how long an attempt that is due waits until it starts.
    pub(super) fn lag(&self, is_retry: bool, due: Duration, chance: &Chance) -> Duration {
        let of = |behaviour: &Behaviour| {
            let lag = if is_retry { &behaviour.retry_lag } else { &behaviour.first_lag };
            lag.as_ref().map(|lag| lag.draw(chance))
        };
        of(self.at(due)).or_else(|| of(&self.normal)).unwrap_or_default()
    }

    /// Draws the result and the duration of an attempt.
    pub(super) fn attempt(&self, started: Duration, chance: &Chance) -> (PastResult, Duration) {
        let behaviour = self.at(started);
        let result = if !chance.happens(behaviour.failure_ratio()) {
            PastResult::Succeeded
        } else if chance.happens(behaviour.stopped as f64 / behaviour.failed.max(1) as f64) {
            PastResult::Stopped
        } else {
            PastResult::Failed
        };
        let took = match result {
            PastResult::Succeeded => &behaviour.succeeded_in,
            PastResult::Failed | PastResult::Stopped => &behaviour.failed_in,
        };
        (result, took.as_ref().map(|took| took.draw(chance)).unwrap_or_default())
    }
}

impl Behaviour {
    fn of(history: &History, is_counted: impl Fn(Duration) -> bool) -> Behaviour {
        let mut counted = Behaviour::default();
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for attempt in history.attempts().filter(|attempt| is_counted(attempt.started)) {
            counted.attempts += 1;
            counted.failed += u64::from(attempt.has_failed());
            counted.stopped += u64::from(attempt.result == PastResult::Stopped);
            if attempt.has_failed() { bad.push(attempt.took) } else { good.push(attempt.took) }
        }
        let (mut first, mut retry) = (Vec::new(), Vec::new());
        for job in &history.jobs {
            if let Some(attempt) = job.attempts.first().filter(|_| is_counted(job.submitted)) {
                first.push(attempt.started.saturating_sub(job.submitted));
            }
            let due = |attempt: &PastAttempt| Some(attempt.ended() + attempt.delay?);
            for pair in job.attempts.windows(2) {
                if let Some(due) = due(&pair[0]).filter(|due| is_counted(*due)) {
                    retry.push(pair[1].started.saturating_sub(due));
                }
            }
        }
        counted.succeeded_in = Latency::measured(&good);
        counted.failed_in = Latency::measured(&bad);
        counted.first_lag = Latency::measured(&first);
        counted.retry_lag = Latency::measured(&retry);
        counted
    }

    fn failure_ratio(&self) -> f64 {
        self.failed as f64 / self.attempts.max(1) as f64
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |time: Duration| duration::text(Duration::from_millis(time.as_millis() as u64));
        write!(
            f,
            "Outside of outages, {:.1} % of the attempts fail",
            self.failure_ratio() * 100.0
        )?;
        if let Some(latency) = &self.normal.succeeded_in {
            write!(f, ", and a success takes {} on average", text(latency.mean()))?;
        }
        match self.outages.as_slice() {
            [] => write!(f, ". There was no outage."),
            outages => {
                let total: Duration = outages.iter().map(|outage| outage.end - outage.start).sum();
                write!(
                    f,
                    ". In {} ({} in total), {:.1} % fail.",
                    if outages.len() == 1 {
                        "1 outage".to_owned()
                    } else {
                        format!("{} outages", outages.len())
                    },
                    text(total),
                    self.outage.failure_ratio() * 100.0,
                )
            }
        }
    }
}
