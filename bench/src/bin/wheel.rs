//! Prints how fast Rewheel's timing wheel is, compared with other timer implementations.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::hint::black_box;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use rewheel_engine::wheel::{Tick, Timer, Wheel};
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

const TIMERS: u32 = 1_000_000;
const SPAN_MS: u64 = 60_000;

/// Fewer rounds do not show how much they vary.
const ROUNDS_MIN: usize = 5;

/// The peer that the targets refer to.
const VERSUS: &str = "tokio-util DelayQueue";

/// Our times, as fractions of the peer's.
const TARGETS: [(&str, f64); 3] = [("insert", 0.5), ("cancel", 0.1), ("fire", 0.2)];
const BYTES_TARGET: f64 = 40.0;

/// The operations on every subject, in the same order.
struct Input {
    /// In milliseconds, by timer.
    delays: Vec<u64>,
    /// A random half of the timers, in random order: the cost of a cancellation is its memory
    /// access, which must not be predictable.
    cancelled: Vec<u32>,
}

impl Input {
    fn new(seed: u64) -> Input {
        let mut random = Random(seed);
        let delays = (0..TIMERS).map(|_| 1 + random.below(SPAN_MS)).collect();
        let mut ids: Vec<u32> = (0..TIMERS).collect();
        for last in (1..ids.len()).rev() {
            ids.swap(last, random.below(last as u64 + 1) as usize);
        }
        ids.truncate(TIMERS as usize / 2);
        Input { delays, cancelled: ids }
    }
}

/// SplitMix64: a run is reproducible, and a benchmark needs nothing better.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(bits ^ (bits >> 31)) * u128::from(end)) >> 64) as u64
    }
}

/// A timer implementation.
trait Timers {
    const NAME: &'static str;
    type Key: Copy;

    fn new() -> Self;
    fn insert(&mut self, id: u32, delay_ms: u64) -> Self::Key;
    fn cancel(&mut self, key: Self::Key);
    /// Advances one millisecond, then counts the timers that fire, with the time that this took.
    async fn tick(&mut self) -> (u64, Duration);
}

struct Ours {
    wheel: Wheel<u32>,
    now: u64,
}

impl Timers for Ours {
    const NAME: &'static str = "rewheel Wheel";
    type Key = Timer;

    fn new() -> Ours {
        Ours { wheel: Wheel::new(TIMERS), now: 0 }
    }

    fn insert(&mut self, id: u32, delay_ms: u64) -> Timer {
        self.wheel.insert(Tick::from_millis(delay_ms), id).expect("there is room for all")
    }

    fn cancel(&mut self, key: Timer) {
        black_box(self.wheel.cancel(key));
    }

    async fn tick(&mut self) -> (u64, Duration) {
        self.now += 1;
        let started = now();
        let mut fired = 0;
        for id in self.wheel.expire(Tick::from_millis(self.now)) {
            black_box(id);
            fired += 1;
        }
        (fired, started.elapsed())
    }
}

struct Delays {
    queue: DelayQueue<u32>,
    start: tokio::time::Instant,
}

impl Timers for Delays {
    const NAME: &'static str = VERSUS;
    type Key = Key;

    #[expect(clippy::disallowed_methods, reason = "this clock does not advance")]
    fn new() -> Delays {
        Delays {
            // Ours also allocates for this many.
            queue: DelayQueue::with_capacity(TIMERS as usize),
            start: tokio::time::Instant::now(),
        }
    }

    fn insert(&mut self, id: u32, delay_ms: u64) -> Key {
        // Without reading the clock, which is not measured.
        self.queue.insert_at(id, self.start + Duration::from_millis(delay_ms))
    }

    fn cancel(&mut self, key: Key) {
        black_box(self.queue.remove(&key));
    }

    async fn tick(&mut self) -> (u64, Duration) {
        tokio::time::advance(Duration::from_millis(1)).await;
        let mut fired = 0;
        poll_fn(|context| {
            let started = now();
            while let Poll::Ready(Some(expired)) = self.queue.poll_expired(context) {
                black_box(expired.into_inner());
                fired += 1;
            }
            Poll::Ready((fired, started.elapsed()))
        })
        .await
    }
}

struct Hashed(QuadWheelWithOverflow<IdOnlyTimerEntry<u32>>);

impl Timers for Hashed {
    const NAME: &'static str = "hierarchical_hash_wheel_timer";
    type Key = u32;

    fn new() -> Hashed {
        Hashed(QuadWheelWithOverflow::new())
    }

    fn insert(&mut self, id: u32, delay_ms: u64) -> u32 {
        let delay = Duration::from_millis(delay_ms);
        self.0.insert(IdOnlyTimerEntry { id, delay }).expect("no delay is zero");
        id
    }

    fn cancel(&mut self, key: u32) {
        self.0.cancel(&key).expect("no timer is cancelled twice");
    }

    async fn tick(&mut self) -> (u64, Duration) {
        let started = now();
        let expired = self.0.tick();
        let fired = expired.len() as u64;
        drop(black_box(expired));
        (fired, started.elapsed())
    }
}

/// The results of one round, in nanoseconds per timer: insert, cancel, fire.
type Figures = [f64; 3];

async fn round<S: Timers>(input: &Input) -> Result<Figures> {
    let mut timers = S::new();
    let mut keys = Vec::with_capacity(input.delays.len());
    let insert = insert_all(&mut timers, input, &mut keys);
    let cancelled: Vec<_> = input.cancelled.iter().map(|&id| keys[id as usize]).collect();
    let cancel = cancel_all(&mut timers, &cancelled);

    let (mut fired, mut fire) = (0, Duration::ZERO);
    for _ in 0..SPAN_MS {
        let (count, took) = timers.tick().await;
        fired += count;
        fire += took;
    }
    let expected = input.delays.len() - cancelled.len();
    ensure!(fired == expected as u64, "{}: {fired} fired, not {expected}", S::NAME);
    let per = |took: Duration, count: usize| took.as_nanos() as f64 / count as f64;
    Ok([per(insert, keys.len()), per(cancel, cancelled.len()), per(fire, expected)])
}

// Not inlined: the generated code of a loop must not depend on its surroundings.
#[inline(never)]
fn insert_all<S: Timers>(timers: &mut S, input: &Input, keys: &mut Vec<S::Key>) -> Duration {
    let started = now();
    for (id, &delay_ms) in input.delays.iter().enumerate() {
        keys.push(timers.insert(id as u32, delay_ms));
    }
    started.elapsed()
}

#[inline(never)]
fn cancel_all<S: Timers>(timers: &mut S, keys: &[S::Key]) -> Duration {
    let started = now();
    for &key in keys {
        timers.cancel(key);
    }
    started.elapsed()
}

/// Returns the allocated bytes per timer after all were inserted.
fn bytes<S: Timers>(input: &Input) -> f64 {
    let mut holder = None;
    let found = allocation_counter::measure(|| {
        let timers = holder.insert(S::new());
        for (id, &delay_ms) in input.delays.iter().enumerate() {
            black_box(timers.insert(id as u32, delay_ms));
        }
    });
    found.bytes_current as f64 / f64::from(TIMERS)
}

/// Runs `work` with tokio's clock paused.
fn paused<R>(work: impl AsyncFnOnce() -> R) -> R {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread needs nothing to start");
    runtime.block_on(work())
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[derive(Default)]
struct Results(BTreeMap<&'static str, Vec<Figures>>);

impl Results {
    fn add<S: Timers>(&mut self, input: &Input) -> Result<()> {
        let figures = paused(async || round::<S>(input).await)?;
        self.0.entry(S::NAME).or_default().push(figures);
        Ok(())
    }

    fn print(&self, bytes: &[(&str, f64)]) {
        println!("{:<30}{:>9}{:>9}{:>9}{:>9}", "ns, median", "insert", "cancel", "fire", "B/timer");
        for (name, held) in bytes {
            let of = |nth: usize| median(self.0[name].iter().map(|figures| figures[nth]));
            println!("{name:<30}{:>9.1}{:>9.1}{:>9.1}{held:>9.1}", of(0), of(1), of(2));
        }
        let (ours, peer) = (&self.0[Ours::NAME], &self.0[VERSUS]);
        for (nth, (what, target)) in TARGETS.into_iter().enumerate() {
            let ratios = ours.iter().zip(peer).map(|(ours, peer)| ours[nth] / peer[nth]);
            verdict(what, median(ratios), target);
        }
        verdict("bytes", bytes[0].1, BYTES_TARGET);
    }
}

fn verdict(what: &str, found: f64, target: f64) {
    let reached = if found <= target { "pass" } else { "MISS" };
    println!("{what:<8} {found:>6.2}  target {target:>5}  {reached}");
}

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS_MIN), |rounds| rounds.parse())?;
    let mut results = Results::default();
    for round in 0..rounds.max(ROUNDS_MIN) {
        let input = Input::new(round as u64);
        results.add::<Ours>(&input)?;
        results.add::<Delays>(&input)?;
        results.add::<Hashed>(&input)?;
    }
    let input = Input::new(0);
    let of_delays = paused(async || bytes::<Delays>(&input));
    results.print(&[
        (Ours::NAME, bytes::<Ours>(&input)),
        (Delays::NAME, of_delays),
        (Hashed::NAME, bytes::<Hashed>(&input)),
    ]);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the time that passes is what is measured here")]
fn now() -> Instant {
    Instant::now()
}
