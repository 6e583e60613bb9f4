//! Tests of the MySQL store that look at the server behind it.

mod support;
mod caller_transaction;
mod claims;
mod epochs;
mod heartbeats;
mod isolation;
mod lane_numbers;
mod leftovers;
mod migrations;
mod node;
mod open_transactions;
mod places;
mod plans;
mod races;
mod round_trips;
mod sessions;
mod traps;
mod unreadable;
