//! Says in sentences what the rows of a scenario show.

use super::Scenario;
use crate::report::{Recovered, Row};
use rewheel::duration;
use std::time::Duration;

/// Requests per call above which retries are a problem of their own.
const AMPLIFIED: f64 = 1.5;

fn text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 && time.subsec_nanos() > 0 {
        return format!("{:.0}ms", seconds * 1e3);
    }
    duration::text(Duration::from_secs(seconds.round() as u64)).to_string()
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // Never 100 % if a call failed.
    if (99.95..100.0).contains(&percent) {
        format!("{:.3} %", percent.min(99.999))
    } else {
        format!("{percent:.1} %")
    }
}

pub(super) fn of(scenario: &Scenario, rows: &[Row]) -> Vec<String> {
    let mut said = Vec::new();
    let never = |row: &&Row| row.recovered == Recovered::Never;
    for row in rows.iter().filter(never) {
        let Row { policy, amplification, .. } = row;
        said.push(if *amplification > AMPLIFIED {
            format!(
                "`{policy}` keeps the dependency down: until the end of the simulation, {amplification:.1} requests per call arrive."
            )
        } else {
            format!("`{policy}` does not recover until the end of the simulation.")
        });
    }
    let recovered = rows.iter().filter_map(|row| Some((row.recovered.after()?, row)));
    if let Some((after, row)) = recovered.min_by_key(|(after, _)| *after) {
        let what = if scenario.surge.is_some() { "overload" } else { "outage" };
        said.push(format!("`{}` recovers first, {} after the {what}.", row.policy, text(after)));
    }
    if scenario.outage.is_none() && scenario.surge.is_none() {
        said.extend(best(rows));
    }
    said
}

/// Names the policy with the most successes, and what it costs.
fn best(rows: &[Row]) -> Option<String> {
    let best = rows.iter().rev().max_by(|a, b| a.success.total_cmp(&b.success))?;
    Some(format!(
        "`{}` has the most successes, {}, with {:.2} requests per call.",
        best.policy,
        percent(best.success),
        best.amplification,
    ))
}

pub(super) fn of_recovery(rows: &[Row]) -> Vec<String> {
    let said = |row: &Row| {
        let Row { policy, amplification, .. } = row;
        let wasted = percent(row.wasted);
        match row.recovered {
            Recovered::After(after) => format!(
                "With {policy}, new jobs are in time again {} after the outage; {wasted} of the work of the service is wasted, {amplification:.1} attempts per job.",
                text(after),
            ),
            Recovered::Never | Recovered::NoTrouble => format!(
                "With {policy}, new jobs are not in time again until the end; {wasted} of the work of the service is wasted, {amplification:.1} attempts per job."
            ),
        }
    };
    rows.iter().map(said).collect()
}

pub(super) fn of_contention(rows: &[Row]) -> Vec<String> {
    let fewest = rows.iter().min_by(|a, b| a.calls.total_cmp(&b.calls));
    let fastest = rows.iter().min_by_key(|row| row.completed);
    let fewest =
        fewest.map(|row| format!("`{}` makes the fewest writes: {:.0}.", row.policy, row.calls));
    let fastest = fastest.and_then(|row| {
        let Row { policy, calls, .. } = row;
        let completed = text(row.completed?);
        Some(format!("`{policy}` is done first, after {completed}, with {calls:.0} writes."))
    });
    fewest.into_iter().chain(fastest).collect()
}

pub(super) fn of_comparison(rows: &[Row]) -> Vec<String> {
    let [calm_none, calm_retry, calm_all, none, retry, all] = rows else { return Vec::new() };
    let and_p99 = |row: &Row| {
        format!("{}, P99 {}", percent(row.success), row.p99.map_or("unknown".to_owned(), text))
    };
    vec![
        format!(
            "Independent failures: retries raise the share of successes from {} to {}; a budget and a breaker change little ({}).",
            percent(calm_none.success),
            and_p99(calm_retry),
            and_p99(calm_all),
        ),
        format!(
            "Outage: retries alone change it from {} to {}, with {:.1} requests per call; with a budget and a breaker it is {}.",
            percent(none.success),
            and_p99(retry),
            retry.amplification,
            and_p99(all),
        ),
    ]
}
