//! The conformance suite: what every store must do, grouped by verb.

pub mod insert;
pub mod keys;
pub mod direct;
pub mod reserve;
pub mod lanes;
pub mod claim;
pub mod claim_limited;
pub mod settle;
pub mod follow_ups;
pub mod groups;
pub mod give_back;
pub mod start;
pub mod checkpoint;
pub mod extend;
pub mod held;
pub mod lease;
pub mod sweep;
pub mod change;
pub mod deadlines;
pub mod kinds;
pub mod evidence;
pub mod budgets;
pub mod tokens;
pub mod list;
pub mod history;
pub mod audit;
pub mod books;
pub mod announce;
pub mod scale;
pub mod watch;
pub mod histories;
pub mod faults;
pub mod extremes;

mod cases;
