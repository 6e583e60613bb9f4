//! Tests what only a Redis server can do to a store: it dies, forgets scripts, is full, is a replica or has other settings.

mod bounds;
mod crash;
mod errors;
mod fleet;
mod memory;
mod epochs;
pub(crate) mod server;
mod together;
mod traps;
mod unreadable;
