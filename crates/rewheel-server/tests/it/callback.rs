//! Tests callbacks against real HTTP servers on this machine.

mod callee;
mod request;
mod answers;
mod connection;
