//! Tests of the MySQL store that look at the server behind it.

mod caller_transaction;
mod epochs;
mod heartbeats;
mod isolation;
mod lane_numbers;
mod migrations;
mod node;
mod open_transactions;
mod plans;
mod races;
mod sessions;
