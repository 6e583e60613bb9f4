//! Tests of the adaptive limit.

#[cfg(not(loom))]
mod simulated;
#[cfg(not(loom))]
mod slots;
#[cfg(loom)]
mod loom_adaptive;
