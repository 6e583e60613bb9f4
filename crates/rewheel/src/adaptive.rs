//! Adaptive limit: finds out how many concurrent calls a dependency can serve.

mod controller;
mod checked;

use self::controller::{Controller, Sample};
use crate::breaker::Outcome;
use crate::bulkhead::{Bulkhead, BulkheadBuilder};
use crate::classify::Classify;
use crate::clock::{Clock, Moment};
use crate::error::{Error, GiveUpReason, Refused};
use crate::observer::{Event, Observer, next_serial};
use crate::random::Random;
use crate::setting::valid;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A bulkhead whose number of slots follows the dependency. Clones share its state: create one per dependency, and keep it.
///
/// It measures how long calls take. If calls take longer because they wait inside the dependency, the limit falls to the number of
/// calls that the dependency serves at once; timeouts and other failures of the dependency lower it too. If all slots are used
/// and calls do not take longer, the limit grows. The limit always stays between a floor and a ceiling.
///
/// While less than half of the limit is in use, the limit does not matter, and only one call of sixteen is measured, because
/// reading the clock costs more than taking a slot.
///
/// ```
/// use rewheel::{AdaptiveLimit, GiveUpReason};
/// use std::io;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # async fn search() -> io::Result<u32> { Ok(7) }
/// let search_service = AdaptiveLimit::between(2, 200).named("search").build();
/// assert_eq!(search_service.call(|| search()).await.unwrap(), 7);
///
/// let permits: Vec<_> = (0..2).map(|_| search_service.try_acquire().unwrap()).collect();
/// let refused = search_service.try_acquire().unwrap_err();
/// assert_eq!(refused.why, GiveUpReason::ConcurrencyLimited);
/// for permit in permits {
///     permit.record(&search().await); // if dropped instead, the call does not count
/// }
/// # }
/// ```
///
/// A call that was cancelled, or that another policy of this process refused, says nothing about the dependency, and does not count.
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    slots: Bulkhead,
    /// A copy of the limit in force, which every call reads.
    limit: AtomicUsize,
    controller: Mutex<Controller>,
    config: AdaptiveLimitBuilder,
}

/// One of this many calls is measured while the limit does not matter. A power of two.
const MEASURED_ONE_OF: u64 = 16;

/// A slot that was taken. Its owner must [record](AdaptiveLimit::record) it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    /// `None` if the call is not measured.
    at: Option<Moment>,
    in_use: usize,
}

impl AdaptiveLimit {
    /// The largest ceiling.
    pub const CEILING_MAX: usize = 1_000_000;

    /// Sets the lowest and the highest limit. The limit starts at the floor, and doubles within a second under load until calls
    /// take longer; see [`initial`](AdaptiveLimitBuilder::initial).
    ///
    /// ```compile_fail
    /// # use rewheel::{AdaptiveLimit, AdaptiveLimitBuilder};
    /// const WRONG: AdaptiveLimitBuilder = AdaptiveLimit::between(200, 2);
    /// # let _ = WRONG;
    /// ```
    ///
    /// # Panics
    /// Panics if the floor is zero or above the ceiling, or if the ceiling is more than a million; in a constant that is a compile
    /// error.
    #[track_caller]
    pub const fn between(floor: usize, ceiling: usize) -> AdaptiveLimitBuilder {
        let _ = valid(checked::floor(floor));
        let _ = valid(checked::ceiling(floor, ceiling));
        AdaptiveLimitBuilder::new(floor, ceiling)
    }

    /// Takes a slot if one is free now and no other caller waits for it.
    ///
    /// # Errors
    /// Refused otherwise.
    pub fn try_acquire(&self) -> Result<AdaptivePermit, Refused> {
        let in_use = self.shared.slots.try_enter()?;
        Ok(AdaptivePermit { limit: self.clone(), started: Some(self.started(in_use)) })
    }

    /// Takes a slot, and waits for it if necessary and allowed by [`queue_max`](AdaptiveLimitBuilder::queue_max).
    ///
    /// Cancel safe: a dropped call leaves the queue.
    ///
    /// # Errors
    /// Refused if the queue is full, and if the wait exceeds [`wait_max`](AdaptiveLimitBuilder::wait_max).
    pub async fn acquire(&self) -> Result<AdaptivePermit, Refused> {
        let in_use = self.shared.slots.enter().await?;
        Ok(AdaptivePermit { limit: self.clone(), started: Some(self.started(in_use)) })
    }

    /// Makes a call once it has a slot, and records the result.
    ///
    /// Cancel safe: a dropped call frees its slot and does not count.
    ///
    /// # Errors
    /// Returns the call's own error as `last`, or the refusal.
    pub async fn call<F, Fut, T, E>(&self, operation: F) -> Result<T, Error<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: Classify,
    {
        let permit = self.acquire().await?;
        let result = operation().await;
        permit.record(&result);
        result.map_err(Error::once)
    }

    /// Like [`call`](AdaptiveLimit::call), for a blocking operation. It does not wait for a slot; a blocking call in a
    /// [`Pipeline`](crate::Pipeline) does.
    ///
    /// # Errors
    /// Returns the call's own error as `last`, or the refusal.
    pub fn call_blocking<T, E: Classify>(
        &self,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Error<E>> {
        let permit = self.try_acquire()?;
        let result = operation();
        permit.record(&result);
        result.map_err(Error::once)
    }

    /// Returns the limit in force now.
    pub fn limit(&self) -> usize {
        self.shared.limit.load(Ordering::Relaxed)
    }

    /// Returns the number of calls that run.
    pub fn in_use(&self) -> usize {
        self.shared.slots.in_use()
    }

    /// Returns the number of calls that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.shared.slots.waiting()
    }

    /// Returns the latency of the dependency without a queue, if it is known.
    pub fn baseline(&self) -> Option<Duration> {
        lock(&self.shared.controller).baseline()
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    /// Returns the slots, for callers that wait in their own way. A slot must become [started](AdaptiveLimit::started).
    pub(crate) fn slots(&self) -> &Bulkhead {
        &self.shared.slots
    }

    /// Begins a call that has taken a slot.
    #[inline]
    pub(crate) fn started(&self, in_use: usize) -> Started {
        let Shared { limit, config, .. } = &*self.shared;
        let matters = in_use * 2 >= limit.load(Ordering::Relaxed);
        let is_measured = matters || config.random.next() % MEASURED_ONE_OF == 0;
        Started { at: is_measured.then(|| config.clock.now()), in_use }
    }

    /// Frees the slot, and counts the call if its outcome says something about the dependency.
    #[inline]
    pub(crate) fn record(&self, started: Started, outcome: Option<Outcome>) {
        self.shared.slots.release();
        if let (Some(at), Some(outcome)) = (started.at, outcome) {
            self.measured(at, started.in_use, outcome);
        }
    }

    #[inline(never)]
    fn measured(&self, started: Moment, in_use: usize, outcome: Outcome) {
        let Shared { slots, limit, controller, config } = &*self.shared;
        let failed = outcome == Outcome::Failure;
        let sample = Sample { started, ended: config.clock.now(), in_use, failed };
        let mut controller = lock(controller);
        let from = controller.slots();
        controller.add(sample, &config.random);
        let to = controller.slots();
        if from == to {
            return;
        }
        limit.store(to, Ordering::Relaxed);
        // Under the lock, so that two changes are not applied in the wrong order.
        let woken = slots.set_slots(to);
        let serial = config.observer.as_ref().map(|observer| (observer, next_serial()));
        drop(controller);
        if let Some(waker) = woken {
            waker.wake();
        }
        if let Some((observer, serial)) = serial {
            observer.observe(&Event::LimitChanged { name: &config.name, from, to, serial });
        }
    }

    pub(crate) fn describe(&self) -> String {
        let AdaptiveLimitBuilder { floor, ceiling, .. } = self.shared.config;
        let waiting = match (self.shared.config.queue_max, self.shared.slots.wait_max()) {
            (0, _) => String::new(),
            (waiting, Some(wait)) => {
                format!(", {waiting} more can wait up to {}", crate::duration::text(wait))
            }
            (waiting, None) => format!(", {waiting} more can wait"),
        };
        format!("{floor} to {ceiling} concurrent calls{waiting}")
    }
}

/// A slot of an adaptive limit, which must report the result of its call. If it is dropped without a report, its slot is free
/// again, and the call does not count.
#[must_use = "the slot is free again as soon as the permit is dropped"]
#[derive(Debug)]
pub struct AdaptivePermit {
    limit: AdaptiveLimit,
    started: Option<Started>,
}

impl AdaptivePermit {
    /// Classifies a result, and records it as a success or a failure of the dependency.
    pub fn record<T, E: Classify>(self, result: &Result<T, E>) {
        self.finish(Outcome::of(result));
    }

    /// Records a success.
    pub fn success(self) {
        self.finish(Some(Outcome::Success));
    }

    /// Records a failure.
    pub fn failure(self) {
        self.finish(Some(Outcome::Failure));
    }

    fn finish(mut self, outcome: Option<Outcome>) {
        if let Some(started) = self.started.take() {
            self.limit.record(started, outcome);
        }
    }
}

impl Drop for AdaptivePermit {
    fn drop(&mut self) {
        if let Some(started) = self.started.take() {
            self.limit.record(started, None);
        }
    }
}

/// Builder of an [`AdaptiveLimit`].
#[derive(Clone, Debug)]
pub struct AdaptiveLimitBuilder {
    floor: usize,
    ceiling: usize,
    initial: usize,
    queue_max: usize,
    wait_max: Duration,
    name: Cow<'static, str>,
    clock: Clock,
    random: Random,
    observer: Option<Arc<dyn Observer>>,
}

impl AdaptiveLimitBuilder {
    const fn new(floor: usize, ceiling: usize) -> AdaptiveLimitBuilder {
        AdaptiveLimitBuilder {
            floor,
            ceiling,
            initial: floor,
            queue_max: 0,
            wait_max: Duration::MAX,
            name: Cow::Borrowed(""),
            clock: Clock::system(),
            random: Random::thread(),
            observer: None,
        }
    }

    /// Sets the first limit. The default is the floor: then the first latencies are measured without a queue.
    ///
    /// # Panics
    /// Panics if the value is not between the floor and the ceiling; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn initial(mut self, limit: usize) -> AdaptiveLimitBuilder {
        self.initial = valid(checked::initial(self.floor, self.ceiling, limit));
        self
    }

    /// Sets how many calls may wait for a slot. The default is zero: no call waits.
    #[must_use]
    pub const fn queue_max(mut self, calls: usize) -> AdaptiveLimitBuilder {
        self.queue_max = calls;
        self
    }

    /// Sets how long callers may wait. The default is no limit.
    #[must_use]
    pub const fn wait_max(mut self, time: Duration) -> AdaptiveLimitBuilder {
        self.wait_max = time;
        self
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> AdaptiveLimitBuilder {
        self.name = name.into();
        self
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> AdaptiveLimitBuilder {
        self.clock = clock.into();
        self
    }

    /// Uses this random source to choose the calls and the times of measurements.
    #[must_use]
    pub fn random(mut self, random: &Random) -> AdaptiveLimitBuilder {
        self.random = random.clone();
        self
    }

    /// Reports refusals, waits and changes of the limit to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> AdaptiveLimitBuilder {
        self.observer = Some(observer);
        self
    }

    /// Creates the limit with all slots free.
    pub fn build(self) -> AdaptiveLimit {
        let slots = BulkheadBuilder::of(&self);
        let limit = AdaptiveLimit {
            shared: Arc::new(Shared {
                slots: slots.build(),
                limit: AtomicUsize::new(self.initial),
                controller: Mutex::new(Controller::new(self.floor, self.ceiling, self.initial)),
                config: self,
            }),
        };
        let AdaptiveLimitBuilder { observer, name, initial, .. } = &limit.shared.config;
        if let Some(observer) = observer {
            let (from, to, serial) = (*initial, *initial, next_serial());
            observer.observe(&Event::LimitChanged { name, from, to, serial });
        }
        limit
    }
}

impl BulkheadBuilder {
    fn of(config: &AdaptiveLimitBuilder) -> BulkheadBuilder {
        let builder = Bulkhead::concurrency(config.initial)
            .queue_max(config.queue_max)
            .wait_max(config.wait_max)
            .named(config.name.clone())
            .clock(config.clock.clone())
            .refusing_with(GiveUpReason::ConcurrencyLimited);
        match &config.observer {
            Some(observer) => builder.observer(Arc::clone(observer)),
            None => builder,
        }
    }
}

#[cfg(test)]
mod tests;
