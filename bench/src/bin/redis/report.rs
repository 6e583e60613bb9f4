//! Prints the results of all rounds as a table.

use crate::Subject;
use crate::machine::describe;
use crate::queue::load::{Figures, Load, quantile};

/// One subject with its figures of each round.
#[derive(Debug)]
pub struct Row {
    pub subject: Subject,
    pub name: &'static str,
    pub rounds: Vec<Figures>,
}

impl Row {
    pub const fn new(subject: Subject, name: &'static str) -> Row {
        Row { subject, name, rounds: Vec::new() }
    }

    /// The median and the range of a figure.
    fn figure(&self, of: fn(&Figures) -> Option<f64>) -> Option<(f64, f64, f64)> {
        let all: Vec<f64> = self.rounds.iter().filter_map(of).collect();
        Some((quantile(&all, 0.5)?, quantile(&all, 0.0)?, quantile(&all, 1.0)?))
    }
}

pub fn print(about: &str, load: &Load, rows: &[Row]) {
    println!("{}", describe());
    println!(
        "{about}; {} jobs of {} bytes, {} single jobs",
        load.jobs, load.payload_bytes, load.samples
    );
    println!(
        "{:<20} {:>28} {:>28} {:>20} {:>20}",
        "", "submit k/s", "drain k/s", "p50 ms", "p99 ms"
    );
    for row in rows {
        let shown = |of, scale: f64, digits: usize| match row.figure(of) {
            Some((median, least, most)) => format!(
                "{:.digits$} [{:.digits$}-{:.digits$}]",
                median / scale,
                least / scale,
                most / scale
            ),
            None => "-".to_owned(),
        };
        println!(
            "{:<20} {:>28} {:>28} {:>20} {:>20}",
            row.name,
            shown(|figures| figures.submit, 1e3, 1),
            shown(|figures| figures.drain, 1e3, 1),
            shown(|figures| figures.p50, 1.0, 2),
            shown(|figures| figures.p99, 1.0, 2)
        );
        let missing: u64 = row.rounds.iter().map(|figures| figures.missing).sum();
        if missing > 0 {
            println!("  {missing} single jobs were never started");
        }
    }
    for (subject, other) in [
        (Subject::Dropped, Subject::Raw),
        (Subject::Kept, Subject::Raw),
        (Subject::Dropped, Subject::BullMq),
        (Subject::Kept, Subject::BullMqKept),
    ] {
        let find = |wanted| rows.iter().find(|row| row.subject == wanted);
        let (Some(row), Some(other)) = (find(subject), find(other)) else { continue };
        let ratio = |of| Some(row.figure(of)?.0 / other.figure(of)?.0);
        let shown =
            |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}x"));
        println!(
            "{} to {}: submit {}, drain {}",
            row.name,
            other.name,
            shown(ratio(|figures| figures.submit)),
            shown(ratio(|figures| figures.drain))
        );
    }
}
