//! One engine's share of a kind's retry budget.
//!
//! First attempts earn, retries spend. What is earned is pooled in the store, since a job may be retried
//! at another engine than the one that tried it first. Each engine says with its heartbeat what it has
//! earned, and gets a grant: what it was granted and has not spent is all that it may retry until
//! the next one. A retry without a grant is put off, through the store, where it blocks no other job.

use crate::budget::BudgetSettings;
use rewheel::Moment;
use rewheel_core::{KindName, RetryAsk, RetryPool};
use std::time::Duration;

/// How many retries holders together keep in hand for the first failures of a bad moment. Each keeps its share, at least one.
const STOCK: usize = 100;

/// The most that one holder keeps in hand, or asks for at once.
const STOCK_MAX: usize = 10;
const GRANT_MAX: u32 = 10_000;

/// Up to one in so many attempts may fail where nothing is wrong.
const FAILS_OF: u64 = 10;

/// So many retries that were put off are to come back for each that is paid for. More would burden the store, fewer would be late once
/// their dependency is back.
const COME_BACK: u32 = 4;

/// So many must have come back before it is known whether those are too many.
const CAME_MIN: u32 = 8;

/// The shortest time that a retry is put off for: it costs a write.
const PUT_OFF_MIN: Duration = Duration::from_millis(100);

/// The longest: what waits may be retried much sooner than it looked when it was put off.
const PUT_OFF_MAX: Duration = Duration::from_secs(3_600);

/// What one engine has of the budget.
#[derive(Debug)]
pub(super) struct Budget {
    settings: BudgetSettings,
    /// The time between two heartbeats.
    beat: Duration,
    /// Retries that were granted and are not spent.
    granted: u64,
    /// What first attempts have earned since the store last heard, in parts of a retry.
    earned: u64,
    /// Retries that could have been made since then.
    wished: u32,
    /// Retries that were due of late, and those of them that were paid for.
    came: u32,
    paid: u32,
    /// Attempts of late that went well, and those that did not.
    well: u32,
    badly: u32,
    /// When the store last heard, and when it hears next.
    heard: Moment,
    next: Moment,
    /// Within which time after the next grant those that are put off come back, and since when that is so.
    spread: Duration,
    adapted: Moment,
}

impl Budget {
    /// Says over which time those that are put off come back. Those whose dependency is back are about to earn what they need.
    fn spread_now(&self) -> Duration {
        if self.well > 0 && self.is_well() { self.beat } else { self.spread }
    }

    /// Goes by how many of those that came back were paid for, once all have that were put off for longer.
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

    /// Whether hardly anything fails.
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

    /// A first attempt is made.
    pub(super) fn earn(&mut self) {
        self.earned = self.earned.saturating_add(self.settings.earns());
    }

    /// An attempt says how the dependency is.
    pub(super) fn note(&mut self, is_well: bool) {
        let count = if is_well { &mut self.well } else { &mut self.badly };
        *count = count.saturating_add(1);
    }

    /// Returns whether nothing is left to pay with.
    pub(super) const fn is_spent(&self) -> bool {
        self.granted == 0
    }

    /// Pays for a retry that is due. Returns whether it could.
    pub(super) fn pay(&mut self) -> bool {
        self.came = self.came.saturating_add(1);
        let Some(rest) = self.granted.checked_sub(1) else { return false };
        self.granted = rest;
        self.wished = self.wished.saturating_add(1);
        self.paid = self.paid.saturating_add(1);
        true
    }

    /// A retry that was paid for succeeded. Where hardly anything fails it gives back what it cost, and earns one more: such a
    /// dependency can bear more, and what waits for it comes back faster and faster. One that is overloaded answers some, too,
    /// and gets no more for it.
    pub(super) fn refund(&mut self) {
        if self.is_well() {
            self.granted += 2;
        }
    }

    /// A retry that was paid for was not made.
    pub(super) fn undo(&mut self) {
        self.granted += 1;
        // The store may have heard of it meanwhile.
        self.wished = self.wished.saturating_sub(1);
        self.came = self.came.saturating_sub(1);
        self.paid = self.paid.saturating_sub(1);
    }

    /// Returns how long a retry has to wait that is not paid for, and that waits for `after` in any case. Those that are put off come
    /// back after the next grant, by `chance` spread over so much time that not many more come than are paid for: what they cost
    /// the store does not grow with how many wait.
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
        // One more look before its deadline is better than none.
        let look = deadline.map_or(PUT_OFF_MAX, |left| (left / 2).max(PUT_OFF_MIN));
        wait.min(look).max(after)
    }

    /// Says what was earned, and what is wanted until the next time. What is in hand and not needed goes back.
    pub(super) fn ask(&mut self, kind: &KindName, now: Moment, living: usize) -> RetryAsk {
        let stock = u32::try_from((STOCK / living.max(1)).clamp(1, STOCK_MAX)).unwrap_or(1);
        // It may have been heard before its time: the next time may be later.
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

    /// Takes a grant.
    pub(super) fn receive(&mut self, granted: u32) {
        self.granted += u64::from(granted);
    }

    /// The store has certainly not heard it: it is said again.
    pub(super) fn unsay(&mut self, ask: &RetryAsk) {
        self.earned = self.earned.saturating_add(ask.earned);
    }
}

#[cfg(test)]
mod tests;
