//! Shows where a result can come from if the usual source is slow or fails.
//!
//! Three replicas serve prices. One is often slow, then one fails half of its calls, then all are down. Time is virtual, and
//! random numbers are seeded, so it always prints the same: `cargo run -p rewheel --example sources --features cache`.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use rewheel::{
    CircuitBreaker, Clock, Failover, Hedge, LastGood, ManualClock, OutlierEjection, Pipeline,
    Random, RetryBudget, SafeToRepeat, millis, minutes, seconds,
};
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::time::Duration;

const CALLS: u32 = 1_000;

/// What is wrong with the replicas.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// One call in fifty takes a second.
    SomeAreSlow,
    /// The first replica fails every other call.
    OneIsBad,
    AllAreDown,
}

/// Three replicas that answer within ten milliseconds when all is well.
struct Replicas {
    clock: Clock,
    random: Random,
    trouble: Cell<Trouble>,
    calls: [Cell<u32>; 3],
}

impl Replicas {
    async fn price(&self, replica: usize) -> io::Result<u32> {
        let count = &self.calls[replica];
        count.set(count.get() + 1);
        let is_slow = self.trouble.get() == Trouble::SomeAreSlow && self.one_in(50);
        let work = if is_slow { 1_000 } else { 5 + self.random.next() % 5 };
        self.clock.sleep(millis(work)).await;
        match self.trouble.get() {
            Trouble::AllAreDown => Err(ErrorKind::ConnectionRefused.into()),
            Trouble::OneIsBad if replica == 0 && self.one_in(2) => Err(ErrorKind::TimedOut.into()),
            Trouble::OneIsBad | Trouble::SomeAreSlow => Ok(4_200),
        }
    }

    fn one_in(&self, count: u64) -> bool {
        self.random.next().is_multiple_of(count)
    }

    fn calls(&self) -> [u32; 3] {
        [0, 1, 2].map(|replica| self.calls[replica].take())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let manual = ManualClock::new();
    let clock = Clock::from(&manual);
    let replicas = Replicas {
        clock: clock.clone(),
        random: Random::seeded(7),
        trouble: Cell::new(Trouble::SomeAreSlow),
        calls: Default::default(),
    };
    hedging(&replicas, &manual).await;
    replicas.trouble.set(Trouble::OneIsBad);
    let failover = failing_over(&replicas, &manual).await;
    falling_back(&replicas, &manual, &failover).await;
}

async fn hedging(replicas: &Replicas, clock: &ManualClock) {
    println!("One call in fifty is slow:");
    let fetch = Pipeline::new().clock(clock).timeout(seconds(2));
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let call = fetch.run(|_| replicas.price(1));
        times.push(timed(clock, call).await);
    }
    println!("  alone:        {}; {:?} calls of the replicas", slowest(times), replicas.calls());
    let budget = RetryBudget::ratio(0.1).clock(clock).build();
    let hedge = Hedge::percentile(0.95).clock(clock).retry_budget(&budget).build();
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let call = fetch.run(|_| replicas.price(1)).hedge(&hedge, SafeToRepeat);
        times.push(timed(clock, call).await);
    }
    println!("  with a hedge: {}; {:?} calls of the replicas", slowest(times), replicas.calls());
}

async fn failing_over(replicas: &Replicas, clock: &ManualClock) -> Failover<usize> {
    println!("\nOne replica of three fails every other call:");
    let failover = Failover::over([0, 1, 2])
        .circuit_breaker(CircuitBreaker::consecutive(20).clock(clock))
        .round_robin()
        .ejection(OutlierEjection::margin(0.3))
        .clock(clock)
        .build();
    let mut good = 0;
    for _ in 0..CALLS {
        let call = failover.call(|replica| replicas.price(*replica));
        good += u32::from(clock.drive(Box::pin(call)).await.is_ok());
    }
    println!("  {good} of {CALLS} calls succeed; {:?} calls of the replicas", replicas.calls());
    failover
}

async fn falling_back(replicas: &Replicas, clock: &ManualClock, failover: &Failover<usize>) {
    println!("\nAll replicas go down:");
    let prices = LastGood::ttl(seconds(10)).stale_if_error(minutes(5)).clock(clock).build();
    let fetch = Pipeline::new().clock(clock).timeout(seconds(2));
    for step in ["before", "after 10 s", "after 6 min"] {
        let call = fetch
            .run(|_| failover.call(|replica| replicas.price(*replica)))
            .last_good(&prices, "tea");
        match clock.drive(Box::pin(call)).await {
            Ok(price) => println!("  {step}: {} ({})", *price, price.freshness()),
            Err(error) => println!("  {step}: {error}"),
        }
        replicas.trouble.set(Trouble::AllAreDown);
        clock.advance(if step == "before" { seconds(10) } else { minutes(6) });
    }
    let call = fetch.run(|_| failover.call(|replica| replicas.price(*replica))).or_value(9_900);
    println!("  with a fallback: {:?}", clock.drive(Box::pin(call)).await.ok());
}

/// Makes a call, and returns its time.
async fn timed<C: IntoFuture>(clock: &ManualClock, call: C) -> Duration {
    let before = clock.elapsed();
    clock.drive(call).await;
    clock.elapsed() - before
}

/// Returns the time of the slowest percent of the calls.
fn slowest(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    format!("slowest 1 % of the calls take {:?} or more", times[times.len() * 99 / 100])
}
