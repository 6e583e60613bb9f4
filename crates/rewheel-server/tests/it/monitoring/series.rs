//! The series that Prometheus can have, read from the tables of metrics in the code.

use rewheel_engine::meters::{METERS, MeterType};
use std::collections::{BTreeMap, BTreeSet};

/// Labels that Prometheus adds when it scrapes.
const SCRAPED: [&str; 2] = ["instance", "job"];

/// Each series with its labels.
pub(super) type Known = BTreeMap<String, BTreeSet<&'static str>>;

/// Returns the series of `GET /metrics`.
pub(super) fn of_engine() -> Known {
    let mut known = Known::new();
    for meter in &METERS {
        let form = match meter.form {
            MeterType::Counter => "counter",
            MeterType::Gauge => "gauge",
            MeterType::Histogram => "histogram",
        };
        add(&mut known, &meter.prometheus_name(), form, meter.labels);
    }
    known
}

/// Returns the series of the library, as OpenTelemetry names them for Prometheus.
pub(super) fn of_library() -> Known {
    let mut known = Known::new();
    for meter in rewheel::otel::Meter::ALL {
        add(&mut known, &library_name(meter), meter.form, meter.labels);
    }
    for labels in known.values_mut() {
        labels.insert("name");
    }
    known
}

/// Returns the name of a metric of the library in Prometheus.
pub(super) fn library_name(meter: &rewheel::otel::Meter) -> String {
    let unit = if meter.unit == "s" { "_seconds" } else { "" };
    let total = if meter.form == "counter" { "_total" } else { "" };
    format!("{}{unit}{total}", meter.name.replace('.', "_"))
}

fn add(known: &mut Known, name: &str, form: &str, labels: &[&'static str]) {
    let labels: BTreeSet<_> = labels.iter().copied().chain(SCRAPED).collect();
    if form == "histogram" {
        known.insert(format!("{name}_sum"), labels.clone());
        known.insert(format!("{name}_count"), labels.clone());
        let with_bound = labels.into_iter().chain(["le"]).collect();
        known.insert(format!("{name}_bucket"), with_bound);
    } else {
        known.insert(name.to_owned(), labels);
    }
}

/// Words of PromQL that are not names of series.
const WORDS: [&str; 9] =
    ["and", "by", "ignoring", "offset", "on", "or", "unless", "without", "bool"];

/// Returns what is wrong with a query: an unknown series, or a label that none of its series has.
pub(super) fn faults(expression: &str, known: &Known) -> Vec<String> {
    let mut faults = Vec::new();
    let mut grouped = Vec::new();
    let mut has = BTreeSet::new();
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$') {
        // A number such as `5m`, or a variable of Grafana.
        let is_name = !rest[..start].ends_with(|c: char| c.is_ascii_digit() || c == '.')
            && !rest[start..].starts_with('$');
        let from = &rest[start..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' || c == '$';
        let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        rest = after;
        if !is_name {
            continue;
        }
        let is_grouping = ["by", "on", "ignoring", "without"].contains(&name);
        if is_grouping {
            let list = after.trim_start().strip_prefix('(').and_then(|list| list.split_once(')'));
            let (list, after) =
                list.unwrap_or_else(|| panic!("{name} has no labels: {expression}"));
            grouped.extend(list.split(',').map(|label| label.trim().to_owned()));
            rest = after;
        } else if WORDS.contains(&name)
            || after.trim_start().starts_with('(')
            || is_sum(name, after)
        {
            // A function or an operator.
        } else if let Some(labels) = known.get(name) {
            has.extend(labels.iter().copied());
            if let Some((matchers, after)) =
                after.strip_prefix('{').and_then(|all| all.split_once('}'))
            {
                for label in matchers.split("\",").filter_map(|one| one.split(['=', '!']).next()) {
                    if !labels.contains(label.trim()) {
                        faults.push(format!("{name} has no label {label}: {expression}"));
                    }
                }
                rest = after;
            }
        } else {
            faults.push(format!("{name} does not exist: {expression}"));
        }
    }
    let missing = grouped.iter().filter(|label| !has.contains(label.as_str()));
    faults.extend(missing.map(|label| format!("no series has the label {label}: {expression}")));
    faults
}

/// Returns whether this is an aggregation, such as `sum by (kind) (…)`.
fn is_sum(name: &str, after: &str) -> bool {
    ["avg", "count", "max", "min", "sum"].contains(&name) && after.trim_start().starts_with("by")
}

#[test]
fn a_query_with_an_unknown_series_or_label_is_found() {
    let known = of_engine();
    let count = |expression: &str| faults(expression, &known).len();
    assert_eq!(count(r#"sum by (kind) (rate(rewheel_attempts_total{job=~"$job"}[5m])) > 1.5"#), 0);
    assert_eq!(count("rewheel_attempts"), 1);
    assert_eq!(count(r#"rewheel_attempts_total{kind="a",state="b"}"#), 1);
    assert_eq!(count("sum by (state) (rewheel_attempts_total)"), 1);
    assert_eq!(count("rewheel_attempt_duration_seconds"), 1);
    assert_eq!(
        count("histogram_quantile(0.5, sum by (le) (rewheel_attempt_duration_seconds_bucket))"),
        0
    );
}
