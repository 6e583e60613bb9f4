//! Chaos tests: break what running nodes depend on, and check that no acknowledged job is lost.
//!
//! A cell is one fault on one store. Each runs here for some seconds; `cargo xtask chaos --store
//! postgres --cell kill-node` runs it for a minute. Each ends the same way: every acknowledged job is
//! final, none was settled by a late holder, the books balance. The cells whose names begin with
//! `mixed` use every feature of jobs at once, and check what each of them promises.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test in real time, which reports what it did"
)]
#![cfg_attr(
    not(any(feature = "test-mysql", feature = "test-postgres", feature = "test-redis")),
    expect(dead_code, reason = "most cells need a server; SQLite's needs less")
)]

mod callee;
mod node;
mod cell;
mod submitter;
mod door;
mod ledger;
mod kill_nodes;
mod pause_nodes;
#[cfg(any(feature = "test-mysql", feature = "test-postgres", feature = "test-redis"))]
mod restart_nodes;
#[cfg(any(feature = "test-mysql", feature = "test-redis"))]
mod cut_connections;
#[cfg(any(feature = "test-mysql", feature = "test-postgres", feature = "test-redis"))]
mod load;
mod mixed;
mod sqlite;
#[cfg(feature = "test-postgres")]
mod postgres;
#[cfg(feature = "test-mysql")]
mod mysql;
#[cfg(feature = "test-redis")]
mod redis;
#[cfg(feature = "test-redis")]
mod redis_cluster;

use std::time::Duration;

/// How long a fault lasts or is repeated.
fn fault_lasts() -> Duration {
    let seconds = std::env::var("REWHEEL_CHAOS_SECONDS").ok();
    let seconds = seconds.map_or(8, |seconds| seconds.parse().expect("REWHEEL_CHAOS_SECONDS"));
    Duration::from_secs(seconds)
}

/// Cells measure time: running side by side would distort the results.
async fn alone() -> tokio::sync::MutexGuard<'static, ()> {
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    ALONE.lock().await
}
