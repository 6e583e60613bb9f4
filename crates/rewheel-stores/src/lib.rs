//! Where Rewheel keeps jobs.

#![warn(missing_docs)]
