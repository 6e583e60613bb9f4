//! Decides which traces are sampled.

use rewheel::{Random, RateLimiter};
use rewheel_engine::Rate;

/// Samples a share of new traces, and attempts together with the submit that they link to, up to a maximum rate: a span costs as much as
/// a job.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    share: f64,
    rate: RateLimiter,
    random: Random,
}

impl Gate {
    pub(super) fn new(share: f64, rate: Rate, random: Random) -> Gate {
        let (traces, period) = rate.parts();
        Gate { share, rate: RateLimiter::per(traces, period).build(), random }
    }

    /// Returns whether a new trace is sampled. For an attempt, `linked` is whether its submit was sampled.
    pub(super) fn begins(&self, linked: Option<bool>) -> bool {
        let is_chosen = linked.unwrap_or_else(|| {
            // Never for 0, always for 1.
            (self.random.next() as f64 / u64::MAX as f64) < self.share || self.share >= 1.0
        });
        is_chosen && self.rate.check().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, Random, Rate};
    use std::time::Duration;

    fn gate(share: f64, most: u32) -> Gate {
        Gate::new(share, Rate::new(most, Duration::from_secs(3_600)), Random::seeded(7))
    }

    #[test]
    fn an_attempt_is_kept_with_the_submit_that_it_links_to() {
        assert!(gate(1.0, 9).begins(None) && !gate(0.0, 9).begins(None));
        assert!(gate(0.0, 9).begins(Some(true)) && !gate(1.0, 9).begins(Some(false)));
    }

    #[test]
    fn a_share_is_about_that() {
        let gate = gate(0.25, 10_000);
        let kept = (0..4_000).filter(|_| gate.begins(None)).count();
        assert!((900..1_100).contains(&kept), "{kept} of 4,000");
    }

    #[test]
    fn no_more_traces_begin_than_the_rate_allows() {
        let gate = gate(1.0, 3);
        let begun = [None, Some(true), None, Some(true), None].map(|linked| gate.begins(linked));
        assert_eq!(begun, [true, true, true, false, false]);
    }
}
