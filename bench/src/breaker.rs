//! Compares closed circuit breakers around calls that succeed.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use failsafe::{CircuitBreaker as _, Config, backoff, failure_policy};
use recloser::Recloser;
use rewheel::{CircuitBreaker, Clock};

use crate::correctness::probes;
use crate::goal::Limit::{Plus, Times};
use crate::harness::{Comparison, Group, Pace, Subject};

pub fn compare(pace: &Pace) -> Vec<Group> {
    [consecutive(), count_window(), time_window(), open()]
        .into_iter()
        .map(|comparison| comparison.measure(pace))
        .collect()
}

fn answer() -> io::Result<u64> {
    Ok(black_box(1))
}

fn consecutive() -> Comparison {
    let policy = failure_policy::consecutive_failures(5, backoff::constant(Duration::from_secs(1)));
    let failsafe = Config::new().failure_policy(policy).build();
    let ours = CircuitBreaker::consecutive(5).build();
    Comparison {
        name: "breaker, consecutive failures",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel call", ours.clone(), |b, _| b.call_blocking(answer))
                .versus(&["failsafe"], &[(1, Times(1.0)), (2, Times(0.5))])
                .checked(probes::of_rewheel(1)),
            Subject::new("rewheel acquire + success", ours, |b, _| {
                b.acquire().map(|p| p.success())
            })
            .versus(&["failsafe"], &[])
            .checked(probes::of_rewheel(3)),
            Subject::new("failsafe", failsafe, |b, _| b.call(answer))
                .checked(probes::of_failsafe()),
        ],
    }
}

fn count_window() -> Comparison {
    let ours = CircuitBreaker::count_window(100).build();
    Comparison {
        name: "breaker, window of 100 calls",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel call", ours.clone(), |b, _| b.call_blocking(answer))
                .versus(&["recloser"], &[(1, Times(1.0)), (2, Times(0.5))]),
            Subject::new("rewheel acquire + success", ours, |b, _| {
                b.acquire().map(|p| p.success())
            })
            .versus(&["recloser"], &[]),
            Subject::new("recloser", Recloser::default(), |b, _| b.call(answer))
                .checked(probes::of_recloser()),
        ],
    }
}

fn time_window() -> Comparison {
    const CLOCK: &str = "Clock::system().now()";
    let window = || CircuitBreaker::time_window(Duration::from_secs(10));
    let coarse = window().clock(Clock::coarse()).build();
    Comparison {
        name: "breaker, window of 10 s",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel call", window().build(), |b, _| b.call_blocking(answer))
                .versus(&[CLOCK], &[(1, Plus(10.0))]),
            Subject::new("rewheel call, coarse clock", coarse, |b, _| b.call_blocking(answer)),
            Subject::new(CLOCK, Clock::system(), |clock, _| clock.now()),
        ],
    }
}

fn open() -> Comparison {
    let refusing = CircuitBreaker::consecutive(1).build();
    refusing.isolate();
    let opened = CircuitBreaker::consecutive(1).open_for(Duration::from_secs(3_600)).build();
    opened.force_open();
    Comparison {
        name: "breaker, refusal",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel isolated", refusing, |b, _| b.call_blocking(answer)),
            Subject::new("rewheel open", opened, |b, _| b.call_blocking(answer)),
        ],
    }
}
