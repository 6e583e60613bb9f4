//! Chaos cells on a Redis Cluster: three nodes, and six servers of their own.

mod failover;
mod move_slot;
