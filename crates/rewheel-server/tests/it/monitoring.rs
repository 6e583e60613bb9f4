//! Tests of the dashboards in `packaging/grafana` and the rules in `packaging/prometheus`.

#[path = "monitoring/panel.rs"]
mod panel;
#[path = "monitoring/engine.rs"]
mod engine;
#[path = "monitoring/nodes.rs"]
mod nodes;
#[path = "monitoring/library.rs"]
mod library;
#[path = "monitoring/series.rs"]
mod series;
#[path = "monitoring/grafana.rs"]
mod grafana;
#[path = "monitoring/rules.rs"]
mod rules;
#[path = "monitoring/promtool.rs"]
mod promtool;
#[path = "monitoring/scraped.rs"]
mod scraped;

use std::path::{Path, PathBuf};

/// Returns a path in the repository.
fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(in_repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
