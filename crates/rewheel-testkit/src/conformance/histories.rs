//! Tests event sequences that broke other retry engines, each with the rule that prevents the failure.

mod leasing;
mod keeping;

pub use self::keeping::*;
pub use self::leasing::*;
