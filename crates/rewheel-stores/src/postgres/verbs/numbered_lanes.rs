//! The lanes of new jobs, with their numbers.

use rewheel_core::{Lane, NewJob};
use std::collections::{HashMap, HashSet};

/// The lanes of a batch whose kinds exist.
pub(in super::super) struct Numbered {
    /// The lane number of each job.
    pub(super) of_jobs: Vec<Option<i32>>,
    /// The lane numbers, each once in ascending order, and their lanes.
    pub(super) numbers: Vec<i32>,
    pub(super) lanes: Vec<Lane>,
}

impl Numbered {
    pub(super) fn new(jobs: &[NewJob], numbers: HashMap<Lane, i32>) -> Numbered {
        let mut last: Option<(&NewJob, Option<i32>)> = None;
        let number_of = |job| {
            // Most jobs of a batch are in the same lane as the job before.
            let number = match last {
                Some((before, number)) if before.is_beside(job) => number,
                Some(_) | None => numbers.get(&job.lane()).copied(),
            };
            last = Some((job, number));
            number
        };
        let of_jobs = jobs.iter().map(number_of).collect();
        let mut named: Vec<(i32, Lane)> =
            numbers.into_iter().map(|(lane, number)| (number, lane)).collect();
        named.sort_unstable_by_key(|(number, _)| *number);
        let (numbers, lanes) = named.into_iter().unzip();
        Numbered { of_jobs, numbers, lanes }
    }

    /// Returns whether one number stands for two lanes: one was cached before a restore, the other after it.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.numbers.windows(2).any(|pair| pair[0] == pair[1])
    }
}

/// The lanes of a batch, each once.
pub(super) fn lanes(jobs: &[NewJob]) -> Vec<Lane> {
    let mut lanes: HashSet<Lane> = HashSet::new();
    let mut last: Option<&NewJob> = None;
    for job in jobs {
        if !last.is_some_and(|last| last.is_beside(job)) {
            lanes.insert(job.lane());
        }
        last = Some(job);
    }
    lanes.into_iter().collect()
}
