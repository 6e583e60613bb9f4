//! Guards every store call with a timeout, retries and a circuit breaker.
//!
//! The engine applies its own policies to its store: each call has a time limit, is repeated a few times if that may help, and
//! fails at once while the store is unavailable. During an outage, the calling loop keeps its data and repeats the call.

mod outage;
mod verbs;

use self::outage::{Away, GivenUp};
use crate::meters::StoreMeters;
use crate::settings::EngineSettings;
use rewheel::{
    Attempt, Backoff, Category, CircuitBreaker, Class, Classify, Clock, Error, GiveUpReason,
    Jitter, Nested, Pipeline, Random, Retry, Timeout, Verdict, duration, millis, seconds,
};
use rewheel_core::store::{Sample, Store, StoreError, StoreResult};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Four attempts within 200 ms: a broken connection is replaced by then. Anything longer is an outage.
const BLIP: Retry =
    Retry::new(Backoff::exponential(millis(25)).jitter(Jitter::proportional(0.3))).attempts_max(4);

/// Number of failures in a row, not all at the same time, after which the store counts as unavailable.
const FAILURES: u32 = 5;

/// How long calls are refused before one call may test whether the store is back. Short and constant: a fleet that asks once per
/// second is no load, and all callers wait for the result.
const LEFT_ALONE: Duration = seconds(1);

/// How long that call may take before another may test the store. A slower store gets one call at a time, until it is faster.
const PROBE_MAX: Duration = seconds(2);

/// The store with the engine's policies.
#[derive(Debug)]
pub(crate) struct GuardedStore {
    inner: Arc<dyn Store>,
    clock: Clock,
    away: Away,
    /// Notified of each call whose outcome is unknown.
    unsure: Arc<Notify>,
    meters: Arc<StoreMeters>,
    usual: Way,
    /// For calls that must not be repeated, because the repetition would conflict with the first attempt.
    once: Way,
    /// Like `usual`, also inside a retry of the caller: that retry would create a new id each time, while the retry here repeats the
    /// same job.
    insert: Way,
    /// For registration. Not refused during an outage.
    join: Way,
    /// For deregistration. Not refused during an outage.
    leave: Way,
    /// For calls of the heartbeat. It has its own interval, and repeats calls itself.
    beat: Way,
    /// For calls that may take minutes on a large store. Their failure says nothing about other calls.
    long: Way,
}

/// The policies for some methods.
#[derive(Debug)]
struct Way {
    pipeline: Pipeline,
    /// Time limit of a call with all its attempts.
    time_max: Duration,
    speaks: Speaks,
}

/// Which calls a result says something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// All calls.
    ForAll,
    /// Only calls of its own type: a lease may be renewed on a separate connection while other calls get none, or the other way
    /// around.
    ForItself,
}

impl GuardedStore {
    pub(crate) fn new(
        inner: Arc<dyn Store>,
        settings: &EngineSettings,
        random: &Random,
    ) -> GuardedStore {
        let clock = Clock::system();
        let statement = settings.statement_timeout;
        // Its result is useless once the lease is at risk.
        let beat = statement.min(settings.lease_ttl / 3);
        let breaker = CircuitBreaker::consecutive(FAILURES)
            .open_for(LEFT_ALONE)
            .probe_timeout(PROBE_MAX.min(statement))
            .named("store")
            .clock(&clock)
            .build();
        let retried =
            |retry| Pipeline::new().named("store").clock(&clock).random(random).retry(retry);
        let way = |pipeline, time_max, speaks| Way { pipeline, time_max, speaks };
        let (all, itself) = (Speaks::ForAll, Speaks::ForItself);
        let insert = BLIP.nested(Nested::Retry);
        GuardedStore {
            inner,
            away: Away::new(&clock),
            unsure: Arc::default(),
            meters: Arc::default(),
            usual: way(retried(BLIP).circuit_breaker(&breaker), statement, all),
            once: way(
                Pipeline::new().named("store").clock(&clock).circuit_breaker(&breaker),
                statement,
                all,
            ),
            insert: way(retried(insert).circuit_breaker(&breaker), statement, all),
            // No lease is at risk before there is one: a node that starts at the same time as others on a busy server waits as long as usual.
            join: way(retried(BLIP), statement, itself),
            leave: way(retried(BLIP), beat, itself),
            beat: way(Pipeline::new().clock(&clock), beat, itself),
            long: way(Pipeline::new().clock(&clock), Sample::COUNT_MAX + statement, itself),
            clock,
        }
    }

    /// Returns the notification for calls whose outcome is unknown, even if the next attempt succeeded.
    pub(crate) fn unsure(&self) -> Arc<Notify> {
        Arc::clone(&self.unsure)
    }

    /// Returns the counters of calls.
    pub(crate) fn meters(&self) -> Arc<StoreMeters> {
        Arc::clone(&self.meters)
    }

    /// Makes a call. It returns within its time limit, with the certain result so far.
    async fn call<T, Fut>(
        &self,
        verb: &'static str,
        way: &Way,
        mut call: impl FnMut(Attempt) -> Fut,
    ) -> StoreResult<T>
    where
        Fut: Future<Output = StoreResult<T>>,
    {
        let started = self.clock.now();
        let elapsed = || self.clock.now().since(started);
        let mut is_unsure = false;
        let judge = |answer: &StoreResult<T>| {
            let class = self.judge(verb, way, answer);
            // An earlier attempt may still run and collide with this attempt: the next attempt sees what it wrote.
            let collided = is_unsure && matches!(answer, Err(StoreError::Rejected(_)));
            is_unsure |= matches!(answer, Err(StoreError::Ambiguous(_)));
            let class = if collided { Class { verdict: Verdict::Retry, ..class } } else { class };
            // An attempt with less than half of the time would mostly add another lost response.
            let is_late = answer.is_err() && elapsed() > way.time_max / 2;
            if is_late { Class { verdict: Verdict::Stop, ..class } } else { class }
        };
        let attempt = |attempt| {
            let left = way.time_max.saturating_sub(elapsed()).max(millis(1));
            within(left, way.time_max, call(attempt))
        };
        let answer = way.pipeline.run(attempt).judge(judge).await;
        self.meters.called(verb, elapsed(), answer.is_ok());
        if is_unsure {
            self.unsure.notify_one();
        }
        answer.map_err(|error| self.give_up(verb, way, error, is_unsure))
    }

    /// Classifies a result for the policies, and records it for operators.
    fn judge<T>(&self, verb: &'static str, way: &Way, answer: &StoreResult<T>) -> Class {
        let class = answer.as_ref().err().map_or(Class::DONE, Classify::classify);
        let is_failure = class.verdict != Verdict::Done && class.category.blames_dependency();
        match (answer, way.speaks) {
            (Err(error), speaks) if is_failure => {
                self.away.failed(verb, error);
                if speaks == Speaks::ForAll && !self.away.counts() {
                    // For the breaker neither a success nor a failure.
                    return Class { category: Category::Cancelled, ..class };
                }
            }
            (_, Speaks::ForAll) if class.category != Category::Cancelled => self.away.answered(),
            (_, Speaks::ForAll | Speaks::ForItself) => {}
        }
        class
    }

    fn give_up(
        &self,
        verb: &'static str,
        way: &Way,
        error: Error<StoreError>,
        is_unsure: bool,
    ) -> StoreError {
        let is_refused = error.reason() == GiveUpReason::CircuitOpen;
        let is_repeated = error.reason() == GiveUpReason::Nested || way.speaks == Speaks::ForItself;
        let error = match error.into_last() {
            Some(last) if !is_refused => last,
            Some(_) | None => self.away.error(),
        };
        let error = if is_unsure { unsure(error) } else { error };
        let given_up = if is_repeated { GivenUp::ForNow } else { GivenUp::ForGood };
        self.away.tell(verb, &error, given_up);
        error
    }
}

/// Adjusts an error if an earlier attempt may have written what the last one did not.
fn unsure(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(why) | StoreError::Full(why) | StoreError::Rejected(why) => {
            StoreError::Ambiguous(why)
        }
        error @ (StoreError::Ambiguous(_)
        | StoreError::HolderDead(_)
        | StoreError::Broken { .. }
        | StoreError::Closed) => error,
    }
}

/// Waits for a result up to this time. A later result is lost.
async fn within<T>(
    left: Duration,
    time_max: Duration,
    call: impl Future<Output = StoreResult<T>>,
) -> StoreResult<T> {
    let judge = |_: &StoreError| Class::stop(Category::Unknown);
    let answer = Timeout::new(left).call_judged(judge, || call).await;
    answer.map_err(|error| {
        error.into_last().unwrap_or_else(|| {
            // Whole milliseconds are precise enough for the message.
            let whole = Duration::from_millis(u64::try_from(time_max.as_millis()).unwrap_or(u64::MAX));
            let why = format!(
                "no response within {}: check whether the store is overloaded, or raise engine.statement_timeout",
                duration::text(whole)
            );
            StoreError::Ambiguous(why.into())
        })
    })
}

#[cfg(test)]
mod tests;
