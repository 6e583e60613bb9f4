//! Draws the results of a simulation as text.

use crate::output::table;
use rewheel::duration;
use rewheel_lab::{Recovered, Report, Row, bar, curve};
use std::fmt::Write;
use std::time::Duration;

/// The width of a curve.
const COLUMNS: usize = 60;

/// The width of a bar.
const BAR_COLUMNS: usize = 40;

/// Draws the curves of each policy, then a table of all figures and what they mean.
pub(super) fn draw(report: &Report) -> String {
    let mut page = format!("{}\n", report.about);
    if report.rows.iter().any(|row| !row.seconds.is_empty()) {
        draw_curves(&mut page, report);
    } else {
        draw_bars(&mut page, report);
    }
    // Writing to a string cannot fail.
    let _ = writeln!(page, "\n{}", figures(report));
    if !report.findings.is_empty() {
        page.push('\n');
    }
    for finding in &report.findings {
        let _ = writeln!(page, "- {finding}");
    }
    page.trim_end().to_owned()
}

fn draw_curves(page: &mut String, report: &Report) {
    let width = report.part_width(COLUMNS);
    let spans = (report.lasts.as_secs_f64() / width as f64).ceil() as usize;
    let most = report.rows.iter().map(Row::peak).max().unwrap_or(0).max(1);
    for row in &report.rows {
        let (requests, succeeded): (Vec<f64>, Vec<f64>) = row.parts(width).take(spans).unzip();
        let requests = requests.into_iter().map(|requests| requests / most as f64);
        let _ = writeln!(page, "\n{}", row.policy);
        let _ = writeln!(page, "  requests   {}  up to {}/s", curve(requests), row.peak());
        let _ = writeln!(page, "  succeeded  {}", curve(succeeded).trim_end());
    }
    if let Some(trouble) = &report.trouble {
        let column = |at: Duration| ((at.as_secs_f64() / width as f64) as usize).min(COLUMNS);
        let from = column(trouble.start);
        let wide = column(trouble.end).max(from + 1) - from;
        let _ = writeln!(page, "  trouble    {}{}", " ".repeat(from), "─".repeat(wide));
    }
}

fn draw_bars(page: &mut String, report: &Report) {
    let most = report.rows.iter().map(|row| row.calls).fold(f64::MIN_POSITIVE, f64::max);
    let name = report.rows.iter().map(|row| row.policy.chars().count()).max().unwrap_or(0);
    page.push('\n');
    for row in &report.rows {
        let drawn = bar(row.calls / most, BAR_COLUMNS);
        let _ = writeln!(page, "{:name$}  {drawn} {:.0}", row.policy, row.calls);
    }
}

fn figures(report: &Report) -> String {
    let has_end = report.rows.iter().any(|row| row.completed.is_some());
    let had_trouble = report.rows.iter().any(|row| row.recovered != Recovered::NoTrouble);
    let mut names = vec!["policy", "calls"];
    names.extend(has_end.then_some("completed"));
    names.extend(["succeeded", "P50", "P99", "requests per call", "wasted work"]);
    names.extend(had_trouble.then_some("recovered after"));
    let rows = report.rows.iter().map(|row| {
        let mut cells = vec![row.policy.clone(), number(row.calls)];
        cells.extend(has_end.then(|| row.completed.map_or("never".to_owned(), text)));
        cells.extend([
            percent(row.success),
            row.p50.map_or(String::new(), text),
            row.p99.map_or(String::new(), text),
            format!("{:.2}", row.amplification),
            percent(row.wasted),
        ]);
        cells.extend(had_trouble.then(|| recovered(row)));
        cells
    });
    table(&names, rows)
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Never prints 100 % for less than that.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        percent if percent >= 100.0 => "100 %".to_owned(),
        percent if percent > 99.0 => format!("{:.2} %", percent.min(99.99)),
        percent => format!("{percent:.1} %"),
    }
}

fn recovered(row: &Row) -> String {
    match (row.cut_at, row.recovered) {
        (Some(at), _) => {
            format!("stopped after {}s: the simulation reached its limit of requests", at.as_secs())
        }
        (None, Recovered::After(after)) => text(after),
        (None, Recovered::Never) => "never".to_owned(),
        (None, Recovered::NoTrouble) => String::new(),
    }
}

fn text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 && time.subsec_nanos() > 0 {
        return format!("{:.0}ms", seconds * 1e3);
    }
    duration::text(Duration::from_secs(seconds.round() as u64)).to_string()
}

#[cfg(test)]
mod tests {
    use super::{number, percent, text};
    use rewheel::{millis, seconds};

    #[test]
    fn numbers_are_short_and_do_not_promise_too_much() {
        assert_eq!(
            (percent(1.0), percent(0.99999), percent(0.5)),
            ("100 %".into(), "99.99 %".into(), "50.0 %".into())
        );
        assert_eq!(
            (text(millis(1_250)), text(seconds(9)), text(millis(75_400))),
            ("1250ms".into(), "9s".into(), "1m15s".into())
        );
        assert_eq!((number(3.0), number(3.25)), ("3".into(), "3.2".into()));
    }
}
