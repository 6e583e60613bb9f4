//! Prints the benchmark report.

use anyhow::{Result, ensure};

use crate::repository::{self, Repository};

pub(crate) fn run(repository: &Repository, report_args: &[String]) -> Result<()> {
    ensure!(repository.has_benchmarks(), "bench/Cargo.toml is missing: restore it from git");
    let mut report = repository.cargo("run --release --manifest-path bench/Cargo.toml");
    repository::run(report.args(["--bin", "report", "--"]).args(report_args))
}
