//! Runs what goes wrong on purpose: the simulation, a server that is killed.

use anyhow::{Result, bail};

use crate::repository::{self, Repository};

/// What CI simulates: some minutes of misfortune each.
const SEEDS: &str = "1000";

/// What a person asks for; every `cargo xtask test` does a tenth of it.
const KILLS: &str = "200";

/// `REWHEEL_SEED` replays one seed, `REWHEEL_SEEDS` says how many to run.
pub(crate) fn sim(repository: &Repository) -> Result<()> {
    let mut sim = repository.cargo("test -p rewheel-engine --test simulation every_promise");
    let seeds = std::env::var("REWHEEL_SEEDS").unwrap_or_else(|_| SEEDS.to_owned());
    repository::run(sim.args(["--", "--nocapture"]).env("REWHEEL_SEEDS", seeds))
}

/// `REWHEEL_KILLS` says how often to kill.
pub(crate) fn chaos(repository: &Repository, args: &[String]) -> Result<()> {
    for pair in args.chunks(2) {
        match pair {
            [flag, value] if flag == "--store" && value == "sqlite" => {}
            [flag, value] if flag == "--cell" && value == "kill-node" => {}
            _ => bail!("usage: cargo xtask chaos [--store sqlite] [--cell kill-node]"),
        }
    }
    let mut chaos = repository.cargo("test -p rewheel-cli --test chaos");
    let kills = std::env::var("REWHEEL_KILLS").unwrap_or_else(|_| KILLS.to_owned());
    repository::run(chaos.args(["--", "--nocapture"]).env("REWHEEL_KILLS", kills))
}
