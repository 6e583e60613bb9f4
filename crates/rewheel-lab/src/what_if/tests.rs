//! Tests of replays.

use super::{Fit, replay, what_if};
use crate::chance::Chance;
use crate::history::{History, PastAttempt, PastEnd, PastJob, PastResult};
use rewheel::{Retry, Series, Step, Verdict, millis, minutes, seconds};
use std::ops::Range;
use std::time::Duration;

/// Jobs of ten minutes, with an outage from minute four to minute six.
fn history(retry: Retry, with_outage: bool) -> History {
    let outage = with_outage.then_some(seconds(240)..seconds(360));
    let submitted = (0..3_000).map(|number| millis(number * 200));
    recorded(retry, submitted, outage.as_slice())
}

/// Jobs written by a program that shares nothing with the fit: each attempt takes `20 + n` milliseconds, fails with a probability of 10 %,
/// and with 95 % in an outage.
fn recorded(
    retry: Retry,
    submitted: impl Iterator<Item = Duration>,
    outages: &[Range<Duration>],
) -> History {
    let chance = Chance::seeded(99);
    let random = chance.fork();
    let job = |(number, submitted): (usize, Duration)| {
        let mut series = Series::new(retry);
        let mut job = PastJob { submitted, attempts: Vec::new(), dropped: 0, end: PastEnd::Open };
        let mut at = submitted + millis(3);
        loop {
            let took = millis(20 + number as u64 % 40);
            let is_outage = outages.iter().any(|outage| outage.contains(&at));
            let p = if is_outage { 0.95 } else { 0.1 };
            let verdict = if chance.unit() < p { Verdict::Retry } else { Verdict::Done };
            let step = series.after(verdict, at + took - submitted, &random);
            let result =
                if step == Step::Return { PastResult::Succeeded } else { PastResult::Failed };
            let delay = if let Step::Wait(delay) = step { Some(delay) } else { None };
            job.attempts.push(PastAttempt { started: at, took, result, delay });
            match step {
                Step::Return => job.end = PastEnd::Succeeded,
                Step::GiveUp(_) => job.end = PastEnd::GivenUp,
                Step::Wait(delay) => {
                    at += took + delay + millis(3);
                    continue;
                }
            }
            return job;
        }
    };
    History::new(submitted.enumerate().map(job).collect()).unwrap()
}

fn hours(count: u64) -> Duration {
    minutes(60 * count)
}

fn days(count: u64) -> Duration {
    hours(24 * count)
}

fn current() -> Retry {
    Retry::exponential(seconds(1)).delay_max(seconds(30)).attempts_max(5)
}

#[test]
fn failures_latency_and_the_outage_are_found() {
    let fit = Fit::of(&history(current(), true));
    assert!((fit.failure_ratio() - 0.1).abs() < 0.02, "{}", fit.failure_ratio());
    let [outage] = fit.outages() else { panic!("{:?}", fit.outages()) };
    let is_near = |at: Duration, expected: u64| at.abs_diff(seconds(expected)) < seconds(4);
    assert!(is_near(outage.start, 240) && is_near(outage.end, 360), "{outage:?}");
    assert!(fit.to_string().contains("In 1 outage"), "{fit}");
    let calm = Fit::of(&history(current(), false));
    assert!(calm.outages().is_empty() && calm.to_string().ends_with("There was no outage."));
}

#[track_caller]
fn check_outages(history: &History, expected: &[Range<Duration>], tolerance: Duration) {
    let fit = Fit::of(history);
    assert_eq!(fit.outages().len(), expected.len(), "{:?}", fit.outages());
    for (found, expected) in fit.outages().iter().zip(expected) {
        let is_near = |a: Duration, b: Duration| a.abs_diff(b) <= tolerance;
        let is_right = is_near(found.start, expected.start) && is_near(found.end, expected.end);
        assert!(is_right, "{found:?}, not {expected:?}");
    }
}

#[test]
fn a_short_outage_is_found_in_a_long_history() {
    let submitted = || (0..20_160).map(|number| seconds(number * 30));
    let outage = days(3)..days(3) + minutes(5);
    let week = recorded(current(), submitted(), std::slice::from_ref(&outage));
    check_outages(&week, std::slice::from_ref(&outage), minutes(1));
    assert!((Fit::of(&week).failure_ratio() - 0.1).abs() < 0.01, "{}", Fit::of(&week));
    check_outages(&recorded(current(), submitted(), &[]), &[], minutes(1));
    let report = what_if(&week, "k", &current(), 1);
    assert!(report.findings[0].contains("In 1 outage"), "{:?}", report.findings);
    assert!(report.findings[1].contains("within 10 %"), "{:?}", report.findings);
}

#[test]
fn outages_on_both_sides_of_a_silence_are_two() {
    let batch = |start: Duration| (0..3_000).map(move |number| start + millis(number * 200));
    let outages = [seconds(500)..seconds(600), hours(8)..hours(8) + seconds(100)];
    let nights = recorded(
        Retry::fixed(seconds(2)).attempts_max(3),
        batch(Duration::ZERO).chain(batch(hours(8))),
        &outages,
    );
    check_outages(&nights, &outages, seconds(10));
}

#[test]
fn a_few_jobs_that_always_fail_are_no_outage() {
    let mut quiet = recorded(current(), (0..300).map(|number| minutes(number * 10)), &[]);
    for nth in 0..3 {
        let failed = PastAttempt {
            started: hours(20) + seconds(nth),
            took: millis(5),
            result: PastResult::Failed,
            delay: Some(seconds(5)),
        };
        let attempts =
            (0..20).map(|n| PastAttempt { started: failed.started + seconds(5 * n), ..failed });
        let job = PastJob {
            submitted: failed.started,
            attempts: attempts.collect(),
            dropped: 0,
            end: PastEnd::GivenUp,
        };
        quiet.jobs.push(job);
    }
    check_outages(&quiet, &[], minutes(1));
}

#[test]
fn months_take_as_little_memory_as_an_hour() {
    let submitted = (0..100).map(|number| days(number) + millis(number % 2));
    let months = recorded(current(), submitted.chain([days(50), days(50)]), &[]);
    let row = months.row("", None);
    assert!(row.seconds.len() <= 10_000, "{}", row.seconds.len());
    assert!(row.peak() >= 3, "three jobs were submitted in the same second: {}", row.peak());
    let counted: u64 = row.seconds.iter().map(|second| second.attempts).sum();
    assert_eq!(counted, months.attempts().count() as u64);
    let report = what_if(&months, "k", &current(), 1);
    assert!(report.rows.iter().all(|row| row.seconds.len() <= 10_000));
    let width = report.part_width(60);
    let drawn: f64 = report.rows[0].parts(width).map(|(requests, _)| requests).sum();
    assert!((drawn * width as f64 / counted as f64 - 1.0).abs() < 0.01, "{drawn}");
    assert!(crate::html(&report).len() < 1_000_000);
}

#[test]
fn a_replay_under_the_same_policy_is_like_the_history() {
    for (retry, with_outage) in [
        (current(), true),
        (current(), false),
        (Retry::fixed(seconds(2)).attempts_max(3), true),
        (current().attempts_max(20), true),
    ] {
        let report = what_if(&history(retry, with_outage), "k", &retry, 1);
        let (recorded, replayed) = (&report.rows[0], &report.rows[1]);
        let is_near = |a: f64, b: f64| (a / b - 1.0).abs() <= 0.1;
        assert!(is_near(replayed.amplification, recorded.amplification), "{retry}: {replayed:?}");
        assert!(is_near(replayed.success, recorded.success), "{retry}");
        assert!(report.findings[1].contains("mean time within 10 %"), "{}", report.findings[1]);
        assert!(is_near(replayed.p50.unwrap().as_secs_f64(), recorded.p50.unwrap().as_secs_f64()));
        assert!(report.findings[1].contains("within 10 %"), "{retry}: {}", report.findings[1]);
    }
}

/// The fit is made from jobs with one policy, and predicts what another policy would have done.
#[test]
fn a_replay_under_another_policy_predicts_its_history() {
    let (before, after) = (current(), current().attempts_max(12));
    let recorded = history(before, true);
    let fit = Fit::of(&recorded);
    let predicted = replay(&recorded, &fit, &after, 1).row("", None);
    let happened = history(after, true).row("", None);
    assert!((predicted.success / happened.success - 1.0).abs() < 0.02, "{}", predicted.success);
    assert!((predicted.amplification / happened.amplification - 1.0).abs() < 0.1);
}

#[test]
fn proposals_make_more_jobs_succeed() {
    let report =
        what_if(&history(current().attempts_max(2), true), "k", &current().attempts_max(2), 1);
    let current = &report.rows[1];
    assert!(report.rows.len() > 2, "{:?}", report.findings);
    for row in &report.rows[2..] {
        assert!(row.success > current.success, "{}: {}", row.policy, row.success);
    }
    assert!(report.findings[2].starts_with("Proposed (least load): `"), "{}", report.findings[2]);
}

#[test]
fn a_replay_that_differs_says_so() {
    // The jobs were recorded under another policy than the one that is said to be the current one.
    let report = what_if(&history(current(), true), "k", &current().attempts_max(1), 1);
    assert!(report.findings[1].starts_with("The replay differs"), "{}", report.findings[1]);
}

#[test]
fn too_few_attempts_are_refused_with_advice() {
    let job =
        PastJob { submitted: seconds(0), attempts: Vec::new(), dropped: 0, end: PastEnd::Open };
    let error = History::new(vec![job]).unwrap_err().to_string();
    assert!(error.contains("1 jobs") && error.contains("use a longer `--since`"), "{error}");
}
