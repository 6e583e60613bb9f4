//! Compares the time window with a plain list of timed outcomes.

use crate::clock::Moment;
use crate::window::{Counts, Tally, TimeWindow};
use proptest::prelude::*;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const FAILED: Tally = Tally { failed: true, slow: false };
const SLOW: Tally = Tally { failed: false, slow: true };

/// Outcomes by their period; a window is ten periods, including the current one.
struct Model {
    period: u64,
    outcomes: Vec<(u64, Tally)>,
}

impl Model {
    fn new(length: u64) -> Model {
        Model { period: length.div_ceil(10), outcomes: Vec::new() }
    }

    /// A late reading is lost only if a later period has taken its bucket.
    fn record(&mut self, tally: Tally, now: u64) {
        let period = now / self.period;
        let taken = |&(other, _): &(u64, Tally)| other > period && other % 10 == period % 10;
        if !self.outcomes.iter().any(taken) {
            self.outcomes.push((period, tally));
        }
    }

    fn counts(&self, now: u64) -> Counts {
        let now = now / self.period;
        let count = |counted: fn(&Tally) -> bool| {
            let inside = |&&(period, tally): &&(u64, Tally)| {
                period <= now && period + 10 > now && counted(&tally)
            };
            self.outcomes.iter().filter(inside).count() as u64
        };
        Counts { calls: count(|_| true), failures: count(|t| t.failed), slow: count(|t| t.slow) }
    }
}

fn tally() -> impl Strategy<Value = Tally> {
    (any::<bool>(), any::<bool>()).prop_map(|(failed, slow)| Tally { failed, slow })
}

/// Clock step, in thousandths of the window.
fn step() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0), 4 => 0_u64..150, 2 => 0_u64..1_200, 1 => 0_u64..100_000]
}

proptest! {
    #[test]
    fn counts_what_a_list_of_the_recent_outcomes_counts(
        length in prop_oneof![Just(10_000_000), 10_000_000..100 * SECOND],
        start in prop_oneof![Just(0), 0..100 * 365 * DAY],
        calls in proptest::collection::vec((tally(), step()), 1..300),
    ) {
        let window = TimeWindow::new(Duration::from_nanos(length));
        let mut model = Model::new(length);
        let mut now = start;
        for (tally, step) in calls {
            now += length / 1_000 * step;
            window.record(tally, Moment::from_nanos(now));
            model.record(tally, now);
            prop_assert_eq!(window.counts(Moment::from_nanos(now)), model.counts(now));
        }
    }

    /// The three counters rotate separately, so one that is rarely written may still accept a late
    /// call that another cannot. With calls that all failed they rotate together.
    #[test]
    fn a_late_reading_of_the_clock_brings_no_old_period_back(
        calls in proptest::collection::vec((step(), 0_u64..3_000), 1..200),
    ) {
        let length = SECOND;
        let window = TimeWindow::new(Duration::from_nanos(length));
        let mut model = Model::new(length);
        let mut latest = 5 * SECOND;
        for (step, late) in calls {
            latest += length / 1_000 * step;
            let now = latest.saturating_sub(length / 1_000 * late);
            window.record(FAILED, Moment::from_nanos(now));
            model.record(FAILED, now);
            prop_assert_eq!(window.counts(Moment::from_nanos(latest)), model.counts(latest));
        }
    }
}

#[test]
fn forgets_in_steps_of_a_tenth() {
    let window = TimeWindow::new(Duration::from_secs(10));
    let at = |seconds: u64| Moment::from_nanos(seconds * SECOND);
    for second in 0..10 {
        window.record(FAILED, at(second));
    }
    for second in 9..20 {
        let left = 19 - second;
        assert_eq!(window.counts(at(second)), Counts { calls: left, failures: left, slow: 0 });
    }
}

/// After a pause of any length, and at any clock value: old outcomes are gone, new ones are
/// counted.
#[test]
fn a_pause_of_any_length_leaves_an_empty_window_that_counts() {
    let pauses = [1, 20, 25, 30, 45, 49, 60, 250, 300, 365, 400, 500, 3_650, 36_500];
    for length in [10, 100, 1_000, 30_000].map(Duration::from_millis) {
        for days in pauses {
            let window = TimeWindow::new(length);
            let before = 3 * SECOND;
            for tenth in 0..10 {
                let passed = length.as_nanos() as u64 / 10 * tenth;
                window.record(FAILED, Moment::from_nanos(before + passed));
            }
            let after = Moment::from_nanos(before + days * DAY + 7);
            let text = format!("a window of {length:?} after {days} days");
            assert_eq!(window.counts(after), Counts::default(), "{text} remembers");
            window.record(SLOW, after);
            let counts = Counts { calls: 1, failures: 0, slow: 1 };
            assert_eq!(window.counts(after), counts, "{text} does not count");
        }
    }
}

#[test]
fn counts_across_the_wrap_of_the_period_number() {
    let period = 1_000_000;
    let wrap = (u64::from(u32::MAX) + 1) * period;
    let window = TimeWindow::new(Duration::from_millis(10));
    for step in 0..20 {
        let now = Moment::from_nanos(wrap - 10 * period + step * period);
        window.record(FAILED, now);
        let calls = (step + 1).min(10);
        assert_eq!(window.counts(now), Counts { calls, failures: calls, slow: 0 }, "step {step}");
    }
}
