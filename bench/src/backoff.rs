//! Compares how fast libraries compute the next backoff delay.

use std::hint::black_box;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use rewheel::{Backoff, Jitter, Random};
use tokio_retry::strategy::{ExponentialBackoff, jitter};

use crate::correctness::delays;
use crate::goal::Limit::Times;
use crate::harness::{Comparison, Group, Pace, Subject};

/// Number of delays drawn from one schedule before it is created again.
const DELAYS: u32 = 32;

const FIRST: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(60);

pub fn compare(pace: &Pace) -> Vec<Group> {
    vec![next_delay().measure(pace)]
}

fn ours(name: &'static str, jitter: Jitter) -> Subject {
    let subject = Subject::new(name, Random::thread(), move |random, _| {
        let backoff = Backoff::exponential(black_box(FIRST)).max(MAX).jitter(jitter);
        for attempt in 1..=DELAYS {
            black_box(black_box(&backoff).delay(attempt, random));
        }
    });
    subject.in_batches_of(DELAYS.into()).checked(delays::of_rewheel(jitter))
}

fn next_delay() -> Comparison {
    let backon = Subject::new("backon with_jitter", (), |(), _| {
        let builder = ExponentialBuilder::default().with_min_delay(black_box(FIRST));
        let builder = builder.with_max_delay(MAX).with_max_times(DELAYS as usize).with_jitter();
        for delay in black_box(builder.build()) {
            black_box(delay);
        }
    });
    let tokio_retry = Subject::new("tokio-retry map(jitter)", (), |(), _| {
        let strategy = ExponentialBackoff::from_millis(2).factor(black_box(50)).max_delay(MAX);
        for delay in black_box(strategy).map(jitter).take(DELAYS as usize) {
            black_box(delay);
        }
    });
    Comparison {
        name: "next delay with jitter",
        threads: &[1],
        subjects: vec![
            ours("rewheel full", Jitter::FULL).versus(&["backon with_jitter"], &[(1, Times(1.0))]),
            ours("rewheel 30%", Jitter::proportional(0.3))
                .versus(&["backon with_jitter"], &[(1, Times(1.0))]),
            backon.in_batches_of(DELAYS.into()).checked(delays::of_backon()),
            tokio_retry.in_batches_of(DELAYS.into()).checked(delays::of_tokio_retry()),
        ],
    }
}
