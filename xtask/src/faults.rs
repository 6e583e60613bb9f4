//! Runs the fault tests: the simulation and the chaos cells.

use anyhow::{Result, bail, ensure};

use crate::repository::{self, Repository};
use crate::services::{self, Session};

/// The number of seeds that CI simulates.
const SEEDS: &str = "1000";

/// The number of kills in `cargo xtask chaos`; `cargo xtask test` does a tenth of it.
const KILLS: &str = "200";

/// The duration of a fault in `cargo xtask chaos`; shorter in `cargo xtask test`.
const SECONDS: &str = "60";

/// The cells of each store; each is a module of the tests in `chaos`.
const STORES: [(&str, &[&str]); 5] = [
    ("sqlite", &["kill-node", "mixed-kill-node"]),
    (
        "postgres",
        &[
            "kill-node",
            "mixed-kill-node",
            "pause-node",
            "restart-store",
            "failover-sync",
            "failover-async",
            "backup",
            "mixed-restart-store",
            "kill-connections",
            "fill-pool",
            "skewed-clock",
            "rolling-restart",
            "migrate-under-load",
            "idle-in-tx",
            "active-readers",
            "high-load",
            "burst",
            "logical-replica",
        ],
    ),
    (
        "mysql",
        &[
            "kill-node",
            "mixed-kill-node",
            "pause-node",
            "rolling-restart",
            "kill-connections",
            "restart-store",
            "mixed-restart-store",
            "burst",
        ],
    ),
    (
        "redis",
        &[
            "kill-node",
            "mixed-kill-node",
            "pause-node",
            "rolling-restart",
            "kill-connections",
            "restart-store",
            "mixed-restart-store",
            "pause-store",
            "lose-second",
            "high-load",
            "burst",
        ],
    ),
    (
        "redis-cluster",
        &[
            "kill-node",
            "pause-node",
            "rolling-restart",
            "kill-connections",
            "failover",
            "move-slot",
        ],
    ),
];

/// The stores whose cells start servers of their own. A cell without its server passes and tests nothing.
const STORES_WITH_SERVERS: [&str; 3] = ["postgres", "mysql", "redis"];

/// `REWHEEL_SEED` replays one seed, `REWHEEL_SEEDS` sets how many to run.
pub(crate) fn sim(repository: &Repository) -> Result<()> {
    let mut sim = repository.cargo("test -p rewheel-engine --test simulation every_promise");
    let seeds = std::env::var("REWHEEL_SEEDS").unwrap_or_else(|_| SEEDS.to_owned());
    repository::run(sim.args(["--", "--nocapture"]).env("REWHEEL_SEEDS", seeds))
}

/// `REWHEEL_KILLS` sets the number of kills on SQLite, `REWHEEL_CHAOS_SECONDS` the duration of a
/// fault on other stores.
pub(crate) fn chaos(repository: &Repository, args: &[String]) -> Result<()> {
    let modules = modules(args)?;
    let uses = |store: &str| modules.iter().any(|module| module.starts_with(store));
    // Cells start servers of their own, also beside the one of `REWHEEL_TEST_POSTGRES`.
    let own = STORES_WITH_SERVERS.into_iter().filter(|store| uses(store));
    for store in own.clone() {
        services::ensure_installed(repository, &format!("test-{store}"))?;
    }
    let session = if uses("postgres") { Session::start(repository) } else { Session::default() };
    let is_off = session.features_off().contains(&"test-postgres");
    ensure!(!is_off, "there is no server to harm: see above");
    let features: Vec<String> = own.map(|store| format!("--features test-{store}")).collect();
    let features = features.join(" ");
    let mut chaos = repository.cargo(&format!("test -p rewheel-cli --test chaos {features}"));
    // One after the other, because they measure time.
    chaos.args(["--", "--nocapture", "--test-threads=1"]).args(modules);
    for (variable, value) in [("REWHEEL_KILLS", KILLS), ("REWHEEL_CHAOS_SECONDS", SECONDS)] {
        chaos.env(variable, std::env::var(variable).unwrap_or_else(|_| value.to_owned()));
    }
    let result = repository::run(session.tell(&mut chaos));
    result.and(session.end().map(drop))
}

/// Returns the test modules that the arguments select.
fn modules(args: &[String]) -> Result<Vec<String>> {
    let (mut store, mut cell) = (None, None);
    for pair in args.chunks(2) {
        match pair {
            [flag, value] if flag == "--store" => store = Some(value),
            [flag, value] if flag == "--cell" => cell = Some(value),
            _ => bail!("usage: cargo xtask chaos [--store STORE] [--cell CELL]\n\n{}", menu()),
        }
    }
    let mut modules = Vec::new();
    for (name, cells) in STORES.iter().filter(|(name, _)| store.is_none_or(|store| store == name)) {
        let cells = cells.iter().filter(|name| cell.is_none_or(|cell| cell == *name));
        modules.extend(cells.map(|cell| format!("{name}::{cell}::").replace('-', "_")));
    }
    ensure!(!modules.is_empty(), "there is no such cell\n\n{}", menu());
    Ok(modules)
}

fn menu() -> String {
    let lines = STORES.iter().map(|(store, cells)| format!("  {store}: {}", cells.join(" ")));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{STORES, STORES_WITH_SERVERS, modules};

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(modules(&args).unwrap_or_default(), expected, "{line:?}");
    }

    #[test]
    fn arguments_select_cells() {
        check("--store sqlite", &["sqlite::kill_node::", "sqlite::mixed_kill_node::"]);
        check("--store postgres --cell fill-pool", &["postgres::fill_pool::"]);
        check(
            "--cell kill-node",
            &[
                "sqlite::kill_node::",
                "postgres::kill_node::",
                "mysql::kill_node::",
                "redis::kill_node::",
                "redis_cluster::kill_node::",
            ],
        );
        check("--store redis-cluster --cell failover", &["redis_cluster::failover::"]);
        let all: Vec<String> = modules(&[]).unwrap();
        assert_eq!(all.len(), STORES.iter().map(|(_, cells)| cells.len()).sum::<usize>());
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        check("--store oracle", &[]);
        check("--store sqlite --cell fill-pool", &[]);
        check("--cell", &[]);
        check("kill-node", &[]);
    }

    /// Only SQLite needs no programs.
    #[test]
    fn the_programs_of_every_server_are_required() {
        for (store, _) in STORES.iter().filter(|(store, _)| *store != "sqlite") {
            let required = STORES_WITH_SERVERS.iter().any(|server| store.starts_with(server));
            assert!(required, "cells of {store} would pass without a server");
        }
    }

    /// A cell without a module would pass without running anything.
    #[test]
    fn every_cell_is_a_file_of_tests() {
        let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/rewheel-cli/tests/chaos");
        for module in modules(&[]).unwrap() {
            let file = format!("{tests}/{}.rs", module.trim_end_matches(':').replace("::", "/"));
            assert!(std::path::Path::new(&file).is_file(), "{file} does not exist");
        }
    }
}
