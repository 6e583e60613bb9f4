//! Draws the results of a simulation as text.

use super::{LabArgs, RouteTest};
use crate::output::table;
use rewheel::duration;
use rewheel_lab::{Fault, Second};
use std::fmt::Write;
use std::time::Duration;

/// The width of a curve.
const COLUMNS: usize = 60;

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the curves of each policy, then a table of all figures.
pub(super) fn draw(args: &LabArgs, tried: &[RouteTest]) -> String {
    let mut page = told(args);
    let width = (args.lasts.as_secs_f64() / COLUMNS as f64).ceil().max(1.0) as usize;
    let spans = (args.lasts.as_secs_f64() / width as f64).ceil() as usize;
    let most = tried.iter().flat_map(|tried| tried.outcome.seconds());
    let most = most.map(|second| second.attempts).max().unwrap_or(0).max(1);
    for RouteTest { policy, outcome } in tried {
        let columns = outcome.seconds().chunks(width).take(spans);
        let requests = columns.clone().map(|seconds| {
            let sum: u64 = seconds.iter().map(|second| second.attempts).sum();
            sum as f64 / seconds.len() as f64 / most as f64
        });
        let succeeded = columns.map(|seconds| {
            let sum = |of: fn(&Second) -> u64| seconds.iter().map(of).sum::<u64>();
            sum(|second| second.succeeded) as f64 / sum(|second| second.offered).max(1) as f64
        });
        let peak = outcome.seconds().iter().map(|second| second.attempts).max().unwrap_or(0);
        // Writing to a string cannot fail.
        let _ = writeln!(page, "\n{policy}");
        let _ = writeln!(page, "  requests   {}  up to {peak}/s", curve(requests));
        let _ = writeln!(page, "  succeeded  {}", curve(succeeded).trim_end());
    }
    let _ = writeln!(page, "  outage     {}\n", mark(args, width));
    page + &figures(tried)
}

fn told(args: &LabArgs) -> String {
    let LabArgs { clients, rate, capacity, .. } = args;
    let text = |duration: Duration| duration::text(duration).to_string();
    let does = match args.fault {
        Fault::Hangs => "hangs".to_owned(),
        Fault::Fails => "fails immediately".to_owned(),
        Fault::Slow(times) => format!("is {times} times as slow"),
    };
    format!(
        "{clients} clients together make {rate} calls/s to a dependency that serves {capacity} calls/s and takes {} for each. From {} to {} the dependency {does}.\n\
         The timeout of an attempt is {}. The calls use the code of the library; the time is simulated, the seed is {}.\n",
        text(args.latency),
        text(args.outage.start),
        text(args.outage.end),
        text(args.timeout),
        args.seed,
    )
}

fn figures(tried: &[RouteTest]) -> String {
    let rows = tried.iter().map(|RouteTest { policy, outcome }| {
        let percent =
            |part: u64, of: u64| format!("{:.0} %", 100.0 * part as f64 / of.max(1) as f64);
        let recovered = outcome.recovered_after();
        vec![
            policy.to_string(),
            percent(outcome.succeeded(), outcome.offered()),
            format!("{:.2}", outcome.amplification()),
            format!("{:.1}x", outcome.peak()),
            percent(outcome.wasted(), outcome.served()),
            match (outcome.cut_at(), recovered) {
                (Some(at), _) => format!(
                    "stopped after {}s: the simulation reached its limit of requests",
                    at.as_secs()
                ),
                (None, Some(after)) => format!("{}s", after.as_secs()),
                (None, None) => "never".to_owned(),
            },
        ]
    });
    let names = [
        "policy",
        "succeeded",
        "requests per call",
        "worst second",
        "wasted work",
        "recovered after",
    ];
    table(&names, rows)
}

/// Draws values between 0 and 1 as bars.
fn curve(shares: impl Iterator<Item = f64>) -> String {
    shares
        .map(|share| {
            let step = (share * (BARS.len() - 1) as f64).round() as usize;
            // Values above zero are always visible.
            BARS[step.max(usize::from(share > 0.0)).min(BARS.len() - 1)]
        })
        .collect()
}

/// Underlines the outage in the chart.
fn mark(args: &LabArgs, width: usize) -> String {
    let column = |at: Duration| (at.as_secs_f64() / width as f64) as usize;
    let (from, to) =
        (column(args.outage.start), column(args.outage.end).max(column(args.outage.start) + 1));
    format!("{}{}", " ".repeat(from.min(COLUMNS)), "─".repeat(to.min(COLUMNS).saturating_sub(from)))
}

#[cfg(test)]
mod tests {
    use super::curve;

    #[test]
    fn a_curve_shows_what_is_little_and_what_is_nothing() {
        assert_eq!(curve([0.0, 0.001, 0.5, 1.0, 1.2].into_iter()), " ▁▄██");
    }
}
