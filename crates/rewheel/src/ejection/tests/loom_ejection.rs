//! Checks every interleaving of two targets that become outliers at the same time.

use crate::clock::Moment;
use crate::ejection::{Ejections, OutlierEjection};
use loom::thread;
use std::sync::Arc;

#[test]
fn loom_two_threads_never_leave_out_more_than_half() {
    loom::model(|| {
        let now = Moment::from_nanos(1_000_000_000_000);
        let ejections = Arc::new(Ejections::new(OutlierEjection::margin(0.3).calls_min(1), 3));
        ejections.record(2, false, now);
        ejections.record(2, false, now);
        let other = {
            let ejections = Arc::clone(&ejections);
            thread::spawn(move || ejections.record(0, true, now).is_some())
        };
        let here = ejections.record(1, true, now).is_some();
        let there = other.join().unwrap();
        let out = [0, 1, 2].map(|target| ejections.is_out(target, now));
        assert!(!(here && there), "both were left out");
        assert_eq!(out.iter().filter(|out| **out).count(), usize::from(here) + usize::from(there));
    });
}
