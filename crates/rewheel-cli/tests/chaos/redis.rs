//! Chaos cells on Redis: three nodes, one server of their own.

mod server;
mod kill_node;
mod mixed_kill_node;
mod pause_node;
mod rolling_restart;
mod kill_connections;
mod restart_store;
mod mixed_restart_store;
mod pause_store;
mod lose_second;
mod high_load;
mod burst;
