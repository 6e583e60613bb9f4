//! Steps of a pipeline that limit what reaches the dependency: adaptive limit, client throttle, chaos.

use super::{Pipeline, Step};
use crate::adaptive::AdaptiveLimit;
#[cfg(feature = "chaos")]
use crate::chaos::Chaos;
use crate::throttle::ClientThrottle;
use std::fmt;
use std::time::Duration;

/// A step whose state is in its slot.
#[derive(Clone, Debug)]
pub(super) enum Guard {
    Adaptive(AdaptiveLimit),
    Throttle(ClientThrottle),
    #[cfg(feature = "chaos")]
    Chaos(Chaos),
}

impl<K> Pipeline<K> {
    /// Waits for a slot of the adaptive limit, if its [`queue_max`](crate::AdaptiveLimitBuilder::queue_max) and
    /// [`wait_max`](crate::AdaptiveLimitBuilder::wait_max) allow, and measures the call. Place it inside the retry and inside of
    /// rate limiters, so that it does not measure their waits.
    #[must_use]
    pub fn adaptive_limit(self, limit: &AdaptiveLimit) -> Pipeline<K> {
        self.step(Step::Guard(Guard::Adaptive(limit.clone())))
    }

    /// Rejects calls locally while the dependency accepts too few of them. A rejection is not retried. Place it inside the retry,
    /// so that each attempt counts.
    #[must_use]
    pub fn client_throttle(self, throttle: &ClientThrottle) -> Pipeline<K> {
        self.step(Step::Guard(Guard::Throttle(throttle.clone())))
    }

    /// Makes a share of the calls fail, wait or hang while the policy is switched on. For tests; place it innermost.
    #[cfg(feature = "chaos")]
    #[must_use]
    pub fn chaos(self, chaos: &Chaos) -> Pipeline<K> {
        self.step(Step::Guard(Guard::Chaos(chaos.clone())))
    }
}

impl Guard {
    /// Returns by how much the step can make a call longer, if that is limited.
    pub(super) fn time_max(&self) -> Option<Duration> {
        match self {
            Guard::Adaptive(limit) => limit.slots().wait_max(),
            Guard::Throttle(_) => Some(Duration::ZERO),
            #[cfg(feature = "chaos")]
            Guard::Chaos(chaos) => chaos.time_max(),
        }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, name, text) = match self {
            Guard::Adaptive(limit) => ("adaptive limit", limit.name(), limit.describe()),
            Guard::Throttle(throttle) => ("client throttle", throttle.name(), throttle.describe()),
            #[cfg(feature = "chaos")]
            Guard::Chaos(chaos) => ("chaos", chaos.name(), chaos.describe()),
        };
        f.write_str(what)?;
        if !name.is_empty() {
            write!(f, " {name:?}")?;
        }
        write!(f, ": {text}")
    }
}
