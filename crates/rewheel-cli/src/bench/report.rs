//! Formats benchmark results as JSON and as a table.

use super::scale::Scale;
use rewheel_core::SecretUrl;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// All results, with the machine and the store.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    store: About,
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scale: Option<Scale>,
}

#[derive(Debug, Serialize)]
struct Machine {
    cpu: String,
    cores: usize,
}

/// The measured store.
#[derive(Debug, Serialize)]
pub(super) struct About {
    name: &'static str,
    /// None for a server whose version the store does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    pub(super) settings: BTreeMap<&'static str, String>,
}

/// One row of the report.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    bench: &'static str,
    subject: &'static str,
    unit: &'static str,
    rounds: Vec<f64>,
    median: f64,
    p99: Option<f64>,
    versus: Option<&'static str>,
    ratio: Option<f64>,
    errors: u64,
}

impl Report {
    pub(super) fn new(store: About) -> Report {
        let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let cpu = cpu.map_or("unknown", |(_, name)| name).to_owned();
        Report { machine: Machine { cpu, cores }, store, rows: Vec::new(), scale: None }
    }

    /// Returns the costs that grew beyond their limit.
    pub(crate) fn failure(&self) -> Option<String> {
        self.scale.as_ref().and_then(Scale::failure)
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }
}

impl About {
    pub(super) fn new(name: &'static str, version: &str) -> About {
        About { version: Some(version.to_owned()), ..About::named(name) }
    }

    /// A store of which only the name is known.
    pub(super) fn named(name: &'static str) -> About {
        About { name, version: None, settings: BTreeMap::new() }
    }

    pub(super) fn sqlite(url: &SecretUrl) -> About {
        let url = url.expose();
        let mut about = About::new("sqlite", rusqlite::version());
        let synchronous = url.split_once("synchronous=").map_or("full", |(_, value)| value);
        about.settings.insert("synchronous", synchronous.to_owned());
        about
    }
}

impl Row {
    /// Jobs per second, one value per round.
    pub(crate) fn rates(bench: &'static str, subject: &'static str, rounds: Vec<f64>) -> Row {
        let median = quantile(&rounds, 0.5);
        let (versus, ratio, p99) = (None, None, None);
        Row { bench, subject, unit: "jobs/s", rounds, median, p99, versus, ratio, errors: 0 }
    }

    /// Milliseconds, all samples of all rounds together.
    pub(crate) fn times(bench: &'static str, subject: &'static str, samples: Vec<f64>) -> Row {
        let (median, p99) = (quantile(&samples, 0.5), Some(quantile(&samples, 0.99)));
        let (versus, ratio, rounds) = (None, None, Vec::new());
        Row { bench, subject, unit: "ms", rounds, median, p99, versus, ratio, errors: 0 }
    }

    /// Compares round by round: measurements of the same moment are comparable.
    pub(crate) fn versus(mut self, name: &'static str, others: &[f64]) -> Row {
        if !others.is_empty() {
            let ratios: Vec<f64> =
                self.rounds.iter().zip(others).map(|(ours, other)| ours / other).collect();
            self.versus = Some(name);
            self.ratio = Some(quantile(&ratios, 0.5));
        }
        self
    }
}

fn quantile(figures: &[f64], part: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = ((sorted.len().max(1) - 1) as f64 * part).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {} cores", self.machine.cpu, self.machine.cores)?;
        write!(f, "{}", self.store.name)?;
        if let Some(version) = &self.store.version {
            write!(f, " {version}")?;
        }
        for (name, value) in &self.store.settings {
            write!(f, ", {name} {value}")?;
        }
        writeln!(f)?;
        if let Some(scale) = &self.scale {
            write!(f, "{scale}")?;
        }
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "{:<9}{:<13}{:>12}{:>10}  {:<7}  versus raw",
            "bench", "subject", "median", "p99", "unit"
        )?;
        for row in &self.rows {
            let p99 = row.p99.map_or_else(String::new, |p99| format!("{p99:.2}"));
            let median = if row.unit == "ms" {
                format!("{:.2}", row.median)
            } else {
                format!("{:.0}", row.median)
            };
            let ratio = row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            writeln!(
                f,
                "{:<9}{:<13}{median:>12}{p99:>10}  {:<7}  {ratio}",
                row.bench, row.subject, row.unit
            )?;
        }
        Ok(())
    }
}
