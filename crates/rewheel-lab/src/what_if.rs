//! Replays recorded jobs with other retry policies.

mod fit;

pub use self::fit::Fit;

use crate::chance::Chance;
use crate::history::{History, PastAttempt, PastEnd, PastJob, PastResult};
use crate::report::{Report, Row};
use rewheel::{
    Backoff, Jitter, Random, Retry, Series, Step, Verdict, duration, millis, minutes, seconds,
};
use std::time::Duration;

/// A replay is as good as the history if its numbers differ by at most this share.
const TOLERANCE: f64 = 0.1;

/// Policies are tried on at most this many jobs.
const TRIED_MAX: usize = 5_000;

/// Attempts of one job after which a replay stops: the library has no limit.
const ATTEMPTS_MAX: u32 = 10_000;

/// A policy whose share of successes is this close to the best is good enough.
const SUCCESS_SLACK: f64 = 0.001;

/// Fits what happened to these jobs, replays it under `retry`, and proposes settings.
pub fn what_if(history: &History, kind: &str, retry: &Retry, seed: u64) -> Report {
    let fit = Fit::of(history);
    let again = replay(history, &fit, retry, seed);
    let recorded = history.row("recorded", fit.outage_end());
    let replayed = again.row(&format!("replayed: {retry}"), fit.outage_end());
    let mut findings = vec![fit.to_string(), agreement((history, &recorded), (&again, &replayed))];
    let mut rows = vec![recorded, replayed];
    for (why, proposal) in propose(history, &fit, retry, seed) {
        let simulated = replay(history, &fit, &proposal, seed);
        let row = simulated.row(&format!("proposed, {why}: {proposal}"), fit.outage_end());
        findings.push(said(why, &proposal, &row, &rows[1]));
        rows.push(row);
    }
    if rows.len() == 2 {
        findings.push("No other policy does better: keep the current one.".to_owned());
    }
    let text = |time: Duration| duration::text(Duration::from_secs(time.as_secs())).to_string();
    let about = format!(
        "{} recorded jobs of the kind `{kind}` with {} attempts in {}. The replay submits the same jobs at the same times; failures, durations and delays before an \
         attempt starts are drawn from what was recorded.",
        history.jobs.len(),
        history.jobs.iter().map(PastJob::attempts).sum::<u64>(),
        text(history.lasts),
    );
    let trouble = fit.longest_outage();
    Report {
        scenario: "what-if",
        about,
        trouble,
        lasts: history.lasts + Duration::from_secs(1),
        rows,
        findings,
    }
}

/// Says whether the replay is like the history. Not by P99: of some thousand jobs, it is too random.
fn agreement((history, recorded): (&History, &Row), (again, replayed): (&History, &Row)) -> String {
    let median = |row: &Row| row.p50.map_or(0.0, |time| time.as_secs_f64());
    let numbers = [
        ("attempts per job", recorded.amplification, replayed.amplification),
        ("share of successes", recorded.success, replayed.success),
        ("median time", median(recorded), median(replayed)),
        ("mean time", history.time_mean().as_secs_f64(), again.time_mean().as_secs_f64()),
    ];
    let differs = |(name, before, after): &(&'static str, f64, f64)| {
        let share = (after - before).abs() / before.abs().max(f64::MIN_POSITIVE);
        (share > TOLERANCE && after != before).then(|| format!("{name} by {:.0} %", share * 100.0))
    };
    let differences: Vec<String> = numbers.iter().filter_map(differs).collect();
    if differences.is_empty() {
        return "The replay reproduces attempts per job, successes, and median and mean time within 10 %."
            .to_owned();
    }
    format!(
        "The replay differs from what was recorded ({}): something that the replay does not contain (a parked kind, a retry budget, a limit, a change of the settings) \
         decided. Use the proposals with care.",
        differences.join(", ")
    )
}

fn said(why: &str, proposal: &Retry, row: &Row, current: &Row) -> String {
    let recovery = row.recovered.after().map_or(String::new(), |after| {
        format!(
            ", and its jobs have ended {} after the last outage",
            duration::text(Duration::from_millis(after.as_millis() as u64))
        )
    });
    format!(
        "Proposed ({why}): `{proposal}`. {:.2} % of the jobs succeed (now {:.2} %), with {:.2} attempts per job (now {:.2}) and at most {} attempts in a second (now {}){recovery}.",
        row.success * 100.0,
        current.success * 100.0,
        row.amplification,
        current.amplification,
        row.peak(),
        current.peak(),
    )
}

/// Runs the jobs of the history again.
pub(crate) fn replay(history: &History, fit: &Fit, retry: &Retry, seed: u64) -> History {
    let chance = Chance::seeded(seed);
    let random = chance.fork();
    let jobs = history
        .jobs
        .iter()
        .map(|job| run(job, fit, retry, &chance, &random, history.lasts))
        .collect();
    History { jobs, lasts: history.lasts }
}

fn run(
    job: &PastJob,
    fit: &Fit,
    retry: &Retry,
    chance: &Chance,
    random: &Random,
    until: Duration,
) -> PastJob {
    let mut series = Series::new(*retry);
    let mut again =
        PastJob { submitted: job.submitted, attempts: Vec::new(), dropped: 0, end: PastEnd::Open };
    let mut due = job.submitted;
    while series.attempt().number() <= ATTEMPTS_MAX {
        let started = due + fit.lag(series.attempt().is_retry(), due, chance);
        // What had not started when the history was read cannot be compared.
        if started > until {
            break;
        }
        let (result, took) = fit.attempt(started, chance);
        let ended = started + took;
        let verdict = match result {
            PastResult::Succeeded => Verdict::Done,
            PastResult::Failed => Verdict::Retry,
            PastResult::Stopped => Verdict::Stop,
        };
        let step = series.after(verdict, ended.saturating_sub(job.submitted), random);
        let delay = if let Step::Wait(delay) = step { Some(delay) } else { None };
        again.attempts.push(PastAttempt { started, took, result, delay });
        match step {
            Step::Return => again.end = PastEnd::Succeeded,
            Step::GiveUp(_) => again.end = PastEnd::GivenUp,
            Step::Wait(delay) => {
                due = ended + delay;
                continue;
            }
        }
        break;
    }
    again
}

/// Finds policies that do better than the current one: the one with the fewest attempts in the worst second, and the fastest.
fn propose(history: &History, fit: &Fit, current: &Retry, seed: u64) -> Vec<(&'static str, Retry)> {
    let step = history.jobs.len().div_ceil(TRIED_MAX).max(1);
    let jobs = history.jobs.iter().step_by(step).cloned().collect();
    // Attempts may take place after the end of the history: a longer policy is not to lose because of it.
    let sample = History { jobs, lasts: history.lasts * 2 + minutes(60) };
    let tried: Vec<(Retry, Row)> = candidates(current)
        .into_iter()
        .map(|retry| (retry, replay(&sample, fit, &retry, seed).row("", fit.outage_end())))
        .collect();
    let best = tried.iter().map(|(_, row)| row.success).fold(0.0, f64::max);
    let good: Vec<_> =
        tried.iter().filter(|(_, row)| row.success >= best - SUCCESS_SLACK).collect();
    let gentle = good.iter().min_by(|(_, a), (_, b)| {
        a.peak()
            .cmp(&b.peak())
            .then(a.amplification.total_cmp(&b.amplification))
            .then(a.p99.cmp(&b.p99))
    });
    let fastest = good.iter().min_by(|(_, a), (_, b)| {
        a.p99.cmp(&b.p99).then(a.amplification.total_cmp(&b.amplification))
    });
    let mut proposals: Vec<(&'static str, Retry)> = Vec::new();
    for (why, found) in [("least load", gentle), ("fastest", fastest)] {
        let Some((retry, _)) = found else { continue };
        if retry != current && proposals.iter().all(|(_, other)| other != retry) {
            proposals.push((why, *retry));
        }
    }
    proposals
}

/// The policies that are tried, the current one first: it wins if none is better.
fn candidates(current: &Retry) -> Vec<Retry> {
    let mut all = vec![*current];
    let backoffs = [
        Backoff::exponential(millis(100)).max(seconds(30)),
        Backoff::exponential(seconds(1)).max(seconds(30)),
        Backoff::exponential(seconds(1)).max(minutes(5)),
        Backoff::exponential(seconds(10)).max(minutes(5)),
        Backoff::exponential(seconds(10)).max(minutes(30)),
    ];
    for attempts in [3, 5, 8, 12, 20] {
        all.push(current.attempts_max(attempts));
        let other =
            backoffs.map(|backoff| Retry::new(backoff.jitter(Jitter::FULL)).attempts_max(attempts));
        all.extend(other);
    }
    all
}

#[cfg(test)]
mod tests;
