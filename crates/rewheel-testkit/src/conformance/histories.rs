//! Histories that broke retry engines, each with the rule that stops it.

mod leasing;
mod keeping;

pub use self::keeping::*;
pub use self::leasing::*;
