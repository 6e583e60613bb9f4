//! The clock that measures leases. It also counts the time that the machine is suspended.

use rewheel::{Clock, Moment, Sleep};
use std::time::Duration;

/// A clock, and how long the machine was suspended, which the monotonic clock of Linux does not count.
#[derive(Clone, Debug)]
pub(crate) struct LeaseClock {
    clock: Clock,
    /// Returns how long the machine was suspended since it started.
    suspended: fn() -> Duration,
}

impl LeaseClock {
    pub(crate) fn system() -> LeaseClock {
        LeaseClock { clock: Clock::system(), suspended }
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now().plus((self.suspended)())
    }

    /// Sleeps. Timers do not count the time of a suspend, so the sleep ends late by that time.
    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        self.clock.sleep(duration)
    }
}

/// A clock that was set counts alone.
impl From<Clock> for LeaseClock {
    fn from(clock: Clock) -> LeaseClock {
        LeaseClock { clock, suspended: || Duration::ZERO }
    }
}

#[cfg(target_os = "linux")]
fn suspended() -> Duration {
    use rustix::time::{ClockId, Timespec, clock_gettime};
    let since_start = |Timespec { tv_sec, tv_nsec }: Timespec| {
        Duration::new(tv_sec.unsigned_abs(), u32::try_from(tv_nsec).unwrap_or(0))
    };
    let running = since_start(clock_gettime(ClockId::Monotonic));
    // In this order, the time between both readings is added to a moment that was read before: such a moment is never in the future.
    since_start(clock_gettime(ClockId::Boottime)).saturating_sub(running)
}

#[cfg(not(target_os = "linux"))]
fn suspended() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::LeaseClock;
    use crate::locks::Locks;
    use rewheel::{ManualClock, minutes};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[tokio::test]
    async fn a_lock_is_lost_when_its_lease_ends_during_a_suspend() {
        static WAS_SUSPENDED: AtomicBool = AtomicBool::new(false);
        let suspended = || match WAS_SUSPENDED.load(Ordering::SeqCst) {
            true => minutes(10),
            false => Duration::ZERO,
        };
        // The monotonic clock does not advance.
        let clock = LeaseClock { clock: ManualClock::new().into(), suspended };
        let locks = Locks { clock, ..Locks::memory() };
        let guard = locks.lock("a").lease(minutes(10)).acquire().await.unwrap();
        assert!(!guard.is_lost());
        WAS_SUSPENDED.store(true, Ordering::SeqCst);
        assert!(guard.is_lost() && guard.lease_left().is_zero());
        guard.lost().await;
    }

    #[test]
    fn the_clock_of_the_machine_does_not_go_back() {
        let clock = LeaseClock::system();
        let readings: Vec<_> = (0..1_000).map(|_| clock.now()).collect();
        assert!(readings.is_sorted());
    }
}
