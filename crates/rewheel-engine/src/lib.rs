//! The moving parts of a durable retry engine.
//!
//! [`wheel`]: in which a job waits for its millisecond.

#![warn(missing_docs)]

pub mod wheel;
