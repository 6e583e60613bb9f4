//! Writes figures as JSON.

use anyhow::Result;
use serde::Serialize;

use crate::harness::{Group, Row, Timing};
use crate::machine::Machine;

#[derive(Serialize)]
struct Document<'a> {
    machine: &'a Machine,
    rows: Vec<RowDto<'a>>,
}

#[derive(Serialize)]
struct RowDto<'a> {
    bench: String,
    subject: &'a str,
    unit: &'a str,
    rounds: &'a [f64],
    median: f64,
    p99: Option<f64>,
    versus: Option<&'a str>,
    ratio: Option<f64>,
    target: Option<f64>,
    errors: u64,
}

pub fn of(machine: &Machine, groups: &[Group]) -> Result<String> {
    let rows = groups.iter().flat_map(|group| {
        let timings = |row| pairs(row).map(|(row, timing)| dto(group, row, timing));
        group.rows.iter().flat_map(timings)
    });
    Ok(serde_json::to_string_pretty(&Document { machine, rows: rows.collect() })?)
}

fn pairs(row: &Row) -> impl Iterator<Item = (&Row, &Timing)> {
    row.timings.iter().map(move |timing| (row, timing))
}

fn dto<'a>(group: &Group, row: &'a Row, timing: &'a Timing) -> RowDto<'a> {
    let verdict = timing.verdict.as_ref();
    let plural = if timing.threads == 1 { "" } else { "s" };
    RowDto {
        bench: format!("{}, {} thread{plural}", group.name, timing.threads),
        subject: row.subject,
        unit: "ns",
        rounds: &timing.rounds,
        median: timing.median,
        p99: None,
        versus: verdict.map(|verdict| verdict.versus),
        ratio: verdict.map(|verdict| verdict.ratio),
        target: verdict.and_then(|verdict| verdict.target),
        errors: row.check.as_ref().map_or(0, |check| check.errors),
    }
}
