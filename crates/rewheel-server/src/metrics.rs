//! Writes metrics in the Prometheus text format.

use rewheel_engine::meters::{Reading, Sample, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns all readings in the classic text format. Metrics without a value are listed, too, so that a collector knows them.
pub(crate) fn text(readings: &[Reading]) -> String {
    let mut text = String::new();
    for reading in readings {
        let name = reading.meter.prometheus_name();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {}", reading.meter.help);
        let _ = writeln!(text, "# TYPE {name} {}", reading.meter.form.as_str());
        for sample in &reading.samples {
            add(&mut text, &name, reading.meter.labels, sample);
        }
    }
    text
}

fn add(text: &mut String, name: &str, names: &[&str], sample: &Sample) {
    debug_assert_eq!(
        names.len(),
        sample.labels.len(),
        "{name}: the sample has another number of labels than the metric"
    );
    let labels: Vec<String> = names
        .iter()
        .zip(&sample.labels)
        .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
        .collect();
    let labels = labels.join(",");
    let all = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = match &sample.value {
        Value::Count(count) => writeln!(text, "{name}{all} {count}"),
        Value::Number(number) => writeln!(text, "{name}{all} {number}"),
        Value::Distribution(read) => {
            let before = if labels.is_empty() { String::new() } else { format!("{labels},") };
            for (bound, count) in &read.buckets {
                let _ = writeln!(text, "{name}_bucket{{{before}le=\"{bound}\"}} {count}");
            }
            let (count, sum) = (read.count, read.sum);
            let _ = writeln!(text, "{name}_bucket{{{before}le=\"+Inf\"}} {count}");
            writeln!(text, "{name}_sum{all} {sum}\n{name}_count{all} {count}")
        }
    };
}

fn escaped(text: &str) -> Cow<'_, str> {
    if text.contains(['\\', '"', '\n']) {
        Cow::Owned(text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests;
