//! How fast something may go, in the whole fleet.

use rewheel::{Clock, Moment, RateLimiter, duration};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// So many attempts in such a time.
///
/// ```
/// use rewheel_engine::Rate;
///
/// let rate: Rate = "500/s".parse()?;
/// assert_eq!(rate.to_string(), "500/s");
/// assert_eq!("5/30s".parse::<Rate>()?.to_string(), "5/30s");
/// assert_eq!("fast".parse::<Rate>().unwrap_err().to_string(), "`fast` is not a rate: write `500/s` or `5/30s`");
/// # Ok::<(), rewheel_engine::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    calls: u32,
    period: Duration,
}

/// A text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a rate: write `500/s` or `5/30s`")]
pub struct RateError(String);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Rate, RateError> {
        let wrong = || RateError(text.to_owned());
        let (calls, period) = text.split_once('/').ok_or_else(wrong)?;
        let calls = calls.parse().map_err(|_| wrong())?;
        let has_number = period.starts_with(|c: char| c.is_ascii_digit());
        let period = if has_number { period.to_owned() } else { format!("1{period}") };
        let period = duration::parse(&period).map_err(|_| wrong())?;
        // A day for one attempt is slow enough, and a limiter can still compute with it.
        if calls == 0 || period.is_zero() || period > Duration::from_secs(86_400) {
            return Err(wrong());
        }
        Ok(Rate { calls, period })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = duration::text(self.period).to_string();
        let unit = period.strip_prefix('1').filter(|unit| unit.chars().all(char::is_alphabetic));
        write!(f, "{}/{}", self.calls, unit.unwrap_or(&period))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Rate {
    /// So many in such a time: at least one, within a day at most.
    ///
    /// # Panics
    /// Panics if it is none, or takes no time or more than a day; in a constant that is a compile error.
    pub const fn new(calls: u32, period: Duration) -> Rate {
        assert!(calls > 0, "a rate of none");
        assert!(!period.is_zero() && period.as_secs() <= 86_400, "a rate is within a day");
        Rate { calls, period }
    }

    /// Returns how many, in which time.
    pub const fn parts(&self) -> (u32, Duration) {
        (self.calls, self.period)
    }

    /// Returns how many fit into `time`, for one of `holders`, at least one.
    pub(crate) fn within(&self, time: Duration, holders: usize) -> usize {
        let share = f64::from(self.calls) * time.as_secs_f64() / self.period.as_secs_f64();
        ((share / holders.max(1) as f64).ceil() as usize).max(1)
    }

    /// Returns how long so many take.
    pub(crate) fn time_of(&self, count: usize) -> Duration {
        self.period.mul_f64(count as f64 / f64::from(self.calls))
    }
}

/// What lets one holder's share of a kind's attempts pass.
#[derive(Debug)]
pub(crate) struct Gate {
    rate: Rate,
    clock: Clock,
    now: Mutex<Share>,
}

/// A holder's share, as the fleet is now.
#[derive(Debug)]
struct Share {
    holders: usize,
    limiter: RateLimiter,
    /// When the next attempt may pass, if one was refused since.
    next: Option<Moment>,
    /// Attempts that passed and did not begin: as many pass for nothing.
    unused: usize,
}

impl Gate {
    pub(crate) fn new(rate: Rate, clock: &Clock) -> Gate {
        Gate { rate, clock: clock.clone(), now: Mutex::new(Share::new(rate, clock, 1)) }
    }

    /// Lets an attempt pass, where the fleet has so many holders; all of them have the same share.
    pub(crate) fn pass(&self, holders: usize) -> bool {
        let mut share = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if share.holders != holders.max(1) {
            *share = Share::new(self.rate, &self.clock, holders.max(1));
        }
        if let Some(rest) = share.unused.checked_sub(1) {
            share.unused = rest;
            share.next = None;
            return true;
        }
        let refused = share.limiter.check().err();
        let next = refused.map(|refused| {
            let wait = refused.retry_in.unwrap_or(Duration::from_millis(1));
            self.clock.now().plus(wait)
        });
        share.next = next;
        next.is_none()
    }

    /// Takes back a pass: something else keeps the attempt from beginning.
    pub(crate) fn give_back(&self) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).unused += 1;
    }

    /// Returns when the next attempt may pass, if one was refused.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// Forgets that one was refused.
    pub(crate) fn forget(&self) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).next = None;
    }

    /// Returns how many to have in hand: what may pass within two seconds. The others are better off in the store.
    pub(crate) fn ahead(&self, holders: usize) -> usize {
        self.rate.within(Duration::from_secs(2), holders)
    }
}

impl Share {
    fn new(rate: Rate, clock: &Clock, holders: usize) -> Share {
        let fleet = u32::try_from(holders).unwrap_or(u32::MAX);
        // A tenth of a second's worth at once: attempts come in batches.
        let burst = rate.within(Duration::from_millis(100), holders);
        let limiter = RateLimiter::per(rate.calls, rate.period.saturating_mul(fleet))
            .burst(u32::try_from(burst).unwrap_or(u32::MAX))
            .clock(clock)
            .build();
        Share { holders, limiter, next: None, unused: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, Rate};
    use rewheel::{ManualClock, millis, seconds};

    #[test]
    fn a_rate_reads_back_as_it_was_written() {
        for text in ["1/s", "500/s", "30/m", "1/h", "5/30s", "100/1m30s", "7/d"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["", "5", "/s", "0/s", "-1/s", "5/", "5/x", "5/0s", "1/30d", "5.5/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_holder_has_its_share() {
        for (holders, passed) in [(1, 1_010), (4, 253)] {
            let clock = ManualClock::new();
            let gate = Gate::new("100/s".parse().unwrap(), &clock.clone().into());
            let mut count = 0;
            for _ in 0..10_000 {
                count += u32::from(gate.pass(holders));
                clock.advance(millis(1));
            }
            assert!((passed - 12..=passed).contains(&count), "{count} of {passed}");
            assert_eq!(gate.ahead(holders), 200 / holders);
        }
    }

    #[test]
    fn a_pass_that_was_not_used_is_not_lost() {
        let clock = ManualClock::new();
        let gate = Gate::new("1/s".parse().unwrap(), &clock.into());
        assert!(gate.pass(1));
        gate.give_back();
        assert!(gate.pass(1) && !gate.pass(1));
    }

    #[test]
    fn says_when_the_next_may_pass() {
        let clock = ManualClock::new();
        let gate = Gate::new("1/s".parse().unwrap(), &clock.clone().into());
        assert!(gate.pass(1) && gate.next().is_none());
        assert!(!gate.pass(1) && gate.next().is_some());
        clock.advance(seconds(1));
        assert!(gate.pass(1) && gate.next().is_none());
    }
}
