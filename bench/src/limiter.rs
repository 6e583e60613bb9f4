//! Compares rate limiters that use comparable clocks.

use std::num::NonZeroU32;

use governor::clock::{FakeRelativeClock, MonotonicClock};
use governor::{Quota, RateLimiter as Governor};
use rewheel::{Clock, ManualClock, RateLimiter, RateLimiterBuilder};

use crate::correctness::Check;
use crate::correctness::admissions::{self, BURST, PER_SECOND};
use crate::goal::Limit::{self, Times};
use crate::harness::{Comparison, Group, Pace, Subject};

/// A rate so high that no call is refused.
const PLENTY: u32 = 1_000_000_000;
/// A rate so low that almost every call is refused.
const FEW: u32 = 1_000;

const KEYS: u64 = 10_000;
/// With space for unevenly distributed keys.
const KEYS_MAX: usize = 20_000;

const GOVERNOR: &[&str] = &["governor"];
const DIRECT: &[(usize, Limit)] = &[(1, Times(1.0)), (2, Times(0.7))];
const ONE_THREAD: &[(usize, Limit)] = &[(1, Times(1.0))];
const KEYED: &[(usize, Limit)] = &[(1, Times(0.7)), (2, Times(0.7))];

pub fn compare(pace: &Pace) -> Vec<Group> {
    [
        on_the_monotonic_clock(),
        on_a_clock_for_tests(),
        on_the_cheapest_clock(),
        refusing_on_the_monotonic_clock(),
        refusing_on_the_cheapest_clock(),
        keyed_on_the_cheapest_clock(),
        keyed_on_the_monotonic_clock(),
        keyed_on_a_clock_for_tests(),
        one_hot_key(),
    ]
    .into_iter()
    .map(|comparison| comparison.measure(pace))
    .collect()
}

fn quota(per_second: u32) -> Quota {
    Quota::per_second(NonZeroU32::new(per_second).expect("the rates here are not zero"))
}

fn besieged_quota() -> Quota {
    quota(PER_SECOND).allow_burst(NonZeroU32::new(BURST).expect("the burst is not zero"))
}

fn besieged() -> RateLimiterBuilder {
    RateLimiter::per_second(PER_SECOND).burst(BURST)
}

fn siege_of_rewheel(clock: &Clock) -> Check {
    /// A limiter that fills in less time than one step of a coarse clock.
    const SMALL: u32 = 1_000;
    let large = besieged().clock(clock).build();
    let small = besieged().burst(SMALL).clock(clock).build();
    admissions::in_real_time(|| large.check().is_ok())
        .and("small burst", admissions::in_real_time_with(SMALL, || small.check().is_ok()))
}

fn on_the_monotonic_clock() -> Comparison {
    let ours = RateLimiter::per_second(PLENTY).build();
    let governor = Governor::direct_with_clock(quota(PLENTY), MonotonicClock);
    let siege = Governor::direct_with_clock(besieged_quota(), MonotonicClock);
    Comparison {
        name: "limiter, monotonic clock",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours, |l, _| l.check())
                .versus(GOVERNOR, DIRECT)
                .checked(siege_of_rewheel(&Clock::system())),
            Subject::new("governor", governor, |l, _| l.check())
                .checked(admissions::in_real_time(|| siege.check().is_ok())),
        ],
    }
}

fn on_a_clock_for_tests() -> Comparison {
    let ours = RateLimiter::per_second(PLENTY).clock(ManualClock::new()).build();
    let governor = Governor::direct_with_clock(quota(PLENTY), FakeRelativeClock::default());
    let check_ours = {
        let clock = ManualClock::new();
        let limiter = besieged().clock(&clock).build();
        admissions::in_virtual_time(|| limiter.check().is_ok(), |step| clock.advance(step))
    };
    let check_governor = {
        let clock = FakeRelativeClock::default();
        let limiter = Governor::direct_with_clock(besieged_quota(), clock.clone());
        admissions::in_virtual_time(|| limiter.check().is_ok(), |step| clock.advance(step))
    };
    Comparison {
        name: "limiter, clock for tests",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours, |l, _| l.check())
                .versus(GOVERNOR, ONE_THREAD)
                .checked(check_ours),
            Subject::new("governor", governor, |l, _| l.check()).checked(check_governor),
        ],
    }
}

fn on_the_cheapest_clock() -> Comparison {
    let ours = RateLimiter::per_second(PLENTY).clock(Clock::coarse()).build();
    let siege = Governor::direct(besieged_quota());
    Comparison {
        name: "limiter, coarse clock versus default clock",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours, |l, _| l.check())
                .versus(GOVERNOR, DIRECT)
                .checked(siege_of_rewheel(&Clock::coarse())),
            Subject::new("governor", Governor::direct(quota(PLENTY)), |l, _| l.check())
                .checked(admissions::in_real_time(|| siege.check().is_ok())),
        ],
    }
}

fn refusing_on_the_monotonic_clock() -> Comparison {
    let governor = Governor::direct_with_clock(quota(FEW), MonotonicClock);
    Comparison {
        name: "limiter, mostly refused, monotonic clock",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", RateLimiter::per_second(FEW).build(), |l, _| l.check())
                .versus(GOVERNOR, ONE_THREAD),
            Subject::new("governor", governor, |l, _| l.check()),
        ],
    }
}

fn refusing_on_the_cheapest_clock() -> Comparison {
    let ours = RateLimiter::per_second(FEW).clock(Clock::coarse()).build();
    Comparison {
        name: "limiter, mostly refused, coarse versus default",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours, |l, _| l.check()).versus(GOVERNOR, ONE_THREAD),
            Subject::new("governor", Governor::direct(quota(FEW)), |l, _| l.check()),
        ],
    }
}

fn keyed_on_the_cheapest_clock() -> Comparison {
    let ours = RateLimiter::per_second(PLENTY).clock(Clock::coarse()).keyed::<u64>(KEYS_MAX);
    let governor = Governor::keyed(quota(PLENTY));
    let check_ours = {
        let limiter = besieged().clock(Clock::coarse()).keyed::<u64>(KEYS_MAX);
        admissions::in_real_time(|| limiter.check(&7).is_ok())
    };
    let check_governor = {
        let limiter = Governor::keyed(besieged_quota());
        admissions::in_real_time(|| limiter.check_key(&7_u64).is_ok())
    };
    Comparison {
        name: "limiter of 10,000 keys, coarse versus default",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours, |l, i| l.check(&(i % KEYS)))
                .versus(GOVERNOR, KEYED)
                .checked(check_ours),
            Subject::new("governor", governor, |l, i| l.check_key(&(i % KEYS)))
                .checked(check_governor),
        ],
    }
}

fn keyed_on_the_monotonic_clock() -> Comparison {
    let ours = RateLimiter::per_second(PLENTY).keyed::<u64>(KEYS_MAX);
    let governor = Governor::dashmap_with_clock(quota(PLENTY), MonotonicClock);
    Comparison {
        name: "limiter of 10,000 keys, monotonic clock",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours, |l, i| l.check(&(i % KEYS))).versus(GOVERNOR, KEYED),
            Subject::new("governor", governor, |l, i| l.check_key(&(i % KEYS))),
        ],
    }
}

fn keyed_on_a_clock_for_tests() -> Comparison {
    let ours = RateLimiter::per_second(PLENTY).clock(ManualClock::new()).keyed::<u64>(KEYS_MAX);
    let governor = Governor::dashmap_with_clock(quota(PLENTY), FakeRelativeClock::default());
    Comparison {
        name: "limiter of 10,000 keys, clock for tests",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours, |l, i| l.check(&(i % KEYS))).versus(GOVERNOR, KEYED),
            Subject::new("governor", governor, |l, i| l.check_key(&(i % KEYS))),
        ],
    }
}

fn one_hot_key() -> Comparison {
    let ours = RateLimiter::per_second(PLENTY).clock(Clock::coarse()).keyed::<u64>(KEYS_MAX);
    let governor = Governor::keyed(quota(PLENTY));
    Comparison {
        name: "limiter of one hot key, coarse versus default",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours, |l, _| l.check(&7)).versus(GOVERNOR, KEYED),
            Subject::new("governor", governor, |l, _| l.check_key(&7_u64)),
        ],
    }
}
