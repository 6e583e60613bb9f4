//! Tests of the MySQL store that look at the server behind it.

mod support;
mod caller_transaction;
mod claims;
mod epochs;
mod leftovers;
mod migrations;
mod places;
mod plans;
mod races;
mod round_trips;
