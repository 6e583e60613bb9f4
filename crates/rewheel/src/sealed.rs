//! Seals public traits that only this crate may implement.

/// A supertrait that no other crate can name.
pub trait Sealed {}
