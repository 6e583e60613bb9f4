//! Jitter: randomizes delays, so that clients that failed together do not retry together.

use crate::ratio::Ratio;
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use std::fmt;
use std::str::FromStr;

/// How a delay `d` is randomized.
///
/// ```
/// use rewheel::Jitter;
///
/// const THIRTY: Jitter = Jitter::proportional(0.3);
/// assert_eq!(THIRTY.to_string(), "30%");
/// assert_eq!("equal".parse(), Ok(Jitter::EQUAL));
/// ```
/// ```compile_fail
/// const WRONG: rewheel::Jitter = rewheel::Jitter::proportional(1.5); // above one
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter(Spread);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    None,
    Full,
    Equal,
    Proportional(Ratio),
}

impl Jitter {
    /// Exactly `d`. For tests, and for callers that already start at different times.
    pub const NONE: Jitter = Jitter(Spread::None);

    /// Between zero and `d`: the lowest load on a recovering dependency.
    pub const FULL: Jitter = Jitter(Spread::Full);

    /// Between half of `d` and `d`: the delay is never very short, but still random.
    pub const EQUAL: Jitter = Jitter(Spread::Equal);

    /// `d` plus or minus this share of `d`, 0 to 1.
    ///
    /// # Panics
    /// Panics if the share is not 0 to 1; in a constant that is a compile error.
    #[track_caller]
    pub const fn proportional(share: f64) -> Jitter {
        valid(Jitter::checked_proportional(share))
    }

    /// As [`proportional`](Jitter::proportional), without the panic.
    ///
    /// # Errors
    /// Rejects a share outside of 0 to 1.
    pub fn try_proportional(share: f64) -> Result<Jitter, SettingError> {
        Jitter::checked_proportional(share).map_err(|rule| rule.with(share))
    }

    const fn checked_proportional(share: f64) -> Result<Jitter, NotAllowed> {
        match Ratio::new(share) {
            Some(share) => Ok(Jitter(Spread::Proportional(share))),
            None => Err(not_allowed!("share", "use 0 to 1")),
        }
    }

    pub(super) const fn is_none(self) -> bool {
        match self.0 {
            Spread::None => true,
            Spread::Full | Spread::Equal => false,
            Spread::Proportional(share) => share.is_zero(),
        }
    }

    /// Returns the range of `delay` with jitter, both ends included.
    pub(super) const fn range(self, delay: u64) -> (u64, u64) {
        match self.0 {
            Spread::None => (delay, delay),
            Spread::Full => (0, delay),
            Spread::Equal => (delay / 2, delay),
            Spread::Proportional(share) => {
                let share = share.share_of(delay);
                (delay - share, delay.saturating_add(share))
            }
        }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Spread::None => f.write_str("none"),
            Spread::Full => f.write_str("full"),
            Spread::Equal => f.write_str("equal"),
            Spread::Proportional(share) => write!(f, "{share}"),
        }
    }
}

impl FromStr for Jitter {
    type Err = JitterError;

    fn from_str(text: &str) -> Result<Jitter, JitterError> {
        match text {
            "none" => Ok(Jitter::NONE),
            "full" => Ok(Jitter::FULL),
            "equal" => Ok(Jitter::EQUAL),
            _ => Ratio::parse_percent(text.strip_prefix('±').unwrap_or(text))
                .map(|share| Jitter(Spread::Proportional(share)))
                .ok_or_else(|| JitterError(text.to_owned())),
        }
    }
}

/// Error: the text is not a jitter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a jitter: use none, full, equal or a percentage such as 30%")]
pub struct JitterError(String);
