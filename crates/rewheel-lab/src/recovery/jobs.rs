//! The jobs of a simulated engine.

use rewheel::{Random, Retry, Series, Step, Verdict};
use std::collections::VecDeque;
use std::time::Duration;

/// The jobs, by number.
pub(super) struct Jobs {
    retry: Retry,
    random: Random,
    series: Vec<Series>,
    submitted: Vec<Duration>,
    /// Jobs that wait for a slot.
    pub(super) due: VecDeque<usize>,
    succeeded: usize,
    given_up: usize,
    latencies: Vec<Duration>,
}

impl Jobs {
    pub(super) fn new(retry: Retry, random: Random) -> Jobs {
        Jobs {
            retry,
            random,
            series: Vec::new(),
            submitted: Vec::new(),
            due: VecDeque::new(),
            succeeded: 0,
            given_up: 0,
            latencies: Vec::new(),
        }
    }

    pub(super) fn submit(&mut self, now: Duration) -> usize {
        self.series.push(Series::new(self.retry));
        self.submitted.push(now);
        self.series.len() - 1
    }

    /// Returns when the job was submitted.
    pub(super) fn succeed(&mut self, job: usize, now: Duration) -> Duration {
        self.succeeded += 1;
        self.latencies.push(now - self.submitted[job]);
        self.submitted[job]
    }

    /// Returns the delay before the next attempt; `None` if the job is given up.
    pub(super) fn fail(&mut self, job: usize, now: Duration) -> Option<Duration> {
        let elapsed = now - self.submitted[job];
        match self.series[job].after(Verdict::Retry, elapsed, &self.random) {
            Step::Wait(delay) => Some(delay),
            Step::Return | Step::GiveUp(_) => {
                self.given_up += 1;
                self.latencies.push(elapsed);
                None
            }
        }
    }

    pub(super) fn unfinished(&self) -> usize {
        self.submitted.len() - self.succeeded - self.given_up
    }

    /// Returns the sorted times of all jobs that have ended, and the share of jobs that succeeded.
    pub(super) fn into_latencies(mut self) -> (Vec<Duration>, f64) {
        self.latencies.sort_unstable();
        let success = self.succeeded as f64 / self.submitted.len().max(1) as f64;
        (self.latencies, success)
    }
}
