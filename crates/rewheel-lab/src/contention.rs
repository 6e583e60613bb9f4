//! Simulates clients that update the same row with optimistic locking.

use crate::chance::Chance;
use crate::outcome::quantile;
use crate::report::{Recovered, Row};
use crate::storm::StormError;
use rewheel::{Random, Retry, Series, Step, Verdict, millis};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Average time of a message in one direction.
const MESSAGE: Duration = millis(10);

/// Standard deviation of this time.
const DEVIATION: Duration = millis(2);

/// Without backoff, `n` clients make about `n²/4` writes: this many take some seconds.
const WRITES_MAX: u64 = 100_000_000;

/// Clients that each write one row once.
///
/// Each client reads the row, then writes it. A write fails if another client has written since the read; the client then backs off, and
/// reads again. Each message takes |N(10, 2)| milliseconds.
///
/// ```
/// use rewheel::{Jitter, Retry, millis, seconds};
/// use rewheel_lab::Contention;
///
/// let contention = Contention::new(20, 10, 0)?;
/// let retry = Retry::exponential(millis(10)).delay_max(seconds(2)).attempts_max(u32::MAX);
/// let eager = contention.run("no backoff", &Retry::fixed(millis(0)).attempts_max(u32::MAX));
/// let jittered = contention.run("full", &retry.jitter(Jitter::FULL));
/// assert!(jittered.calls < eager.calls);
/// # Ok::<(), rewheel_lab::StormError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Contention {
    clients: u32,
    runs: u32,
    seed: u64,
}

/// What happens at the row or at a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request to read reaches the row.
    Read,
    /// A request to write reaches the row, with the version that the client has read.
    Write(u64),
    /// The response to a write reaches the client.
    Written { is_stale: bool },
}

/// The totals of all runs.
#[derive(Debug, Default)]
struct Totals {
    writes: u64,
    stale: u64,
    succeeded: u64,
    completed: Duration,
    latencies: Vec<Duration>,
}

impl Contention {
    /// Creates clients that compete for a row. The results are means of this many runs.
    ///
    /// # Errors
    /// Fails if there are no clients or no runs, or more than the simulation allows.
    pub fn new(clients: u32, runs: u32, seed: u64) -> Result<Contention, StormError> {
        let writes = u64::from(clients).saturating_pow(2) / 4;
        if clients == 0 || runs == 0 {
            return Err(StormError::new("clients and runs must be 1 or more"));
        }
        if writes.saturating_mul(u64::from(runs)) > WRITES_MAX {
            let why = format!(
                "{runs} runs of {clients} clients are too many: the square of the clients times the runs must be at most {}",
                WRITES_MAX * 4
            );
            return Err(StormError::new(why));
        }
        Ok(Contention { clients, runs, seed })
    }

    /// Returns the number of clients.
    pub const fn clients(&self) -> u32 {
        self.clients
    }

    /// Returns the number of runs.
    pub const fn runs(&self) -> u32 {
        self.runs
    }

    /// Runs the simulation with this retry after a stale write.
    pub fn run(&self, name: &str, retry: &Retry) -> Row {
        let chance = Chance::seeded(self.seed);
        let mut totals = Totals::default();
        for _ in 0..self.runs {
            let mut contest = Contest {
                chance: Chance::new(chance.fork()),
                jitter: chance.fork(),
                series: vec![Series::new(*retry); self.clients as usize],
                ..Contest::default()
            };
            let completed = contest.run(&mut totals);
            totals.completed += completed;
        }
        totals.latencies.sort_unstable();
        let clients = f64::from(self.clients) * f64::from(self.runs);
        Row {
            policy: name.to_owned(),
            calls: totals.writes as f64 / f64::from(self.runs),
            completed: Some(totals.completed / self.runs),
            success: totals.succeeded as f64 / clients,
            p50: quantile(&totals.latencies, 0.5),
            p99: quantile(&totals.latencies, 0.99),
            amplification: totals.writes as f64 / clients,
            wasted: totals.stale as f64 / totals.writes.max(1) as f64,
            recovered: Recovered::NoTrouble,
            seconds: Vec::new(),
            seconds_each: 1,
            peak: 0,
            cut_at: None,
        }
    }
}

/// One run.
#[derive(Debug)]
struct Contest {
    chance: Chance,
    jitter: Random,
    /// The attempts of each client.
    series: Vec<Series>,
    version: u64,
    events: BinaryHeap<Reverse<(Duration, usize, Event)>>,
}

impl Default for Contest {
    fn default() -> Contest {
        Contest {
            chance: Chance::seeded(0),
            jitter: Random::seeded(0),
            series: Vec::new(),
            version: 0,
            events: BinaryHeap::new(),
        }
    }
}

impl Contest {
    /// Returns when the last client was done.
    fn run(&mut self, totals: &mut Totals) -> Duration {
        for client in 0..self.series.len() {
            self.send(Duration::ZERO, client, Event::Read);
        }
        let mut now = Duration::ZERO;
        while let Some(Reverse((at, client, event))) = self.events.pop() {
            now = at;
            match event {
                Event::Read => {
                    // The version travels to the client and back: two messages.
                    let arrives = now + self.message();
                    self.send(arrives, client, Event::Write(self.version));
                }
                Event::Write(read) => {
                    let is_stale = read != self.version;
                    totals.writes += 1;
                    totals.stale += u64::from(is_stale);
                    self.version += u64::from(!is_stale);
                    self.send(now, client, Event::Written { is_stale });
                }
                Event::Written { is_stale: false } => {
                    totals.succeeded += 1;
                    totals.latencies.push(now);
                }
                Event::Written { is_stale: true } => self.back_off(now, client, totals),
            }
        }
        now
    }

    /// Asks the library what follows a stale write.
    fn back_off(&mut self, now: Duration, client: usize, totals: &mut Totals) {
        match self.series[client].after(Verdict::Retry, now, &self.jitter) {
            Step::Wait(delay) => self.send(now + delay, client, Event::Read),
            Step::Return | Step::GiveUp(_) => totals.latencies.push(now),
        }
    }

    fn send(&mut self, now: Duration, client: usize, event: Event) {
        let arrives = now + self.message();
        self.events.push(Reverse((arrives, client, event)));
    }

    fn message(&self) -> Duration {
        self.chance.message(MESSAGE, DEVIATION)
    }
}

#[cfg(test)]
mod tests {
    use super::Contention;
    use rewheel::{Backoff, Jitter, Retry, millis, seconds};

    fn unlimited(backoff: Backoff) -> Retry {
        Retry::new(backoff).attempts_max(u32::MAX)
    }

    #[track_caller]
    fn check(clients: u32, backoff: Backoff, calls: f64, completed_ms: f64) {
        let row = Contention::new(clients, 40, 1).unwrap().run("", &unlimited(backoff));
        let is_near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.08;
        assert!(is_near(row.calls, calls), "{backoff}: {} writes, not {calls}", row.calls);
        let took = row.completed.unwrap().as_secs_f64() * 1e3;
        assert!(is_near(took, completed_ms), "{backoff}: {took} ms, not {completed_ms} ms");
        assert_eq!(row.success, 1.0);
    }

    /// The expected numbers are those of an independent program with the same rules, with 300 runs.
    #[test]
    fn writes_and_times_are_those_of_another_program() {
        let exponential = Backoff::exponential(millis(10)).max(seconds(2));
        check(50, Backoff::fixed(millis(0)), 690.0, 1_140.0);
        check(50, exponential.jitter(Jitter::EQUAL), 347.0, 4_080.0);
        check(50, exponential.jitter(Jitter::FULL), 333.0, 2_860.0);
        check(50, Backoff::decorrelated(millis(5)).max(seconds(2)), 375.0, 2_240.0);
    }

    #[test]
    fn a_single_client_writes_once() {
        let row = Contention::new(1, 2_000, 1).unwrap().run("", &Retry::fixed(millis(1)));
        assert_eq!((row.calls, row.wasted, row.amplification), (1.0, 0.0, 1.0));
        let took = row.completed.unwrap();
        assert!((millis(39)..millis(41)).contains(&took), "four messages take {took:?}");
    }

    #[test]
    fn clients_with_few_attempts_give_up() {
        let row = Contention::new(50, 10, 1).unwrap().run("", &Retry::fixed(millis(0)));
        assert!(row.success < 0.5 && row.amplification <= 3.0, "{row:?}");
    }

    #[test]
    fn what_is_too_large_is_refused() {
        for (clients, runs, why) in
            [(0, 1, "1 or more"), (1, 0, "1 or more"), (100_000, 100, "too many")]
        {
            let error = Contention::new(clients, runs, 0).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
