//! Lets no call of the store wait for ever, fail for a blip, or run into a store that is away.
//!
//! The engine's own policies, around its own dependency: each call has its time, is made again a
//! few times where that may help, and is refused at once while the store is away. Who waits for a
//! store to come back is the loop that asked: it keeps what it has, and asks again.

mod away;
mod verbs;

use self::away::{Away, GivenUp};
use crate::meters::StoreMeters;
use crate::settings::EngineSettings;
use rewheel::{
    Attempt, Backoff, Category, CircuitBreaker, Class, Classify, Clock, Error, Jitter, Nested,
    Pipeline, Random, Retry, Timeout, Verdict, Why, duration, millis, seconds,
};
use rewheel_core::store::{Answer, Sample, Store, StoreError};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Four attempts within a fifth of a second: a connection that broke is replaced by then. What
/// takes longer is an outage.
const BLIP: Retry =
    Retry::new(Backoff::exponential(millis(25)).jitter(Jitter::proportional(0.3))).attempts_max(4);

/// So many failures in a row, not all of the same moment, mean that the store is away.
const FAILURES: u32 = 5;

/// How long the store is left alone before one call may find out whether it is back. Short, and the
/// same each time: a fleet that asks once a second is no load, and everybody waits for the answer.
const LEFT_ALONE: Duration = seconds(1);

/// How long that one call may take before another may find out. A store that takes longer is let
/// off lightly: one call at a time, until it is faster.
const PROBE_MAX: Duration = seconds(2);

/// The store, behind the engine's policies.
#[derive(Debug)]
pub(crate) struct GuardedStore {
    inner: Arc<dyn Store>,
    clock: Clock,
    away: Away,
    /// Told of each call of which nobody knows what it did.
    unsure: Arc<Notify>,
    meters: Arc<StoreMeters>,
    usual: Way,
    /// What cannot be told from its own echo when it is made again.
    once: Way,
    /// As `usual`, also inside somebody's own retry: that one would make a new id each time, where
    /// this one asks for the same job again.
    insert: Way,
    /// What a holder begins and ends its life with. Not refused: a lease must not die of caution.
    life: Way,
    /// What the heartbeat asks for. It has a rhythm of its own, and asks again by itself.
    beat: Way,
    /// What may take minutes on a large store. Its failure says nothing about other calls.
    long: Way,
}

/// The policies for some verbs.
#[derive(Debug)]
struct Way {
    pipeline: Pipeline,
    /// For a call with all its attempts.
    time_max: Duration,
    speaks: Speaks,
}

/// What a result says about the way that most calls take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// It went this way.
    ForAll,
    /// It went its own way: a lease may be renewed on a connection of its own while nobody else gets
    /// one, or the other way around.
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
        // Its answer is of no use once the lease is in danger.
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
            life: way(retried(BLIP), beat, itself),
            beat: way(Pipeline::new().clock(&clock), beat, itself),
            long: way(Pipeline::new().clock(&clock), Sample::COUNT_MAX + statement, itself),
            clock,
        }
    }

    /// Returns what is told of each call of which nobody knows what it did, even if the next attempt
    /// went well.
    pub(crate) fn unsure(&self) -> Arc<Notify> {
        Arc::clone(&self.unsure)
    }

    /// Returns where calls are counted.
    pub(crate) fn meters(&self) -> Arc<StoreMeters> {
        Arc::clone(&self.meters)
    }

    /// Makes a call. It answers within the time of its way, with whatever is certain by then.
    async fn call<T, Fut>(
        &self,
        verb: &'static str,
        way: &Way,
        mut call: impl FnMut(Attempt) -> Fut,
    ) -> Answer<T>
    where
        Fut: Future<Output = Answer<T>>,
    {
        let started = self.clock.now();
        let elapsed = || self.clock.now().since(started);
        let mut is_unsure = false;
        let judge = |answer: &Answer<T>| {
            let class = self.judge(verb, way, answer);
            // An earlier attempt that still runs may be what this one collides with: the next one sees what it wrote.
            let collided = is_unsure && matches!(answer, Err(StoreError::Rejected(_)));
            is_unsure |= matches!(answer, Err(StoreError::Ambiguous(_)));
            let class = if collided { Class { verdict: Verdict::Retry, ..class } } else { class };
            // An attempt that cannot have half of the time would mostly be a lost answer more.
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

    /// Says what an answer means for the policies, and remembers what it means for people.
    fn judge<T>(&self, verb: &'static str, way: &Way, answer: &Answer<T>) -> Class {
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
        let is_refused = error.why() == Why::CircuitOpen;
        let is_repeated = error.why() == Why::Nested || way.speaks == Speaks::ForItself;
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

/// What becomes of an error when an earlier attempt may have written what the last one did not.
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

/// Waits for an answer so long. One that comes later is lost.
async fn within<T>(
    left: Duration,
    time_max: Duration,
    call: impl Future<Output = Answer<T>>,
) -> Answer<T> {
    let answer = Timeout::new(left).call(|| call).await;
    answer.map_err(|error| {
        error.into_last().unwrap_or_else(|| {
            // Nobody reads the nanoseconds of a third.
            let whole = Duration::from_millis(u64::try_from(time_max.as_millis()).unwrap_or(u64::MAX));
            let why = format!(
                "no answer within {}: see whether it is overloaded, or raise `statement_timeout` of \
                 the engine",
                duration::text(whole)
            );
            StoreError::Ambiguous(why.into())
        })
    })
}

#[cfg(test)]
mod tests;
