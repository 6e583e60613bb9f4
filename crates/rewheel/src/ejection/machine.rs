//! Decides which targets are left out.

use super::OutlierEjection;
use crate::clock::Moment;
use crate::ratio::Ratio;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::window::{Counts, Tally, TimeWindow};
use std::time::Duration;

/// The recent calls of each target, and which targets are left out.
#[derive(Debug)]
pub(crate) struct Ejections {
    rules: OutlierEjection,
    targets: Box<[Target]>,
    /// How often each target was left out lately. A call that leaves out a target holds the lock, so that two
    /// calls cannot both leave out the last allowed target.
    times: Mutex<Box<[u32]>>,
}

#[derive(Debug)]
struct Target {
    window: TimeWindow,
    /// Nanoseconds of the clock; it is left out before that.
    out_until: AtomicU64,
}

impl Ejections {
    pub(crate) fn new(rules: OutlierEjection, targets: usize) -> Ejections {
        let target =
            |_| Target { window: TimeWindow::new(rules.window), out_until: AtomicU64::new(0) };
        Ejections {
            rules,
            targets: (0..targets).map(target).collect(),
            times: Mutex::new(vec![0; targets].into()),
        }
    }

    /// Returns whether a target is left out.
    pub(crate) fn is_out(&self, target: usize, now: Moment) -> bool {
        self.targets[target].out_until.load(Ordering::Acquire) > now.as_nanos()
    }

    /// Counts a call. Returns for how long the target is left out, if this call has caused it.
    pub(crate) fn record(&self, target: usize, failed: bool, now: Moment) -> Option<Duration> {
        self.targets[target].window.record(Tally { failed, slow: false }, now);
        // Only a failure can make it an outlier. A target that is out may be called if there is no other.
        if !failed || self.is_out(target, now) || !self.is_outlier(target, now) {
            return None;
        }
        self.leave_out(target, now)
    }

    fn is_outlier(&self, target: usize, now: Moment) -> bool {
        let own = self.targets[target].window.counts(now);
        let mut others = Counts::default();
        for (index, other) in self.targets.iter().enumerate() {
            if index != target {
                let counts = other.window.counts(now);
                others.calls += counts.calls;
                others.failures += counts.failures;
            }
        }
        let calls_min = u64::from(self.rules.calls_min);
        let ratio = |counts: Counts| Ratio::of(counts.failures, counts.calls).millionths();
        own.calls >= calls_min
            && others.calls >= calls_min
            && ratio(own) >= ratio(others) + self.rules.margin.millionths()
    }

    fn leave_out(&self, target: usize, now: Moment) -> Option<Duration> {
        let mut times = lock(&self.times);
        let out = (0..self.targets.len()).filter(|index| self.is_out(*index, now)).count();
        if self.is_out(target, now) || out + 1 > self.targets.len() / 2 {
            return None;
        }
        let out_until = &self.targets[target].out_until;
        let back_since = Moment::from_nanos(out_until.load(Ordering::Acquire));
        let forgiven = now.since(back_since).as_nanos() / self.rules.time.as_nanos().max(1);
        let forgiven = u32::try_from(forgiven).unwrap_or(u32::MAX);
        times[target] = times[target].saturating_sub(forgiven).saturating_add(1);
        let doubled = 1_u32.checked_shl(times[target] - 1).unwrap_or(u32::MAX);
        let time = self.rules.time.saturating_mul(doubled).min(self.rules.time_max);
        out_until.store(now.plus(time).as_nanos(), Ordering::Release);
        Some(time)
    }
}
