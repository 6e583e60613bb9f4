//! A simple reference implementation of the breaker.

use crate::backoff::{Backoff, Jitter};
use crate::breaker::{
    BreakerSnapshot, BreakerState, BreakerTotals, CircuitBreaker, CircuitBreakerBuilder,
};
use std::collections::VecDeque;
use std::time::Duration;

const MILLI: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Consecutive { failures: u32 },
    Count { size: u32 },
    Time { length_ms: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Threshold {
    Percent(u32),
    Number(u32),
}

/// Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) kind: Kind,
    pub(super) threshold: Threshold,
    pub(super) calls_min: u32,
    /// The duration above which a call is slow, and the percentage of slow calls that opens the
    /// breaker.
    pub(super) slow: Option<(u64, u32)>,
    pub(super) probes_max: u32,
    pub(super) successes_to_close: u32,
    pub(super) probe_timeout_ms: u64,
    pub(super) open_ms: u64,
    pub(super) open_max_ms: u64,
}

impl Config {
    pub(super) fn builder(&self) -> CircuitBreakerBuilder {
        let ms = Duration::from_millis;
        let windowed = |builder: CircuitBreakerBuilder| {
            let builder = builder.calls_min(self.calls_min);
            let builder = match self.threshold {
                Threshold::Percent(percent) => builder.failure_ratio(f64::from(percent) / 100.0),
                Threshold::Number(failures) => builder.failures(failures),
            };
            match self.slow {
                Some((over, percent)) => builder.slow_calls(ms(over), f64::from(percent) / 100.0),
                None => builder,
            }
        };
        let builder = match self.kind {
            Kind::Consecutive { failures } => CircuitBreaker::consecutive(failures),
            Kind::Count { size } => windowed(CircuitBreaker::count_window(size)),
            Kind::Time { length_ms } => windowed(CircuitBreaker::time_window(ms(length_ms))),
        };
        let open = Backoff::exponential(ms(self.open_ms)).max(ms(self.open_max_ms));
        builder
            .probes_max(self.probes_max)
            .successes_to_close(self.successes_to_close)
            .probe_timeout(ms(self.probe_timeout_ms))
            .open_backoff(open.jitter(Jitter::NONE))
            .count_calls()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Open { until: u64 },
    HalfOpen,
    Isolated,
    ForcedClosed,
}

impl Phase {
    fn state(self) -> BreakerState {
        match self {
            Phase::Closed | Phase::ForcedClosed => BreakerState::Closed,
            Phase::Open { .. } | Phase::Isolated => BreakerState::Open,
            Phase::HalfOpen => BreakerState::HalfOpen,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Call {
    at: u64,
    failed: bool,
    slow: bool,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    id: u64,
    expires: u64,
}

/// The data of a permit of the reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    generation: u64,
    probe: Option<u64>,
    started: u64,
}

#[derive(Debug)]
pub(super) struct Reference {
    config: Config,
    phase: Phase,
    generation: u64,
    failures_in_a_row: u64,
    calls: VecDeque<Call>,
    probes: Vec<Probe>,
    probes_started: u64,
    successes: u32,
    openings: u32,
    ended: u64,
    failed: u64,
    refused: u64,
    pub(super) now: u64,
    pub(super) changes: Vec<(BreakerState, BreakerState)>,
}

impl Reference {
    pub(super) fn new(config: Config) -> Reference {
        Reference {
            config,
            phase: Phase::Closed,
            generation: 0,
            failures_in_a_row: 0,
            calls: VecDeque::new(),
            probes: Vec::new(),
            probes_started: 0,
            successes: 0,
            openings: 0,
            ended: 0,
            failed: 0,
            refused: 0,
            now: 0,
            changes: Vec::new(),
        }
    }

    /// Returns a permit, or when to ask again.
    pub(super) fn acquire(&mut self) -> Result<Token, Option<Duration>> {
        let answer = self.decide();
        self.refused += u64::from(answer.is_err());
        answer
    }

    fn decide(&mut self) -> Result<Token, Option<Duration>> {
        if let Phase::Open { until } = self.phase {
            if self.now < until {
                return Err(Some(Duration::from_nanos(until - self.now)));
            }
            self.enter(Phase::HalfOpen);
        }
        let mut token = Token { generation: self.generation, probe: None, started: self.now };
        match self.phase {
            Phase::Isolated => return Err(None),
            Phase::HalfOpen => {
                let now = self.now;
                self.probes.retain(|probe| now < probe.expires);
                if self.probes.len() as u64 >= u64::from(self.config.probes_max) {
                    return Err(None);
                }
                self.probes_started += 1;
                let expires = self.now + self.config.probe_timeout_ms * MILLI;
                self.probes.push(Probe { id: self.probes_started, expires });
                token.probe = Some(self.probes_started);
            }
            Phase::Closed | Phase::ForcedClosed | Phase::Open { .. } => {}
        }
        Ok(token)
    }

    /// Records whether a call failed; `None` if the call does not count.
    pub(super) fn record(&mut self, token: Token, failed: Option<bool>) {
        self.ended += u64::from(failed.is_some());
        self.failed += u64::from(failed == Some(true));
        if token.generation != self.generation {
            return;
        }
        let took = self.now - token.started;
        let is_windowed = !matches!(self.config.kind, Kind::Consecutive { .. });
        let slow = is_windowed && self.config.slow.is_some_and(|(over, _)| took > over * MILLI);
        match (token.probe, failed) {
            (Some(id), _) => self.record_probe(id, failed, slow),
            (None, Some(failed)) if self.phase == Phase::Closed => self.record_call(failed, slow),
            (None, _) => {}
        }
    }

    fn record_probe(&mut self, id: u64, failed: Option<bool>, slow: bool) {
        let Some(place) = self.probes.iter().position(|probe| probe.id == id) else { return };
        let probe = self.probes.remove(place);
        let Some(failed) = failed else { return };
        if self.now >= probe.expires {
            return;
        }
        if failed || slow {
            self.open();
            return;
        }
        self.successes += 1;
        if self.successes >= self.config.successes_to_close {
            self.reset();
        }
    }

    fn record_call(&mut self, failed: bool, slow: bool) {
        if let Kind::Consecutive { failures } = self.config.kind {
            self.failures_in_a_row = if failed { self.failures_in_a_row + 1 } else { 0 };
            if self.failures_in_a_row >= u64::from(failures) {
                self.open();
            }
            return;
        }
        self.calls.push_back(Call { at: self.now, failed, slow });
        if let Kind::Count { size } = self.config.kind
            && self.calls.len() > size as usize
        {
            self.calls.pop_front();
        }
        if (failed || slow) && self.is_too_much() {
            self.open();
        }
    }

    fn is_too_much(&self) -> bool {
        let (calls, failures, slow) = self.counts();
        let enough = calls >= u64::from(self.config.calls_min);
        let reaches = |part: u64, percent: u32| part * 100 >= calls * u64::from(percent);
        let failed = match self.config.threshold {
            Threshold::Percent(percent) => enough && reaches(failures, percent),
            Threshold::Number(number) => failures >= u64::from(number),
        };
        failed || enough && self.config.slow.is_some_and(|(_, percent)| reaches(slow, percent))
    }

    /// Returns the number of calls, failures and slow calls that the breaker judges by.
    fn counts(&self) -> (u64, u64, u64) {
        if let Kind::Consecutive { .. } = self.config.kind {
            return (self.failures_in_a_row, self.failures_in_a_row, 0);
        }
        let counts = |call: &&Call| match self.config.kind {
            Kind::Time { length_ms } => {
                let period = (length_ms * MILLI).div_ceil(10);
                self.now / period - call.at / period < 10
            }
            Kind::Count { .. } | Kind::Consecutive { .. } => true,
        };
        let count = |which: fn(&Call) -> bool| {
            self.calls.iter().filter(counts).filter(|call| which(call)).count() as u64
        };
        (count(|_| true), count(|call| call.failed), count(|call| call.slow))
    }

    fn open(&mut self) {
        self.openings += 1;
        let grown = self.config.open_ms.saturating_mul(1 << (self.openings - 1).min(30));
        let time = grown.min(self.config.open_max_ms) * MILLI;
        self.enter(Phase::Open { until: self.now + time });
    }

    fn enter(&mut self, phase: Phase) {
        let (from, to) = (self.phase.state(), phase.state());
        if from != to {
            self.changes.push((from, to));
        }
        self.phase = phase;
        self.generation += 1;
        self.failures_in_a_row = 0;
        self.calls.clear();
        self.probes.clear();
        self.successes = 0;
    }

    pub(super) fn force_open(&mut self) {
        if !matches!(self.phase, Phase::Open { .. } | Phase::Isolated) {
            self.open();
        }
    }

    pub(super) fn isolate(&mut self) {
        self.enter(Phase::Isolated);
    }

    pub(super) fn force_close(&mut self) {
        self.enter(Phase::ForcedClosed);
    }

    pub(super) fn reset(&mut self) {
        self.openings = 0;
        self.enter(Phase::Closed);
    }

    pub(super) fn snapshot(&self) -> BreakerSnapshot {
        let (calls, failures, slow) = self.counts();
        let probes = self.probes.iter().filter(|probe| self.now < probe.expires).count();
        BreakerSnapshot {
            state: self.phase.state(),
            forced: matches!(self.phase, Phase::Isolated | Phase::ForcedClosed),
            calls,
            failures,
            slow,
            probes: u32::try_from(probes).unwrap(),
            retry_in: match self.phase {
                Phase::Open { until } => Some(Duration::from_nanos(until.saturating_sub(self.now))),
                Phase::Closed | Phase::HalfOpen | Phase::Isolated | Phase::ForcedClosed => None,
            },
            totals: BreakerTotals {
                calls: Some(self.ended),
                failures: self.failed,
                refusals: self.refused,
                transitions: self.changes.len() as u64,
            },
        }
    }
}
