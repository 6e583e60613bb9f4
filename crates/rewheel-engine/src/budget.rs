//! Keeps the retries of a kind a small share of its first attempts, in the whole fleet.
//!
//! First attempts earn, retries spend. What is earned is pooled in the store, since a job may be retried
//! at another holder than the one that tried it first. Each holder says with its heartbeat what it has
//! earned, and gets a grant: what it was granted and has not spent is all that it may retry until
//! the next one. A retry without a grant is put off, through the store, where it holds up nobody.

use crate::kinds::KindEntry;
use crate::rate::Rate;
use crate::settings::SettingError;
use crate::shared::{Finished, Shared, Waiting};
use rewheel::{BreakerState, Moment};
use rewheel_core::store::{Ran, Settlement, StoreError};
use rewheel_core::{Because, Decision, Floor, Job, KindName, RetryAsk, RetryPool};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// How many retries a kind may make, in the whole fleet.
///
/// ```
/// use rewheel_engine::BudgetSettings;
///
/// let budget: BudgetSettings = serde_json::from_str(r#"{"ratio":0.2}"#)?;
/// assert_eq!((budget.ratio, budget.floor.to_string().as_str()), (0.2, "10/s"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    /// How many retries each first attempt earns, 0 to 1.
    pub ratio: f64,
    /// How many retries there are however little is tried.
    pub floor: Rate,
}

impl Default for BudgetSettings {
    fn default() -> BudgetSettings {
        BudgetSettings { ratio: 0.1, floor: Rate::new(10, Duration::from_secs(1)) }
    }
}

impl BudgetSettings {
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if !(0.0..=1.0).contains(&self.ratio) {
            return wrong("retry_budget.ratio", "must be 0 to 1: 0.1 is a retry for ten attempts");
        }
        let Floor { retries, period } = self.floor();
        if retries > Floor::RETRIES_MAX {
            return wrong("retry_budget.floor", "must be 1000000 or fewer");
        }
        if period > Duration::from_secs(60) * retries {
            // With none at all, a retry could wait for ever.
            return wrong("retry_budget.floor", "must be `1/m` or more");
        }
        Ok(())
    }

    fn floor(&self) -> Floor {
        let (retries, period) = self.floor.parts();
        Floor { retries, period }
    }

    /// What a first attempt earns, in parts of a retry.
    fn earns(&self) -> u64 {
        (self.ratio.clamp(0.0, 1.0) * RetryPool::RETRY as f64).round() as u64
    }
}

/// One holder's part of a kind's budget.
#[derive(Debug)]
pub(crate) struct Budget {
    settings: BudgetSettings,
    /// The time between two heartbeats.
    beat: Duration,
    hand: Mutex<Hand>,
}

#[derive(Debug)]
struct Hand {
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

impl Hand {
    /// Says over which time those that are put off come back. Those whose dependency is back are about to earn what they need.
    fn spread(&self, beat: Duration) -> Duration {
        if self.well > 0 && self.is_well() { beat } else { self.spread }
    }

    /// Goes by how many of those that came back were paid for, once all have that were put off for longer.
    fn adapt(&mut self, now: Moment, beat: Duration) {
        self.spread = self.spread(beat);
        if self.came < CAME_MIN || now.since(self.adapted) < self.spread {
            return;
        }
        if self.paid.saturating_mul(COME_BACK) < self.came {
            self.spread = (self.spread * 2).min(PUT_OFF_MAX);
        } else if self.paid.saturating_mul(COME_BACK / 2) > self.came {
            self.spread = (self.spread / 2).max(beat);
        }
        (self.came, self.paid, self.adapted) = (0, 0, now);
    }

    /// Whether hardly anything fails.
    fn is_well(&self) -> bool {
        u64::from(self.badly) * FAILS_OF <= u64::from(self.well) + u64::from(self.badly)
    }
}

/// A retry that is paid for. Dropped, it is spent.
#[derive(Debug)]
pub(crate) struct Paid {
    budget: Arc<Budget>,
}

impl Paid {
    /// It succeeded. Where hardly anything fails it gives back what it cost, and earns one more: such a dependency can bear more,
    /// and what waits for it comes back faster and faster. One that is overloaded answers some, too, and gets no more for it.
    fn refund(self) {
        let mut hand = self.budget.hand();
        if hand.is_well() {
            hand.granted += 2;
        }
    }

    /// It was not made.
    fn undo(self) {
        let mut hand = self.budget.hand();
        hand.granted += 1;
        // The store may have heard of it meanwhile.
        hand.wished = hand.wished.saturating_sub(1);
        hand.came = hand.came.saturating_sub(1);
        hand.paid = hand.paid.saturating_sub(1);
    }
}

/// Whether an attempt may be made.
#[derive(Debug)]
pub(crate) enum Pass {
    /// It needs none, or has paid.
    Yes(Option<Paid>),
    /// It is put off.
    No(Arc<Budget>),
}

impl Pass {
    /// No attempt was made.
    pub(crate) fn undo(paid: Option<Paid>) {
        paid.into_iter().for_each(Paid::undo);
    }
}

impl Budget {
    pub(crate) fn new(settings: BudgetSettings, now: Moment, beat: Duration) -> Budget {
        let hand = Hand {
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
        };
        Budget { settings, beat, hand: Mutex::new(hand) }
    }

    /// A first attempt is made.
    fn earn(&self) {
        let mut hand = self.hand();
        hand.earned = hand.earned.saturating_add(self.settings.earns());
    }

    /// An attempt says how the dependency is.
    fn note(&self, is_well: bool) {
        let mut hand = self.hand();
        let count = if is_well { &mut hand.well } else { &mut hand.badly };
        *count = count.saturating_add(1);
    }

    /// Pays for a retry that is due.
    fn pay(self: &Arc<Budget>) -> Option<Paid> {
        let mut hand = self.hand();
        hand.came = hand.came.saturating_add(1);
        hand.granted = hand.granted.checked_sub(1)?;
        hand.wished = hand.wished.saturating_add(1);
        hand.paid = hand.paid.saturating_add(1);
        Some(Paid { budget: Arc::clone(self) })
    }

    /// Returns whether nothing is left to pay with.
    fn is_spent(&self) -> bool {
        self.hand().granted == 0
    }

    /// Returns how long a retry has to wait that is not paid for, and that waits for `after` in any case. Those that are put off come
    /// back after the next grant, by `chance` spread over so much time that not many more come than are paid for: what they cost
    /// the store does not grow with how many wait.
    fn put_off(
        &self,
        now: Moment,
        after: Duration,
        deadline: Option<Duration>,
        chance: u64,
    ) -> Duration {
        let mut hand = self.hand();
        let spread = hand.spread(self.beat).mul_f64(chance as f64 / u64::MAX as f64);
        let wait = (hand.next.since(now) + spread).clamp(PUT_OFF_MIN, PUT_OFF_MAX);
        if after >= wait {
            return after;
        }
        hand.wished = hand.wished.saturating_add(1);
        // One more look before its deadline is better than none.
        let look = deadline.map_or(PUT_OFF_MAX, |left| (left / 2).max(PUT_OFF_MIN));
        wait.min(look).max(after)
    }

    /// Says what was earned, and what is wanted until the next time. What is in hand and not needed goes back.
    fn ask(&self, kind: &KindName, now: Moment, living: usize) -> RetryAsk {
        let mut hand = self.hand();
        let stock = u32::try_from((STOCK / living.max(1)).clamp(1, STOCK_MAX)).unwrap_or(1);
        // It may have been heard before its time: the next time may be later.
        let elapsed = now.since(hand.heard).max(Duration::from_millis(1));
        let rest = (self.beat.as_millis() / elapsed.as_millis()).clamp(1, 100) as u32;
        let need = hand.wished.saturating_mul(rest).saturating_add(stock).min(GRANT_MAX);
        let spare = hand.granted.saturating_sub(u64::from(need));
        hand.granted -= spare;
        hand.adapt(now, self.beat);
        (hand.heard, hand.next) = (now, now.plus(self.beat));
        hand.wished = 0;
        (hand.well, hand.badly) = (hand.well / 2, hand.badly / 2);
        RetryAsk {
            kind: kind.clone(),
            earned: std::mem::take(&mut hand.earned)
                .saturating_add(spare.saturating_mul(RetryPool::RETRY)),
            wanted: need - u32::try_from(hand.granted).unwrap_or(need),
            floor: self.settings.floor(),
        }
    }

    /// Takes a grant.
    fn receive(&self, granted: u32) {
        self.hand().granted += u64::from(granted);
    }

    /// The store has certainly not heard it: it is said again.
    fn unsay(&self, ask: &RetryAsk) {
        let mut hand = self.hand();
        hand.earned = hand.earned.saturating_add(ask.earned);
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        // Nothing that can panic happens under it.
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KindEntry {
    /// Returns whether an attempt of a job may be made, as far as the budget of its kind is concerned. One whose deadline has passed
    /// is not made in any case: it only says so.
    pub(crate) fn pass(&self, waiting: &Waiting, now: Moment) -> Pass {
        let is_late = waiting.deadline.is_some_and(|deadline| deadline <= now);
        let needs = |_: &&Arc<Budget>| is_retry(&waiting.job) && !is_late;
        let Some(budget) = self.budget.as_ref().filter(needs) else { return Pass::Yes(None) };
        // One attempt finds out whether the dependency is back: with none, it would stay away.
        let is_probe = self.parked.is_some()
            || self.judged().is_some_and(|health| health.state() != BreakerState::Closed);
        match budget.pay() {
            Some(paid) => Pass::Yes(Some(paid)),
            None if is_probe => Pass::Yes(None),
            None => Pass::No(Arc::clone(budget)),
        }
    }

    /// An attempt of a job is made.
    pub(crate) fn earn(&self, job: &Job) {
        if let Some(budget) = self.budget.as_ref().filter(|_| job.attempt == job.attempts_before) {
            budget.earn();
        }
    }

    /// An attempt is over, which may have been paid for.
    pub(crate) fn account(&self, is_well: Option<bool>, decision: &Decision, paid: Option<Paid>) {
        if let (Some(budget), Some(is_well)) = (&self.budget, is_well) {
            budget.note(is_well);
        }
        if *decision == Decision::Succeed {
            paid.into_iter().for_each(Paid::refund);
        }
    }
}

/// Whether an attempt was made before that a person has not judged since: what a person wants to run now runs now.
fn is_retry(job: &Job) -> bool {
    job.attempt > job.attempts_before && job.because != Because::Person
}

impl Shared {
    /// Says in the store what was earned, and takes what it grants: one call for all kinds that have a budget, none where no kind
    /// has one. A store that does not answer grants nothing.
    pub(crate) async fn ask_for_grants(&self) {
        let (now, living) = (self.clock.now(), self.living());
        let (budgets, asks): (Vec<Arc<Budget>>, Vec<RetryAsk>) = self
            .kinds()
            .into_iter()
            .filter(|(_, kind)| kind.runner.is_some())
            .filter_map(|(name, kind)| {
                let budget = Arc::clone(kind.budget.as_ref()?);
                let ask = budget.ask(&name, now, living);
                Some((budget, ask))
            })
            .unzip();
        if asks.is_empty() {
            return;
        }
        match self.store.grant(&asks).await {
            Ok(granted) => {
                budgets.iter().zip(granted).for_each(|(budget, granted)| budget.receive(granted));
            }
            Err(StoreError::Unavailable(error)) => {
                tracing::debug!(%error, "no retries are granted");
                budgets.iter().zip(&asks).for_each(|(budget, ask)| budget.unsay(ask));
            }
            // What was earned may have been heard: it must not count twice.
            Err(error) => tracing::debug!(%error, "no retries are granted"),
        }
    }

    /// Sends a job that is due back to the store, unstarted, to come back when its retry may be paid for.
    pub(crate) fn put_off(&self, mut waiting: Waiting, budget: &Budget) {
        let now = self.clock.now();
        let deadline = waiting.deadline.map(|deadline| deadline.since(now));
        let after = budget.put_off(now, Duration::ZERO, deadline, self.random.next());
        waiting.queued = None;
        let settlement = Settlement {
            lease: waiting.lease(),
            decision: Decision::Snooze { after, because: Because::RetryBudget },
            ran: Ran::default(),
            failure: None,
            hold: Duration::ZERO,
            keep: self.keep_ended(),
        };
        // The other side ends only with the engine.
        let _ = self.to_settle.send(Finished { waiting, settlement, places: None });
    }

    /// Lets a retry that cannot be paid for wait for longer, in the store: another holder may have a grant for it.
    pub(crate) fn afford(&self, decision: &mut Decision, waiting: &Waiting, kind: &KindEntry) {
        let Decision::Retry { after, sticky, because } = decision else { return };
        let Some(budget) = kind.budget.as_ref().filter(|budget| budget.is_spent()) else { return };
        let now = self.clock.now();
        let deadline = waiting.deadline.map(|deadline| deadline.since(now));
        let wait = budget.put_off(now, *after, deadline, self.random.next());
        if wait > *after {
            (*after, *sticky, *because) = (wait, false, Because::RetryBudget);
        }
    }
}

#[cfg(test)]
mod tests;
