//! The clock that all policies use.

mod manual;
mod sleep;
mod blocking;

use self::blocking::blocked_nanos;
pub(crate) use self::blocking::{BlockingWaits, ThreadWaker, Waited};
pub use self::manual::{Drive, ManualClock};
pub use self::sleep::Sleep;

use crate::duration::nanos;
use std::sync::OnceLock;
use std::time::Duration;

/// A point in time of one [`Clock`]. Moments of different clocks cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    pub(crate) const ZERO: Moment = Moment(0);

    /// Later than every moment that a clock shows.
    pub(crate) const NEVER: Moment = Moment(u64::MAX);

    pub(crate) const fn from_nanos(nanos: u64) -> Moment {
        Moment(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this moment, or zero if `earlier` is later.
    pub const fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the moment that is `duration` later. If this moment cannot be represented, the
    /// result is a moment that never comes.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(nanos(duration)))
    }
}

/// The clock that a policy uses. A handle that is cheap to clone: the system clock needs no memory and no reference count.
#[derive(Clone, Debug, Default)]
pub struct Clock(Kind);

#[derive(Clone, Debug, Default)]
enum Kind {
    #[default]
    System,
    Coarse,
    Manual(ManualClock),
}

impl Clock {
    /// The monotonic clock of the operating system; inside a tokio runtime with paused time, that runtime's clock. Sleeping
    /// inside a tokio runtime needs its timer: build the runtime with `enable_time` or `enable_all`.
    pub const fn system() -> Clock {
        Clock(Kind::System)
    }

    /// A clock with a resolution of a few milliseconds, at a quarter of the cost.
    ///
    /// Use it for limiters that are called millions of times per second. Limiters know its resolution, so they never admit too
    /// many calls because of it. Available on Linux only; elsewhere this is [`Clock::system`].
    pub const fn coarse() -> Clock {
        Clock(Kind::Coarse)
    }

    /// Reads the time.
    #[inline]
    pub fn now(&self) -> Moment {
        self.now_in_place()
    }

    /// Like [`now`](Clock::now), inlined into the caller: for the few callers that do little else.
    #[inline(always)]
    pub(crate) fn now_in_place(&self) -> Moment {
        match &self.0 {
            Kind::System => system_now(),
            Kind::Coarse => coarse_now(),
            Kind::Manual(clock) => clock.now(),
        }
    }

    /// Converts a moment of another clock into a moment of this clock. Clocks have different origins, so their moments cannot be
    /// compared directly.
    pub(crate) fn convert(&self, at: Moment, other: &Clock) -> Moment {
        let is_same = match (&self.0, &other.0) {
            (Kind::System, Kind::System) | (Kind::Coarse, Kind::Coarse) => true,
            (Kind::Manual(this), Kind::Manual(other)) => this.is_same(other),
            (Kind::System | Kind::Coarse | Kind::Manual(_), _) => false,
        };
        if is_same || at == Moment::NEVER { at } else { self.now().plus(at.since(other.now())) }
    }

    /// Returns by how much the true time may be ahead of [`now`](Clock::now).
    pub(crate) fn resolution(&self) -> Duration {
        match self.0 {
            Kind::System | Kind::Manual(_) => Duration::ZERO,
            Kind::Coarse => coarse_resolution(),
        }
    }

    /// Returns this clock, or the exact one if this is too coarse for a bucket that fills within `nanos`: the resolution would be
    /// most of such a bucket.
    pub(crate) fn fine_enough_for(self, nanos: u64) -> Clock {
        const STEPS_MIN: u64 = 4;
        let resolution = crate::duration::nanos(self.resolution());
        if nanos < resolution * STEPS_MIN { Clock::system() } else { self }
    }

    /// Returns whether reading the time is as cheap as reading a variable.
    pub(crate) const fn is_manual(&self) -> bool {
        matches!(self.0, Kind::Manual(_))
    }

    /// Returns whether this is the clock of the operating system, or of a tokio runtime with paused time.
    const fn is_system(&self) -> bool {
        matches!(self.0, Kind::System)
    }

    /// Sleeps for `duration` on this clock.
    ///
    /// Cancel safe: dropping the future ends the sleep.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self, duration)
    }
}

impl From<&ManualClock> for Clock {
    fn from(clock: &ManualClock) -> Clock {
        Clock(Kind::Manual(clock.clone()))
    }
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Clock {
        Clock(Kind::Manual(clock))
    }
}

impl From<&Clock> for Clock {
    fn from(clock: &Clock) -> Clock {
        clock.clone()
    }
}

/// Tokio's clock is the standard one, unless a test has paused it.
#[cfg(feature = "tokio")]
type Instant = tokio::time::Instant;
#[cfg(not(feature = "tokio"))]
type Instant = std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
fn system_now() -> Moment {
    /// The value of the first reading, far from both ends. A paused runtime may be ahead of every other clock of the process, so
    /// there can be readings before the first one.
    const MIDDLE: u64 = 1 << 62;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let now = Instant::now();
    let origin = *ORIGIN.get_or_init(|| now);
    let after = now.saturating_duration_since(origin);
    if after.is_zero() {
        let before = nanos(origin.saturating_duration_since(now)).min(MIDDLE);
        return Moment(MIDDLE - before + blocked_nanos());
    }
    // A century of uptime fits many times, so no overflow check is needed.
    let nanos = after.as_secs().wrapping_mul(1_000_000_000) + u64::from(after.subsec_nanos());
    Moment(MIDDLE + nanos + blocked_nanos())
}

#[cfg(target_os = "linux")]
#[inline]
fn coarse_now() -> Moment {
    use rustix::time::{ClockId, clock_gettime};
    Moment(from_timespec(clock_gettime(ClockId::MonotonicCoarse)))
}

#[cfg(target_os = "linux")]
fn coarse_resolution() -> Duration {
    use rustix::time::{ClockId, clock_getres};
    Duration::from_nanos(from_timespec(clock_getres(ClockId::MonotonicCoarse)))
}

#[cfg(target_os = "linux")]
const fn from_timespec(time: rustix::time::Timespec) -> u64 {
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

#[cfg(not(target_os = "linux"))]
fn coarse_now() -> Moment {
    system_now()
}

#[cfg(not(target_os = "linux"))]
fn coarse_resolution() -> Duration {
    Duration::ZERO
}

#[cfg(all(test, not(loom)))]
mod tests;
