//! Describes the machine that the figures come from.

use std::fmt;

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    cpu: String,
    cores: usize,
}

pub fn describe() -> Machine {
    // Only Linux has this file; figures of other systems have no machine name.
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = model.map_or("unknown", |(_, model)| model.trim()).to_owned();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Machine { cpu, cores }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} cores", self.cpu, self.cores)
    }
}
