//! Circuit breakers for single targets of a kind.
//!
//! A kind whose jobs go to different hosts is not parked because one of them is down. Each host has a
//! breaker of its own, in each holder: what it refuses is put back for as long as it is open, uses up
//! no attempt, and says why.

use super::speaks;
use crate::admission;
use crate::settings::BreakerSettings;
use rewheel::{Category, Clock, KeyedCircuitBreaker, OwnedPermit, Random};
use rewheel_core::{Failure, Job, KindName, Report};
use std::time::Duration;

/// Targets of one kind that are remembered: those that work are forgotten first.
const TARGETS_MAX: usize = 10_000;

/// The breakers of a kind's targets.
#[derive(Debug)]
pub(crate) struct Targets {
    breakers: KeyedCircuitBreaker<String>,
    open_for: Duration,
    random: Random,
}

/// The right to call a target.
#[derive(Debug)]
pub(crate) struct Target {
    permit: OwnedPermit,
    place: usize,
}

impl Targets {
    pub(crate) fn new(
        kind: &KindName,
        settings: BreakerSettings,
        clock: &Clock,
        random: &Random,
    ) -> Targets {
        let breakers = admission::breaker(kind, settings, clock, random).keyed(TARGETS_MAX);
        Targets { breakers, open_for: settings.open_for, random: random.clone() }
    }

    /// Begins to call the first that is not left alone, or says how long to leave all of them alone.
    pub(crate) fn begin(&self, targets: &[String]) -> Result<Target, Duration> {
        let mut shortest = Duration::MAX;
        for (place, target) in targets.iter().enumerate() {
            match self.begin_one(target) {
                Ok(permit) => return Ok(Target { permit, place }),
                Err(wait) => shortest = shortest.min(wait),
            }
        }
        Err(shortest)
    }

    /// Begins to call a target, or says how long to leave it alone.
    fn begin_one(&self, target: &str) -> Result<OwnedPermit, Duration> {
        self.breakers.get(target).acquire_owned().map_err(|refused| {
            // Those that wait come back one by one: the first finds out for the others.
            let spread = u64::try_from(self.open_for.as_millis()).unwrap_or(u64::MAX).max(1);
            let later = Duration::from_millis(self.random.next() % spread);
            refused.retry_in.unwrap_or_default() + later
        })
    }
}

impl Target {
    /// Which of those that may be called it is.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// Takes note of what the attempt says about its target.
    pub(crate) fn note(self, report: &Report) {
        match speaks(report) {
            Some(Ok(())) => self.permit.success(),
            Some(Err(_)) => self.permit.failure(),
            None => {}
        }
    }
}

/// What is kept of an attempt that was not made. Said once: a target that is down for days must not fill the job's history.
pub(crate) fn left_alone(job: &Job, targets: &[String]) -> Option<Failure> {
    // Sorted, since their order differs from attempt to attempt.
    let mut names: Vec<&str> = targets.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let verb = if names.len() == 1 { "is" } else { "are" };
    let names = names.join(", ");
    let message = format!("{names} {verb} skipped: too many attempts failed there");
    let failure = Failure::new(Category::CircuitOpen, None, &message);
    (job.failure.as_ref() != Some(&failure)).then_some(failure)
}
