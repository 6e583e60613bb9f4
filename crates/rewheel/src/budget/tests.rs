//! Tests of the retry budget.

#[cfg(not(loom))]
mod allowance;
#[cfg(loom)]
mod loom_budget;
#[cfg(not(loom))]
mod keyed;
