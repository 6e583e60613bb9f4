//! Tests of the bulkhead.

#[cfg(not(loom))]
mod slots;
#[cfg(not(loom))]
mod keyed;
#[cfg(loom)]
mod loom_bulkhead;
