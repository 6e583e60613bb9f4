//! Which targets are left out, and for how long.

use crate::clock::Moment;
use crate::ejection::{Ejections, OutlierEjection};
use crate::{millis, minutes, seconds};
use proptest::prelude::*;
use std::time::Duration;

const RULES: OutlierEjection = OutlierEjection::margin(0.3);

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

/// Records calls of a target, of which the last ones fail. Returns for how long it was left out.
fn record(
    ejections: &Ejections,
    target: usize,
    (calls, failures): (u32, u32),
    now: Moment,
) -> Option<Duration> {
    let times = (0..calls).map(|call| ejections.record(target, call >= calls - failures, now));
    times.flatten().last()
}

#[test]
fn only_a_clear_difference_to_the_others_counts() {
    let ejected = |own, others| {
        let ejections = Ejections::new(RULES, 3);
        record(&ejections, 1, others, at(100));
        record(&ejections, 2, others, at(100));
        record(&ejections, 0, own, at(100)).is_some()
    };
    assert!(ejected((20, 6), (20, 0)));
    assert!(!ejected((20, 5), (20, 0)), "25 % is not 30 % more than none");
    assert!(ejected((100, 50), (100, 20)));
    assert!(!ejected((100, 49), (100, 20)));
    assert!(!ejected((100, 100), (100, 100)), "all fail alike: it is not the target");
    assert!(!ejected((19, 19), (20, 0)), "too few calls");
    assert!(ejected((20, 20), (10, 0)));
    assert!(!ejected((20, 20), (9, 0)), "too few calls of the others");
}

#[test]
fn a_single_target_is_never_left_out() {
    let ejections = Ejections::new(RULES, 1);
    assert_eq!(record(&ejections, 0, (100, 100), at(100)), None);
}

#[test]
fn the_time_doubles_up_to_its_maximum_and_shrinks_while_the_target_works() {
    let ejections = Ejections::new(RULES.time_max(minutes(3)), 2);
    let mut now = 1_000;
    let mut out = |pause: u64| {
        now += pause;
        record(&ejections, 1, (20, 0), at(now));
        let time = record(&ejections, 0, (20, 20), at(now)).unwrap();
        assert!(ejections.is_out(0, at(now)));
        now += time.as_secs();
        assert!(!ejections.is_out(0, at(now)));
        time.as_secs()
    };
    // Each time it fails again as soon as it is back.
    assert_eq!([out(0), out(1), out(1), out(1), out(1)], [30, 60, 120, 180, 180]);
    // It was left out five times. Three periods of 30 s without failures take back three of them.
    assert_eq!(out(90), 120);
}

#[test]
fn old_calls_do_not_count() {
    let ejections = Ejections::new(RULES, 2);
    record(&ejections, 1, (20, 0), at(100));
    record(&ejections, 0, (19, 19), at(100));
    record(&ejections, 1, (20, 0), at(111));
    assert_eq!(record(&ejections, 0, (1, 1), at(111)), None);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for margin in [0.0, -0.1, 1.1, f64::NAN] {
        assert_eq!(OutlierEjection::try_margin(margin).unwrap_err().setting(), "margin");
    }
    let setting = |window, time, time_max| {
        let error = RULES.try_times(window, time, time_max).unwrap_err();
        (error.setting(), error.value().to_owned())
    };
    assert_eq!(setting(millis(9), seconds(1), seconds(1)), ("window", "9ms".to_owned()));
    assert_eq!(setting(seconds(2), seconds(1), seconds(9)), ("time", "1s".to_owned()));
    assert_eq!(setting(seconds(2), seconds(5), seconds(4)), ("time_max", "4s".to_owned()));
}

proptest! {
    #[test]
    fn never_are_more_than_half_of_the_targets_left_out(
        targets in 1_usize..7,
        calls in proptest::collection::vec((0_usize..7, any::<bool>(), 0_u64..5), 0..800),
    ) {
        let ejections = Ejections::new(RULES.calls_min(3), targets);
        let mut now = 1_000;
        for (target, failed, pause) in calls {
            now += pause / 4;
            let target = target % targets;
            // The first half fails much more than the second.
            let failed = if target * 2 <= targets { true } else { failed && pause == 0 };
            ejections.record(target, failed, at(now));
            let out = (0..targets).filter(|target| ejections.is_out(*target, at(now))).count();
            prop_assert!(out <= targets / 2, "{out} of {targets}");
        }
    }
}
