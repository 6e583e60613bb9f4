//! Tests of the bulkhead.

#[cfg(not(loom))]
mod slots;
#[cfg(loom)]
mod loom_bulkhead;
