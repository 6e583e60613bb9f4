//! One engine's share of a kind's retry budget.
//!
//! First attempts add to the budget, and retries use it. The budget is in the store, because a job may be retried on another
//! engine than the engine of its first attempt. With its heartbeat, each engine reports what its first attempts added, and gets a
//! grant: the number of retries that it may make until the next heartbeat. A retry without a grant is delayed: it goes back to
//! the store, where it blocks no other job.

use crate::budget::BudgetSettings;
use rewheel::Moment;
use rewheel_core::{KindName, RetryAsk, RetryPool};
use std::time::Duration;

/// Number of retries that all holders together keep in reserve for the first failures of an incident. Each keeps its share, at
/// least one.
const STOCK: usize = 100;

/// The most that one holder keeps in reserve, or requests at once.
const STOCK_MAX: usize = 10;
const GRANT_MAX: u32 = 10_000;

/// Up to one in this many attempts may fail in normal operation.
const FAILS_OF: u64 = 10;

/// Number of put-off retries that should come back for each granted one. More would load the store, fewer would be late once the
/// dependency is back.
const COME_BACK: u32 = 4;

/// Number that must have come back before the ratio is judged.
const CAME_MIN: u32 = 8;

/// The shortest time that a retry is put off: it costs a write.
const PUT_OFF_MIN: Duration = Duration::from_millis(100);

/// The longest time that a retry is put off: it may be possible much sooner than expected.
const PUT_OFF_MAX: Duration = Duration::from_secs(3_600);

/// One engine's share of the budget.
#[derive(Debug)]
pub(super) struct Budget {
    settings: BudgetSettings,
    /// The time between two heartbeats.
    beat: Duration,
    /// Retries that were granted and not used.
    granted: u64,
    /// What first attempts have earned since the last report, in units of a retry.
    earned: u64,
    /// Number of retries that were due since then.
    wished: u32,
    /// Number of recently due retries, and of those that were granted.
    came: u32,
    paid: u32,
    /// Number of recent attempts that succeeded, and that failed.
    well: u32,
    badly: u32,
    /// When the store received the last report, and when it gets the next one.
    heard: Moment,
    next: Moment,
    /// The time after the next grant over which put-off retries come back, and since when this value applies.
    spread: Duration,
    adapted: Moment,
}

impl Budget {
    /// Returns the time over which put-off retries come back. It is short if the dependency is back, because the kind will soon
    /// earn the retries.
    fn spread_now(&self) -> Duration {
        if self.well > 0 && self.is_well() { self.beat } else { self.spread }
    }

    /// Adapts to the share of returned retries that were granted, once all that were put off for longer have returned.
    fn adapt(&mut self, now: Moment) {
        self.spread = self.spread_now();
        if self.came < CAME_MIN || now.since(self.adapted) < self.spread {
            return;
        }
        if self.paid.saturating_mul(COME_BACK) < self.came {
            self.spread = (self.spread * 2).min(PUT_OFF_MAX);
        } else if self.paid.saturating_mul(COME_BACK / 2) > self.came {
            self.spread = (self.spread / 2).max(self.beat);
        }
        (self.came, self.paid, self.adapted) = (0, 0, now);
    }

    /// Returns whether very few attempts fail.
    fn is_well(&self) -> bool {
        u64::from(self.badly) * FAILS_OF <= u64::from(self.well) + u64::from(self.badly)
    }
}

impl Budget {
    pub(super) const fn new(settings: BudgetSettings, now: Moment, beat: Duration) -> Budget {
        Budget {
            settings,
            beat,
            granted: 0,
            earned: 0,
            wished: 0,
            came: 0,
            paid: 0,
            well: 0,
            badly: 0,
            heard: now,
            next: now.plus(beat),
            spread: beat,
            adapted: now,
        }
    }

    pub(super) const fn settings(&self) -> BudgetSettings {
        self.settings
    }

    /// Records a first attempt.
    pub(super) fn earn(&mut self) {
        self.earned = self.earned.saturating_add(self.settings.earns());
    }

    /// Records what an attempt says about the dependency.
    pub(super) fn note(&mut self, is_well: bool) {
        let count = if is_well { &mut self.well } else { &mut self.badly };
        *count = count.saturating_add(1);
    }

    /// Returns whether no granted retry is left.
    pub(super) const fn is_spent(&self) -> bool {
        self.granted == 0
    }

    /// Uses a grant for a due retry. Returns whether there was one.
    pub(super) fn pay(&mut self) -> bool {
        self.came = self.came.saturating_add(1);
        let Some(rest) = self.granted.checked_sub(1) else { return false };
        self.granted = rest;
        self.wished = self.wished.saturating_add(1);
        self.paid = self.paid.saturating_add(1);
        true
    }

    /// A granted retry succeeded. If very few attempts fail, it returns its cost and earns one more: such a dependency can take
    /// more load, and the waiting retries come back faster and faster. An overloaded dependency also serves some requests, but
    /// gets no more for it.
    pub(super) fn refund(&mut self) {
        if self.is_well() {
            self.granted += 2;
        }
    }

    /// A granted retry was not made.
    pub(super) fn undo(&mut self) {
        self.granted += 1;
        // The store may have received the report meanwhile.
        self.wished = self.wished.saturating_sub(1);
        self.came = self.came.saturating_sub(1);
        self.paid = self.paid.saturating_sub(1);
    }

    /// Returns how long a retry without a grant waits, at least `after`. Put-off retries come back after the next grant, spread
    /// at random over so much time that only few more come than are granted. So their cost for the store does not grow with their
    /// number.
    pub(super) fn put_off(
        &mut self,
        now: Moment,
        after: Duration,
        deadline: Option<Duration>,
        chance: u64,
    ) -> Duration {
        let spread = self.spread_now().mul_f64(chance as f64 / u64::MAX as f64);
        let wait = (self.next.since(now) + spread).clamp(PUT_OFF_MIN, PUT_OFF_MAX);
        if after >= wait {
            return after;
        }
        self.wished = self.wished.saturating_add(1);
        // One more check before its deadline is better than none.
        let look = deadline.map_or(PUT_OFF_MAX, |left| (left / 2).max(PUT_OFF_MIN));
        wait.min(look).max(after)
    }

    /// Reports what was earned, and requests what is wanted until the next time. Returns unused grants that are not needed.
    pub(super) fn ask(&mut self, kind: &KindName, now: Moment, living: usize) -> RetryAsk {
        let stock = u32::try_from((STOCK / living.max(1)).clamp(1, STOCK_MAX)).unwrap_or(1);
        // The report may be early: the next one may be later.
        let elapsed = now.since(self.heard).max(Duration::from_millis(1));
        let rest = (self.beat.as_millis() / elapsed.as_millis()).clamp(1, 100) as u32;
        let need = self.wished.saturating_mul(rest).saturating_add(stock).min(GRANT_MAX);
        let spare = self.granted.saturating_sub(u64::from(need));
        self.granted -= spare;
        self.adapt(now);
        (self.heard, self.next) = (now, now.plus(self.beat));
        self.wished = 0;
        (self.well, self.badly) = (self.well / 2, self.badly / 2);
        RetryAsk {
            kind: kind.clone(),
            earned: std::mem::take(&mut self.earned)
                .saturating_add(spare.saturating_mul(RetryPool::RETRY)),
            wanted: need - u32::try_from(self.granted).unwrap_or(need),
            floor: self.settings.floor(),
        }
    }

    /// Adds a grant.
    pub(super) fn receive(&mut self, granted: u32) {
        self.granted += u64::from(granted);
    }

    /// The report certainly did not reach the store, so it is repeated.
    pub(super) fn unsay(&mut self, ask: &RetryAsk) {
        self.earned = self.earned.saturating_add(ask.earned);
    }
}

#[cfg(test)]
mod tests;
