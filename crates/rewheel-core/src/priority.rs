//! Job priority.

use crate::limits::Limits;

/// Priority from 0 to 9. 9 runs first; the default is 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// The lowest priority.
    pub const MIN: Priority = Priority(0);
    /// The default priority.
    pub const DEFAULT: Priority = Priority(5);
    /// The highest priority.
    pub const MAX: Priority = Priority(Limits::PRIORITY_MAX);

    /// Creates a priority from a number from 0 to 9.
    ///
    /// # Errors
    /// Fails for any other number.
    ///
    /// ```
    /// use rewheel_core::Priority;
    ///
    /// assert!(Priority::new(9)? > Priority::DEFAULT);
    /// assert_eq!(Priority::new(10).unwrap_err().to_string(), "must be 0..9");
    /// # Ok::<_, rewheel_core::PriorityError>(())
    /// ```
    pub const fn new(priority: u8) -> Result<Priority, PriorityError> {
        if priority <= Limits::PRIORITY_MAX { Ok(Priority(priority)) } else { Err(PriorityError) }
    }

    /// Returns the number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns every priority, the highest first.
    pub fn all() -> impl Iterator<Item = Priority> {
        (0..=Limits::PRIORITY_MAX).rev().map(Priority)
    }
}

impl Default for Priority {
    fn default() -> Priority {
        Priority::DEFAULT
    }
}

/// Error: the number is not a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 0..9")]
pub struct PriorityError;
