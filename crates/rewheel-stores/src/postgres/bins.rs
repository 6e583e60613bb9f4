//! Decides which finished jobs share a bin: a table that is emptied when all of them have expired.

use super::row::millis;
use rewheel_core::Timestamp;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The spans of time for which there are bins, in ascending order.
const WIDTHS_MS: [i64; 18] = [
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    8 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    4 * DAY,
    8 * DAY,
    16 * DAY,
    32 * DAY,
    64 * DAY,
];

/// A bin spans at most this part of a retention. So a job is deleted late by at most this part, and jobs of one retention fill five to
/// fourteen bins; there are 19 bins for all retentions.
const PART: i64 = 5;

/// Jobs with a shorter retention are not put into bins: a settle that waits for a lock after it has chosen a bin must not wait until the bin is
/// emptied. It waits for the statement timeout at most, which is 10 seconds by default.
const KEPT_MIN_MS: i64 = MINUTE;

/// Jobs with a longer retention are not put into bins: they would occupy all bins for years.
const KEPT_MAX_MS: i64 = 2 * 366 * DAY;

/// Maximum number of retentions whose jobs are counted. Each kind may have its own; more than the bins can serve are of no use.
const FLOWS_MAX: usize = 64;

/// Returns the span of a bin for jobs with this retention, if there are such bins.
pub(super) fn width_ms(keep: Duration) -> Option<i64> {
    let keep = millis(keep);
    let fits = |width: &&i64| **width <= keep / PART;
    let width = WIDTHS_MS.iter().rev().find(fits).or(WIDTHS_MS.first());
    width.copied().filter(|_| (KEPT_MIN_MS..=KEPT_MAX_MS).contains(&keep))
}

/// The jobs that expire from a time until the end of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bin {
    pub(super) from_ms: i64,
    pub(super) width_ms: i64,
}

impl Bin {
    fn of(expires_ms: i64, width_ms: i64) -> Bin {
        Bin { from_ms: expires_ms - expires_ms.rem_euclid(width_ms), width_ms }
    }

    fn next(self) -> Bin {
        Bin { from_ms: self.from_ms + self.width_ms, ..self }
    }
}

/// Counts the finished jobs of this process, and remembers which bins to open. A bin that is not open costs nothing but speed: its jobs go
/// to bin 0, where they are deleted one by one.
#[derive(Debug)]
pub(super) struct Bins {
    /// Minimum number of jobs for which a bin is opened.
    jobs_min: u64,
    flows: Mutex<Flows>,
}

#[derive(Debug, Default)]
struct Flows {
    /// By retention in milliseconds.
    by_keep: HashMap<i64, Flow>,
    /// Bins to open as soon as a connection is at hand.
    wanted: Vec<Bin>,
}

/// The latest finished jobs of one retention.
#[derive(Debug)]
struct Flow {
    bin: Bin,
    /// How many of them belong to this bin.
    jobs: u64,
    /// Whether this bin, and the next one, were asked for.
    asked: bool,
    asked_next: bool,
}

impl Bins {
    pub(super) fn new(jobs_min: u64) -> Bins {
        Bins { jobs_min: jobs_min.max(1), flows: Mutex::default() }
    }

    /// Counts jobs that end now and are kept for this long.
    pub(super) fn kept(&self, now: Timestamp, keep: Duration, jobs: usize) {
        let Some(width_ms) = width_ms(keep) else { return };
        let expires_ms = now.plus(keep).as_millis();
        let bin = Bin::of(expires_ms, width_ms);
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        let Flows { by_keep, wanted } = &mut *flows;
        if by_keep.len() >= FLOWS_MAX {
            by_keep.clear();
        }
        let flow = match by_keep.entry(millis(keep)) {
            Entry::Occupied(flow) => flow.into_mut(),
            Entry::Vacant(place) => place.insert(Flow::new(bin)),
        };
        // Concurrent results may be a moment older than the latest ones, whose bin counts.
        if !flow.go_to(bin) {
            return;
        }
        flow.jobs += jobs as u64;
        if flow.jobs < self.jobs_min {
            return;
        }
        // A program that only settles in its own transactions opens no bins.
        wanted.truncate(FLOWS_MAX);
        if !std::mem::replace(&mut flow.asked, true) {
            wanted.push(bin);
        }
        // Ask ahead of time, so that no job misses the next bin while many jobs end.
        let is_late = expires_ms - bin.from_ms >= width_ms / 4 * 3;
        if is_late && !std::mem::replace(&mut flow.asked_next, true) {
            wanted.push(bin.next());
        }
    }

    /// Takes the bins to open.
    pub(super) fn take_wanted(&self) -> Wanted<'_> {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        Wanted { bins: self, left: std::mem::take(&mut flows.wanted).into() }
    }

    /// Remembers that a bin could not be opened: it is asked for again after as many jobs.
    pub(super) fn not_opened(&self, bin: Bin) {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        for flow in flows.by_keep.values_mut() {
            if flow.bin == bin {
                (flow.asked, flow.jobs) = (false, 0);
            } else if flow.bin.next() == bin {
                flow.asked_next = false;
            }
        }
    }
}

/// Bins to open. If the call that opens them is cancelled, the next one opens those that are left.
#[derive(Debug)]
pub(super) struct Wanted<'b> {
    bins: &'b Bins,
    left: VecDeque<Bin>,
}

impl Wanted<'_> {
    /// Returns the next bin, again until it is done.
    pub(super) fn next(&self) -> Option<Bin> {
        self.left.front().copied()
    }

    /// Ends the work on the next bin.
    pub(super) fn done(&mut self) {
        self.left.pop_front();
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        if !self.left.is_empty() {
            let mut flows = self.bins.flows.lock().unwrap_or_else(PoisonError::into_inner);
            flows.wanted.extend(self.left.drain(..));
        }
    }
}

impl Flow {
    fn new(bin: Bin) -> Flow {
        Flow { bin, jobs: 0, asked: false, asked_next: false }
    }

    /// Continues with another bin, if the time of the jobs has moved on. Returns `false` for jobs of the bin before.
    fn go_to(&mut self, bin: Bin) -> bool {
        if bin.next() == self.bin {
            return false;
        }
        if bin != self.bin {
            let asked = bin == self.bin.next() && self.asked_next;
            *self = Flow { asked, ..Flow::new(bin) };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Bin, Bins, DAY, HOUR, MINUTE, WIDTHS_MS, width_ms};
    use rewheel_core::Timestamp;
    use std::time::Duration;

    const MILLI: Duration = Duration::from_millis(1);

    fn take_all(bins: &Bins) -> Vec<Bin> {
        let mut wanted = bins.take_wanted();
        let mut taken = Vec::new();
        while let Some(bin) = wanted.next() {
            taken.push(bin);
            wanted.done();
        }
        taken
    }

    fn keep(ms: i64) -> Duration {
        MILLI * u32::try_from(ms).expect("a short retention")
    }

    #[test]
    fn a_bin_spans_a_fifth_of_the_retention_or_less() {
        #[track_caller]
        fn check(kept_ms: i64, width: Option<i64>) {
            assert_eq!(width_ms(Duration::from_millis(kept_ms.unsigned_abs())), width);
        }
        check(1, None);
        check(MINUTE - 1, None);
        check(MINUTE, Some(MINUTE));
        check(5 * MINUTE, Some(MINUTE));
        check(HOUR, Some(10 * MINUTE));
        check(DAY, Some(4 * HOUR));
        check(7 * DAY, Some(DAY));
        check(30 * DAY, Some(4 * DAY));
        check(365 * DAY, Some(64 * DAY));
        check(732 * DAY, Some(64 * DAY));
        check(733 * DAY, None);
        check(i64::MAX, None);
        assert_eq!(width_ms(Duration::MAX), None);
    }

    /// Otherwise the bins of one retention would use up all bins.
    #[test]
    fn neighbouring_widths_are_not_far_apart() {
        for pair in WIDTHS_MS.windows(2) {
            assert!(pair[0] < pair[1] && pair[1] * 2 <= pair[0] * 5, "{pair:?}");
        }
    }

    #[test]
    fn few_jobs_open_no_bin() {
        let bins = Bins::new(100);
        for minute in 0..1_000 {
            bins.kept(Timestamp::from_millis(minute * MINUTE), keep(5 * MINUTE), 99);
        }
        assert_eq!(take_all(&bins), []);
    }

    #[test]
    fn many_jobs_open_their_bin_and_in_time_the_next() {
        let bins = Bins::new(100);
        let mut opened = Vec::new();
        for second in 0..180 {
            bins.kept(Timestamp::from_millis(second * 1_000), keep(5 * MINUTE), 10);
            for bin in take_all(&bins) {
                opened.push((second, bin.from_ms / MINUTE));
                assert_eq!(bin.width_ms, MINUTE);
            }
        }
        // The first one after a hundred jobs, the others a quarter of a minute before they begin.
        assert_eq!(opened, [(9, 5), (45, 6), (105, 7), (165, 8)]);
    }

    #[test]
    fn a_result_that_is_a_moment_old_changes_nothing() {
        let bins = Bins::new(10);
        let at = |ms: i64| bins.kept(Timestamp::from_millis(ms), keep(5 * MINUTE), 10);
        at(50_000);
        assert_eq!(take_all(&bins).len(), 2);
        at(60_001);
        at(59_999);
        at(60_002);
        assert_eq!(take_all(&bins), [], "both are open");
    }

    #[test]
    fn a_bin_that_was_not_opened_is_asked_for_again() {
        let bins = Bins::new(10);
        let at = |ms: i64| bins.kept(Timestamp::from_millis(ms), keep(5 * MINUTE), 10);
        let first = Bin { from_ms: 5 * MINUTE, width_ms: MINUTE };
        at(0);
        assert_eq!(take_all(&bins), [first]);
        at(1);
        assert_eq!(take_all(&bins), []);
        bins.not_opened(first);
        at(2);
        assert_eq!(take_all(&bins), [first]);
    }

    #[test]
    fn bins_that_a_cancelled_call_was_to_open_are_opened_by_the_next_one() {
        let bins = Bins::new(10);
        bins.kept(Timestamp::from_millis(50_000), keep(5 * MINUTE), 10);
        let mut wanted = bins.take_wanted();
        assert!(wanted.next().is_some());
        wanted.done();
        let second = wanted.next();
        assert!(second.is_some());
        drop(wanted);
        assert_eq!(take_all(&bins).first().copied(), second);
        assert_eq!(take_all(&bins), []);
    }

    #[test]
    fn many_retentions_are_not_remembered_for_ever() {
        let bins = Bins::new(1);
        for second in 0..10_000 {
            bins.kept(Timestamp::from_millis(0), Duration::from_secs(second), 1);
        }
        let flows = bins.flows.lock().expect("a lock");
        assert!(flows.by_keep.len() <= super::FLOWS_MAX);
    }
}
