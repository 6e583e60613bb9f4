//! Handles answers in which a called service asks to wait: 429 with `Retry-After`.

use crate::admission::Fact;
use crate::kinds::KindEntry;
use crate::settings::Hold;
use crate::shared::{Command, Shared};
use rewheel::{Category, Verdict, duration};
use rewheel_core::{Failure, Job, Report};
use std::time::Duration;

/// Returns how long a called service asked to wait, and what it said.
pub(crate) fn asked_to_wait(report: &Report) -> Option<(Duration, Failure)> {
    match report {
        Report::AttemptFailed { verdict: Verdict::RetryAfter(wait), failure }
            if failure.category() == Category::Throttled =>
        {
            Some((*wait, failure.clone()))
        }
        Report::AttemptFailed { .. }
        | Report::Done
        | Report::FailJob(_)
        | Report::Dead(_)
        | Report::Pause
        | Report::Cancel
        | Report::Snooze(_) => None,
    }
}

impl Shared {
    /// Holds what the kind holds, because the service that an attempt called asked to wait. `place` is the target that this node
    /// called; which host a worker called is not known here.
    pub(crate) fn heed(
        &self,
        kind: &KindEntry,
        job: &Job,
        place: Option<usize>,
        (wait, failure): &(Duration, Failure),
    ) {
        let wait = (*wait).min(kind.settings.retry_after_max);
        if wait.is_zero() {
            return;
        }
        let (name, until) = (job.lane.kind.clone(), self.clock.now().plus(wait));
        match kind.settings.hold {
            Hold::Off => return,
            Hold::Host => {
                let called = kind.runner.as_ref().zip(place).and_then(|(runner, place)| {
                    runner.host().or_else(|| runner.targets(job).into_iter().nth(place))
                });
                let Some(host) = called.filter(|host| !host.is_empty()) else { return };
                tracing::debug!(kind = %name, host, "the called service asked its clients to wait: this node delays its calls to that service");
                self.admission.apply(Fact::HostHeld { host, kind: name, until });
            }
            Hold::Kind => {
                let wait = duration::text(wait);
                let why = format!("the called service asked to wait for {wait}: {failure}");
                self.admission.apply(Fact::KindHeld { kind: name, until, why });
                self.admission.parking.notify_one();
            }
        }
        // Jobs that wait here for a slot go back to the store.
        let _ = self.signals.to_dispatch.send(Command::Place);
    }
}
