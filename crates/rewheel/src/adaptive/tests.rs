//! Tests of the adaptive limit.

#![expect(clippy::unwrap_used, reason = "test code")]

#[cfg(not(loom))]
mod simulated;
#[cfg(not(loom))]
mod slots;
#[cfg(loom)]
mod loom_adaptive;
