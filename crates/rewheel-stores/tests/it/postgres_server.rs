//! Tests that need a real PostgreSQL server: broken connections, races, SQL by hand.

mod support;
mod proxy;
mod migrations;
mod caller_transaction;
mod submit;
mod groups;
mod insert_sql;
mod duplicates;
mod fleet;
mod connections;
mod broken_ways;
mod round_trips;
mod races;
mod restore;
mod unreadable;
mod plans;
mod old_snapshot;
mod limits;
mod pgbouncer;
mod replication;
mod tls;
mod errors;
mod log;
