//! Tests of the MySQL store that look at the server behind it.

mod caller_transaction;
mod epochs;
mod migrations;
mod plans;
mod races;
