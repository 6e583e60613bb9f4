//! Tests of the bulkhead.

#[cfg(not(loom))]
mod places;
#[cfg(loom)]
mod loom_bulkhead;
