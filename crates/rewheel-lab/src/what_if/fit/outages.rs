//! Finds the times in which most recorded attempts failed, although normally they do not.

use crate::history::{History, PastAttempt};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

/// Parts of the history from which the usual share of failures is taken. At most: each has some attempts.
const PARTS_MAX: u64 = 200;

/// Attempts of a part on average. With fewer, most parts would have no failure.
const PART_ATTEMPTS: u64 = 20;

/// The share of failures that is expected in an outage.
const OUTAGE_RATIO: f64 = 0.95;

/// Bounds of the usual share of failures: without any failure, the first one would be an outage.
const USUAL_RATIOS: Range<f64> = 0.02..0.9;

/// Fewer attempts, or attempts of fewer jobs, are no outage: one job may fail each time because of what it contains.
const ATTEMPTS_MIN: usize = 10;
const JOBS_MIN: usize = 5;

/// The probability that chance alone makes an outage anywhere in the history is at most one in this many.
const ONE_IN: f64 = 1_000.0;

/// An outage ends where nothing was attempted for this long, or for this many times the average time between two attempts.
const GAP_MIN: Duration = Duration::from_secs(600);
const GAP_TIMES: u32 = 20;

/// An attempt and the number of its job.
type Tried<'a> = (&'a PastAttempt, usize);

/// Finds outages by a sequential test over the attempts in the order of their starts: each failure is evidence for an outage, each success
/// is evidence against it. The length of the history does not matter, so a short outage in a long history is found too.
pub(super) fn find(history: &History) -> Vec<Range<Duration>> {
    let jobs = history.jobs.iter().enumerate();
    let mut tried: Vec<Tried<'_>> =
        jobs.flat_map(|(job, past)| past.attempts.iter().map(move |tried| (tried, job))).collect();
    tried.sort_by_key(|(attempt, job)| (attempt.started, *job));
    let usual = usual_ratio(history).clamp(USUAL_RATIOS.start, USUAL_RATIOS.end);
    let count = tried.len().max(1) as u32;
    let gap = GAP_MIN.max((history.lasts / count).saturating_mul(GAP_TIMES));
    let parts = tried.chunk_by(|(a, _), (b, _)| b.started - a.started <= gap);
    parts.flat_map(|part| outages_of(part, usual, f64::from(count))).collect()
}

/// Returns the share of failures of most of the time, also if more attempts were made in an outage than outside of it.
fn usual_ratio(history: &History) -> f64 {
    let parts = (history.attempts().count() as u64 / PART_ATTEMPTS).clamp(1, PARTS_MAX);
    let width = (history.lasts / parts as u32).max(Duration::from_millis(1));
    let part = |attempt: &PastAttempt| (attempt.started.as_nanos() / width.as_nanos()) as usize;
    let mut counts = vec![(0_u64, 0_u64); history.attempts().map(part).max().unwrap_or(0) + 1];
    for attempt in history.attempts() {
        let (all, failed) = &mut counts[part(attempt)];
        *all += 1;
        *failed += u64::from(attempt.has_failed());
    }
    let ratio = |(all, failed): &(u64, u64)| *failed as f64 / *all as f64;
    let mut ratios: Vec<f64> = counts.iter().filter(|(all, _)| *all > 0).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(0.0)
}

/// Finds the outages of attempts without a gap. `count` is the number of all attempts.
fn outages_of(tried: &[Tried<'_>], usual: f64, count: f64) -> Vec<Range<Duration>> {
    let for_outage = (OUTAGE_RATIO / usual).ln();
    let against = ((1.0 - OUTAGE_RATIO) / (1.0 - usual)).ln();
    // By Wald's inequality, chance reaches this sum from a given attempt with a probability of at most one in `count * ONE_IN`.
    let enough = (count * ONE_IN).ln();
    let mut found = Vec::new();
    let (mut sum, mut first) = (0.0_f64, 0);
    let mut best: Option<(f64, usize)> = None;
    let mut end = |first: usize, best: Option<(f64, usize)>| {
        let outage = best.filter(|(sum, _)| *sum >= enough).map(|(_, last)| &tried[first..=last]);
        found.extend(outage.filter(|outage| is_large(outage)).map(time_of));
    };
    for (nth, (attempt, _)) in tried.iter().enumerate() {
        if sum <= 0.0 {
            (sum, first) = (0.0, nth);
        }
        sum += if attempt.has_failed() { for_outage } else { against };
        if best.is_none_or(|(most, _)| sum > most) && sum > 0.0 {
            best = Some((sum, nth));
        }
        // It is over when as much evidence speaks against it as is needed for one.
        let is_over = sum <= 0.0 || best.is_some_and(|(most, _)| most - sum >= enough);
        if is_over {
            end(first, best.take());
            sum = 0.0;
        }
    }
    end(first, best);
    found
}

fn is_large(outage: &[Tried<'_>]) -> bool {
    let failed = outage.iter().filter(|(attempt, _)| attempt.has_failed());
    let jobs: BTreeSet<usize> = failed.map(|(_, job)| *job).collect();
    outage.len() >= ATTEMPTS_MIN && jobs.len() >= JOBS_MIN
}

fn time_of(outage: &[Tried<'_>]) -> Range<Duration> {
    let at = |tried: Option<&Tried<'_>>| tried.map_or(Duration::ZERO, |(at, _)| at.started);
    at(outage.first())..at(outage.last()) + Duration::from_nanos(1)
}
