//! Checks that the measured libraries also behave correctly.

pub mod admissions;
pub mod probes;
pub mod retries;
pub mod delays;
pub mod allocations;

/// What an experiment found.
#[derive(Clone, Debug)]
pub struct Check {
    /// For people.
    pub text: String,
    /// How often the subject did what it must not do.
    pub errors: u64,
}

impl Check {
    /// Adds what another experiment found under another condition.
    pub fn and(self, condition: &str, other: Check) -> Check {
        let text = format!("{}; {condition}: {}", self.text, other.text);
        Check { text, errors: self.errors + other.errors }
    }
}
