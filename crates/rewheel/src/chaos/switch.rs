//! Switches a chaos policy on, for a limited time, and says so in the log.

use super::Chaos;
use crate::clock::Moment;
use crate::duration::{nanos, text};
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use crate::sync::Ordering;
use std::time::Duration;
use tracing::warn;

/// Keeps a [`Chaos`] on. When it is dropped, or after its time, the policy is off.
#[must_use = "the chaos policy is off as soon as the switch is dropped"]
#[derive(Debug)]
pub struct ChaosSwitch {
    chaos: Chaos,
    number: u64,
}

/// The time between two warnings while a policy is on.
const WARN_EVERY: Duration = Duration::from_secs(10);

const fn checked_time(time: Duration) -> Result<Duration, NotAllowed> {
    if time.is_zero() || time.as_nanos() > Chaos::ON_MAX.as_nanos() {
        return Err(not_allowed!("switch_on", "use a time above zero, at most 1h"));
    }
    Ok(time)
}

impl Chaos {
    /// The target of its log lines.
    pub const TARGET: &'static str = "rewheel::chaos";

    /// Switches the policy on, for at most this time. A second switch replaces the first.
    ///
    /// # Panics
    /// Panics if the time is zero or above [`ON_MAX`](Chaos::ON_MAX).
    #[track_caller]
    pub fn switch_on(&self, time: Duration) -> ChaosSwitch {
        self.switch_on_checked(valid(checked_time(time)))
    }

    /// As [`switch_on`](Chaos::switch_on), without the panic.
    ///
    /// # Errors
    /// Rejects a time of zero or above [`ON_MAX`](Chaos::ON_MAX).
    pub fn try_switch_on(&self, time: Duration) -> Result<ChaosSwitch, SettingError> {
        let time = checked_time(time).map_err(|rule| rule.with(text(time)))?;
        Ok(self.switch_on_checked(time))
    }

    fn switch_on_checked(&self, time: Duration) -> ChaosSwitch {
        let shared = &*self.shared;
        let now = shared.config.clock.now();
        let number = shared.switches.fetch_add(1, Ordering::AcqRel) + 1;
        shared.on_until.store(now.plus(time).as_nanos(), Ordering::Release);
        shared.warned_at.store(now.as_nanos(), Ordering::Relaxed);
        let (name, for_ms) = (self.name(), nanos(time) / 1_000_000);
        warn!(target: Chaos::TARGET, name, for_ms, "chaos policy switched on: calls will fail on purpose");
        ChaosSwitch { chaos: self.clone(), number }
    }

    /// Returns when the policy goes off, if it is on.
    pub(super) fn on_until(&self) -> Option<Moment> {
        let until = self.shared.on_until.load(Ordering::Acquire);
        if until == 0 {
            return None;
        }
        if self.shared.config.clock.now() < Moment::from_nanos(until) {
            return Some(Moment::from_nanos(until));
        }
        self.go_off(until);
        None
    }

    /// Goes off, unless it was switched on again meanwhile.
    #[cold]
    fn go_off(&self, until: u64) {
        let shared = &*self.shared;
        let changed =
            shared.on_until.compare_exchange(until, 0, Ordering::AcqRel, Ordering::Acquire);
        if changed.is_ok() {
            let (name, changed) = (self.name(), self.changed());
            warn!(target: Chaos::TARGET, name, changed, "chaos policy is off");
        }
    }

    /// Says that it is on, so that it is found in a log where it does not belong.
    pub(super) fn warn_now_and_then(&self, now: Moment) {
        let warned_at = &self.shared.warned_at;
        let before = warned_at.load(Ordering::Relaxed);
        if now.since(Moment::from_nanos(before)) < WARN_EVERY {
            return;
        }
        let at = now.as_nanos();
        if warned_at.compare_exchange(before, at, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let (name, changed) = (self.name(), self.changed());
            warn!(target: Chaos::TARGET, name, changed, "chaos policy is on: calls fail on purpose");
        }
    }
}

impl Drop for ChaosSwitch {
    fn drop(&mut self) {
        let shared = &*self.chaos.shared;
        let until = shared.on_until.load(Ordering::Acquire);
        if shared.switches.load(Ordering::Acquire) == self.number && until != 0 {
            self.chaos.go_off(until);
        }
    }
}
