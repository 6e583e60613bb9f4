//! Prints figures as a table.

use crate::goal::{Limit, Verdict};
use crate::harness::{Group, Row, Timing};

pub fn print(group: &Group) {
    println!(
        "\n{:<47} {:>8} {:>9}  {:<22} {:>11}  {:<12} {:<12} checked",
        group.name, "1 thread", "2 threads", "versus", "ratio", "target", "verdict"
    );
    for row in &group.rows {
        println!("{}", line(row));
    }
}

fn line(row: &Row) -> String {
    let with = |threads| row.timings.iter().find(|timing| timing.threads == threads);
    let nanos = |timing: Option<&Timing>| timing.map_or_else(String::new, |t| decimals(t.median));
    let verdicts = || row.timings.iter().filter_map(|timing| timing.verdict.as_ref());
    let each = |text: fn(&Verdict) -> String| verdicts().map(text).collect::<Vec<_>>().join(" / ");

    let mut versus: Vec<_> = verdicts().map(|verdict| verdict.versus).collect();
    versus.dedup();
    let (ratio, target, reached) = if verdicts().any(|verdict| verdict.target.is_some()) {
        (each(ratio), each(target), each(reached))
    } else {
        (each(ratio), String::new(), String::new())
    };
    let check = row.check.as_ref().map_or("", |check| check.text.as_str());
    let line = format!(
        "  {:<45} {:>8} {:>9}  {:<22} {:>11}  {:<12} {:<12} {}",
        row.subject,
        nanos(with(1)),
        nanos(with(2)),
        versus.join(", "),
        ratio,
        target,
        reached,
        check
    );
    line.trim_end().to_owned()
}

fn decimals(nanos: f64) -> String {
    format!("{nanos:.1}")
}

fn ratio(verdict: &Verdict) -> String {
    format!("{:.2}", verdict.ratio)
}

fn target(verdict: &Verdict) -> String {
    match verdict.limit {
        Some(Limit::Times(times)) => {
            if (times * 10.0).fract() == 0.0 {
                format!("{times:.1}x")
            } else {
                format!("{times:.2}x")
            }
        }
        Some(Limit::Plus(nanos)) => format!("+{nanos:.0} ns"),
        None => "-".to_owned(),
    }
}

fn reached(verdict: &Verdict) -> String {
    match verdict.is_reached() {
        Some(true) => "pass".to_owned(),
        Some(false) => "MISS".to_owned(),
        None => "-".to_owned(),
    }
}
