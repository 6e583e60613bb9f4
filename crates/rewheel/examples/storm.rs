//! Shows a retry storm, then the same load with better retry policies.
//!
//! A thousand clients call a service at the moment it goes down. It is back after two seconds, but
//! serves only twenty calls per 20 ms, and refuses the others. Time is virtual, so this takes no
//! real time; random numbers are seeded, so it always prints the same.

use rewheel::{Backoff, Jitter, Random, Retry, Series, Step, Verdict, millis, seconds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const CLIENTS: usize = 1_000;
const DOWN_FOR: Duration = seconds(2);
const SLOT: Duration = millis(20);
const SERVED_PER_SLOT: u32 = 20;

/// Number of time slots in one line of the output.
const SLOTS_PER_LINE: usize = 25;
const LINES_MAX: usize = 40;

/// What the service received in one time slot.
#[derive(Clone, Copy, Default)]
struct Slot {
    calls: u32,
    served: u32,
}

/// The result for all clients.
struct Outcome {
    slots: Vec<Slot>,
    served: usize,
    last_served: Duration,
}

fn main() {
    let exactly = Retry::fixed(seconds(1)).attempts_max(8);
    let around = exactly.jitter(Jitter::proportional(0.5));
    let doubling = Backoff::exponential(seconds(1)).max(seconds(4));
    let doubling = Retry::new(doubling).attempts_max(8);
    let herd =
        report("Everybody waits a second, exactly: the herd comes back as it left.", exactly);
    let spread = report("Everybody waits around a second: no two come back together.", around);
    let calm = report(
        "Doubling delays, full jitter: the longer it is down, the less it is called.",
        doubling,
    );
    summarise(&[("exactly", herd), ("around", spread), ("doubling", calm)]);
}

/// Runs every client, with retries as the policy says, in order of time.
fn storm(retry: Retry) -> Outcome {
    let random = Random::seeded(2026);
    let mut clients = vec![Series::new(retry); CLIENTS];
    let mut calls: BinaryHeap<_> =
        (0..CLIENTS).map(|client| Reverse((Duration::ZERO, client))).collect();
    let slots = vec![Slot::default(); LINES_MAX * SLOTS_PER_LINE];
    let mut outcome = Outcome { slots, served: 0, last_served: Duration::ZERO };
    while let Some(Reverse((now, client))) = calls.pop() {
        let index = usize::try_from(now.as_millis() / SLOT.as_millis()).unwrap_or(usize::MAX);
        let last = outcome.slots.len() - 1;
        let slot = &mut outcome.slots[index.min(last)];
        slot.calls += 1;
        let served = now >= DOWN_FOR && slot.served < SERVED_PER_SLOT;
        let verdict = if served { Verdict::Done } else { Verdict::Retry };
        slot.served += u32::from(served);
        match clients[client].after(verdict, now, &random) {
            Step::Wait(delay) => calls.push(Reverse((now + delay, client))),
            Step::GiveUp(_) => {}
            Step::Return => {
                outcome.served += 1;
                outcome.last_served = now;
            }
        }
    }
    outcome
}

#[expect(clippy::print_stdout, reason = "it is what this example is for")]
fn report(title: &str, retry: Retry) -> Outcome {
    let outcome = storm(retry);
    println!("{title}\n  {retry}\n");
    let last = outcome.slots.iter().rposition(|slot| slot.calls > 0).unwrap_or(0);
    for (line, slots) in outcome.slots[..=last].chunks(SLOTS_PER_LINE).enumerate() {
        let calls: u32 = slots.iter().map(|slot| slot.calls).sum();
        let served: u32 = slots.iter().map(|slot| slot.served).sum();
        let bar = |count: u32, block: &str| block.repeat(count.div_ceil(25) as usize);
        let seconds = (line * SLOTS_PER_LINE) as f64 * SLOT.as_secs_f64();
        println!("  {seconds:>4.1} s {calls:>5} {}{}", bar(served, "█"), bar(calls - served, "░"));
    }
    println!();
    outcome
}

#[expect(clippy::print_stdout, reason = "it is what this example is for")]
fn summarise(outcomes: &[(&str, Outcome)]) {
    println!("              served    the last after    calls    most at once after the first");
    for (name, outcome) in outcomes {
        let calls: u32 = outcome.slots.iter().map(|slot| slot.calls).sum();
        let peak = outcome.slots.iter().skip(1).map(|slot| slot.calls).max().unwrap_or(0);
        let last = outcome.last_served.as_secs_f64();
        println!("  {name:<9} {:>8} {last:>14.1} s {calls:>9} {peak:>10} in 20 ms", outcome.served);
    }
    println!("\n  █ served   ░ refused");
}
