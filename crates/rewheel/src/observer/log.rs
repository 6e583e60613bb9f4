//! Logs what policies do through `tracing`.

use super::{Event, Observer};
use crate::breaker::BreakerState;
use crate::last_good::Freshness;
use std::time::Duration;
use tracing::{debug, info, warn};

/// Logs attempts, refusals and changes of breakers as events of `tracing`, with the target
/// [`TARGET`](LogObserver::TARGET). Needs the feature `tracing`.
///
/// | level | message |
/// | --- | --- |
/// | debug | `attempt failed`, `retrying`, `call succeeded` (after a retry), `call refused`, `hedge started`, `hedge won`, `failed over`, `adaptive limit changed`, `chaos injected` |
/// | info | `circuit breaker closed`, `circuit breaker half open`, `fallback used`, `stale value served` |
/// | warn | `call gave up`, `circuit breaker opened`, `fallback failed`, `target ejected` |
///
/// ```
/// use rewheel::{CircuitBreaker, LogObserver, Retry, Retryable, millis};
/// use std::sync::Arc;
/// # use std::io;
/// # fn fetch() -> io::Result<()> { Ok(()) }
///
/// let log = Arc::new(LogObserver::new());
/// let breaker = CircuitBreaker::consecutive(5).named("bank").observer(log.clone()).build();
/// (|| fetch()).retry(Retry::exponential(millis(100))).observer("fetch", log).call()?;
/// # assert!(breaker.acquire().is_ok());
/// # Ok::<_, rewheel::Error<io::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LogObserver {
    _private: (),
}

impl LogObserver {
    /// The target of its events, for filters such as `rewheel::log=debug`.
    pub const TARGET: &'static str = "rewheel::log";

    /// Makes an observer that logs.
    pub const fn new() -> LogObserver {
        LogObserver { _private: () }
    }
}

impl Observer for LogObserver {
    fn observe(&self, event: &Event<'_>) {
        const TARGET: &str = LogObserver::TARGET;
        match *event {
            Event::AttemptFailed { name, attempt, class } => {
                let code = class.code.as_ref().map(tracing::field::display);
                let category = class.category.as_str();
                debug!(target: TARGET, name, attempt, category, code, "attempt failed");
            }
            Event::Retrying { name, attempt, delay } => {
                debug!(target: TARGET, name, attempt, delay_ms = millis(delay), "retrying");
            }
            Event::RetrySuppressed { name } => {
                debug!(target: TARGET, name, "retry suppressed: an outer retry repeats the call");
            }
            // One for each call that needs no retry would drown the others.
            Event::Succeeded { attempts: 0 | 1, .. }
            | Event::Admitted { .. }
            | Event::BreakerBuilt { .. } => {}
            Event::Succeeded { name, attempts, elapsed } => {
                let elapsed_ms = millis(elapsed);
                debug!(target: TARGET, name, attempts, elapsed_ms, "call succeeded");
            }
            Event::GaveUp { name, why, attempts, elapsed } => {
                let (reason, elapsed_ms) = (why.as_str(), millis(elapsed));
                warn!(target: TARGET, name, reason, attempts, elapsed_ms, "call gave up");
            }
            Event::LimitChanged { name, from, to, .. } if from != to => {
                debug!(target: TARGET, name, from, to, "adaptive limit changed");
            }
            Event::LimitChanged { .. } => {}
            Event::ChaosInjected { name, fault } => {
                debug!(target: TARGET, name, fault, "chaos injected");
            }
            Event::Refused { name, why, retry_in } => {
                let (reason, retry_in_ms) = (why.as_str(), retry_in.map(millis));
                debug!(target: TARGET, name, reason, retry_in_ms, "call refused");
            }
            Event::HedgeStarted { name, extra, after } => {
                debug!(target: TARGET, name, extra, after_ms = millis(after), "hedge started");
            }
            Event::HedgeWon { name, extra } => debug!(target: TARGET, name, extra, "hedge won"),
            Event::FallbackUsed { name, why } => {
                info!(target: TARGET, name, reason = why.as_str(), "fallback used");
            }
            Event::FallbackFailed { name } => warn!(target: TARGET, name, "fallback failed"),
            Event::LastGoodServed { name, freshness: Freshness::Stale, age } => {
                info!(target: TARGET, name, age_ms = millis(age), "stale value served");
            }
            Event::LastGoodServed { .. } => {}
            Event::FailedOver { name, target, category } => {
                debug!(target: TARGET, name, failed = target, category = category.as_str(), "failed over");
            }
            Event::TargetEjected { name, target, ejected_for } => {
                let ejected_for_ms = millis(ejected_for);
                warn!(target: TARGET, name, ejected = target, ejected_for_ms, "target ejected");
            }
            Event::BreakerChanged { name, from, to, .. } => {
                let from = from.as_str();
                match to {
                    BreakerState::Open => {
                        warn!(target: TARGET, name, from, "circuit breaker opened");
                    }
                    BreakerState::HalfOpen => {
                        info!(target: TARGET, name, from, "circuit breaker half open");
                    }
                    BreakerState::Closed => {
                        info!(target: TARGET, name, from, "circuit breaker closed");
                    }
                }
            }
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests;
