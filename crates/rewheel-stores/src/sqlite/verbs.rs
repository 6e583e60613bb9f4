//! Implements each verb on SQLite, in its own transaction.

pub(super) mod insert;
pub(super) mod reserve;
mod rows;
mod replace;
pub(super) mod claim;
pub(super) mod limits;
pub(super) mod settle;
pub(super) mod results;
mod held;
mod follow_ups;
pub(super) mod groups;
pub(super) mod ending;
pub(super) mod lease;
pub(super) mod sweep;
pub(super) mod kinds;
mod tokens;
mod audit;
pub(super) mod budgets;
pub(super) mod change;
pub(super) mod read;
pub(super) mod sample;
mod history;
mod keyed;
pub(super) mod failures;
pub(super) mod prune;
pub(super) mod idempotency;
pub(super) mod unreadable;
