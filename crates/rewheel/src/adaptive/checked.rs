//! Checks the settings of an adaptive limit.

use super::{AdaptiveLimit, AdaptiveLimitBuilder};
use crate::setting::{NotAllowed, SettingError, not_allowed};

pub(super) const fn floor(floor: usize) -> Result<usize, NotAllowed> {
    if floor > 0 { Ok(floor) } else { Err(not_allowed!("floor", "use 1 or more")) }
}

pub(super) const fn ceiling(floor: usize, ceiling: usize) -> Result<usize, NotAllowed> {
    if ceiling < floor {
        Err(not_allowed!("ceiling", "use the floor or more"))
    } else if ceiling > AdaptiveLimit::CEILING_MAX {
        Err(not_allowed!("ceiling", "use at most 1000000"))
    } else {
        Ok(ceiling)
    }
}

pub(super) const fn initial(
    floor: usize,
    ceiling: usize,
    initial: usize,
) -> Result<usize, NotAllowed> {
    if floor <= initial && initial <= ceiling {
        Ok(initial)
    } else {
        Err(not_allowed!("initial", "use a limit from the floor to the ceiling"))
    }
}

/// The forms for values that are known only at run time: from a config file, or from a user.
impl AdaptiveLimit {
    /// As [`between`](AdaptiveLimit::between), without the panic.
    ///
    /// ```
    /// let error = rewheel::AdaptiveLimit::try_between(200, 2).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid ceiling `2`: use the floor or more");
    /// ```
    ///
    /// # Errors
    /// Rejects a floor of zero or above the ceiling, and a ceiling above a million.
    pub fn try_between(
        lowest: usize,
        highest: usize,
    ) -> Result<AdaptiveLimitBuilder, SettingError> {
        floor(lowest).map_err(|rule| rule.with(lowest))?;
        ceiling(lowest, highest).map_err(|rule| rule.with(highest))?;
        Ok(AdaptiveLimitBuilder::new(lowest, highest))
    }
}

impl AdaptiveLimitBuilder {
    /// As [`initial`](AdaptiveLimitBuilder::initial), without the panic.
    ///
    /// # Errors
    /// Rejects a limit that is not between the floor and the ceiling.
    pub fn try_initial(mut self, limit: usize) -> Result<AdaptiveLimitBuilder, SettingError> {
        self.initial = initial(self.floor, self.ceiling, limit).map_err(|rule| rule.with(limit))?;
        Ok(self)
    }
}
