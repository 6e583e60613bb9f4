//! Where Rewheel keeps jobs.

#![warn(missing_docs)]

mod clock;
mod payload;
mod memory;

pub use memory::MemoryStore;
