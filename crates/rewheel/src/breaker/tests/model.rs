//! Compares a breaker with the reference implementation after every step of a random sequence.

use super::Changes;
use super::reference::{Config, Kind, Reference, Threshold, Token};
use crate::breaker::{BreakerState, CircuitBreaker, OwnedPermit, Permit};
use crate::classify::{Category, Class, Classify};
use crate::clock::ManualClock;
use crate::error::{GiveUpReason, Refused};
use fastrand::Rng;
use std::sync::Arc;
use std::time::Duration;

const SEEDS: u64 = 400;
const STEPS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Acquire,
    AcquireOwned,
    Finish(Finish),
    Pass(Duration),
    ForceOpen,
    Isolate,
    ForceClose,
    Reset,
}

/// How a call in progress ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    Success,
    Failure,
    /// An error of this category is recorded.
    Error(Category),
    Dropped,
}

struct Said(Category);

impl Classify for Said {
    fn classify(&self) -> Class {
        Class::retry(self.0)
    }
}

enum Held<'a> {
    Borrowed(Permit<'a>),
    Owned(OwnedPermit),
}

impl Held<'_> {
    fn finish(self, finish: Finish) {
        match (self, finish) {
            (Held::Borrowed(permit), Finish::Success) => permit.success(),
            (Held::Borrowed(permit), Finish::Failure) => permit.failure(),
            (Held::Borrowed(permit), Finish::Error(category)) => {
                permit.record(&Err::<(), _>(Said(category)));
            }
            (Held::Owned(permit), Finish::Success) => permit.record(&Ok::<_, Said>(())),
            (Held::Owned(permit), Finish::Failure) => permit.failure(),
            (Held::Owned(permit), Finish::Error(category)) => {
                permit.record(&Err::<(), _>(Said(category)));
            }
            (Held::Borrowed(_) | Held::Owned(_), Finish::Dropped) => {}
        }
    }
}

impl Finish {
    fn any(random: &mut Rng) -> Finish {
        match random.u32(..10) {
            0..3 => Finish::Success,
            3..7 => Finish::Failure,
            7..9 => Finish::Error(*random.choice(Category::ALL).unwrap()),
            _ => Finish::Dropped,
        }
    }

    /// Returns whether the result counts as a failure, if it counts.
    fn failed(self) -> Option<bool> {
        match self {
            Finish::Success | Finish::Error(Category::Rejected) => Some(false),
            Finish::Failure => Some(true),
            Finish::Error(category) => category.blames_dependency().then_some(true),
            Finish::Dropped => None,
        }
    }
}

fn config(random: &mut Rng, kind: Kind) -> Config {
    let percent = |random: &mut Rng| *random.choice(&[1, 10, 33, 50, 75, 100]).unwrap();
    let calls_max = if let Kind::Count { size } = kind { size } else { 12 };
    let open_ms = random.u64(1..40);
    Config {
        kind,
        threshold: match random.bool() {
            true => Threshold::Percent(percent(random)),
            false => Threshold::Number(random.u32(1..=calls_max.min(5))),
        },
        calls_min: random.u32(1..=calls_max),
        slow: random.bool().then(|| (random.u64(1..20), percent(random))),
        probes_max: random.u32(1..4),
        successes_to_close: random.u32(1..4),
        probe_timeout_ms: random.u64(1..60),
        open_ms,
        open_max_ms: open_ms * random.u64(1..20),
    }
}

fn operation(random: &mut Rng) -> Operation {
    match random.u32(..100) {
        0..30 => Operation::Acquire,
        30..40 => Operation::AcquireOwned,
        40..80 => Operation::Finish(Finish::any(random)),
        80..88 => Operation::Pass(Duration::from_millis(random.u64(1..5))),
        88..96 => Operation::Pass(Duration::from_millis(random.u64(1..60))),
        96 => Operation::Pass(Duration::from_millis(random.u64(1..1_000))),
        97 => Operation::ForceOpen,
        98 if random.bool() => Operation::Isolate,
        98 => Operation::ForceClose,
        _ => Operation::Reset,
    }
}

/// The breaker and the reference, run side by side.
struct Pair<'a> {
    breaker: &'a CircuitBreaker,
    clock: &'a ManualClock,
    reference: Reference,
    under_way: Vec<(Held<'a>, Token)>,
}

impl<'a> Pair<'a> {
    fn acquire(&mut self, held: Result<Held<'a>, Refused>) {
        match (held, self.reference.acquire()) {
            (Ok(held), Ok(token)) => self.under_way.push((held, token)),
            (Err(refused), Err(retry_in)) => {
                assert_eq!((refused.why, refused.retry_in), (GiveUpReason::CircuitOpen, retry_in));
            }
            (held, token) => {
                panic!("the breaker answered {:?}, the reference {token:?}", held.map(|_| "pass"));
            }
        }
    }

    fn step(&mut self, operation: Operation, random: &mut Rng) {
        match operation {
            Operation::Acquire => self.acquire(self.breaker.acquire().map(Held::Borrowed)),
            Operation::AcquireOwned => {
                self.acquire(self.breaker.acquire_owned().map(Held::Owned));
            }
            Operation::Finish(finish) => {
                if !self.under_way.is_empty() {
                    let index = random.usize(..self.under_way.len());
                    let (held, token) = self.under_way.swap_remove(index);
                    held.finish(finish);
                    self.reference.record(token, finish.failed());
                }
            }
            Operation::Pass(time) => {
                self.clock.advance(time);
                self.reference.now += time.as_nanos() as u64;
            }
            Operation::ForceOpen => {
                self.breaker.force_open();
                self.reference.force_open();
            }
            Operation::Isolate => {
                self.breaker.isolate();
                self.reference.isolate();
            }
            Operation::ForceClose => {
                self.breaker.force_close();
                self.reference.force_close();
            }
            Operation::Reset => {
                self.breaker.reset();
                self.reference.reset();
            }
        }
    }
}

/// Prints the seed and the steps of a failed test.
struct Report<'a> {
    seed: u64,
    config: &'a Config,
    done: Vec<Operation>,
}

impl Drop for Report<'_> {
    #[expect(clippy::print_stderr, reason = "a failing seed must be replayable")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {} of {:?} after {:?}", self.seed, self.config, self.done);
        }
    }
}

#[track_caller]
fn compare(kind: impl Fn(&mut Rng) -> Kind) {
    let mut visited = [0_u32; 3];
    for seed in 0..SEEDS {
        let mut random = Rng::with_seed(seed);
        let kind = kind(&mut random);
        run(seed, &config(&mut random, kind), &mut random, &mut visited);
    }
    // A sequence that never leaves one state would compare nothing.
    assert!(visited.iter().all(|count| *count > 5_000), "hardly ever there: {visited:?}");
}

fn run(seed: u64, config: &Config, random: &mut Rng, visited: &mut [u32; 3]) {
    let (clock, changes) = (ManualClock::new(), Arc::new(Changes::default()));
    let breaker = config.builder().clock(&clock).observer(changes.clone()).build();
    let reference = Reference::new(*config);
    let mut pair = Pair { breaker: &breaker, clock: &clock, reference, under_way: Vec::new() };
    let mut report = Report { seed, config, done: Vec::new() };
    for _ in 0..STEPS {
        let operation = operation(random);
        report.done.push(operation);
        pair.step(operation, random);
        let expected = pair.reference.snapshot();
        assert_eq!(breaker.snapshot(), expected);
        assert_eq!(breaker.state(), expected.state);
        assert_eq!(changes.list(), pair.reference.changes);
        visited[match expected.state {
            BreakerState::Closed => 0,
            BreakerState::Open => 1,
            BreakerState::HalfOpen => 2,
        }] += 1;
    }
}

#[test]
fn consecutive_failures_behave_as_the_reference() {
    compare(|random| Kind::Consecutive { failures: random.u32(1..6) });
}

#[test]
fn a_count_window_behaves_as_the_reference() {
    compare(|random| Kind::Count { size: random.u32(1..20) });
}

#[test]
fn a_time_window_behaves_as_the_reference() {
    compare(|random| Kind::Time { length_ms: random.u64(10..200) });
}
