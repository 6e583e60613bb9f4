//! The verbs of the store, one file for each part of its interface.

pub(super) mod settings;
mod audit;
mod budgets;
mod change;
mod claim;
mod follow_ups;
mod forgotten;
mod groups;
mod holders;
mod idempotency;
mod insert;
mod insert_together;
mod kinds;
mod limits;
mod prune;
mod read;
mod reserve;
mod results;
mod rows;
mod sample;
mod history;
mod settle;
mod sweep;
mod tokens;
mod unreadable;
