//! Describes the effect of a pipeline: calls, times and risks.

use super::guard::Guard;
use super::keyed::{Keyed, KeyedKind};
use super::{Pipeline, Plan, Step};
use crate::breaker::Needs;
use crate::duration;
use std::fmt;
use std::time::Duration;

/// The description of a pipeline. Prints as a short report.
///
/// ```
/// use rewheel::{CircuitBreaker, Pipeline, Retry, seconds};
///
/// let breaker = CircuitBreaker::consecutive(10).named("pages").build();
/// let wrong = Pipeline::new()
///     .circuit_breaker(&breaker)
///     .retry(Retry::EXTERNAL_API)
///     .attempt_timeout(seconds(2));
///
/// let explanation = wrong.explain();
/// assert_eq!(explanation.amplification_max, 5);
/// assert_eq!(explanation.time_max, Some(seconds(30)));
/// assert!(explanation.to_string().contains("warning: circuit breaker outside of retry"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The steps, outermost first.
    pub steps: Vec<String>,
    /// The maximum time of a call, if it is limited.
    pub time_max: Option<Duration>,
    /// The maximum number of calls to the dependency that one call can cause through retries.
    pub amplification_max: u64,
    /// The retry budget that limits the retries of all calls together, if there is one.
    pub retry_budget: Option<String>,
    /// Problems of this pipeline.
    pub warnings: Vec<Warning>,
}

/// A problem of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Warning {
    /// The breaker sees one result per series of attempts, and cannot stop the series.
    BreakerOutsideRetry,
    /// A call keeps its slot while it waits between attempts.
    BulkheadOutsideRetry,
    /// The limiter does not count retries, so the calls can be several times above the limit.
    LimiterOutsideRetry,
    /// The attempts can multiply.
    RetryInsideRetry,
    /// The timeout limits one attempt, not the whole call.
    TimeoutInsideRetry,
    /// The timeout limits the whole call, all attempts together.
    AttemptTimeoutOutsideRetry,
    /// The first attempt may use up the time of all others.
    AttemptTimeoutNotBelowTimeout,
    /// A call that hangs never fails, so no retry repeats it and no breaker counts it.
    NothingEndsAnAttempt,
    /// An adaptive backoff needs the recent failure ratio; without statistics it always uses the
    /// full factor.
    AdaptiveWithoutStatistics,
    /// Clients that fail together retry together, and overload the dependency each time.
    FixedDelayWithoutJitter,
    /// More than [`Pipeline::ATTEMPTS_WARN`](crate::Pipeline::ATTEMPTS_WARN) attempts: they mostly
    /// add load.
    ManyAttempts,
    /// The total time of a call with its retries has no limit.
    NoTotalLimit,
    /// The attempts of one call that always fails, such as a malformed request, open the breaker for
    /// all other calls.
    OneCallOpensBreaker,
    /// A probe that hangs loses its slot before it ends, so its failure does not open the breaker
    /// again.
    ProbeTimeoutNotAboveAttemptTimeout,
    /// The throttle counts one request for a whole series of attempts, and cannot stop the series.
    ThrottleOutsideRetry,
    /// The limit measures a series of attempts with its delays, not the dependency.
    AdaptiveLimitOutsideRetry,
    /// A test may make the calls of this pipeline fail.
    HasChaos,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Warning::BreakerOutsideRetry => {
                "circuit breaker outside of retry: it counts one failure for a whole series of \
                 attempts and cannot stop the series; move it inside the retry"
            }
            Warning::BulkheadOutsideRetry => {
                "bulkhead outside of retry: a call keeps its slot while it waits between attempts; move it inside the retry"
            }
            Warning::LimiterOutsideRetry => {
                "rate limiter outside of retry: retries do not count against the limit; move it inside the retry"
            }
            Warning::RetryInsideRetry => {
                "retry inside of retry: attempts can multiply; keep only the retry nearest to the call"
            }
            Warning::TimeoutInsideRetry => {
                "timeout inside of retry: it limits each attempt; use attempt_timeout if you want that, or move it outside the retry"
            }
            Warning::AttemptTimeoutOutsideRetry => {
                "attempt timeout outside of retry: it limits all attempts together; move it inside the retry, or use `Pipeline::timeout` to limit all attempts"
            }
            Warning::AttemptTimeoutNotBelowTimeout => {
                "the attempt timeout is not shorter than the total timeout, so no time is left for a retry; make it shorter"
            }
            Warning::NothingEndsAnAttempt => {
                "no attempt timeout: a call that hangs never fails, so no retry repeats it and no breaker counts it; add attempt_timeout"
            }
            Warning::AdaptiveWithoutStatistics => {
                "adaptive backoff without statistics always uses its longest delays; add statistics"
            }
            Warning::FixedDelayWithoutJitter => {
                "fixed delay without jitter: clients that fail together retry together; add jitter"
            }
            Warning::ManyAttempts => {
                "more than 10 attempts: an outage multiplies the load on the dependency; lower attempts_max, or use a durable job"
            }
            Warning::NoTotalLimit => {
                "no total limit: a call with its retries may take forever; add timeout as the \
                 outermost step"
            }
            Warning::OneCallOpensBreaker => {
                "the attempts of one call can open the circuit breaker: one bad request stops all calls; \
                 use a time window with failure_ratio and calls_min, or more failures than attempts"
            }
            Warning::ProbeTimeoutNotAboveAttemptTimeout => {
                "the probe timeout of the circuit breaker is not longer than an attempt: a probe that hangs does not \
                 open the breaker again; make the probe timeout longer"
            }
            Warning::ThrottleOutsideRetry => {
                "client throttle outside of retry: it counts one request for a whole series of attempts; move it inside the retry"
            }
            Warning::AdaptiveLimitOutsideRetry => {
                "adaptive limit outside of retry: it measures the delays between attempts; move it inside the retry"
            }
            Warning::HasChaos => "chaos step: tests can make these calls fail; remove it from production code",
        })
    }
}

impl Explanation {
    pub(super) fn of(plan: &Plan) -> Explanation {
        Explanation {
            steps: plan.steps.iter().map(Step::to_string).collect(),
            time_max: time_max(&plan.steps),
            amplification_max: amplification_max(&plan.steps),
            retry_budget: match &plan.budget {
                _ if plan.keyed_budget.is_some() => plan.keyed_budget.clone(),
                budget => budget.as_ref().map(ToString::to_string),
            },
            warnings: warnings(plan),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.steps.iter().map(String::as_str).chain(["the call"]).enumerate() {
            let indent = 3 * depth.saturating_sub(1);
            let branch = if depth == 0 { "" } else { "└─ " };
            writeln!(f, "{:indent$}{branch}{step}", "")?;
        }
        match self.time_max {
            Some(time) => writeln!(f, "takes at most {}", duration::text(time))?,
            None => writeln!(f, "may take forever: no timeout ends it")?,
        }
        let plural = if self.amplification_max == 1 { "" } else { "s" };
        write!(f, "one call becomes at most {} call{plural}", self.amplification_max)?;
        if let Some(budget) = &self.retry_budget {
            write!(f, "\n{budget}")?;
        }
        for warning in &self.warnings {
            write!(f, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted =
            |name: &str| if name.is_empty() { String::new() } else { format!(" {name:?}") };
        match self {
            Step::Timeout(limit) => write!(f, "timeout {}", duration::text(*limit)),
            Step::AttemptTimeout(limit) => write!(f, "attempt timeout {}", duration::text(*limit)),
            Step::Retry(retry) => write!(f, "retry: {retry}"),
            Step::CircuitBreaker(breaker) => {
                let what = breaker.machine().describe();
                write!(f, "circuit breaker{}: {what}", quoted(breaker.name()))
            }
            Step::RateLimiter(limiter) => {
                write!(f, "rate limiter{}: {}", quoted(limiter.name()), limiter.describe())
            }
            Step::Keyed(keyed) => write!(f, "{keyed}"),
            Step::Guard(guard) => write!(f, "{guard}"),
            Step::Bulkhead(bulkhead) => {
                write!(f, "bulkhead{}: {}", quoted(bulkhead.name()), bulkhead.describe())
            }
        }
    }
}

/// Returns the maximum time of these steps around a call without its own time limit.
fn time_max(steps: &[Step]) -> Option<Duration> {
    let (step, inner) = steps.split_first()?;
    let inside = time_max(inner);
    match step {
        Step::Timeout(limit) | Step::AttemptTimeout(limit) => {
            Some(inside.map_or(*limit, |inside| inside.min(*limit)))
        }
        Step::CircuitBreaker(_) => inside,
        Step::Keyed(keyed) if keyed.wait_max == Some(Duration::ZERO) => inside,
        Step::Keyed(keyed) => inside?.checked_add(keyed.wait_max?),
        Step::Guard(guard) if guard.time_max() == Some(Duration::ZERO) => inside,
        Step::Guard(guard) => inside?.checked_add(guard.time_max()?),
        Step::RateLimiter(limiter) => inside?.checked_add(limiter.wait_max()?),
        Step::Bulkhead(bulkhead) => inside?.checked_add(bulkhead.wait_max()?),
        Step::Retry(retry) => {
            // A time limit inside works like the policy's own attempt timeout.
            let attempt = [inside, retry.attempt_timeout_limit()].into_iter().flatten().min();
            match attempt {
                Some(limit) if !limit.is_zero() => retry.attempt_timeout(limit).time_max(),
                Some(_) | None => retry.time_max(),
            }
        }
    }
}

fn amplification_max(steps: &[Step]) -> u64 {
    steps
        .iter()
        .map(|step| match step {
            Step::Retry(retry) => u64::from(retry.attempts()),
            Step::Timeout(_)
            | Step::AttemptTimeout(_)
            | Step::CircuitBreaker(_)
            | Step::RateLimiter(_)
            | Step::Bulkhead(_)
            | Step::Keyed(_)
            | Step::Guard(_) => 1,
        })
        .fold(1, u64::saturating_mul)
}

fn warnings(plan: &Plan) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |warning| {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    for (index, step) in plan.steps.iter().enumerate() {
        let (outside, inside) = (&plan.steps[..index], &plan.steps[index + 1..]);
        let is_inside_retry = outside.iter().any(Step::is_retry);
        let is_outside_retry = inside.iter().any(Step::is_retry);
        match step {
            Step::CircuitBreaker(_) | Step::Keyed(Keyed { needs: Some(_), .. }) => {
                if is_outside_retry {
                    warn(Warning::BreakerOutsideRetry);
                }
                warn_about_breaker(plan, step, outside, &mut warn);
            }
            _ if step.is_limiter() && is_outside_retry => warn(Warning::LimiterOutsideRetry),
            _ if step.is_bulkhead() && is_outside_retry => warn(Warning::BulkheadOutsideRetry),
            Step::Guard(_) | Step::Keyed(Keyed { kind: KeyedKind::ClientThrottle, .. }) => {
                warn_about_guard(step, is_outside_retry, &mut warn);
            }
            Step::Timeout(_) if is_inside_retry => warn(Warning::TimeoutInsideRetry),
            Step::AttemptTimeout(_) if is_outside_retry => {
                warn(Warning::AttemptTimeoutOutsideRetry);
            }
            Step::Retry(retry) => {
                if is_outside_retry {
                    warn(Warning::RetryInsideRetry);
                }
                if retry.backoff().is_adaptive() && plan.statistics.is_none() {
                    warn(Warning::AdaptiveWithoutStatistics);
                }
                if retry.attempts() > Pipeline::ATTEMPTS_WARN {
                    warn(Warning::ManyAttempts);
                }
                if retry.attempts() > 1 {
                    if retry.backoff().as_exactly().is_some() {
                        warn(Warning::FixedDelayWithoutJitter);
                    }
                    warn_about_times(retry, outside, inside, &mut warn);
                }
            }
            Step::Timeout(_)
            | Step::AttemptTimeout(_)
            | Step::RateLimiter(_)
            | Step::Bulkhead(_)
            | Step::Keyed(_) => {}
        }
    }
    if plan.repeats() && time_max(&plan.steps).is_none() {
        warnings.push(Warning::NoTotalLimit);
    }
    warnings
}

/// Warns about a guard that does not do what it is for.
fn warn_about_guard(step: &Step, is_outside_retry: bool, warn: &mut impl FnMut(Warning)) {
    match step {
        Step::Guard(Guard::Adaptive(_)) if is_outside_retry => {
            warn(Warning::AdaptiveLimitOutsideRetry);
        }
        #[cfg(feature = "chaos")]
        Step::Guard(Guard::Chaos(_)) => warn(Warning::HasChaos),
        Step::Guard(Guard::Throttle(_)) | Step::Keyed(_) if is_outside_retry => {
            warn(Warning::ThrottleOutsideRetry);
        }
        _ => {}
    }
}

/// Warns about a breaker that does not fit the retries around it, or the time of an attempt.
fn warn_about_breaker(
    plan: &Plan,
    breaker: &Step,
    outside: &[Step],
    warn: &mut impl FnMut(Warning),
) {
    let Some(needs) = breaker.breaker_needs() else { return };
    let attempts = amplification_max(outside);
    if attempts > 1 && needs.failures_min <= attempts {
        warn(Warning::OneCallOpensBreaker);
    }
    let limits = plan.steps.iter().flat_map(|step| match step {
        Step::Retry(retry) => [retry.attempt_timeout_limit(), retry.deadline_limit()],
        Step::Timeout(limit) | Step::AttemptTimeout(limit) => [Some(*limit), None],
        Step::CircuitBreaker(_)
        | Step::RateLimiter(_)
        | Step::Bulkhead(_)
        | Step::Keyed(_)
        | Step::Guard(_) => [None, None],
    });
    match limits.flatten().min() {
        None if plan.repeats() => {} // The retry is warned about.
        None => warn(Warning::NothingEndsAnAttempt),
        Some(attempt) if attempt >= needs.probe_timeout => {
            warn(Warning::ProbeTimeoutNotAboveAttemptTimeout);
        }
        Some(_) => {}
    }
}

fn warn_about_times(
    retry: &crate::Retry,
    outside: &[Step],
    inside: &[Step],
    warn: &mut impl FnMut(Warning),
) {
    let attempt = inside.iter().filter_map(Step::limit).chain(retry.attempt_timeout_limit()).min();
    let total = outside.iter().filter_map(Step::limit).chain(retry.deadline_limit()).min();
    match (attempt, total) {
        // A deadline alone ends a call that hangs, but leaves no time for another attempt.
        (None, None | Some(_)) => warn(Warning::NothingEndsAnAttempt),
        (Some(attempt), Some(total)) if attempt >= total => {
            warn(Warning::AttemptTimeoutNotBelowTimeout);
        }
        (Some(_), Some(_) | None) => {}
    }
}

impl Step {
    const fn is_retry(&self) -> bool {
        matches!(self, Step::Retry(_))
    }

    fn breaker_needs(&self) -> Option<Needs> {
        match self {
            Step::CircuitBreaker(breaker) => Some(breaker.machine().needs()),
            Step::Keyed(keyed) => keyed.needs,
            Step::Timeout(_)
            | Step::Retry(_)
            | Step::RateLimiter(_)
            | Step::Bulkhead(_)
            | Step::AttemptTimeout(_)
            | Step::Guard(_) => None,
        }
    }

    const fn is_limiter(&self) -> bool {
        matches!(
            self,
            Step::RateLimiter(_) | Step::Keyed(Keyed { kind: KeyedKind::RateLimiter, .. })
        )
    }

    const fn is_bulkhead(&self) -> bool {
        matches!(self, Step::Bulkhead(_) | Step::Keyed(Keyed { kind: KeyedKind::Bulkhead, .. }))
    }

    const fn limit(&self) -> Option<Duration> {
        match self {
            Step::Timeout(limit) | Step::AttemptTimeout(limit) => Some(*limit),
            Step::Retry(_)
            | Step::CircuitBreaker(_)
            | Step::RateLimiter(_)
            | Step::Bulkhead(_)
            | Step::Keyed(_)
            | Step::Guard(_) => None,
        }
    }
}
