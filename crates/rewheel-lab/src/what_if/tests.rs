//! Tests of replays.

use super::{Fit, replay, what_if};
use crate::chance::Chance;
use crate::history::{History, PastAttempt, PastEnd, PastJob, PastResult};
use rewheel::{Retry, Series, Step, Verdict, millis, seconds};
use std::time::Duration;

/// Jobs of ten minutes, written by a program that shares nothing with the fit: each attempt takes `20 + n` milliseconds, fails with
/// a probability of 10 %, and with 95 % from minute four to minute six.
fn history(retry: Retry, with_outage: bool) -> History {
    let chance = Chance::seeded(99);
    let random = chance.fork();
    let outage = seconds(240)..seconds(360);
    let job = |number: u64| {
        let submitted = millis(number * 200);
        let mut series = Series::new(retry);
        let mut job = PastJob { submitted, attempts: Vec::new(), dropped: 0, end: PastEnd::Open };
        let mut at = submitted + millis(3);
        loop {
            let took = millis(20 + number % 40);
            let p = if with_outage && outage.contains(&at) { 0.95 } else { 0.1 };
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
    History::new((0..3_000).map(job).collect()).unwrap()
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
