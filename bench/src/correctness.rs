//! Checks that the measured libraries also behave correctly.

pub mod admissions;
pub mod probes;
pub mod retries;
pub mod delays;
pub mod allocations;

/// The result of an experiment.
#[derive(Clone, Debug)]
pub struct Check {
    /// The result as text.
    pub text: String,
    /// How often the subject broke its guarantee.
    pub errors: u64,
}

impl Check {
    /// Adds the result of another experiment under another condition.
    pub fn and(self, condition: &str, other: Check) -> Check {
        let text = format!("{}; {condition}: {}", self.text, other.text);
        Check { text, errors: self.errors + other.errors }
    }
}
