//! What is recorded of the attempts of past jobs.

use crate::outcome::{Outcome, Second};
use crate::report::Row;
use std::collections::BTreeMap;
use std::time::Duration;

/// Fewer attempts say too little.
const ATTEMPTS_MIN: u64 = 20;

/// The numbers of a row are kept for at most this many parts of the time, so that months take as little memory as an hour.
const PARTS_MAX: u64 = 10_000;

/// A job that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastJob {
    /// When it was submitted, from the start of the history.
    pub submitted: Duration,
    /// Its attempts, in order.
    pub attempts: Vec<PastAttempt>,
    /// Number of attempts that the store no longer has.
    pub dropped: u64,
    /// How it ended.
    pub end: PastEnd,
}

/// How a recorded job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastEnd {
    /// It succeeded.
    Succeeded,
    /// It was given up.
    GivenUp,
    /// It has not ended, or an operator ended it.
    Open,
}

/// A recorded attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastAttempt {
    /// When it started, from the start of the history.
    pub started: Duration,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub result: PastResult,
    /// The delay before the next attempt.
    pub delay: Option<Duration>,
}

/// How a recorded attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastResult {
    /// It succeeded.
    Succeeded,
    /// It failed, and another attempt may succeed.
    Failed,
    /// It failed, and was not to be repeated.
    Stopped,
}

impl PastAttempt {
    /// Returns when it ended.
    pub fn ended(&self) -> Duration {
        self.started + self.took
    }

    pub(crate) fn has_failed(&self) -> bool {
        match self.result {
            PastResult::Succeeded => false,
            PastResult::Failed | PastResult::Stopped => true,
        }
    }
}

impl PastJob {
    /// Returns the number of attempts.
    pub fn attempts(&self) -> u64 {
        self.attempts.len() as u64 + self.dropped
    }

    /// Returns when it ended; `None` if it is open.
    pub fn ended(&self) -> Option<Duration> {
        match self.end {
            PastEnd::Succeeded | PastEnd::GivenUp => self.attempts.last().map(PastAttempt::ended),
            PastEnd::Open => None,
        }
    }
}

/// The recorded jobs of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub(crate) jobs: Vec<PastJob>,
    /// How long was recorded.
    pub(crate) lasts: Duration,
}

/// Error: the history is too short.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store has {jobs} jobs of this kind with {attempts} attempts in this time: at least {ATTEMPTS_MIN} attempts are needed; \
     use a longer `--since`, and `keep_succeeded` in the settings of the kind"
)]
pub struct HistoryError {
    jobs: usize,
    attempts: u64,
}

impl History {
    /// Creates a history of jobs.
    ///
    /// # Errors
    /// Fails if there are too few attempts for any statement.
    pub fn new(mut jobs: Vec<PastJob>) -> Result<History, HistoryError> {
        let attempts = jobs.iter().map(PastJob::attempts).sum();
        if attempts < ATTEMPTS_MIN {
            return Err(HistoryError { jobs: jobs.len(), attempts });
        }
        jobs.sort_by_key(|job| job.submitted);
        let ends = jobs.iter().flat_map(|job| job.attempts.iter().map(PastAttempt::ended));
        let lasts = ends.chain(jobs.iter().map(|job| job.submitted)).max().unwrap_or_default();
        Ok(History { jobs, lasts })
    }

    /// Returns the recorded jobs.
    pub fn jobs(&self) -> &[PastJob] {
        &self.jobs
    }

    pub(crate) fn attempts(&self) -> impl Iterator<Item = &PastAttempt> {
        self.jobs.iter().flat_map(|job| &job.attempts)
    }

    /// Returns the mean time from submit to end.
    pub(crate) fn time_mean(&self) -> Duration {
        let time = |job: &PastJob| Some(job.ended()?.saturating_sub(job.submitted));
        let times: Vec<Duration> = self.jobs.iter().filter_map(time).collect();
        times.iter().sum::<Duration>().checked_div(times.len() as u32).unwrap_or_default()
    }

    /// Returns the row of these jobs, with the same numbers as for simulated calls. `outage_end` is the end of the last outage.
    pub(crate) fn row(&self, name: &str, outage_end: Option<Duration>) -> Row {
        let each = (self.lasts.as_secs() + 1).div_ceil(PARTS_MAX);
        let mut seconds = vec![Second::default(); (self.lasts.as_secs() / each) as usize + 1];
        let last = seconds.len() - 1;
        let at = |time: Duration| ((time.as_secs() / each) as usize).min(last);
        let mut attempts_in = BTreeMap::<u64, u64>::new();
        let (mut latencies, mut ended, mut succeeded, mut failed) = (Vec::new(), 0_u64, 0_u64, 0);
        for job in &self.jobs {
            let second = at(job.submitted);
            seconds[second].offered += 1;
            if let Some(end) = job.ended() {
                latencies.push(end.saturating_sub(job.submitted));
                ended += 1;
            }
            if job.end == PastEnd::Succeeded {
                succeeded += 1;
                seconds[second].succeeded += 1;
            }
            for attempt in &job.attempts {
                seconds[at(attempt.started)].attempts += 1;
                *attempts_in.entry(attempt.started.as_secs()).or_default() += 1;
                failed += u64::from(attempt.has_failed());
            }
        }
        latencies.sort_unstable();
        let attempts = self.jobs.iter().map(PastJob::attempts).sum::<u64>();
        let dropped: u64 = self.jobs.iter().map(|job| job.dropped).sum();
        let outcome = Outcome {
            came: seconds.len(),
            seconds,
            served: attempts,
            wasted: failed + dropped,
            refused: 0,
            cut_at: None,
            latencies,
            outage_end: None,
        };
        let amplification = attempts as f64 / self.jobs.len().max(1) as f64;
        let success = succeeded as f64 / ended.max(1) as f64;
        let recovered = outage_end.map_or(crate::Recovered::NoTrouble, |end| self.recovered(end));
        let peak = attempts_in.into_values().max().unwrap_or(0);
        let seconds_each = each as usize;
        Row { success, amplification, recovered, peak, seconds_each, ..Row::of(name, outcome) }
    }

    /// Returns how long after an outage 99 % of the jobs that were submitted before its end had ended.
    fn recovered(&self, outage_end: Duration) -> crate::Recovered {
        let waiting = self.jobs.iter().filter(|job| job.submitted < outage_end);
        let mut ends: Vec<Duration> =
            waiting.map(|job| job.ended().unwrap_or(Duration::MAX)).collect();
        ends.sort_unstable();
        match crate::outcome::quantile(&ends, 0.99) {
            Some(Duration::MAX) => crate::Recovered::Never,
            Some(end) => crate::Recovered::After(end.saturating_sub(outage_end)),
            None => crate::Recovered::NoTrouble,
        }
    }
}
