//! Measures subjects side by side, in alternating rounds.

use std::fmt;
use std::hint::{black_box, spin_loop};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::correctness::Check;
use crate::goal::{Goal, Limit, Verdict};

/// How long the measurement takes.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rounds: usize,
    slice: Duration,
}

impl Pace {
    /// Fewer rounds do not show how much they vary.
    const ROUNDS_MIN: usize = 5;

    /// Number of slices of a round. A slice is short enough that most run undisturbed; the median
    /// of the slices is the round's figure, so that disturbed ones do not count.
    const SLICES: usize = 7;

    pub fn quick() -> Pace {
        Pace { rounds: Pace::ROUNDS_MIN, slice: Duration::from_micros(400) }
    }

    pub fn with_rounds(self, rounds: usize) -> Pace {
        Pace { rounds: rounds.max(Pace::ROUNDS_MIN), ..self }
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { rounds: 7, slice: Duration::from_millis(2) }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pace { rounds, slice } = self;
        write!(f, "{rounds} rounds of {} interleaved slices of {slice:?}", Pace::SLICES)
    }
}

/// A subject to measure: a loop over the operation, which receives its index.
pub struct Subject {
    name: &'static str,
    work: Box<dyn Fn(Range<u64>) + Send + Sync>,
    /// Number of operations per iteration of the loop.
    batch: u64,
    /// Whether it waits for another thread or the system.
    waits: bool,
    goal: Option<Goal>,
    check: Option<Check>,
}

impl Subject {
    /// Calls `operation` on an object that the threads share.
    pub fn new<T, R>(
        name: &'static str,
        object: T,
        operation: impl Fn(&T, u64) -> R + Send + Sync + 'static,
    ) -> Subject
    where
        T: Send + Sync + 'static,
    {
        Subject::of_loop(name, move |indexes| {
            for index in indexes {
                black_box(operation(black_box(&object), index));
            }
        })
    }

    /// Runs a loop that is not a plain sequence of calls.
    pub fn of_loop(
        name: &'static str,
        work: impl Fn(Range<u64>) + Send + Sync + 'static,
    ) -> Subject {
        Subject { name, work: Box::new(work), batch: 1, waits: false, goal: None, check: None }
    }

    pub fn in_batches_of(self, batch: u64) -> Subject {
        Subject { batch, ..self }
    }

    /// Counts slices in which the thread did not have its core all the time.
    pub fn that_waits(self) -> Subject {
        Subject { waits: true, ..self }
    }

    /// Compares with the fastest of these peers, and sets a limit for each number of threads.
    pub fn versus(
        self,
        peers: &'static [&'static str],
        limits: &'static [(usize, Limit)],
    ) -> Subject {
        Subject { goal: Some(Goal { peers, limits }), ..self }
    }

    pub fn checked(self, check: Check) -> Subject {
        Subject { check: Some(check), ..self }
    }

    /// Returns the nanoseconds per operation of a thread while `threads` run at once.
    fn time(&self, threads: usize, iterations: u64) -> f64 {
        let mut tries = 0;
        loop {
            tries += 1;
            let Slice { longest, was_undisturbed } = self.run(threads, iterations);
            if was_undisturbed || self.waits || tries == TRIES_MAX {
                return longest.as_nanos() as f64 / (iterations * self.batch) as f64;
            }
        }
    }

    fn run(&self, threads: usize, iterations: u64) -> Slice {
        let to_come = AtomicUsize::new(threads);
        let run = |thread: usize| {
            // Threads start at different indexes, so that keys are shared but not accessed in step.
            let start = thread as u64 * 1_000_003;
            (self.work)(start..start + iterations / 16);
            to_come.fetch_sub(1, Ordering::AcqRel);
            // A sleeping thread would miss the start.
            while to_come.load(Ordering::Acquire) > 0 {
                spin_loop();
            }
            let (started, busy) = (now(), busy_time());
            (self.work)(start..start + iterations);
            let (took, busy) = (started.elapsed(), busy_time().saturating_sub(busy));
            Slice { longest: took, was_undisturbed: busy.mul_f64(1.1) >= took }
        };
        if threads == 1 {
            return run(0);
        }
        thread::scope(|scope| {
            let runs: Vec<_> = (0..threads).map(|t| scope.spawn(move || run(t))).collect();
            let slices = runs.into_iter().map(|run| run.join().expect("the work panicked"));
            slices.reduce(Slice::and).expect("there is at least one thread")
        })
    }

    /// Returns how many iterations fill a slice.
    fn iterations_for(&self, slice: Duration, threads: usize) -> u64 {
        let mut iterations = 64;
        loop {
            let nanos = self.time(threads, iterations) * (iterations * self.batch) as f64;
            let missing = slice.as_nanos() as f64 / nanos.max(1.0);
            if missing < 8.0 {
                return ((iterations as f64 * missing) as u64).max(64);
            }
            iterations *= 4;
        }
    }
}

/// How often a slice is repeated until no thread had to wait for a core. Two threads that take
/// turns on one core do not contend, which would look like an excellent result.
const TRIES_MAX: u32 = 50;

/// One run of a subject.
#[derive(Clone, Copy, Debug)]
struct Slice {
    /// Time of the slowest thread.
    longest: Duration,
    /// Whether every thread had its own core.
    was_undisturbed: bool,
}

impl Slice {
    fn and(self, other: Slice) -> Slice {
        Slice {
            longest: self.longest.max(other.longest),
            was_undisturbed: self.was_undisturbed && other.was_undisturbed,
        }
    }
}

/// Returns how long this thread has had a core. If the system does not report it, disturbed slices
/// cannot be detected, and every slice counts.
fn busy_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, clock_gettime};
        Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
    }
    #[cfg(not(target_os = "linux"))]
    {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(now).elapsed()
    }
}

/// Subjects that do the same work.
pub struct Comparison {
    pub name: &'static str,
    pub threads: &'static [usize],
    pub subjects: Vec<Subject>,
}

impl Comparison {
    pub fn measure(self, pace: &Pace) -> Group {
        let mut rows: Vec<Row> = self.subjects.iter().map(Row::of).collect();
        for &threads in self.threads {
            let rounds = self.rounds(pace, threads);
            for (row, rounds) in rows.iter_mut().zip(rounds) {
                let median = median(rounds.clone());
                row.timings.push(Timing { threads, rounds, median, verdict: None });
            }
        }
        for (index, subject) in self.subjects.iter().enumerate() {
            if let Some(goal) = &subject.goal {
                judge(&mut rows, index, goal);
            }
        }
        Group { name: self.name, rows }
    }

    /// Returns each subject's figure of each round.
    fn rounds(&self, pace: &Pace, threads: usize) -> Vec<Vec<f64>> {
        let count = self.subjects.len();
        let iterations: Vec<u64> =
            self.subjects.iter().map(|s| s.iterations_for(pace.slice, threads)).collect();
        let mut rounds = vec![Vec::new(); count];
        for _ in 0..pace.rounds {
            let mut slices = vec![Vec::new(); count];
            for _ in 0..Pace::SLICES {
                for (index, subject) in self.subjects.iter().enumerate() {
                    slices[index].push(subject.time(threads, iterations[index]));
                }
            }
            for (rounds, slices) in rounds.iter_mut().zip(slices) {
                rounds.push(median(slices));
            }
        }
        rounds
    }
}

/// The result of a [`Comparison`].
#[derive(Debug)]
pub struct Group {
    pub name: &'static str,
    pub rows: Vec<Row>,
}

impl Group {
    /// Returns whether one of our subjects broke a guarantee. Errors of peers are only reported.
    pub fn breaks_a_promise(&self) -> bool {
        let wrong = |row: &Row| row.check.as_ref().is_some_and(|check| check.errors > 0);
        self.rows.iter().any(|row| row.is_ours() && wrong(row))
    }
}

/// The results of one subject.
#[derive(Debug)]
pub struct Row {
    pub subject: &'static str,
    pub timings: Vec<Timing>,
    pub check: Option<Check>,
}

/// The speed of a subject with this many threads.
#[derive(Debug)]
pub struct Timing {
    pub threads: usize,
    pub rounds: Vec<f64>,
    pub median: f64,
    pub verdict: Option<Verdict>,
}

impl Row {
    fn of(subject: &Subject) -> Row {
        Row { subject: subject.name, timings: Vec::new(), check: subject.check.clone() }
    }

    fn is_ours(&self) -> bool {
        self.subject.starts_with("rewheel")
    }
}

fn judge(rows: &mut [Row], index: usize, goal: &Goal) {
    for nth in 0..rows[index].timings.len() {
        let peers = rows.iter().filter(|row| goal.peers.contains(&row.subject));
        let fastest = peers.min_by(|a, b| a.timings[nth].median.total_cmp(&b.timings[nth].median));
        let Some(peer) = fastest else { continue };
        let (ours, theirs) = (&rows[index].timings[nth], &peer.timings[nth]);
        let ratios = ours.rounds.iter().zip(&theirs.rounds).map(|(ours, theirs)| ours / theirs);
        let ratio = median(ratios.collect());
        let verdict = goal.verdict(ours.threads, peer.subject, ratio, theirs.median);
        rows[index].timings[nth].verdict = Some(verdict);
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 {
        figures[middle]
    } else {
        f64::midpoint(figures[middle - 1], figures[middle])
    }
}

#[expect(clippy::disallowed_methods, reason = "the time that passes is what is measured here")]
pub fn now() -> Instant {
    Instant::now()
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Comparison").field("name", &self.name).finish_non_exhaustive()
    }
}
