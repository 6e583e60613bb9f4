//! Implements each verb on PostgreSQL.

mod audit;
pub(super) mod budgets;
pub(super) mod change;
mod edit;
pub(super) mod claim;
pub(super) mod insert;
mod numbered_lanes;
pub(super) mod kinds;
pub(super) mod lease;
pub(super) mod limits;
pub(super) mod prune;
pub(super) mod read;
mod formats;
mod keyed;
mod wake;
pub(super) mod failures;
pub(super) mod reserve;
pub(super) mod risks;
pub(super) mod sample;
pub(super) mod settle;
pub(super) mod follow_ups;
pub(super) mod groups;
pub(super) mod sweep;
mod tokens;
pub(super) mod unreadable;
mod writes;
pub(super) mod idempotency;
