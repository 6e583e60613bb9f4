//! Chaos cells on PostgreSQL: three nodes, one database.

mod database;
mod server;
mod kill_node;
mod mixed_kill_node;
mod pause_node;
mod rolling_restart;
mod migrate_under_load;
mod skewed_clock;
mod kill_connections;
mod restart_store;
mod failover_sync;
mod failover_async;
mod backup;
mod mixed_restart_store;
mod fill_pool;
mod pressure;
mod idle_in_tx;
mod active_readers;
mod high_load;
mod burst;
mod logical_replica;
