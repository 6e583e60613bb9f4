//! Chaos cells on a Redis Cluster: three nodes, and six servers of their own.

mod cluster;
mod kill_node;
mod pause_node;
mod rolling_restart;
mod kill_connections;
mod failover;
mod move_slot;
