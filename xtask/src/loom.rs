//! Runs the loom models, which try every interleaving of the lock-free parts.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::repository::{self, Repository};

/// Loom recommends 2 or 3: few bugs need more, and each further preemption multiplies the time.
const PREEMPTIONS_MAX: &str = "3";

pub(crate) fn run(repository: &Repository) -> Result<()> {
    // Tests are selected by name: a renamed model would otherwise pass without running.
    let listing = repository::read(models(repository).args(["--", "--list"]))?;
    ensure!(names_a_test(&listing), "no loom model was found: give its test a name with `loom_`");
    repository::run(&mut models(repository))
}

fn models(repository: &Repository) -> Command {
    let mut command = repository.cargo("test -p rewheel --release --lib --no-default-features");
    command
        .arg("loom_")
        // The flag affects every crate: in the default directory it would cause a full rebuild each time.
        .arg("--target-dir")
        .arg(repository.target_dir().join("loom"))
        .env("RUSTFLAGS", "--cfg loom")
        .env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS_MAX);
    command
}

fn names_a_test(listing: &str) -> bool {
    listing.lines().any(|line| line.ends_with(": test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_listing_names_no_test() {
        assert!(!names_a_test("\n0 tests, 0 benchmarks\n"));
        assert!(names_a_test("breaker::tests::loom_opens_once: test\n\n1 test, 0 benchmarks\n"));
    }
}
