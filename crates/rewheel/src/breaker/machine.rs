//! State machine of the circuit breaker.
//!
//! While the breaker is closed, calls use atomics only. Everything else is rare, and happens under a lock that is never held
//! while foreign code runs.

use super::config::{CircuitBreakerBuilder, Needs, Threshold, Trip, When};
use super::totals::Totals;
use super::word::{Phase, Word};
use super::{BreakerSnapshot, BreakerState, Outcome};
use crate::classify::{Class, Classify, Verdict};
use crate::clock::Moment;
use crate::error::{GiveUpReason, Refused};
use crate::observer::{Event, next_serial, refused};
use crate::ratio::Ratio;
use crate::sync::{AtomicU64, Mutex, Ordering, OwnLine, lock};
use crate::window::{CountWindow, Counts, Tally, TimeWindow};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Machine {
    word: OwnLine<AtomicU64>,
    /// When an open breaker lets a probe pass. Written before the word that says that it is open.
    open_until: AtomicU64,
    /// Until when the called service asked its callers to stay away.
    asked_until: AtomicU64,
    window: Window,
    cold: Mutex<Cold>,
    totals: Totals,
    config: CircuitBreakerBuilder,
}

/// Two windows, used in turn for each closed period: a call that stalls while it writes its result does not write into the window
/// of a later period.
#[derive(Debug)]
enum Window {
    None,
    Count([CountWindow; 2]),
    Time([TimeWindow; 2]),
}

/// State that only half open and transitions need.
#[derive(Debug, Default)]
struct Cold {
    probes: Vec<Probe>,
    probes_started: u64,
    successes: u32,
    /// Number of openings since it was last closed.
    openings: u32,
}

#[derive(Debug)]
struct Probe {
    id: u64,
    expires: Moment,
}

/// The data of a permit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    epoch: u64,
    /// Zero unless it is a probe.
    probe: u64,
    /// Only set where slow calls count.
    started: Moment,
}

impl Machine {
    pub(super) fn new(config: CircuitBreakerBuilder) -> Machine {
        let window = match config.trip {
            Trip::Consecutive { .. } => Window::None,
            Trip::Count { size, .. } => Window::Count([(); 2].map(|()| CountWindow::new(size))),
            Trip::Time { length, .. } => Window::Time([(); 2].map(|()| TimeWindow::new(length))),
        };
        Machine {
            word: OwnLine(AtomicU64::new(Word::new(0, Phase::Closed).0)),
            open_until: AtomicU64::new(0),
            asked_until: AtomicU64::new(0),
            window,
            cold: Mutex::new(Cold::default()),
            totals: Totals::new(config.counts_calls),
            config,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    #[inline]
    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn acquire(&self) -> Result<Token, Refused> {
        match self.acquire_if_closed() {
            Some(token) => Ok(token),
            None => self.acquire_unless_open().map_err(|refusal| {
                self.totals.refused();
                refused(self.config.observer.as_ref(), &self.config.name, refusal)
            }),
        }
    }

    /// Lets a call pass if the breaker is closed; otherwise returns `None`.
    #[inline]
    pub(crate) fn acquire_if_closed(&self) -> Option<Token> {
        let word = self.word();
        (word.phase() == Phase::Closed).then(|| self.pass(word))
    }

    /// Not inlined: most breakers do not measure the time of calls.
    #[inline(never)]
    fn now(&self) -> Moment {
        self.config.clock.now()
    }

    #[inline]
    fn pass(&self, word: Word) -> Token {
        let started = match self.config.trip.slow() {
            Some(_) => self.now(),
            None => Moment::ZERO,
        };
        Token { epoch: word.epoch(), probe: 0, started }
    }

    #[cold]
    fn acquire_unless_open(&self) -> Result<Token, Refused> {
        loop {
            let word = self.word();
            match word.phase() {
                Phase::Closed | Phase::ForcedClosed => return Ok(self.pass(word)),
                Phase::Isolated => return Err(Refused::new(GiveUpReason::CircuitOpen, None)),
                Phase::Open => {
                    let until = Moment::from_nanos(self.open_until.load(Ordering::Acquire));
                    let rest = until.since(self.config.clock.now());
                    if !rest.is_zero() {
                        return Err(Refused::new(GiveUpReason::CircuitOpen, Some(rest)));
                    }
                    self.change(|_, now| (now == word).then_some(Phase::HalfOpen));
                }
                Phase::HalfOpen => {
                    if let Some(answer) = self.take_probe(word) {
                        return answer;
                    }
                }
            }
        }
    }

    /// Hands out a probe; `None` if the breaker is no longer half open.
    fn take_probe(&self, word: Word) -> Option<Result<Token, Refused>> {
        let now = self.config.clock.now();
        let mut cold = lock(&self.cold);
        if self.word().epoch() != word.epoch() {
            return None;
        }
        cold.probes.retain(|probe| probe.expires > now);
        if cold.probes.len() >= self.config.probes_max as usize {
            return Some(Err(Refused::new(GiveUpReason::CircuitOpen, None)));
        }
        cold.probes_started += 1;
        let probe = Probe { id: cold.probes_started, expires: now.plus(self.config.probe_timeout) };
        let token = Token { epoch: word.epoch(), probe: probe.id, started: now };
        cold.probes.push(probe);
        Some(Ok(token))
    }

    /// Returns what a result says about the dependency, and remembers how long its service asked callers to stay away.
    #[inline]
    pub(crate) fn judge<T, E: Classify>(&self, result: &Result<T, E>) -> Option<Outcome> {
        match result {
            Ok(_) => Some(Outcome::Success),
            Err(error) => self.judge_class(&error.classify()),
        }
    }

    /// As [`judge`](Machine::judge). Must be called before the outcome is recorded, which may open the breaker.
    #[inline]
    pub(crate) fn judge_class(&self, class: &Class) -> Option<Outcome> {
        let outcome = Outcome::of_class(class);
        if let (Verdict::RetryAfter(delay), Some(Outcome::Failure)) = (class.verdict, outcome) {
            self.hear(delay);
        }
        outcome
    }

    /// Remembers that the called service asked callers to stay away.
    #[cold]
    pub(super) fn hear(&self, delay: Duration) {
        let time = delay.min(self.config.retry_after_max);
        if !time.is_zero() {
            let until = self.config.clock.now().plus(time);
            self.asked_until.fetch_max(until.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Counts a finished call; `None` releases its permit without counting.
    #[inline]
    pub(crate) fn record(&self, token: Token, outcome: Option<Outcome>) {
        if token.probe != 0 {
            self.record_probe(token, outcome);
        } else if let Some(outcome) = outcome {
            self.record_passed(token, outcome);
        }
    }

    /// Counts a call that was dropped without a result, if such calls count. Rare, and not part of the path of other calls.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_dropped(&self, token: Token) {
        self.record(token, self.config.counts_dropped.then_some(Outcome::Failure));
    }

    /// Counts a finished call that is not a probe. Such a call has nothing to release, so it may also be dropped.
    #[inline]
    pub(crate) fn record_passed(&self, token: Token, outcome: Outcome) {
        debug_assert_eq!(token.probe, 0, "the token of a probe must be released");
        // Separate values, so that they are passed in registers.
        let Token { epoch, started, .. } = token;
        self.record_closed(epoch, started, outcome);
    }

    #[inline]
    fn record_closed(&self, epoch: u64, started: Moment, outcome: Outcome) {
        self.totals.ended(outcome);
        let word = self.word();
        if word.epoch() != epoch || word.phase() != Phase::Closed {
            return;
        }
        let failed = outcome == Outcome::Failure;
        let parity = (word.generation() & 1) as usize;
        match (&self.window, &self.config.trip) {
            (Window::None, Trip::Consecutive { failures }) => {
                if failed || word.failures() > 0 {
                    self.record_consecutive(epoch, failed, *failures);
                }
            }
            (Window::Count(windows), Trip::Count { when, .. }) => {
                let tally = Tally { failed, slow: self.is_slow(started, when) };
                windows[parity].record(tally);
                if (failed || tally.slow) && when.is_reached(windows[parity].counts()) {
                    self.trip(epoch);
                }
            }
            (Window::Time(windows), Trip::Time { when, .. }) => {
                let now = self.config.clock.now();
                let slow = when.slow.is_some_and(|slow| now.since(started) > slow.over);
                windows[parity].record(Tally { failed, slow }, now);
                if (failed || slow) && when.is_reached(windows[parity].counts(now)) {
                    self.trip(epoch);
                }
            }
            (Window::None | Window::Count(_) | Window::Time(_), _) => {
                unreachable!("the type of the window matches the type of the trip")
            }
        }
    }

    fn is_slow(&self, started: Moment, when: &When) -> bool {
        when.slow.is_some_and(|slow| self.now().since(started) > slow.over)
    }

    fn record_consecutive(&self, epoch: u64, failed: bool, failures_max: u32) {
        let mut word = self.word();
        loop {
            if word.epoch() != epoch {
                return;
            }
            let failures = if failed { word.failures().saturating_add(1) } else { 0 };
            let next = word.with_failures(failures);
            if next == word {
                return;
            }
            match self.word.compare_exchange_weak(
                word.0,
                next.0,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) if failures >= failures_max => return self.trip(epoch),
                Ok(_) => return,
                Err(current) => word = Word(current),
            }
        }
    }

    fn trip(&self, epoch: u64) {
        self.change(|_, word| (word.epoch() == epoch).then_some(Phase::Open));
    }

    fn record_probe(&self, token: Token, outcome: Option<Outcome>) {
        if let Some(outcome) = outcome {
            self.totals.ended(outcome);
        }
        let now = self.config.clock.now();
        let slow = self.config.trip.slow().is_some_and(|slow| now.since(token.started) > slow.over);
        self.change(|cold, word| {
            if word.epoch() != token.epoch {
                return None;
            }
            // An expired probe has lost its slot, and its result is ignored.
            let place = cold.probes.iter().position(|probe| probe.id == token.probe)?;
            if cold.probes.swap_remove(place).expires <= now {
                return None;
            }
            match outcome? {
                Outcome::Success if !slow => {
                    cold.successes += 1;
                    (cold.successes >= self.config.successes_to_close).then_some(Phase::Closed)
                }
                Outcome::Success | Outcome::Failure => Some(Phase::Open),
            }
        });
    }

    pub(super) fn force_open(&self) {
        // A breaker that is already open, or held open, stays as it is.
        self.change(|_, word| (word.phase().state() != BreakerState::Open).then_some(Phase::Open));
    }

    pub(super) fn isolate(&self) {
        self.change(|_, _| Some(Phase::Isolated));
    }

    pub(super) fn force_close(&self) {
        self.change(|_, _| Some(Phase::ForcedClosed));
    }

    pub(super) fn reset(&self) {
        self.change(|_, _| Some(Phase::Closed));
    }

    /// Changes the phase if `decide` returns a new one. This is the only place that changes it.
    fn change(&self, decide: impl FnOnce(&mut Cold, Word) -> Option<Phase>) {
        let mut cold = lock(&self.cold);
        let word = self.word();
        let Some(phase) = decide(&mut cold, word) else { return };
        let next = word.next(phase);
        cold.probes.clear();
        cold.successes = 0;
        match phase {
            Phase::Open => {
                cold.openings = cold.openings.saturating_add(1);
                let open = &self.config.open;
                let nanos = open.draw(cold.openings, None, Ratio::ONE, &self.config.random);
                let until = self.config.clock.now().plus(Duration::from_nanos(nanos));
                let asked = self.asked_until.load(Ordering::Relaxed);
                self.open_until.store(until.as_nanos().max(asked), Ordering::Release);
            }
            Phase::Closed => {
                cold.openings = 0;
                self.asked_until.store(0, Ordering::Relaxed);
                self.window.clear(next);
            }
            Phase::HalfOpen | Phase::Isolated | Phase::ForcedClosed => {}
        }
        // A store would be enough: a failure counted meanwhile belongs to the generation that ends here. But loom does not order
        // a store among exchanges, and could not check this.
        self.word.swap(next.0, Ordering::AcqRel);
        let (from, to) = (word.phase().state(), phase.state());
        if from == to {
            return;
        }
        self.totals.changed();
        let Some(observer) = &self.config.observer else { return };
        // Drawn under the lock: an observer that hears of two changes in the wrong order can tell.
        let serial = next_serial();
        drop(cold);
        let CircuitBreakerBuilder { name, keyed, .. } = &self.config;
        observer.observe(&Event::BreakerChanged { name, from, to, keyed: *keyed, serial });
    }

    pub(super) fn snapshot(&self) -> BreakerSnapshot {
        let cold = lock(&self.cold);
        let (word, now) = (self.word(), self.config.clock.now());
        let counts = self.counts(word, now);
        let probes = cold.probes.iter().filter(|probe| probe.expires > now).count();
        let retry_in = (word.phase() == Phase::Open)
            .then(|| Moment::from_nanos(self.open_until.load(Ordering::Acquire)).since(now));
        BreakerSnapshot {
            state: word.phase().state(),
            forced: word.phase().is_forced(),
            calls: counts.calls,
            failures: counts.failures,
            slow: counts.slow,
            probes: u32::try_from(probes).unwrap_or(u32::MAX),
            retry_in,
            totals: self.totals.read(),
        }
    }

    /// Tells the observer that there is a breaker, and what it does with calls.
    pub(crate) fn report_built(&self) {
        if let Some(observer) = &self.config.observer {
            let (cold, state) = (lock(&self.cold), self.word().phase().state());
            let serial = next_serial();
            drop(cold);
            observer.observe(&Event::BreakerBuilt { name: &self.config.name, state, serial });
        }
    }

    /// Returns whether replacing this breaker by a new one would change nothing.
    pub(super) fn is_fresh(&self) -> bool {
        let word = self.word();
        let counts = self.counts(word, self.config.clock.now());
        word.phase() == Phase::Closed && counts.failures == 0 && counts.slow == 0
    }

    fn counts(&self, word: Word, now: Moment) -> Counts {
        if word.phase() != Phase::Closed {
            return Counts::default();
        }
        let parity = (word.generation() & 1) as usize;
        match &self.window {
            Window::None => {
                let failures = u64::from(word.failures());
                Counts { calls: failures, failures, slow: 0 }
            }
            Window::Count(windows) => windows[parity].counts(),
            Window::Time(windows) => windows[parity].counts(now),
        }
    }

    pub(crate) fn describe(&self) -> String {
        self.config.to_string()
    }

    pub(crate) const fn needs(&self) -> Needs {
        self.config.needs()
    }
}

impl Window {
    fn clear(&self, word: Word) {
        let parity = (word.generation() & 1) as usize;
        match self {
            Window::None => {}
            Window::Count(windows) => windows[parity].clear(),
            Window::Time(windows) => windows[parity].clear(),
        }
    }
}

impl When {
    fn is_reached(&self, counts: Counts) -> bool {
        let enough = counts.calls >= u64::from(self.calls_min);
        let failed = match self.failures {
            Threshold::Ratio(ratio) => enough && ratio.is_reached_by(counts.failures, counts.calls),
            Threshold::Number(failures) => counts.failures >= u64::from(failures),
        };
        let slow = |slow: super::config::Slow| slow.ratio.is_reached_by(counts.slow, counts.calls);
        failed || enough && self.slow.is_some_and(slow)
    }
}
