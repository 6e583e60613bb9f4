//! Writes meters as text that Prometheus reads.

use std::fmt::{Display, Write as _};

/// What a meter does over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meter {
    /// It only grows, until the process starts anew.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Meters, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl Text {
    /// Begins a meter: its name, what it counts.
    pub(crate) fn meter(&mut self, meter: Meter, name: &str, help: &str) -> Samples<'_> {
        let kind = match meter {
            Meter::Counter => "counter",
            Meter::Gauge => "gauge",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Samples { text: &mut self.0, name: name.to_owned() }
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// The values of one meter.
pub(crate) struct Samples<'t> {
    text: &'t mut String,
    name: String,
}

impl Samples<'_> {
    /// Adds a value, with what tells it from the others.
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(&self.name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{open}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::{Meter, Text};

    #[test]
    fn a_meter_is_what_prometheus_reads() {
        let mut text = Text::default();
        text.meter(Meter::Gauge, "rewheel_places", "Attempts that may run.").add(&[], 256);
        let mut jobs = text.meter(Meter::Counter, "rewheel_told_total", "Notices.");
        jobs.add(&[("notifier", "a\"b\\c\nd"), ("outcome", "sent")], 7);
        let expected = "# HELP rewheel_places Attempts that may run.\n# TYPE rewheel_places gauge\n\
            rewheel_places 256\n\
            # HELP rewheel_told_total Notices.\n# TYPE rewheel_told_total counter\n\
            rewheel_told_total{notifier=\"a\\\"b\\\\c\\nd\",outcome=\"sent\"} 7\n";
        assert_eq!(text.into_string(), expected);
    }
}
