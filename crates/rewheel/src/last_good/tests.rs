//! Tests of the cache of last good values.

#[cfg(all(feature = "cache", not(loom)))]
mod caching;
#[cfg(all(feature = "cache", not(loom)))]
mod flights;
#[cfg(loom)]
mod loom_flight;
