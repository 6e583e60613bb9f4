//! Tracks store outages, so that operators are notified once.

use rewheel::{Clock, Moment, RateLimiter, RateLimiterBuilder, duration, millis, minutes, seconds};
use rewheel_core::store::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Failures this close together count once: a server that drops its connections, or a group that is
/// not committed, fails a hundred calls at the same time, and may serve their next attempts.
const SAME_MOMENT: Duration = millis(50);

/// Log limit for failures of single calls, which come and go all the time.
const TOLD: RateLimiterBuilder = RateLimiter::per(1, minutes(1)).burst(3);

/// A failure that the caller repeats is reported once it has lasted this long.
const REPEATED: Duration = seconds(1);

/// The state of a store outage, if there is one.
#[derive(Debug)]
pub(super) struct Away {
    clock: Clock,
    /// Whether the store fails: checked after every call, so that a successful call takes no lock.
    is_failing: AtomicBool,
    trouble: Mutex<Trouble>,
    telling: RateLimiter,
}

#[derive(Debug, Default)]
struct Trouble {
    /// `None` if there is no outage.
    since: Option<Moment>,
    is_told: bool,
    /// When a failure was last counted.
    counted: Option<Moment>,
    /// The last failure.
    last: String,
}

/// What follows a call that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// The caller gets the error.
    ForGood,
    /// The caller repeats the call.
    ForNow,
}

/// Error of a call that was refused while the store is unavailable.
#[derive(Debug, thiserror::Error)]
#[error(
    "no call to the store succeeded for {time}: check that the store runs and is reachable; the engine retries every \
     second and resumes by itself; last error: {last}"
)]
struct LeftAlone {
    time: String,
    last: String,
}

impl Away {
    pub(super) fn new(clock: &Clock) -> Away {
        Away {
            clock: clock.clone(),
            is_failing: AtomicBool::new(false),
            trouble: Mutex::default(),
            telling: TOLD.clock(clock).build(),
        }
    }

    /// Records an attempt that did not reach the store, or got no response.
    pub(super) fn failed(&self, verb: &'static str, error: &StoreError) {
        let text = error.with_causes();
        tracing::debug!(verb, error = text, "store call failed, retrying");
        // The caller that repeats this error adds what it means. Keep only the cause here.
        self.enter().last = error.causes().unwrap_or(text);
    }

    /// Returns whether the last recorded failure counts: only once within a short time.
    pub(super) fn counts(&self) -> bool {
        let now = self.clock.now();
        let mut trouble = lock(&self.trouble);
        let is_new = trouble.counted.is_none_or(|counted| now.since(counted) >= SAME_MOMENT);
        if is_new {
            trouble.counted = Some(now);
        }
        is_new
    }

    /// Records that the store is available.
    pub(super) fn answered(&self) {
        if !self.is_failing.load(Ordering::Relaxed) {
            return;
        }
        let mut trouble = lock(&self.trouble);
        self.is_failing.store(false, Ordering::Relaxed);
        let was_told = std::mem::take(&mut trouble.is_told);
        let since = trouble.since.take().filter(|_| was_told);
        drop(trouble);
        if let Some(since) = since {
            tracing::info!(away = self.time_since(since), "store available again");
        }
    }

    /// Reports a call that was given up, unless the outage was already reported.
    pub(super) fn tell(&self, verb: &'static str, error: &StoreError, given_up: GivenUp) {
        match error {
            StoreError::Unavailable(_) | StoreError::Ambiguous(_) => {
                if self.is_news(given_up) {
                    let error = error.with_causes();
                    tracing::warn!(verb, error, "store unavailable: retrying until it answers");
                }
            }
            StoreError::Full(_) | StoreError::Broken { .. } => {
                if self.telling.check().is_ok() {
                    let error = error.with_causes();
                    tracing::error!(verb, error, "store error needs operator action");
                }
            }
            // The caller handles these.
            StoreError::Rejected(_) | StoreError::HolderDead(_) | StoreError::Closed => {}
        }
    }

    /// Returns the error of a refused call.
    pub(super) fn error(&self) -> StoreError {
        let trouble = lock(&self.trouble);
        // A call that was already in progress may have succeeded meanwhile.
        let since = trouble.since.unwrap_or_else(|| self.clock.now());
        let left_alone = LeftAlone { time: self.time_since(since), last: trouble.last.clone() };
        StoreError::Unavailable(Box::new(left_alone))
    }

    fn is_news(&self, given_up: GivenUp) -> bool {
        let now = self.clock.now();
        let mut trouble = self.enter();
        let has_lasted = trouble.since.is_some_and(|since| now.since(since) >= REPEATED);
        let is_due = given_up == GivenUp::ForGood || has_lasted;
        let is_news = is_due && !trouble.is_told && self.telling.check().is_ok();
        trouble.is_told |= is_news;
        is_news
    }

    fn enter(&self) -> MutexGuard<'_, Trouble> {
        let mut trouble = lock(&self.trouble);
        self.is_failing.store(true, Ordering::Relaxed);
        trouble.since.get_or_insert_with(|| self.clock.now());
        trouble
    }

    fn time_since(&self, since: Moment) -> String {
        let time = self.clock.now().since(since);
        let unit = if time < Duration::from_secs(1) { 1 } else { 1_000 };
        let whole = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        duration::text(Duration::from_millis(whole / unit * unit)).to_string()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under this lock can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
