//! Finds the number of concurrent calls that a dependency serves without a queue.
//!
//! Calls that wait in a queue of the dependency take longer. So `used x (1 - baseline / latency)` calls wait there, where the
//! baseline is the latency without a queue. The controller keeps this number small: if it is too large, the limit becomes what the
//! dependency served at once; if the limit is used up and no call waits, the limit grows.

use crate::clock::Moment;
use crate::duration::millis;
use crate::random::Random;
use std::time::Duration;

/// A shorter window would see single slow calls.
const WINDOW_MIN: Duration = millis(100);
/// A longer window would react too late.
const WINDOW_MAX: Duration = millis(700);
const CALLS_ENOUGH: u32 = 20;
/// With fewer calls than `CALLS_ENOUGH`, a window is longer.
const CALLS_MIN: u32 = 5;
/// A window lasts this many times the latency.
const LATENCIES_PER_WINDOW: f64 = 1.5;
/// After a change of the limit, the first calls that end are the fast ones. They are ignored for this many times the latency.
const LATENCIES_IGNORED: f64 = 2.0;
/// A window ends when the error of the mean latency is below this share, while the limit grows fast and later.
const PRECISION_AT_START: f64 = 0.2;
const PRECISION: f64 = 0.03;
/// A difference of this many errors is no chance.
const ERRORS_CLEAR: f64 = 3.0;
const ERRORS_LIKELY: f64 = 2.0;

/// This share of the calls may wait in a queue of the dependency, but always one call.
const QUEUE_SHARE_MAX: f64 = 0.1;
/// This share of failed calls lowers the limit.
const FAILED_SHARE_MAX: f64 = 0.1;
/// To this share the limit falls after failures.
const AFTER_FAILURES: f64 = 0.8;
/// By this share the limit grows: most until the first sign of a queue, then least, then faster each time it grows again.
const GROWTH_AT_START: f64 = 0.5;
const GROWTH_MAX: f64 = 0.2;
const GROWTH_MIN: f64 = 0.05;
const GROWTH_OF_GROWTH: f64 = 1.5;

/// To this share the limit is lowered for a moment, to measure the latency without a queue again.
const PROBE: f64 = 0.8;
const PROBE_EVERY: (u64, u64) = (8_000, 12_000);
/// After a probe that has found a lower baseline, the next one may find a still lower one.
const PROBE_SOON: Duration = Duration::from_secs(1);
/// If a probe finds a latency above this multiple of the baseline, that is a queue, not a drift of the baseline.
const DRIFT_MAX: f64 = 1.25;
/// A probe that finds a latency below this multiple of the baseline replaces it.
const LOWER: f64 = 0.9;
const DRIFT_MAX_IF_UNUSED: f64 = 2.0;
/// If the limit has fallen to this share, and the latency is still this share of what it was, then calls are not slow because of
/// a queue: the dependency itself has become slower.
const FALLEN: f64 = 0.4;
const AS_SLOW: f64 = 0.85;
/// If a queue is likely but not clear, the limit falls to this share.
const STEP_DOWN: f64 = 0.95;

/// A measured call that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) started: Moment,
    pub(super) ended: Moment,
    /// The number of calls that ran when it started, with this one.
    pub(super) in_use: usize,
    pub(super) failed: bool,
}

/// The state of the algorithm. It uses neither a clock nor a lock.
#[derive(Debug)]
pub(super) struct Controller {
    floor: f64,
    ceiling: f64,
    limit: f64,
    /// Seconds; zero as long as it is unknown.
    baseline: f64,
    /// The standard error of the baseline.
    baseline_error: f64,
    /// Whether no queue was seen yet, so that the limit grows fast.
    is_starting: bool,
    /// By this share the limit grows next; more if it has grown before.
    growth: f64,
    is_probing: bool,
    probe_at: Moment,
    /// Calls that started earlier saw the effects of another limit.
    valid_from: Moment,
    /// Calls that ended earlier are too many fast ones.
    counts_from: Moment,
    window: Window,
    fall: Option<Fall>,
}

/// What was before the limit began to fall because of a queue.
#[derive(Clone, Copy, Debug)]
struct Fall {
    limit: f64,
    /// The highest latency since.
    latency: f64,
}

/// What was measured since the last decision.
#[derive(Debug, Default)]
struct Window {
    started: Option<Moment>,
    seconds: f64,
    /// Sum of the squares of the latencies.
    squares: f64,
    in_use: f64,
    succeeded: u32,
    failed: u32,
    was_full: bool,
}

impl Window {
    fn calls(&self) -> u32 {
        self.succeeded + self.failed
    }

    fn latency(&self) -> f64 {
        self.seconds / f64::from(self.succeeded.max(1))
    }

    fn used(&self) -> f64 {
        self.in_use / f64::from(self.calls().max(1))
    }

    /// Returns the standard error of the mean latency.
    fn error(&self) -> f64 {
        let (calls, mean) = (f64::from(self.succeeded.max(1)), self.latency());
        ((self.squares / calls - mean * mean).max(0.0) / calls).sqrt()
    }

    fn is_complete(&self, now: Moment, baseline: f64, precision: f64) -> bool {
        let Some(started) = self.started else { return false };
        let elapsed = now.since(started);
        let (latency, error) = (self.latency(), self.error());
        if elapsed < WINDOW_MIN || elapsed.as_secs_f64() < LATENCIES_PER_WINDOW * latency {
            return false;
        }
        if elapsed >= WINDOW_MAX {
            return self.calls() >= CALLS_MIN;
        }
        let is_queue = baseline > 0.0 && latency - baseline > baseline + ERRORS_CLEAR * error;
        self.calls() >= CALLS_ENOUGH && (error <= latency * precision || is_queue)
    }
}

impl Controller {
    pub(super) fn new(floor: usize, ceiling: usize, initial: usize) -> Controller {
        Controller {
            floor: floor as f64,
            ceiling: ceiling as f64,
            limit: initial as f64,
            baseline: 0.0,
            baseline_error: 0.0,
            is_starting: true,
            growth: GROWTH_AT_START,
            is_probing: false,
            probe_at: Moment::ZERO,
            valid_from: Moment::ZERO,
            counts_from: Moment::ZERO,
            window: Window::default(),
            fall: None,
        }
    }

    /// Returns the number of slots in force now.
    pub(super) fn slots(&self) -> usize {
        let limit = if self.is_probing { (self.limit * PROBE).floor() } else { self.limit.round() };
        limit.clamp(self.floor, self.ceiling) as usize
    }

    /// Returns the latency without a queue, if it is known.
    pub(super) fn baseline(&self) -> Option<Duration> {
        (self.baseline > 0.0).then(|| Duration::from_secs_f64(self.baseline))
    }

    /// Adds a measurement, and decides when there are enough. The caller compares [`slots`](Controller::slots).
    pub(super) fn add(&mut self, sample: Sample, random: &Random) {
        if sample.started < self.valid_from || sample.ended < self.counts_from {
            return;
        }
        let slots = self.slots();
        let window = &mut self.window;
        window.started.get_or_insert(sample.ended);
        window.in_use += sample.in_use as f64;
        window.was_full |= sample.in_use >= slots;
        if sample.failed {
            window.failed += 1;
        } else {
            window.succeeded += 1;
            let seconds = sample.ended.since(sample.started).as_secs_f64();
            window.seconds += seconds;
            window.squares += seconds * seconds;
        }
        let precision = if self.is_starting { PRECISION_AT_START } else { PRECISION };
        if window.is_complete(sample.ended, self.baseline, precision) {
            let window = std::mem::take(&mut self.window);
            self.decide(&window, sample.ended, random);
            self.settle(&window, slots, sample.ended);
        }
    }

    fn decide(&mut self, window: &Window, now: Moment, random: &Random) {
        let failures_max = FAILED_SHARE_MAX * f64::from(window.calls());
        if window.failed > 0 && f64::from(window.failed) >= failures_max {
            return self.lower_to(window.used().min(self.limit) * AFTER_FAILURES);
        }
        let (used, latency) = (window.used(), window.latency().max(f64::MIN_POSITIVE));
        if self.baseline <= 0.0 {
            self.learn(window, 1.0);
            self.probe_at = next_probe(now, random);
        }
        let queued = used * (1.0 - self.baseline / latency);
        let queued_max = (used * QUEUE_SHARE_MAX).max(1.0);
        let error = window.error().hypot(self.baseline_error);
        let excess = latency - self.baseline;
        let is_clear = excess > ERRORS_CLEAR * error;
        if self.is_probing && !(is_clear && latency > self.baseline * DRIFT_MAX) {
            return self.end_probe(window, now, random);
        }
        let is_unused = used * 2.0 < self.limit;
        if is_unused && latency > self.baseline && latency <= self.baseline * DRIFT_MAX_IF_UNUSED {
            // So few calls of this process are hardly the reason: the dependency has become slower.
            self.learn(window, 0.2);
        } else if queued > queued_max && excess > ERRORS_LIKELY * error {
            if is_clear {
                return self.fall(window, used - queued + queued_max / 2.0);
            }
            if self.is_starting {
                // Few calls were measured until now, so the baseline may be wrong.
                self.is_starting = false;
                self.probe_at = now;
            }
            if !self.begins_probe(window, now) {
                self.fall(window, used * STEP_DOWN);
            }
            return;
        }
        let is_free = queued <= queued_max / 2.0 || excess <= error;
        if !is_free {
            self.growth = GROWTH_MIN;
        }
        self.fall = None;
        if self.is_starting {
            self.learn(window, 0.3);
        } else if excess < 0.0 {
            self.learn(window, 0.1);
        }
        if !self.begins_probe(window, now) && window.was_full && is_free {
            self.limit = (self.limit + (self.limit * self.growth).max(1.0)).min(self.ceiling);
            if !self.is_starting {
                self.growth = (self.growth * GROWTH_OF_GROWTH).min(GROWTH_MAX);
            }
        }
    }

    fn begins_probe(&mut self, window: &Window, now: Moment) -> bool {
        self.is_probing = window.was_full && now >= self.probe_at && self.limit > self.floor;
        self.is_probing
    }

    /// Moves the baseline towards the latency of this window.
    fn learn(&mut self, window: &Window, weight: f64) {
        self.baseline += weight * (window.latency() - self.baseline);
        let kept = (1.0 - weight) * self.baseline_error;
        self.baseline_error = kept.hypot(weight * window.error());
    }

    fn end_probe(&mut self, window: &Window, now: Moment, random: &Random) {
        let is_lower = window.latency() < self.baseline * LOWER;
        self.learn(window, if is_lower { 1.0 } else { 0.5 });
        self.is_probing = false;
        self.probe_at = if is_lower { now.plus(PROBE_SOON) } else { next_probe(now, random) };
    }

    /// Lowers the limit because calls wait in a queue; or finds that this does not help.
    fn fall(&mut self, window: &Window, to: f64) {
        let latency = window.latency();
        let before = self.fall.unwrap_or(Fall { limit: self.limit, latency: 0.0 });
        let has_fallen = self.limit <= before.limit * FALLEN || self.limit <= self.floor;
        if has_fallen && latency >= before.latency * AS_SLOW {
            self.learn(window, 1.0);
            self.limit = before.limit;
            self.is_probing = false;
            self.fall = None;
            return;
        }
        self.lower_to(to);
        self.fall = Some(Fall { latency: before.latency.max(latency), ..before });
    }

    fn lower_to(&mut self, limit: f64) {
        self.limit = limit.min(self.limit).max(self.floor);
        self.is_starting = false;
        self.is_probing = false;
        self.growth = GROWTH_MIN;
    }

    /// Ignores the calls that saw the limit before.
    fn settle(&mut self, window: &Window, slots_before: usize, now: Moment) {
        let (slots, latency) = (self.slots(), Duration::from_secs_f64(window.latency()));
        if slots == slots_before {
            return;
        }
        // The queue of the dependency needs about one latency to become empty.
        self.valid_from = if slots < slots_before { now.plus(latency) } else { now };
        self.counts_from = self.valid_from.plus(latency.mul_f64(LATENCIES_IGNORED));
    }
}

/// At a random time, so that the clients of a dependency do not probe together.
fn next_probe(now: Moment, random: &Random) -> Moment {
    now.plus(millis(random.between(PROBE_EVERY.0, PROBE_EVERY.1)))
}
