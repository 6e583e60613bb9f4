//! Checks every interleaving of threads that count into one window.

use crate::clock::Moment;
use crate::window::{CountWindow, Counts, Tally, TimeWindow};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

const FAILED: Tally = Tally { failed: true, slow: false };
const FINE: Tally = Tally { failed: false, slow: false };

/// Two threads and this one share a ring of one slot: every write replaces another's.
#[test]
fn loom_a_count_window_counts_its_bits() {
    loom::model(|| {
        let window = Arc::new(CountWindow::new(1));
        let threads = [[FAILED, FINE], [FINE, FAILED]].map(|tallies| {
            let window = Arc::clone(&window);
            thread::spawn(move || {
                for tally in tallies {
                    window.record(tally);
                    let counts = window.counts();
                    assert!(counts.failures <= counts.calls, "more failed than called: {counts:?}");
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        // A full round of successes must leave nothing, or the counter no longer matches the bits.
        assert!(window.counts().failures <= 1);
        window.record(FINE);
        assert_eq!(window.counts(), Counts { calls: 1, failures: 0, slow: 0 });
        window.record(FAILED);
        assert_eq!(window.counts(), Counts { calls: 1, failures: 1, slow: 0 });
    });
}

/// The one failure is overwritten before its own thread has counted it: the counter is briefly
/// below zero, which must not look like a window full of failures.
#[test]
fn loom_a_count_window_never_shows_more_failures_than_there_were() {
    loom::model(|| {
        let window = Arc::new(CountWindow::new(2));
        let failing = {
            let window = Arc::clone(&window);
            thread::spawn(move || window.record(FAILED))
        };
        for _ in 0..2 {
            window.record(FINE);
            assert!(window.counts().failures <= 1, "{:?}", window.counts());
        }
        failing.join().unwrap();
        assert!(window.counts().failures <= 1, "{:?}", window.counts());
    });
}

#[test]
fn loom_a_count_window_with_room_loses_nothing() {
    loom::model(|| {
        let window = Arc::new(CountWindow::new(4));
        let threads = [FAILED, FAILED].map(|tally| {
            let window = Arc::clone(&window);
            thread::spawn(move || window.record(tally))
        });
        window.record(FINE);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(window.counts(), Counts { calls: 3, failures: 2, slow: 0 });
    });
}

/// Both threads find the bucket of a past period, and want it for the new one.
#[test]
fn loom_a_bucket_that_turns_over_loses_no_call_of_the_new_period() {
    loom::model(|| {
        let window = Arc::new(TimeWindow::new(Duration::from_secs(10)));
        window.record(FINE, Moment::ZERO);
        let now = Moment::from_nanos(10_000_000_000);
        let threads = [(); 2].map(|()| {
            let window = Arc::clone(&window);
            thread::spawn(move || window.record(FAILED, now))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(window.counts(now), Counts { calls: 2, failures: 2, slow: 0 });
    });
}

/// One thread is a whole window late. Its call may be lost, or be counted in the new period if the
/// bucket changes between its read and its write; the other thread's call is always counted.
#[test]
fn loom_a_late_thread_takes_nothing_from_the_new_period() {
    loom::model(|| {
        let window = Arc::new(TimeWindow::new(Duration::from_secs(10)));
        window.record(FAILED, Moment::ZERO);
        let now = Moment::from_nanos(10_000_000_000);
        let threads = [Moment::ZERO, now].map(|now| {
            let window = Arc::clone(&window);
            thread::spawn(move || window.record(FAILED, now))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let counts = window.counts(now);
        assert!((1..=2).contains(&counts.failures), "{counts:?}");
        assert_eq!(window.counts(Moment::ZERO), Counts::default(), "an old period came back");
    });
}
