//! Shows the delays of retry policies as tables with plots.

use super::{millis, only_retry};
use crate::args::DelayArgs;
use crate::cli_error::CliError;
use crate::output::{Output, table};
use rewheel::{Retry, duration};
use rewheel_lab::{Delay, delays, range};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Shown if no policy is named.
const PRESETS: [&str; 4] = ["external_api", "internal_service", "database", "non_critical"];

/// The width of the plot.
const COLUMNS: usize = 48;

/// The left end of the plot: shorter delays are drawn there.
const SHORTEST: Duration = Duration::from_millis(1);

/// A policy and the delays after its attempts.
type Delays = (String, Vec<Delay>);

pub(super) fn run(args: &DelayArgs, output: Output) -> Result<(), CliError> {
    let mut all: Vec<Delays> = Vec::new();
    for policy in &args.policies {
        all.push((policy.to_string(), delays(&only_retry(policy)?, args.seed)));
    }
    if all.is_empty() {
        let presets = PRESETS.iter().filter_map(|name| Some((*name, name.parse::<Retry>().ok()?)));
        all = presets
            .map(|(name, retry)| (format!("{name}: {retry}"), delays(&retry, args.seed)))
            .collect();
    }
    output.answer(document(&all), || draw(&all));
    Ok(())
}

fn document(all: &[Delays]) -> Value {
    let delay = |delay: &Delay| {
        json!({
            "attempt": delay.attempt,
            "shortest_ms": millis(delay.shortest), "p10_ms": millis(delay.p10), "mean_ms": millis(delay.mean),
            "p90_ms": millis(delay.p90), "longest_ms": millis(delay.longest), "waited_ms": millis(delay.waited),
        })
    };
    let row = |(policy, delays): &Delays| json!({"policy": policy, "delays": delays.iter().map(delay).collect::<Vec<_>>()});
    json!({"scenario": "delays", "rows": all.iter().map(row).collect::<Vec<_>>()})
}

fn draw(all: &[Delays]) -> String {
    let longest = all.iter().flat_map(|(_, delays)| delays).map(|delay| delay.longest).max();
    let longest = longest.unwrap_or(SHORTEST).max(SHORTEST * 10);
    let mut page = format!(
        "The delay after each attempt. The plot has a logarithmic scale from {} to {}: from the shortest to the longest delay, with the mean.\n",
        text(SHORTEST),
        text(longest),
    );
    for (policy, delays) in all {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "\n{policy}");
        if delays.is_empty() {
            let _ = writeln!(page, "  no delays: a call makes one attempt");
            continue;
        }
        let names = ["after attempt", "", "shortest", "mean", "longest", "waited so far"];
        let row = |delay: &Delay| {
            let place = |time: Duration| scale(time, longest);
            vec![
                delay.attempt.to_string(),
                format!(
                    "{:COLUMNS$}",
                    range(
                        [place(delay.shortest), place(delay.mean), place(delay.longest)],
                        COLUMNS
                    )
                ),
                text(delay.shortest),
                text(delay.mean),
                text(delay.longest),
                text(delay.waited),
            ]
        };
        let _ = writeln!(page, "{}", table(&names, delays.iter().map(row)));
    }
    page.trim_end().to_owned()
}

/// Returns the place of a delay on a logarithmic scale, 0 to 1.
fn scale(time: Duration, longest: Duration) -> f64 {
    let ratio = |time: Duration| (time.as_secs_f64() / SHORTEST.as_secs_f64()).max(1.0).ln();
    ratio(time) / ratio(longest)
}

/// Rounds a delay to three digits, which is enough to read.
fn text(time: Duration) -> String {
    let unit = match time.as_millis() {
        0..1_000 => Duration::from_millis(1),
        1_000..100_000 => Duration::from_millis(100),
        _ => Duration::from_secs(1),
    };
    let units = (time.as_secs_f64() / unit.as_secs_f64()).round() as u32;
    duration::text(unit * units).to_string()
}

#[cfg(test)]
mod tests {
    use super::{scale, text};
    use rewheel::{millis, seconds};

    #[test]
    fn the_scale_is_logarithmic_and_times_are_short() {
        assert_eq!((scale(millis(0), seconds(1)), scale(seconds(1), seconds(1))), (0.0, 1.0));
        assert!((scale(millis(10), seconds(10)) - 0.25).abs() < 1e-9);
        assert_eq!(
            (text(millis(3)), text(millis(1_234))),
            ("3ms".to_owned(), "1s200ms".to_owned())
        );
    }
}
