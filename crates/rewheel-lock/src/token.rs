//! The number that keeps late writes out.

use std::fmt;

/// A number that grows each time a lock of a name is acquired. It is never used again, not after a release, an expiry, a restart of the
/// server, or the loss of its data.
///
/// Send it with every write to the resource that the lock protects. The resource remembers the largest token that it has seen, and
/// rejects a smaller one: then a process that was paused and has lost the lock without noticing cannot write.
///
/// Tokens are not consecutive: they start at the server's time in microseconds. They fit an `i64`, a `bigint` column and an exact
/// number in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Returns the token with this value, for a resource that has stored it, or for a backend.
    pub const fn new(value: u64) -> FencingToken {
        FencingToken(value)
    }

    /// Returns its value.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
