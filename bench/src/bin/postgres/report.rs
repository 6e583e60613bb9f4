//! Writes the results of a comparison as JSON and as a table.

use serde::Serialize;
use std::fmt;

use crate::compare::{Course, Part, Targets};
use crate::machine::Machine;
use crate::queue::load::{Figures, Load, quantile};
use crate::server::About;

#[derive(Debug, Serialize)]
pub struct Report {
    machine: Machine,
    store: About,
    jobs: usize,
    payload_bytes: usize,
    samples: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    bench: &'static str,
    subject: &'static str,
    unit: &'static str,
    rounds: Vec<f64>,
    median: f64,
    p99: Option<f64>,
    versus: Option<&'static str>,
    ratio: Option<f64>,
    /// By how many milliseconds it exceeds the limit.
    over: Option<f64>,
    target: Option<f64>,
    errors: u64,
}

/// One figure of each round.
struct Bench {
    name: &'static str,
    unit: &'static str,
    of: fn(&Figures) -> Option<f64>,
    better: Better,
    target: fn(&Targets) -> Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    More,
    Less,
}

const BENCHES: [Bench; 4] = [
    Bench {
        name: "submit",
        unit: "jobs/s",
        of: |f| f.submit,
        better: Better::More,
        target: |t| t.submit,
    },
    Bench {
        name: "drain",
        unit: "jobs/s",
        of: |f| f.drain,
        better: Better::More,
        target: |t| t.drain,
    },
    Bench { name: "latency", unit: "ms", of: |f| f.p50, better: Better::Less, target: |_| None },
    Bench {
        name: "latency_p99",
        unit: "ms",
        of: |f| f.p99,
        better: Better::Less,
        target: |_| None,
    },
];

impl Report {
    pub fn new(machine: Machine, store: About, load: &Load, courses: &[Course]) -> Report {
        let rows = BENCHES.iter().flat_map(|bench| bench.rows(courses));
        let rows = rows.chain(over_commits(courses)).collect();
        let Load { jobs, payload_bytes, samples } = *load;
        Report { machine, store, jobs, payload_bytes, samples, rows }
    }
}

impl Bench {
    fn rows(&self, courses: &[Course]) -> Vec<Row> {
        let best = self.best_peer(courses);
        courses.iter().filter_map(|course| self.row(course, best)).collect()
    }

    fn row(&self, course: &Course, best: Option<&Course>) -> Option<Row> {
        let rounds: Vec<f64> = self.figures(course).flatten().collect();
        let median = quantile(&rounds, 0.5)?;
        let is_latency = self.name == "latency";
        let p99s: Vec<f64> = course.rounds.iter().flatten().filter_map(|f| f.p99).collect();
        let mut row = Row {
            bench: self.name,
            subject: course.subject.name,
            unit: self.unit,
            rounds,
            median,
            p99: if is_latency { quantile(&p99s, 0.5) } else { None },
            versus: None,
            ratio: None,
            over: None,
            target: None,
            errors: errors(course, is_latency),
        };
        if let (Part::Ours { target, .. }, Some(best)) = (course.subject.part, best) {
            // Round by round: results of the same time have the same conditions.
            let pairs = self.figures(course).zip(self.figures(best));
            let ratios: Vec<f64> = pairs.filter_map(|(ours, best)| Some(ours? / best?)).collect();
            row.versus = Some(best.subject.name);
            row.ratio = quantile(&ratios, 0.5);
            row.target = (self.target)(&target);
        }
        Some(row)
    }

    fn figures<'a>(&'a self, course: &'a Course) -> impl Iterator<Item = Option<f64>> + 'a {
        course.rounds.iter().map(|round| round.as_ref().and_then(self.of))
    }

    fn best_peer<'a>(&self, courses: &'a [Course]) -> Option<&'a Course> {
        let median = |course: &Course| {
            let figures: Vec<f64> = self.figures(course).flatten().collect();
            quantile(&figures, 0.5)
        };
        let peers = courses.iter().filter(|course| matches!(course.subject.part, Part::Peer(_)));
        let judged = peers.filter_map(|course| Some((course, median(course)?)));
        let best = match self.better {
            Better::More => judged.max_by(|a, b| a.1.total_cmp(&b.1)),
            Better::Less => judged.min_by(|a, b| a.1.total_cmp(&b.1)),
        };
        best.map(|(course, _)| course)
    }
}

/// By how much the latency of a single job exceeds two commits, round by round: it is stored and claimed, each with a commit.
fn over_commits(courses: &[Course]) -> Vec<Row> {
    let limit = courses.iter().find(|course| matches!(course.subject.part, Part::Limit));
    let Some(limit) = limit else { return Vec::new() };
    let row = |course: &Course| {
        let Part::Ours { target, .. } = course.subject.part else { return None };
        let pairs = course.rounds.iter().zip(&limit.rounds);
        let p50 = |round: &Option<Figures>| round.as_ref().and_then(|figures| figures.p50);
        let rounds: Vec<f64> =
            pairs.filter_map(|(ours, limit)| Some(p50(ours)? - p50(limit)?)).collect();
        let median = quantile(&rounds, 0.5)?;
        Some(Row {
            bench: "latency_over_commits",
            subject: course.subject.name,
            unit: "ms",
            rounds,
            median,
            p99: None,
            versus: Some(limit.subject.name),
            ratio: None,
            over: Some(median),
            target: target.over_commits,
            errors: errors(course, true),
        })
    };
    courses.iter().filter_map(row).collect()
}

/// Failed rounds, or single jobs that were never started.
fn errors(course: &Course, is_latency: bool) -> u64 {
    let failed = course.rounds.iter().filter(|round| round.is_none()).count() as u64;
    let missing: u64 = course.rounds.iter().flatten().map(|figures| figures.missing).sum();
    if is_latency { failed + missing } else { failed }
}

impl Row {
    fn verdict(&self) -> &'static str {
        let (Some(figure), Some(target)) = (self.ratio.or(self.over), self.target) else {
            return "";
        };
        let is_reached = if self.unit == "ms" { figure <= target } else { figure >= target };
        if is_reached { "pass" } else { "MISS" }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.machine, self.store)?;
        writeln!(
            f,
            "{} jobs of {} B; {} single jobs; medians of rounds",
            self.jobs, self.payload_bytes, self.samples
        )?;
        let mut bench = "";
        for row in &self.rows {
            if row.bench != bench {
                bench = row.bench;
                writeln!(
                    f,
                    "\n{:<20}{:>10}  {:<20}{:>6}  {:<24}{:<8}{:>6}",
                    format!("{bench}, {}", row.unit),
                    "median",
                    "lowest, highest",
                    "ratio",
                    "versus",
                    "target",
                    "errors"
                )?;
            }
            writeln!(f, "{row}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.unit == "ms" { 2 } else { 0 };
        let bound = |part| quantile(&self.rounds, part).unwrap_or(f64::NAN);
        let range = format!("{:.digits$}, {:.digits$}", bound(0.0), bound(1.0));
        let number = |number: Option<f64>| number.map_or(String::new(), |n| format!("{n:.2}"));
        let line = format!(
            "  {:<18}{:>10.digits$}  {range:<20}{:>6}  {:<24}{:<8}{:>6}  {}",
            self.subject,
            self.median,
            number(self.ratio.or(self.over)),
            self.versus.unwrap_or_default(),
            number(self.target),
            self.errors,
            self.verdict(),
        );
        f.write_str(line.trim_end())
    }
}
