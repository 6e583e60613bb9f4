//! Bulkhead: limits the number of concurrent calls.

mod keyed;

pub use self::keyed::KeyedBulkhead;

use crate::classify::{Class, Classify};
use crate::clock::{Clock, Moment};
use crate::error::{Error, GiveUpReason, Refused};
use crate::observer::{Observer, refused};
use crate::queue::{Queue, Released, TURN_MAX, Ticket};
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use crate::sync::{Mutex, lock};
use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// A bulkhead. Clones share its state: create one per dependency, and keep it.
///
/// ```
/// use rewheel::{Bulkhead, GiveUpReason};
///
/// let reports = Bulkhead::concurrency(1).build();
/// let place = reports.try_acquire()?;
/// assert_eq!(reports.try_acquire().unwrap_err().why, GiveUpReason::BulkheadFull);
/// drop(place);
/// assert!(reports.try_acquire().is_ok());
/// # Ok::<_, rewheel::Refused>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bulkhead {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    config: BulkheadBuilder,
}

#[derive(Debug)]
struct State {
    in_use: usize,
    /// The number of slots. Only an adaptive limit changes it, and may make it less than what is in use.
    slots: usize,
    queue: Queue,
}

impl State {
    const fn is_full(&self) -> bool {
        self.in_use >= self.slots
    }

    /// Wakes those before this ticket that left a free slot unused.
    fn ask_if_free(&mut self, ticket: Option<Ticket>, now: Moment) -> Released {
        if self.is_full() { Released::default() } else { self.queue.ask_those_before(ticket, now) }
    }
}

impl Bulkhead {
    /// Sets the number of concurrent calls. Other calls are refused unless
    /// [`queue_max`](BulkheadBuilder::queue_max) lets them wait.
    ///
    /// # Panics
    /// Panics if the number is zero; in a constant, that is a compile error.
    #[track_caller]
    pub const fn concurrency(concurrency: usize) -> BulkheadBuilder {
        BulkheadBuilder::new(valid(checked_concurrency(concurrency)))
    }

    /// As [`concurrency`](Bulkhead::concurrency), without the panic.
    ///
    /// ```
    /// let error = rewheel::Bulkhead::try_concurrency(0).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid concurrency `0`: use 1 or more");
    /// ```
    ///
    /// # Errors
    /// Rejects a concurrency of zero.
    pub fn try_concurrency(concurrency: usize) -> Result<BulkheadBuilder, SettingError> {
        let concurrency =
            checked_concurrency(concurrency).map_err(|rule| rule.with(concurrency))?;
        Ok(BulkheadBuilder::new(concurrency))
    }

    /// Takes a slot if one is free now and no other caller waits for it.
    ///
    /// # Errors
    /// Refused otherwise.
    pub fn try_acquire(&self) -> Result<BulkheadPermit, Refused> {
        self.try_enter()?;
        Ok(BulkheadPermit { bulkhead: self.clone() })
    }

    /// As [`try_acquire`](Bulkhead::try_acquire), for a slot that the caller must
    /// [release](Bulkhead::release); returns how many slots are in use then.
    pub(crate) fn try_enter(&self) -> Result<usize, Refused> {
        let mut state = lock(&self.shared.state);
        if state.is_full() || !state.queue.is_empty() {
            let now = self.shared.config.clock.now();
            if state.is_full() || !state.queue.is_passed(now) {
                let asked = state.ask_if_free(None, now);
                drop(state);
                asked.wake();
                return Err(self.refused());
            }
        }
        state.in_use += 1;
        let in_use = state.in_use;
        drop(state);
        self.admitted(None);
        Ok(in_use)
    }

    /// Takes a slot, and waits for it if necessary.
    ///
    /// Cancel safe: a dropped call leaves the queue.
    ///
    /// # Errors
    /// Refused if the queue is full, and if the wait exceeds
    /// [`wait_max`](BulkheadBuilder::wait_max).
    pub async fn acquire(&self) -> Result<BulkheadPermit, Refused> {
        self.enter().await?;
        Ok(BulkheadPermit { bulkhead: self.clone() })
    }

    /// As [`acquire`](Bulkhead::acquire), for a slot that the caller must [release](Bulkhead::release) at once if it is dropped;
    /// returns how many slots are in use then.
    pub(crate) async fn enter(&self) -> Result<usize, Refused> {
        let mut line = InLine { bulkhead: self, waiting: Waiting::default() };
        loop {
            let entry = poll_fn(|cx| Poll::Ready(line.waiting.poll(self, cx.waker()))).await;
            match entry {
                Entry::Entered(in_use) => return Ok(in_use),
                Entry::Refused(refused) => return Err(refused),
                Entry::Later(at) => self.shared.config.clock.sleep_until_or_woken(at).await,
            }
        }
    }

    /// Makes a call once it has a slot.
    ///
    /// # Errors
    /// Returns the call's own error as `last`, or the refusal.
    pub async fn call<F, Fut, T, E>(&self, operation: F) -> Result<T, Error<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: Classify,
    {
        let _place = self.acquire().await?;
        operation().await.map_err(Error::once)
    }

    /// As [`call`](Bulkhead::call), for errors that do not implement [`Classify`]: `judge` says what an error means to the policies
    /// around this call.
    ///
    /// # Errors
    /// The same as for `call`.
    pub async fn call_judged<F, Fut, T, E>(
        &self,
        judge: impl FnOnce(&E) -> Class,
        operation: F,
    ) -> Result<T, Error<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let _place = self.acquire().await?;
        operation().await.map_err(|error| Error::of_class(&judge(&error), error))
    }

    /// Returns the number of free slots.
    pub fn free(&self) -> usize {
        let state = lock(&self.shared.state);
        state.slots.saturating_sub(state.in_use)
    }

    /// Returns the number of calls that wait for a slot.
    pub fn waiting(&self) -> usize {
        lock(&self.shared.state).queue.len()
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.config.clock
    }

    /// Returns the maximum wait of a call, if it is limited.
    pub(crate) fn wait_max(&self) -> Option<Duration> {
        self.shared.config.wait_max_of_call()
    }

    fn refused(&self) -> Refused {
        let BulkheadBuilder { observer, name, .. } = &self.shared.config;
        refused(observer.as_ref(), name, Refused::new(self.shared.config.why, None))
    }

    /// Tells the observer that a call was let in that waited since then.
    fn admitted(&self, since: Option<Moment>) {
        let BulkheadBuilder { observer, name, clock, why, .. } = &self.shared.config;
        let waited = since.map_or(Duration::ZERO, |since| clock.now().since(since));
        crate::observer::admitted(observer.as_ref(), name, *why, waited);
    }

    /// Frees a slot that was taken by [`Waiting::poll`].
    pub(crate) fn release(&self) {
        let mut state = lock(&self.shared.state);
        state.in_use -= 1;
        let next = if state.queue.is_empty() || state.is_full() {
            None
        } else {
            state.queue.wake_next(self.shared.config.clock.now())
        };
        drop(state);
        if let Some(waker) = next {
            waker.wake();
        }
    }

    /// Changes the number of slots. Calls that run keep their slots. The returned waker must be woken, outside of all locks.
    #[must_use = "a caller that waits for a new slot sleeps until it is woken"]
    pub(crate) fn set_slots(&self, slots: usize) -> Option<Waker> {
        let mut state = lock(&self.shared.state);
        state.slots = slots;
        // One is enough: each waiter that leaves the queue wakes the next.
        if state.queue.is_empty() || state.is_full() {
            return None;
        }
        state.queue.wake_next(self.shared.config.clock.now())
    }

    /// Returns the number of slots in use.
    pub(crate) fn in_use(&self) -> usize {
        lock(&self.shared.state).in_use
    }

    pub(crate) fn describe(&self) -> String {
        let BulkheadBuilder { concurrency, queue_max, .. } = self.shared.config;
        match (queue_max, self.wait_max()) {
            (0, _) => format!("at most {concurrency} concurrent calls"),
            (waiting, Some(wait)) => {
                format!(
                    "at most {concurrency} concurrent calls, {waiting} more can wait up to {}",
                    crate::duration::text(wait)
                )
            }
            (waiting, None) => {
                format!("at most {concurrency} concurrent calls, {waiting} more can wait")
            }
        }
    }
}

/// A slot in a bulkhead. When this value is dropped, the slot is free again.
#[must_use = "the slot is free again as soon as the permit is dropped"]
#[derive(Debug)]
pub struct BulkheadPermit {
    bulkhead: Bulkhead,
}

impl Drop for BulkheadPermit {
    fn drop(&mut self) {
        self.bulkhead.release();
    }
}

/// A caller's position in the queue. Its owner must call [`leave`](Waiting::leave).
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    ticket: Option<Ticket>,
    gives_up_at: Option<Moment>,
    since: Option<Moment>,
}

/// The state of a caller that wants a slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The slot is taken, and must be [released](Bulkhead::release).
    /// This many slots are in use then.
    Entered(usize),
    Refused(Refused),
    /// Ask again then, or when woken.
    Later(Moment),
}

impl Waiting {
    pub(crate) fn poll(&mut self, bulkhead: &Bulkhead, waker: &Waker) -> Entry {
        let Shared { state, config } = &*bulkhead.shared;
        if config.observer.is_some() {
            self.since.get_or_insert_with(|| config.clock.now());
        }
        // A waker is cloned outside of the lock, and only if the caller has to wait.
        let mut fresh = self.ticket.is_some().then(|| waker.clone());
        loop {
            let mut guard = lock(state);
            let state = &mut *guard;
            let is_alone = self.ticket.is_none() && state.queue.is_empty();
            let now = if is_alone && !state.is_full() { Moment::ZERO } else { config.clock.now() };
            let is_turn = match self.ticket {
                Some(ticket) => state.queue.is_turn(ticket, now),
                None => state.queue.is_passed(now),
            };
            if is_turn && !state.is_full() {
                state.in_use += 1;
                let in_use = state.in_use;
                drop(guard);
                self.leave(bulkhead);
                bulkhead.admitted(self.since);
                return Entry::Entered(in_use);
            }
            let gives_up_at = *self.gives_up_at.get_or_insert_with(|| now.plus(config.wait_max));
            let joins = self.ticket.is_none();
            let expired = if joins {
                state.queue.make_room(config.queue_max, now)
            } else {
                Released::default()
            };
            let is_full = joins && state.queue.len() >= config.queue_max;
            if is_full || now >= gives_up_at {
                drop(guard);
                expired.wake();
                self.leave(bulkhead);
                return Entry::Refused(bulkhead.refused());
            }
            let Some(waker) = fresh.take() else {
                drop(guard);
                expired.wake();
                fresh = Some(waker.clone());
                continue;
            };
            let answered = match self.ticket {
                Some(ticket) => state.queue.answer(ticket, waker),
                None => {
                    self.ticket = Some(state.queue.join(waker, gives_up_at));
                    Released::default()
                }
            };
            let asked =
                if is_turn { Released::default() } else { state.ask_if_free(self.ticket, now) };
            drop(guard);
            [expired, answered, asked].into_iter().for_each(Released::wake);
            // Those before may not answer, so it asks again.
            let asks_at = if is_turn { Moment::NEVER } else { now.plus(TURN_MAX) };
            return Entry::Later(asks_at.min(gives_up_at));
        }
    }

    /// Leaves the queue, and wakes the next caller.
    pub(crate) fn leave(&mut self, bulkhead: &Bulkhead) {
        let Some(ticket) = self.ticket.take() else { return };
        let now = bulkhead.shared.config.clock.now();
        let released = lock(&bulkhead.shared.state).queue.leave(ticket, now);
        released.wake();
    }
}

/// Leaves the queue when the caller is dropped.
struct InLine<'a> {
    bulkhead: &'a Bulkhead,
    waiting: Waiting,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.waiting.leave(self.bulkhead);
    }
}

/// Builder of a [`Bulkhead`].
#[derive(Clone, Debug)]
pub struct BulkheadBuilder {
    concurrency: usize,
    queue_max: usize,
    wait_max: Duration,
    name: Cow<'static, str>,
    clock: Clock,
    observer: Option<Arc<dyn Observer>>,
    /// The reason of its refusals, which names the policy.
    why: GiveUpReason,
}

const fn checked_concurrency(concurrency: usize) -> Result<usize, NotAllowed> {
    if concurrency > 0 {
        Ok(concurrency)
    } else {
        Err(not_allowed!("concurrency", "use 1 or more"))
    }
}

impl BulkheadBuilder {
    const fn new(concurrency: usize) -> BulkheadBuilder {
        BulkheadBuilder {
            concurrency,
            queue_max: 0,
            wait_max: Duration::MAX,
            name: Cow::Borrowed(""),
            clock: Clock::system(),
            observer: None,
            why: GiveUpReason::BulkheadFull,
        }
    }

    /// Sets how many calls may wait for a slot. The default is zero: no call waits.
    #[must_use]
    pub const fn queue_max(mut self, calls: usize) -> BulkheadBuilder {
        self.queue_max = calls;
        self
    }

    /// Sets how long callers may wait. The default is no limit.
    #[must_use]
    pub const fn wait_max(mut self, time: Duration) -> BulkheadBuilder {
        self.wait_max = time;
        self
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> BulkheadBuilder {
        self.name = name.into();
        self
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> BulkheadBuilder {
        self.clock = clock.into();
        self
    }

    /// Reports refusals to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> BulkheadBuilder {
        self.observer = Some(observer);
        self
    }

    /// Reports to this observer unless another one was set.
    #[cfg(feature = "reqwest")]
    pub(crate) fn observer_if_none(
        mut self,
        observer: Option<&Arc<dyn Observer>>,
    ) -> BulkheadBuilder {
        self.observer = self.observer.or_else(|| observer.cloned());
        self
    }

    /// Returns the maximum wait of a call, if it is limited.
    fn wait_max_of_call(&self) -> Option<Duration> {
        if self.queue_max == 0 {
            return Some(Duration::ZERO);
        }
        (self.wait_max < Duration::MAX).then_some(self.wait_max)
    }

    /// Names another policy in refusals, which uses the bulkhead inside.
    pub(crate) const fn refusing_with(mut self, why: GiveUpReason) -> BulkheadBuilder {
        self.why = why;
        self
    }

    /// Creates the bulkhead with all slots free.
    pub fn build(self) -> Bulkhead {
        let state = State { in_use: 0, slots: self.concurrency, queue: Queue::default() };
        Bulkhead { shared: Arc::new(Shared { state: Mutex::new(state), config: self }) }
    }
}

#[cfg(test)]
mod tests;
