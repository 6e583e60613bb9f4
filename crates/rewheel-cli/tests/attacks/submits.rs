//! Submits that ask for too much.
