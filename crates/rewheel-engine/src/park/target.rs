//! Circuit breakers for single targets of a kind.
//!
//! If the jobs of a kind call different hosts, one host that is down must not park the kind. So each host has its own
//! breaker in each holder. A job that the breaker refuses goes back to the store until the breaker may be tested; it uses
//! up no attempt, and shows the reason.

use super::speaks;
use crate::admission;
use crate::settings::BreakerSettings;
use rewheel::{Category, Clock, KeyedCircuitBreaker, OwnedPermit, Random};
use rewheel_core::{Failure, Job, KindName, Report};
use std::time::Duration;

/// Maximum number of targets of one kind to keep: targets that work are removed first.
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

    /// Begins to call the first of the `open` targets whose breaker allows it, or returns how long to wait for one of them.
    pub(crate) fn begin(&self, targets: &[String], open: &[usize]) -> Result<Target, Duration> {
        let mut shortest = Duration::MAX;
        for place in open {
            match self.begin_one(&targets[*place]) {
                Ok(permit) => return Ok(Target { permit, place: *place }),
                Err(wait) => shortest = shortest.min(wait),
            }
        }
        Err(shortest)
    }

    /// Begins to call a target if its breaker allows it, or returns how long to wait.
    fn begin_one(&self, target: &str) -> Result<OwnedPermit, Duration> {
        self.breakers.get(target).acquire_owned().map_err(|refused| {
            // Waiting jobs come back one by one: the first one tests the target for the others.
            let spread = u64::try_from(self.open_for.as_millis()).unwrap_or(u64::MAX).max(1);
            let later = Duration::from_millis(self.random.next() % spread);
            refused.retry_in.unwrap_or_default() + later
        })
    }
}

impl Target {
    /// Returns the index of the target in the list.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// Records what the attempt says about its target.
    pub(crate) fn note(self, report: &Report) {
        match speaks(report) {
            Some(Ok(())) => self.permit.success(),
            Some(Err(_)) => self.permit.failure(),
            None => {}
        }
    }
}

/// Returns the record of an attempt that was not made. Only once: a target that is down for days must not fill the job's history.
pub(crate) fn left_alone(job: &Job, targets: &[String]) -> Option<Failure> {
    // Sorted, since their order differs between attempts.
    let mut names: Vec<&str> = targets.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let verb = if names.len() == 1 { "is" } else { "are" };
    let names = names.join(", ");
    let message = format!("{names} {verb} skipped: too many attempts failed there");
    let failure = Failure::new(Category::CircuitOpen, None, &message);
    (job.failure.as_ref() != Some(&failure)).then_some(failure)
}
