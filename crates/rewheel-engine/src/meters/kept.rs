//! Counters that live as long as the engine.

use super::histogram::Histogram;
use crate::counts::{Counts, DecisionCount};
use rewheel::{Category, Moment};
use rewheel_core::store::{Inserted, Outcome, Settlement};
use rewheel_core::{Decision, JobId, KindCounts, KindName, State, Timestamp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Maximum number of kinds with their own series. A collector keeps some hundred series for each.
const KINDS_MAX: usize = 1_000;

/// Why an instant of a schedule submitted no job.
pub(crate) const MISSED: [&str; 2] = ["late", "overlap"];

/// Results of a submit.
pub(super) const SUBMITTED: [&str; 3] = ["created", "duplicate", "refused"];

/// Results of a lease renewal.
pub(super) const RENEWED: [&str; 3] = ["renewed", "failed", "dead"];

/// One of [`RENEWED`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Renewal {
    Renewed,
    Failed,
    Dead,
}

/// Results of a store call.
pub(super) const CALLED: [&str; 2] = ["ok", "error"];

/// All counters of an engine.
#[derive(Debug)]
pub(crate) struct Meters {
    kinds: RwLock<BTreeMap<KindName, Arc<KindMeters>>>,
    /// All kinds beyond the maximum.
    others: Arc<KindMeters>,
    pub(crate) store: Arc<StoreMeters>,
    pub(crate) claim_batch: Histogram,
    renewals: [AtomicU64; RENEWED.len()],
    /// The last known time of the store's clock, and when it was received.
    store_time: Mutex<Option<(Timestamp, Moment)>>,
    #[cfg(feature = "otel")]
    pub(super) instruments: std::sync::OnceLock<super::otel::Instruments>,
}

impl Meters {
    pub(crate) fn new(store: Arc<StoreMeters>) -> Meters {
        Meters {
            kinds: RwLock::default(),
            others: Arc::default(),
            store,
            claim_batch: Histogram::of_sizes(),
            renewals: Default::default(),
            store_time: Mutex::default(),
            #[cfg(feature = "otel")]
            instruments: std::sync::OnceLock::new(),
        }
    }

    /// Returns the counters of a kind. Kinds beyond the maximum number share theirs, which only the history shows.
    pub(crate) fn kind(&self, name: &KindName) -> Arc<KindMeters> {
        let known = self.kinds.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        known.unwrap_or_else(|| {
            let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
            if kinds.len() >= KINDS_MAX {
                return Arc::clone(&self.others);
            }
            let fresh = Arc::clone(kinds.entry(name.clone()).or_default());
            #[cfg(feature = "otel")]
            if let Some(instruments) = self.instruments.get() {
                instruments.mirror_kind(name, &fresh);
            }
            fresh
        })
    }

    pub(crate) fn kinds(&self) -> Vec<(KindName, Arc<KindMeters>)> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.iter().map(|(name, meters)| (name.clone(), Arc::clone(meters))).collect()
    }

    /// Returns the counters of all kinds, with `None` for those beyond the maximum.
    pub(crate) fn kinds_and_others(
        &self,
    ) -> impl Iterator<Item = (Option<KindName>, Arc<KindMeters>)> {
        let kinds = self.kinds().into_iter().map(|(name, meters)| (Some(name), meters));
        kinds.chain([(None, Arc::clone(&self.others))])
    }

    /// Counts a renewal.
    pub(crate) fn renewal(&self, renewal: Renewal) {
        self.renewals[renewal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Records the time of the store's clock.
    pub(crate) fn store_time(&self, at: Timestamp, heard: Moment) {
        *self.store_time.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, heard));
    }

    /// Returns the time of the store's clock as far as known here: slightly less than the true time. `None` before the first answer.
    pub(crate) fn store_now(&self, now: Moment) -> Option<Timestamp> {
        let known = *self.store_time.lock().unwrap_or_else(PoisonError::into_inner);
        known.map(|(at, heard)| at.plus(now.since(heard)))
    }

    /// Returns how long something has been due, by the store's clock as far as known here: slightly less than the true value, by
    /// the response time. For information only.
    pub(crate) fn overdue(&self, due: Timestamp, now: Moment) -> Duration {
        self.store_now(now).map_or(Duration::ZERO, |store_now| store_now.since(due))
    }

    pub(super) fn renewals(&self) -> [u64; RENEWED.len()] {
        self.renewals.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

/// The counters of one kind.
#[derive(Debug)]
pub(crate) struct KindMeters {
    submitted: [AtomicU64; SUBMITTED.len()],
    pub(crate) started: AtomicU64,
    pub(crate) attempts: AtomicU64,
    /// Attempts that run in this process, and the largest number of them since it was last read.
    running: AtomicU64,
    running_max: AtomicU64,
    pub(crate) settled: Counts,
    /// By category, in the order of [`Category::ALL`].
    dead: [AtomicU64; Category::ALL.len()],
    pub(crate) duration: Histogram,
    pub(crate) lateness: Histogram,
    /// Attempts of ended jobs.
    pub(super) job_attempts: Histogram,
    pub(super) parkings: AtomicU64,
    delayed: AtomicU64,
    pub(crate) takeovers: AtomicU64,
    /// Instants of schedules that submitted no job: late, overlap.
    pub(crate) missed: [AtomicU64; MISSED.len()],
    unparked: Mutex<Option<Moment>>,
}

impl Default for KindMeters {
    fn default() -> KindMeters {
        KindMeters {
            submitted: Default::default(),
            started: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            running: AtomicU64::new(0),
            running_max: AtomicU64::new(0),
            settled: Counts::default(),
            dead: Default::default(),
            duration: Histogram::of_durations(),
            lateness: Histogram::of_durations(),
            job_attempts: Histogram::of_attempts(),
            parkings: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            takeovers: AtomicU64::new(0),
            missed: Default::default(),
            unparked: Mutex::default(),
        }
    }
}

impl KindMeters {
    /// Counts the result of a submitted job.
    pub(crate) fn submitted(&self, id: JobId, answer: &Inserted) {
        let place = match answer {
            Inserted::Created { .. } => 0,
            // It was sent again after its response was lost.
            Inserted::Duplicate { job, .. } if *job == id => 0,
            Inserted::Duplicate { .. } | Inserted::Replaced { .. } => 1,
            Inserted::Refused(_) => 2,
            // Another job of its batch was refused.
            Inserted::LeftOut => return,
        };
        self.submitted[place].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an attempt that starts.
    pub(crate) fn starts(&self, attempts_before: u32) {
        if attempts_before == 0 {
            self.started.fetch_add(1, Ordering::Relaxed);
        }
        self.attempts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an attempt that runs in this process, until the returned value is dropped.
    pub(crate) fn runs(self: &Arc<Self>) -> Running {
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.running_max.fetch_max(running, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    /// Returns what was counted since the engine started, with the largest number of running attempts since the previous call.
    pub(crate) fn totals(&self) -> KindCounts {
        let running = self.running.load(Ordering::Relaxed);
        let mut totals = KindCounts {
            submitted: self.submitted[0].load(Ordering::Relaxed),
            attempts: self.attempts.load(Ordering::Relaxed),
            dead: self.read_dead().map(|(_, count)| count).sum(),
            concurrency_max: self.running_max.swap(running, Ordering::Relaxed).max(running),
            durations: self.duration.buckets(),
            lateness: self.lateness.buckets(),
            ..KindCounts::default()
        };
        for DecisionCount { decision, count, .. } in self.settled.read() {
            let sum = match decision {
                "succeed" => &mut totals.succeeded,
                "retry" => &mut totals.retried,
                "snooze" => &mut totals.snoozed,
                "fail" => &mut totals.failed,
                "cancel" => &mut totals.cancelled,
                // Dead letters are counted above, and a paused attempt has no result.
                _ => continue,
            };
            *sum += count;
        }
        totals
    }

    /// Records how late an attempt starts now.
    pub(crate) fn is_late(&self, late: Duration, now: Moment) {
        self.lateness.took(late);
        let unparked = *self.unparked.lock().unwrap_or_else(PoisonError::into_inner);
        if unparked.is_some_and(|unparked| now.since(unparked) < late) {
            self.delayed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that its jobs may run again: those that were due before had to wait.
    pub(crate) fn unparked(&self, now: Moment) {
        *self.unparked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Counts a dead letter.
    pub(crate) fn died(&self, category: Category) {
        let place = Category::ALL.iter().position(|known| *known == category);
        if let Some(count) = place.and_then(|place| self.dead.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts that this node parked the kind.
    pub(crate) fn parked(&self) {
        self.parkings.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the attempts of a job, if this result ended the job. A cancelled job says nothing about its attempts.
    pub(crate) fn settled_after(&self, attempts: u32, decision: &Decision, outcome: Outcome) {
        let has_ended = match outcome {
            Outcome::LetGo(State::Succeeded | State::Failed | State::Dead) => true,
            // A kind that keeps no successes.
            Outcome::Gone => *decision == Decision::Succeed,
            Outcome::LetGo(State::Scheduled | State::Leased | State::Paused | State::Cancelled)
            | Outcome::Kept { .. } => false,
        };
        if has_ended {
            self.job_attempts.note(attempts.into());
        }
    }

    /// Counts a dead letter created by a settlement.
    pub(crate) fn died_of(&self, settlement: &Settlement) {
        let failure = settlement.decision.failure().or(settlement.failure.as_ref());
        self.died(failure.map_or(Category::Unknown, rewheel_core::Failure::category));
    }

    pub(super) fn read_submitted(&self) -> [u64; SUBMITTED.len()] {
        self.submitted.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    pub(super) fn read_dead(&self) -> impl Iterator<Item = (Category, u64)> {
        let counts = self.dead.iter().map(|count| count.load(Ordering::Relaxed));
        Category::ALL.iter().copied().zip(counts)
    }

    pub(super) fn read_delayed(&self) -> u64 {
        self.delayed.load(Ordering::Relaxed)
    }
}

/// Counts a running attempt.
#[derive(Debug)]
pub(crate) struct Running(Arc<KindMeters>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The counters of store calls.
#[derive(Debug, Default)]
pub(crate) struct StoreMeters {
    verbs: RwLock<BTreeMap<&'static str, Arc<VerbMeters>>>,
    #[cfg(feature = "otel")]
    pub(super) instruments: std::sync::OnceLock<super::otel::Instruments>,
}

/// The counters of one store method.
#[derive(Debug)]
pub(crate) struct VerbMeters {
    calls: [AtomicU64; CALLED.len()],
    pub(super) duration: Histogram,
}

impl StoreMeters {
    /// Counts a call, including all its attempts.
    pub(crate) fn called(&self, verb: &'static str, took: Duration, is_ok: bool) {
        let known = self.verbs.read().unwrap_or_else(PoisonError::into_inner).get(verb).cloned();
        let meters = known.unwrap_or_else(|| self.fresh(verb));
        meters.calls[usize::from(!is_ok)].fetch_add(1, Ordering::Relaxed);
        meters.duration.took(took);
    }

    fn fresh(&self, verb: &'static str) -> Arc<VerbMeters> {
        let mut verbs = self.verbs.write().unwrap_or_else(PoisonError::into_inner);
        let meters = verbs.entry(verb).or_insert_with(|| {
            let calls = Default::default();
            Arc::new(VerbMeters { calls, duration: Histogram::of_durations() })
        });
        #[cfg(feature = "otel")]
        if let Some(instruments) = self.instruments.get() {
            instruments.mirror_verb(verb, meters);
        }
        Arc::clone(meters)
    }

    pub(super) fn verbs(&self) -> Vec<(&'static str, Arc<VerbMeters>)> {
        let verbs = self.verbs.read().unwrap_or_else(PoisonError::into_inner);
        verbs.iter().map(|(verb, meters)| (*verb, Arc::clone(meters))).collect()
    }
}

impl VerbMeters {
    pub(super) fn read_calls(&self) -> [u64; CALLED.len()] {
        self.calls.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}
