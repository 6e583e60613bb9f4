//! Tests that measure waits in milliseconds, or count what short leases survive: nothing may run beside them.
//!
//! They are a binary of their own so that `cargo test`, which runs one binary after the other, runs nothing beside them either.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../chaos/node.rs"]
#[expect(dead_code, reason = "chaos also pauses nodes")]
mod node;
#[path = "../it/support/fleet.rs"]
mod fleet;
mod crowd;
mod outage;
mod parking;
mod poison;
#[cfg(feature = "test-postgres")]
mod redrive;

/// Keeps the other tests of this binary waiting, which `cargo test` would run in parallel.
async fn alone() -> tokio::sync::MutexGuard<'static, ()> {
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    ALONE.lock().await
}
