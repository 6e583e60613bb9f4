//! The reqwest client against a real server, behind a proxy with faults.

mod classes;
mod requests;
mod policies;
