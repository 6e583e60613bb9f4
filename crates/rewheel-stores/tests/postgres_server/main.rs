//! What only a real PostgreSQL server shows: connections that break, others who are faster, SQL by hand.

mod support;
mod proxy;
mod migrations;
mod inside;
mod submit;
mod insert_sql;
mod fleet;
mod connections;
mod broken_ways;
mod round_trips;
mod races;
mod restore;
mod unreadable;
mod plans;
mod limits;
mod pgbouncer;
mod tls;
mod errors;
mod log;
