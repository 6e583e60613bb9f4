//! Chaos: makes a share of the calls of a test fail, wait, or hang.

mod switch;

pub use self::switch::ChaosSwitch;

use crate::clock::{Clock, Moment};
use crate::observer::{Event, Observer};
use crate::random::Random;
use crate::ratio::Ratio;
use crate::setting::{NotAllowed, not_allowed, valid};
use crate::sync::{AtomicU64, Ordering};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A chaos policy for tests. Clones share its state. Needs the feature `chaos`.
///
/// It does nothing until a test [switches it on](Chaos::switch_on). It is off again when the switch is dropped, and in any case after
/// the time that the test named, at most an hour. While it is on, it logs a warning every ten seconds.
///
/// In a pipeline, the step stands for the dependency: put it innermost. A call that fails or hangs there was made, as far as retries,
/// breakers and timeouts further out can see.
///
/// ```
/// use rewheel::{Chaos, GiveUpReason, Pipeline, Retry, millis, minutes};
/// # use std::io;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # async fn fetch() -> io::Result<u32> { Ok(7) }
/// let chaos = Chaos::seeded(7).fail(1.0).named("fetch").build();
/// let fetch_page = Pipeline::new().retry(Retry::fixed(millis(1)).attempts_max(3)).chaos(&chaos);
///
/// assert_eq!(fetch_page.run(|_| fetch()).await.unwrap(), 7); // off
/// let switch = chaos.switch_on(minutes(5));
/// let error = fetch_page.run(|_| fetch()).await.unwrap_err();
/// assert_eq!((error.attempts(), error.reason()), (3, GiveUpReason::AttemptsExhausted));
/// drop(switch);
/// assert_eq!(fetch_page.run(|_| fetch()).await.unwrap(), 7);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Chaos {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// When it goes off; zero while it is off.
    on_until: AtomicU64,
    /// The number of the switch that is in force.
    switches: AtomicU64,
    changed: AtomicU64,
    warned_at: AtomicU64,
    config: ChaosBuilder,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Fail,
    /// It is made then.
    Until(Moment),
}

impl Chaos {
    /// The longest time for which it can be switched on.
    pub const ON_MAX: Duration = Duration::from_secs(3_600);

    /// Creates a policy without any faults, which draws the same calls for the same seed.
    pub fn seeded(seed: u64) -> ChaosBuilder {
        ChaosBuilder {
            fail: Ratio::from_millionths(0),
            delay: Ratio::from_millionths(0),
            delay_by: Duration::ZERO,
            hang: Ratio::from_millionths(0),
            random: Random::seeded(seed),
            name: Cow::Borrowed(""),
            clock: Clock::system(),
            observer: None,
        }
    }

    /// Returns whether it is on.
    pub fn is_on(&self) -> bool {
        self.on_until().is_some()
    }

    /// Returns how many calls it has changed.
    pub fn changed(&self) -> u64 {
        self.shared.changed.load(Ordering::Relaxed)
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    /// Draws what happens to a call.
    pub(crate) fn draw(&self) -> Option<Fault> {
        // Most of the time it is off: then it costs one read.
        let until = self.on_until()?;
        let Shared { config, .. } = &*self.shared;
        let now = config.clock.now();
        let drawn = config.random.between(0, Ratio::WHOLE - 1);
        let (fail, delay) = (config.fail.millionths(), config.delay.millionths());
        let (fault, name) = if drawn < fail {
            (Fault::Fail, "fail")
        } else if drawn < fail + delay {
            (Fault::Until(now.plus(config.delay_by).min(until)), "delay")
        } else if drawn < fail + delay + config.hang.millionths() {
            // It hangs as long as the test lasts, and not for ever.
            (Fault::Until(until), "hang")
        } else {
            return None;
        };
        self.shared.changed.fetch_add(1, Ordering::Relaxed);
        self.warn_now_and_then(now);
        if let Some(observer) = &config.observer {
            observer.observe(&Event::ChaosInjected { name: &config.name, fault: name });
        }
        Some(fault)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.config.clock
    }

    pub(crate) fn describe(&self) -> String {
        let ChaosBuilder { fail, delay, delay_by, hang, .. } = &self.shared.config;
        let by = crate::duration::text(*delay_by);
        let state = if self.is_on() { "on" } else { "off" };
        format!("{state}; {fail} fail, {delay} wait {by}, {hang} hang")
    }

    /// Returns by how much it makes a call longer; `None` if without end.
    pub(crate) fn time_max(&self) -> Option<Duration> {
        let ChaosBuilder { delay, delay_by, hang, .. } = &self.shared.config;
        if !hang.is_zero() {
            return None;
        }
        Some(if delay.is_zero() { Duration::ZERO } else { *delay_by })
    }
}

/// Builder of a [`Chaos`].
#[derive(Clone, Debug)]
pub struct ChaosBuilder {
    fail: Ratio,
    delay: Ratio,
    delay_by: Duration,
    hang: Ratio,
    random: Random,
    name: Cow<'static, str>,
    clock: Clock,
    observer: Option<Arc<dyn Observer>>,
}

const TOO_MANY: NotAllowed =
    not_allowed!("chaos", "use shares from 0 to 1, which add up to at most 1");

fn checked(share: f64) -> Result<Ratio, NotAllowed> {
    Ratio::new(share).ok_or(TOO_MANY)
}

impl ChaosBuilder {
    #[track_caller]
    fn with_possible_sum(self) -> ChaosBuilder {
        let sum = [self.fail, self.delay, self.hang].map(Ratio::millionths).iter().sum::<u64>();
        valid(if sum <= Ratio::WHOLE { Ok(()) } else { Err(TOO_MANY) });
        self
    }

    /// Makes this share of the calls fail, with the reason [`Chaos`](crate::GiveUpReason::Chaos). The operation is not called.
    ///
    /// # Panics
    /// Panics if the share is not 0 to 1, or if all shares together are above 1.
    #[must_use]
    #[track_caller]
    pub fn fail(mut self, share: f64) -> ChaosBuilder {
        self.fail = valid(checked(share));
        self.with_possible_sum()
    }

    /// Makes this share of the calls wait before the operation is called.
    ///
    /// # Panics
    /// The same as for [`fail`](ChaosBuilder::fail).
    #[must_use]
    #[track_caller]
    pub fn delay(mut self, share: f64, by: Duration) -> ChaosBuilder {
        self.delay = valid(checked(share));
        self.delay_by = by;
        self.with_possible_sum()
    }

    /// Makes this share of the calls hang until a timeout ends them, or the policy is off.
    ///
    /// # Panics
    /// The same as for [`fail`](ChaosBuilder::fail).
    #[must_use]
    #[track_caller]
    pub fn hang(mut self, share: f64) -> ChaosBuilder {
        self.hang = valid(checked(share));
        self.with_possible_sum()
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> ChaosBuilder {
        self.name = name.into();
        self
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> ChaosBuilder {
        self.clock = clock.into();
        self
    }

    /// Reports each changed call to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> ChaosBuilder {
        self.observer = Some(observer);
        self
    }

    /// Creates the policy. It is off.
    pub fn build(self) -> Chaos {
        let zero = || AtomicU64::new(0);
        let [on_until, switches, changed, warned_at] = [zero(), zero(), zero(), zero()];
        Chaos { shared: Arc::new(Shared { on_until, switches, changed, warned_at, config: self }) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
