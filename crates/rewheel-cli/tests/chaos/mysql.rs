//! Chaos cells on MariaDB: three nodes, one server that belongs to the cell.

mod server;
mod kill_node;
mod mixed_kill_node;
mod pause_node;
mod rolling_restart;
mod kill_connections;
mod restart_store;
mod mixed_restart_store;
mod burst;
