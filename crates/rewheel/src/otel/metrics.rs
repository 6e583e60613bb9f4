//! OpenTelemetry metrics of policies.

use super::names::{Latest, Names};
use crate::breaker::BreakerState;
use crate::error::GiveUpReason;
use crate::observer::{Event, Observer};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter as OtelMeter};
use std::sync::Arc;
use std::time::Duration;

/// Buckets in seconds, from a millisecond to five minutes.
const SECONDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// Buckets for the attempts of one call.
const ATTEMPTS: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0];

/// The description of an instrument.
///
/// ```
/// let names: Vec<&str> = rewheel::otel::Meter::ALL.iter().map(|meter| meter.name).collect();
/// assert!(names.contains(&"retry.attempts") && names.contains(&"queue.wait_time"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meter {
    /// Name of the instrument.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub form: &'static str,
    /// Its unit, in UCUM notation.
    pub unit: &'static str,
    /// Its labels, besides the `name` of the call or the policy.
    pub labels: &'static [&'static str],
    /// Its help text.
    pub help: &'static str,
}

impl Meter {
    /// Every instrument.
    pub const ALL: &'static [Meter] = &[
        RETRY_ATTEMPTS,
        RETRY_SUCCESSES,
        RETRY_FAILURES,
        RETRY_BACKOFF,
        RETRY_FINAL,
        BREAKER_STATE,
        BREAKER_TRANSITIONS,
        BREAKER_REJECTIONS,
        LIMIT_ALLOWED,
        LIMIT_REJECTED,
        BULKHEAD_REJECTED,
        REQUEST_DURATION,
        QUEUE_WAIT,
        HEDGE_STARTED,
        HEDGE_WON,
        FALLBACK_USED,
        FALLBACK_FAILED,
        LAST_GOOD_SERVED,
        FAILOVER_SWITCHES,
        FAILOVER_EJECTIONS,
        ADAPTIVE_LIMIT,
        ADAPTIVE_REJECTED,
        THROTTLE_REJECTED,
        CHAOS_INJECTED,
    ];

    /// Returns the name that Prometheus exporters give it: with underscores, the unit and, for a counter, `_total`. A histogram
    /// has this name with `_bucket`, `_sum` and `_count`.
    ///
    /// ```
    /// let names: Vec<String> = rewheel::otel::Meter::ALL.iter().map(|meter| meter.prometheus()).collect();
    /// assert!(names.iter().any(|name| name == "retry_attempts_total"));
    /// assert!(names.iter().any(|name| name == "retry_backoff_duration_seconds"));
    /// ```
    pub fn prometheus(&self) -> String {
        let unit = if self.unit == "s" { "_seconds" } else { "" };
        let total = if self.form == "counter" { "_total" } else { "" };
        format!("{}{unit}{total}", self.name.replace('.', "_"))
    }

    const fn new(
        (name, form, unit): (&'static str, &'static str, &'static str),
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Meter {
        Meter { name, form, unit, labels, help }
    }
}

const RETRY_ATTEMPTS: Meter =
    Meter::new(("retry.attempts", "counter", "{attempt}"), &[], "Attempts of completed calls.");
const RETRY_SUCCESSES: Meter =
    Meter::new(("retry.successes", "counter", "{call}"), &[], "Calls that succeeded.");
const RETRY_FAILURES: Meter = Meter::new(
    ("retry.failures", "counter", "{call}"),
    &["reason"],
    "Failed calls, by the reason for giving up.",
);
const RETRY_BACKOFF: Meter =
    Meter::new(("retry.backoff_duration", "histogram", "s"), &[], "Delays before retries.");
const RETRY_FINAL: Meter = Meter::new(
    ("retry.final_attempt", "histogram", "{attempt}"),
    &[],
    "Attempts per completed call, successful or failed.",
);
const BREAKER_STATE: Meter = Meter::new(
    ("circuit_breaker.state", "gauge", "{state}"),
    &[],
    "State of the breaker: 0 closed, 1 open, 2 half open. Not for the breakers of a keyed set.",
);
const BREAKER_TRANSITIONS: Meter = Meter::new(
    ("circuit_breaker.transitions", "counter", "{transition}"),
    &["from", "to"],
    "State changes of the breaker.",
);
const BREAKER_REJECTIONS: Meter = Meter::new(
    ("circuit_breaker.rejections", "counter", "{call}"),
    &[],
    "Calls rejected by an open breaker.",
);
const LIMIT_ALLOWED: Meter = Meter::new(
    ("rate_limit.allowed", "counter", "{call}"),
    &[],
    "Calls allowed by the rate limiter.",
);
const LIMIT_REJECTED: Meter = Meter::new(
    ("rate_limit.rejected", "counter", "{call}"),
    &[],
    "Calls rejected by the rate limiter.",
);
const BULKHEAD_REJECTED: Meter = Meter::new(
    ("bulkhead.rejected", "counter", "{call}"),
    &[],
    "Calls rejected by a full bulkhead.",
);
const REQUEST_DURATION: Meter = Meter::new(
    ("request.duration", "histogram", "s"),
    &["success"],
    "Duration of calls, including all attempts and delays.",
);
const QUEUE_WAIT: Meter = Meter::new(
    ("queue.wait_time", "histogram", "s"),
    &["policy"],
    "Time that calls waited for a rate limiter, a bulkhead or an adaptive limit.",
);
const ADAPTIVE_LIMIT: Meter = Meter::new(
    ("adaptive_limit.limit", "gauge", "{call}"),
    &[],
    "Concurrent calls that the adaptive limit allows now.",
);
const ADAPTIVE_REJECTED: Meter = Meter::new(
    ("adaptive_limit.rejected", "counter", "{call}"),
    &[],
    "Calls rejected by the adaptive limit.",
);
const THROTTLE_REJECTED: Meter = Meter::new(
    ("client_throttle.rejected", "counter", "{call}"),
    &[],
    "Calls rejected by the client throttle.",
);
const CHAOS_INJECTED: Meter = Meter::new(
    ("chaos.injected", "counter", "{call}"),
    &["fault"],
    "Calls changed by a chaos policy.",
);

const HEDGE_STARTED: Meter =
    Meter::new(("hedge.started", "counter", "{attempt}"), &[], "Extra attempts of hedges.");
const HEDGE_WON: Meter = Meter::new(
    ("hedge.won", "counter", "{attempt}"),
    &[],
    "Extra attempts of hedges that had a result before the first attempt.",
);
const FALLBACK_USED: Meter = Meter::new(
    ("fallback.used", "counter", "{call}"),
    &["reason"],
    "Failed calls with a fallback, by the reason for giving up.",
);
const FALLBACK_FAILED: Meter =
    Meter::new(("fallback.failed", "counter", "{call}"), &[], "Fallbacks that failed, too.");
const LAST_GOOD_SERVED: Meter = Meter::new(
    ("last_good.served", "counter", "{value}"),
    &["freshness"],
    "Values returned by the cache: fetched, shared, cached or stale.",
);
const FAILOVER_SWITCHES: Meter = Meter::new(
    ("failover.switches", "counter", "{call}"),
    &["target"],
    "Calls that went to another target, by the number of the target that failed.",
);
const FAILOVER_EJECTIONS: Meter = Meter::new(
    ("failover.ejections", "counter", "{ejection}"),
    &["target"],
    "Targets that were left out because they failed more than the others.",
);

/// Counts what policies do. Create one for a program, and pass it to every call, pipeline, breaker, limiter and bulkhead that you
/// want to count. The label `name` tells them apart.
///
/// ```
/// use rewheel::otel::Metrics;
/// use rewheel::{CircuitBreaker, Pipeline, Retry, millis};
///
/// let metrics = Metrics::new(&opentelemetry::global::meter("payments"));
/// let breaker = CircuitBreaker::consecutive(5).named("bank").observer(metrics.clone()).build();
/// let charge = Pipeline::new()
///     .named("charge")
///     .observer(metrics)
///     .retry(Retry::exponential(millis(100)))
///     .circuit_breaker(&breaker);
/// # let _ = charge;
/// ```
#[derive(Debug)]
pub struct Metrics {
    attempts: Counter<u64>,
    successes: Counter<u64>,
    failures: Counter<u64>,
    backoff: Histogram<f64>,
    final_attempt: Histogram<u64>,
    state: Gauge<u64>,
    transitions: Counter<u64>,
    rejections: Counter<u64>,
    allowed: Counter<u64>,
    rejected: Counter<u64>,
    bulkhead_rejected: Counter<u64>,
    limit: Gauge<u64>,
    limit_rejected: Counter<u64>,
    throttled: Counter<u64>,
    chaos: Counter<u64>,
    names: Names,
    latest_states: Latest,
    latest_limits: Latest,
    duration: Histogram<f64>,
    wait: Histogram<f64>,
    hedge_started: Counter<u64>,
    hedge_won: Counter<u64>,
    fallback_used: Counter<u64>,
    fallback_failed: Counter<u64>,
    last_good_served: Counter<u64>,
    failover_switches: Counter<u64>,
    failover_ejections: Counter<u64>,
}

impl Metrics {
    /// Creates the instruments, with the names of [`Meter::ALL`].
    pub fn new(meter: &OtelMeter) -> Arc<Metrics> {
        Metrics::with_prefix(meter, "")
    }

    /// As [`new`](Metrics::new), with this text before each name, such as `shop.`: for a program that has metrics of its own with
    /// names such as `request.duration`.
    pub fn with_prefix(meter: &OtelMeter, prefix: &str) -> Arc<Metrics> {
        let named = |told: Meter| format!("{prefix}{}", told.name);
        let count = |told: Meter| {
            let builder = meter.u64_counter(named(told)).with_unit(told.unit);
            builder.with_description(told.help).build()
        };
        let seconds = |told: Meter| {
            let builder = meter.f64_histogram(named(told)).with_boundaries(SECONDS.to_vec());
            builder.with_unit(told.unit).with_description(told.help).build()
        };
        let gauge = |told: Meter| {
            let builder = meter.u64_gauge(named(told)).with_unit(told.unit);
            builder.with_description(told.help).build()
        };
        Arc::new(Metrics {
            attempts: count(RETRY_ATTEMPTS),
            successes: count(RETRY_SUCCESSES),
            failures: count(RETRY_FAILURES),
            backoff: seconds(RETRY_BACKOFF),
            final_attempt: meter
                .u64_histogram(named(RETRY_FINAL))
                .with_boundaries(ATTEMPTS.to_vec())
                .with_unit(RETRY_FINAL.unit)
                .with_description(RETRY_FINAL.help)
                .build(),
            state: gauge(BREAKER_STATE),
            transitions: count(BREAKER_TRANSITIONS),
            rejections: count(BREAKER_REJECTIONS),
            allowed: count(LIMIT_ALLOWED),
            rejected: count(LIMIT_REJECTED),
            bulkhead_rejected: count(BULKHEAD_REJECTED),
            limit: gauge(ADAPTIVE_LIMIT),
            limit_rejected: count(ADAPTIVE_REJECTED),
            throttled: count(THROTTLE_REJECTED),
            chaos: count(CHAOS_INJECTED),
            names: Names::default(),
            latest_states: Latest::default(),
            latest_limits: Latest::default(),
            duration: seconds(REQUEST_DURATION),
            wait: seconds(QUEUE_WAIT),
            hedge_started: count(HEDGE_STARTED),
            hedge_won: count(HEDGE_WON),
            fallback_used: count(FALLBACK_USED),
            fallback_failed: count(FALLBACK_FAILED),
            last_good_served: count(LAST_GOOD_SERVED),
            failover_switches: count(FAILOVER_SWITCHES),
            failover_ejections: count(FAILOVER_EJECTIONS),
        })
    }

    fn ended(&self, name: &str, attempts: u32, elapsed: Duration, why: Option<GiveUpReason>) {
        let of_it = self.names.label(name);
        self.attempts.add(u64::from(attempts), std::slice::from_ref(&of_it));
        self.final_attempt.record(u64::from(attempts), std::slice::from_ref(&of_it));
        match why {
            None => self.successes.add(1, std::slice::from_ref(&of_it)),
            Some(why) => {
                let reason = KeyValue::new("reason", why.as_str());
                self.failures.add(1, &[of_it.clone(), reason]);
            }
        }
        let success = KeyValue::new("success", why.is_none());
        self.duration.record(elapsed.as_secs_f64(), &[of_it, success]);
    }

    fn refused(&self, name: &str, why: GiveUpReason) {
        match why {
            GiveUpReason::CircuitOpen => self.rejections.add(1, &[self.names.label(name)]),
            GiveUpReason::RateLimited | GiveUpReason::AboveBurst => {
                self.rejected.add(1, &[self.names.label(name)])
            }
            GiveUpReason::BulkheadFull => self.bulkhead_rejected.add(1, &[self.names.label(name)]),
            GiveUpReason::ConcurrencyLimited => {
                self.limit_rejected.add(1, &[self.names.label(name)]);
            }
            GiveUpReason::ClientThrottled => self.throttled.add(1, &[self.names.label(name)]),
            // These are counted as the reason of a failed call.
            GiveUpReason::Chaos
            | GiveUpReason::BudgetExhausted
            | GiveUpReason::RetryAfterTooLong
            | GiveUpReason::TargetsExhausted
            | GiveUpReason::Stopped
            | GiveUpReason::AttemptsExhausted
            | GiveUpReason::Deadline
            | GiveUpReason::Timeout
            | GiveUpReason::Cancelled
            | GiveUpReason::Nested => {}
        }
    }

    fn is_in(&self, name: &str, state: BreakerState, serial: u64) {
        let number = match state {
            BreakerState::Closed => 0,
            BreakerState::Open => 1,
            BreakerState::HalfOpen => 2,
        };
        let record = || self.state.record(number, &[self.names.label(name)]);
        self.latest_states.unless_old(name, serial, record);
    }

    fn admitted(&self, name: &str, by: GiveUpReason, waited: Duration) {
        let policy = if by == GiveUpReason::BulkheadFull {
            "bulkhead"
        } else if by == GiveUpReason::ConcurrencyLimited {
            "adaptive_limit"
        } else {
            "rate_limiter"
        };
        if by == GiveUpReason::RateLimited {
            self.allowed.add(1, &[self.names.label(name)]);
        }
        self.wait.record(
            waited.as_secs_f64(),
            &[self.names.label(name), KeyValue::new("policy", policy)],
        );
    }
}

impl Observer for Metrics {
    fn observe(&self, event: &Event<'_>) {
        match *event {
            Event::AttemptFailed { .. } | Event::RetrySuppressed { .. } => {}
            Event::Retrying { name, delay, .. } => {
                self.backoff.record(delay.as_secs_f64(), &[self.names.label(name)]);
            }
            Event::Succeeded { name, attempts, elapsed } => {
                self.ended(name, attempts, elapsed, None);
            }
            Event::GaveUp { name, why, attempts, elapsed } => {
                self.ended(name, attempts, elapsed, Some(why));
            }
            Event::Refused { name, why, .. } => self.refused(name, why),
            Event::Admitted { name, by, waited } => self.admitted(name, by, waited),
            Event::BreakerBuilt { name, state, serial } => self.is_in(name, state, serial),
            Event::LimitChanged { name, to, serial, .. } => {
                let record = || self.limit.record(to as u64, &[self.names.label(name)]);
                self.latest_limits.unless_old(name, serial, record);
            }
            Event::ChaosInjected { name, fault } => {
                self.chaos.add(1, &[self.names.label(name), KeyValue::new("fault", fault)]);
            }
            Event::BreakerChanged { name, from, to, keyed, serial } => {
                // The breakers of a keyed set have one name: the state of one would hide those of the others.
                if !keyed {
                    self.is_in(name, to, serial);
                }
                let between =
                    [KeyValue::new("from", from.as_str()), KeyValue::new("to", to.as_str())];
                let [from, to] = between;
                self.transitions.add(1, &[self.names.label(name), from, to]);
            }
            Event::HedgeStarted { name, .. } => {
                self.hedge_started.add(1, &[self.names.label(name)])
            }
            Event::HedgeWon { name, .. } => self.hedge_won.add(1, &[self.names.label(name)]),
            Event::FallbackUsed { name, why } => {
                let reason = KeyValue::new("reason", why.as_str());
                self.fallback_used.add(1, &[self.names.label(name), reason]);
            }
            Event::FallbackFailed { name } => {
                self.fallback_failed.add(1, &[self.names.label(name)])
            }
            Event::LastGoodServed { name, freshness, .. } => {
                let freshness = KeyValue::new("freshness", freshness.as_str());
                self.last_good_served.add(1, &[self.names.label(name), freshness]);
            }
            Event::FailedOver { name, target, .. } => {
                self.failover_switches.add(1, &[self.names.label(name), target_label(target)]);
            }
            Event::TargetEjected { name, target, .. } => {
                self.failover_ejections.add(1, &[self.names.label(name), target_label(target)]);
            }
        }
    }
}

/// A failover has at most 64 targets.
fn target_label(target: usize) -> KeyValue {
    KeyValue::new("target", i64::try_from(target).unwrap_or(i64::MAX))
}
