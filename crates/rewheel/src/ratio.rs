//! A ratio from 0 to 1, stored as an integer so that policies can be `Eq` and `const` and never hold NaN.

use std::fmt;

/// In millionths. Fine enough for any ratio that users write, coarse enough that products with nanoseconds fit 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ratio(u32);

impl Ratio {
    pub(crate) const WHOLE: u64 = 1_000_000;
    pub(crate) const ONE: Ratio = Ratio(1_000_000);

    /// Creates a ratio in `0.0..=1.0`; `None` for anything else, including NaN.
    pub(crate) const fn new(value: f64) -> Option<Ratio> {
        if value >= 0.0 && value <= 1.0 { Some(Ratio((value * 1e6 + 0.5) as u32)) } else { None }
    }

    pub(crate) const fn from_millionths(millionths: u32) -> Ratio {
        Ratio(if millionths > 1_000_000 { 1_000_000 } else { millionths })
    }

    /// Returns `part / whole`, at most one; zero if `whole` is zero.
    pub(crate) const fn of(part: u64, whole: u64) -> Ratio {
        if whole == 0 {
            return Ratio(0);
        }
        let millionths = (part as u128 * Ratio::WHOLE as u128) / whole as u128;
        Ratio(if millionths > 1_000_000 { 1_000_000 } else { millionths as u32 })
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn millionths(self) -> u64 {
        self.0 as u64
    }

    /// Returns this share of `whole`, rounded down.
    pub(crate) const fn share_of(self, whole: u64) -> u64 {
        (whole as u128 * self.0 as u128 / Ratio::WHOLE as u128) as u64
    }

    /// Returns whether `part` of `whole` reaches this ratio, without rounding.
    pub(crate) const fn is_reached_by(self, part: u64, whole: u64) -> bool {
        part as u128 * Ratio::WHOLE as u128 >= whole as u128 * self.0 as u128
    }

    pub(crate) fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// Parses `30%` or `12.5%`.
    pub(crate) fn parse_percent(text: &str) -> Option<Ratio> {
        let number = text.strip_suffix('%')?;
        if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return None;
        }
        Ratio::new(number.parse::<f64>().ok()? / 100.0)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 1e4)
    }
}
