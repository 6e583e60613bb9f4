//! Writes a report as one HTML file with charts, which needs no other file.

use crate::report::{Recovered, Report, Row};
use crate::svg::{Chart, Line, escape, round_up};
use std::fmt::Write;
use std::time::Duration;

/// Colours and layout, for light and for dark screens.
const STYLE: &str = include_str!("html/report.css");

/// Height of a chart of requests.
const TALL: f64 = 110.0;

/// Height of a chart of shares.
const FLAT: f64 = 56.0;

/// Returns the report as an HTML page. It contains its styles and its charts, and loads nothing.
///
/// ```
/// use rewheel::seconds;
/// use rewheel_lab::{Scenario, html};
///
/// let mut scenario = Scenario::flaky();
/// scenario.lasts = seconds(10);
/// let page = html(&scenario.run()?);
/// assert!(page.starts_with("<!doctype html>") && page.contains("<svg"));
/// # Ok::<(), rewheel_lab::StormError>(())
/// ```
pub fn html(report: &Report) -> String {
    let title = format!("rewheel lab: {}", report.scenario);
    let about: String =
        report.about.lines().map(|line| format!("<p>{}</p>", escape(line))).collect();
    let findings: String =
        report.findings.iter().map(|said| format!("<li>{}</li>", code(said))).collect();
    let charts = if report.rows.iter().all(|row| row.seconds.is_empty()) {
        bars(report)
    } else {
        curves(report)
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main><header><p class=\"kind\">rewheel lab</p><h1>{}</h1>{about}</header>\
         <section><h2>Results</h2>{}<ul class=\"findings\">{findings}</ul></section>{charts}</main></body></html>\n",
        escape(report.scenario),
        table(report),
    )
}

/// Turns the text between backticks into code.
fn code(text: &str) -> String {
    let parts = escape(text);
    let part = |(nth, part): (usize, &str)| {
        if nth % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }
    };
    parts.split('`').enumerate().map(part).collect()
}

/// The head of a column, whether it is shown, and the cell of a row.
type Column = (&'static str, bool, fn(&Row) -> String);

fn table(report: &Report) -> String {
    let has = |some: fn(&Row) -> bool| report.rows.iter().any(some);
    let columns: [Column; 8] = [
        ("calls", true, |row| number(row.calls)),
        ("completed", has(|row| row.completed.is_some()), |row| time(row.completed)),
        ("succeeded", true, |row| percent(row.success)),
        ("P50", true, |row| time(row.p50)),
        ("P99", true, |row| time(row.p99)),
        ("requests per call", true, |row| format!("{:.2}", row.amplification)),
        ("wasted work", true, |row| percent(row.wasted)),
        ("recovered after", has(|row| row.recovered != Recovered::NoTrouble), recovered),
    ];
    let shown: Vec<_> = columns.iter().filter(|(_, is_shown, _)| *is_shown).collect();
    let head: String = shown.iter().map(|(name, ..)| format!("<th>{name}</th>")).collect();
    let row = |row: &Row| {
        let cells: String =
            shown.iter().map(|(_, _, cell)| format!("<td>{}</td>", cell(row))).collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(&row.policy))
    };
    let rows: String = report.rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table><thead><tr><th>policy</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Never prints 100 % for less than that.
fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent >= 100.0 => "100 %".to_owned(),
        percent if percent > 99.0 => format!("{:.2} %", percent.min(99.99)),
        percent => format!("{percent:.1} %"),
    }
}

fn time(time: Option<Duration>) -> String {
    match time.map(|time| time.as_secs_f64()) {
        None => "–".to_owned(),
        Some(seconds) if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        Some(seconds) if seconds < 10.0 => format!("{seconds:.2} s"),
        Some(seconds) if seconds < 600.0 => format!("{seconds:.1} s"),
        Some(seconds) => format!("{:.0} min", seconds / 60.0),
    }
}

fn recovered(row: &Row) -> String {
    match (row.cut_at, row.recovered) {
        (Some(_), _) => "<em>stopped: too many requests</em>".to_owned(),
        (None, Recovered::After(after)) => time(Some(after)),
        (None, Recovered::Never) => "<em>never</em>".to_owned(),
        (None, Recovered::NoTrouble) => "–".to_owned(),
    }
}

/// Draws two charts over time for each policy. All policies have the same scale.
fn curves(report: &Report) -> String {
    let most = report.rows.iter().map(Row::peak).max().unwrap_or(1) as f64;
    let mut page = String::from(
        "<section><h2>Over time</h2><p class=\"legend\"><span class=\"key requests\"></span>requests per second at the dependency <span class=\"key succeeded\"></span>share of the calls that succeed",
    );
    if report.trouble.is_some() {
        page += " <span class=\"key trouble\"></span>outage or overload";
    }
    page += "</p><div class=\"charts\">";
    for row in &report.rows {
        let _ = write!(page, "<figure><figcaption>{}</figcaption>", escape(&row.policy));
        page += &over_time(report, row, round_up(most));
        page += "</figure>";
    }
    page + "</div></section>"
}

/// More points than a chart has pixels cannot be seen.
const POINTS_MAX: usize = 600;

fn over_time(report: &Report, row: &Row, most: f64) -> String {
    let seconds = report.lasts.as_secs_f64().ceil();
    let step = report.part_width(POINTS_MAX);
    let parts = row.parts(step).take((seconds as usize).div_ceil(step));
    let (requests, succeeded): (Vec<f64>, Vec<f64>) = parts.unzip();
    let chart = |label: &str, class, values: &[f64], most, unit, height| {
        let label = format!("{label}: {}", row.policy);
        let seconds = seconds / step as f64;
        let trouble = report.trouble.as_ref().map(|when| {
            when.start.as_secs_f64() / step as f64..when.end.as_secs_f64() / step as f64
        });
        let scale = step as f64;
        Chart {
            label: &label,
            line: Line { class, values },
            most,
            unit,
            seconds,
            scale,
            trouble,
            height,
        }
        .draw()
    };
    chart("requests per second", "requests", &requests, most, |value| number(value.round()), TALL)
        + &chart(
            "succeeded",
            "succeeded",
            &succeeded,
            1.0,
            |share| format!("{:.0} %", share * 100.0),
            FLAT,
        )
}

/// Draws bars, for a scenario that has an end.
fn bars(report: &Report) -> String {
    let completed = |row: &Row| row.completed.unwrap_or_default().as_secs_f64() * 1e3;
    let group = |title: &str, of: &dyn Fn(&Row) -> f64, unit: fn(f64) -> String| {
        let most = report.rows.iter().map(of).fold(f64::MIN_POSITIVE, f64::max);
        let bar = |row: &Row| {
            let (value, share) = (of(row), of(row) / most * 100.0);
            format!(
                "<div class=\"bar\"><span class=\"name\">{}</span><span class=\"track\"><span class=\"fill\" style=\"width:{share:.2}%\"></span></span><span class=\"value\">{}</span></div>",
                escape(&row.policy),
                unit(value),
            )
        };
        let bars: String = report.rows.iter().map(bar).collect();
        format!("<figure><figcaption>{title}</figcaption>{bars}</figure>")
    };
    format!(
        "<section><h2>Compared</h2><div class=\"charts\">{}{}</div></section>",
        group("requests", &|row| row.calls, number),
        group("time until all were done", &completed, |ms| time(Some(Duration::from_secs_f64(
            ms / 1e3
        )))),
    )
}

#[cfg(test)]
mod tests {
    use super::html;
    use crate::{Contention, Fault, Scenario};
    use rewheel::seconds;

    #[test]
    fn a_page_has_a_chart_for_each_policy_and_loads_nothing() {
        let outage = Some((seconds(2)..seconds(4), Fault::Hangs));
        let scenario = Scenario { lasts: seconds(12), rate: 50, outage, ..Scenario::outage() };
        let page = html(&scenario.run().unwrap());
        assert_eq!(page.matches("<svg").count(), 2 * scenario.policies.len());
        assert!(page.contains("prefers-color-scheme: dark"));
        for outside in ["http:", "https:", "src=", "@import", "url(", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"), "a number is missing");
        for tag in ["svg", "table", "tr", "figure", "div", "section", "li", "code"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn a_contest_is_drawn_as_bars() {
        let page = html(&Contention::new(5, 2, 0).unwrap().report());
        assert_eq!(page.matches("class=\"bar\"").count(), 10);
        assert!(page.contains("exponential without jitter"));
    }
}
