//! Last good value: a cache that makes one call for all callers, and outlives failures of the called service.

#[cfg(feature = "cache")]
mod builder;
#[cfg(feature = "cache")]
mod cache;
#[cfg(feature = "cache")]
mod call;
#[cfg(any(feature = "cache", loom))]
#[cfg_attr(not(feature = "cache"), expect(dead_code, reason = "only the cache uses all of it"))]
mod flight;
#[cfg(feature = "cache")]
mod limits;

#[cfg(feature = "cache")]
pub use self::builder::LastGoodBuilder;
#[cfg(feature = "cache")]
pub use self::cache::{Good, LastGood};

/// Where the value that a `LastGood` returned is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Freshness {
    /// This call fetched it.
    Fetched,
    /// Another call fetched it, and this one waited for that.
    Shared,
    /// It was fetched before, and its time to live is not over.
    Cached,
    /// Its time to live is over, but a fetch failed.
    Stale,
}

impl Freshness {
    /// Returns the name used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Freshness::Fetched => "fetched",
            Freshness::Shared => "shared",
            Freshness::Cached => "cached",
            Freshness::Stale => "stale",
        }
    }
}

impl std::fmt::Display for Freshness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
