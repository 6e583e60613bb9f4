//! Runs simulated calls on one thread with a virtual clock.

use rewheel::ManualClock;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The virtual time, and the timers of the simulated services.
///
/// Policies wait for the clock; services wait for [`World::sleep`], which is cheaper because such a timer is never cancelled.
#[derive(Debug, Default)]
pub(crate) struct World {
    clock: ManualClock,
    timers: RefCell<BinaryHeap<Reverse<Timer>>>,
    timers_set: Cell<u64>,
}

#[derive(Debug)]
struct Timer {
    at: Duration,
    /// Timers of the same moment end in the order in which they were set.
    order: u64,
    waker: Waker,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Timer) -> bool {
        self.order == other.order
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl World {
    pub(crate) fn new(clock: ManualClock) -> World {
        World { clock, ..World::default() }
    }

    #[cfg(test)]
    pub(crate) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    pub(crate) fn sleep(&self, time: Duration) -> Nap<'_> {
        Nap { world: self, at: self.now() + time, is_set: false }
    }

    /// Advances to the next moment at which anything happens, at most to `until`. Returns `false` if nothing happens until then.
    fn advance(&self, until: Option<Duration>) -> bool {
        let timer = self.timers.borrow().peek().map(|Reverse(timer)| timer.at);
        let Some(next) = [timer, until].into_iter().flatten().min() else {
            return self.clock.advance_to_next();
        };
        if self.clock.advance_to_next_within(next.saturating_sub(self.now())) {
            return true;
        }
        if timer != Some(next) {
            return false;
        }
        let ended = self.timers.borrow_mut().pop();
        if let Some(Reverse(timer)) = ended {
            timer.waker.wake();
        }
        true
    }
}

/// The future of [`World::sleep`].
#[derive(Debug)]
pub(crate) struct Nap<'a> {
    world: &'a World,
    at: Duration,
    is_set: bool,
}

impl Future for Nap<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.world.now() >= self.at {
            return Poll::Ready(());
        }
        if !self.is_set {
            self.is_set = true;
            let order = self.world.timers_set.get();
            self.world.timers_set.set(order + 1);
            let timer = Timer { at: self.at, order, waker: cx.waker().clone() };
            self.world.timers.borrow_mut().push(Reverse(timer));
        }
        Poll::Pending
    }
}

/// Where new calls come from.
pub(crate) trait Source<F> {
    /// Returns when the next call begins; `None` if there are no more calls.
    fn next_at(&self) -> Option<Duration>;

    /// Begins the next call.
    fn begin(&mut self) -> F;

    /// Returns whether the simulation must end now.
    fn is_over(&self) -> bool;
}

/// The calls in progress. The memory of a call that has ended is used for another one.
pub(crate) struct Calls<F> {
    slots: Vec<Slot<F>>,
    free: Vec<usize>,
    ready: Arc<Ready>,
}

struct Slot<F> {
    call: Pin<Box<Option<F>>>,
    woken: Arc<Woken>,
    waker: Waker,
}

/// The slots that must be polled, in order.
#[derive(Debug, Default)]
struct Ready(Mutex<VecDeque<usize>>);

struct Woken {
    slot: usize,
    is_ready: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            self.ready.lock().push_back(self.slot);
        }
    }
}

impl Ready {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Future<Output = ()>> Calls<F> {
    pub(crate) fn new() -> Calls<F> {
        Calls { slots: Vec::new(), free: Vec::new(), ready: Arc::new(Ready::default()) }
    }

    /// Runs calls until none is left, or the source says that it is over.
    pub(crate) fn run(mut self, world: &World, source: &mut impl Source<F>) {
        let mut batch = VecDeque::new();
        loop {
            // What is ready comes before the passing of time.
            std::mem::swap(&mut batch, &mut *self.ready.lock());
            if batch.is_empty() {
                if source.is_over() || !self.advance(world, source) {
                    return;
                }
                continue;
            }
            for slot in batch.drain(..) {
                self.poll(slot);
            }
        }
    }

    fn advance(&mut self, world: &World, source: &mut impl Source<F>) -> bool {
        let next = source.next_at();
        if world.advance(next) {
            return true;
        }
        if next.is_some() {
            self.begin(source.begin());
        }
        next.is_some()
    }

    fn begin(&mut self, call: F) {
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.slots.len();
            let ready = Arc::clone(&self.ready);
            let woken = Arc::new(Woken { slot, is_ready: AtomicBool::new(false), ready });
            let waker = Waker::from(Arc::clone(&woken));
            self.slots.push(Slot { call: Box::pin(None), woken, waker });
            slot
        });
        self.slots[slot].call.set(Some(call));
        self.poll(slot);
    }

    fn poll(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        slot.woken.is_ready.store(false, Ordering::Relaxed);
        // A timer may wake a slot whose call has ended.
        let Some(call) = slot.call.as_mut().as_pin_mut() else { return };
        if call.poll(&mut Context::from_waker(&slot.waker)).is_ready() {
            slot.call.set(None);
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Calls, Source, World};
    use rewheel::{Clock, millis};
    use std::cell::RefCell;
    use std::time::Duration;

    /// Ten calls, one each ten milliseconds.
    struct Ten<B>(u32, B);

    impl<F, B: Fn(u32) -> F> Source<F> for Ten<B> {
        fn next_at(&self) -> Option<Duration> {
            (self.0 < 10).then(|| millis(10) * self.0)
        }

        fn begin(&mut self) -> F {
            self.0 += 1;
            self.1(self.0 - 1)
        }

        fn is_over(&self) -> bool {
            false
        }
    }

    #[test]
    fn timers_of_services_and_of_policies_end_in_the_order_of_time() {
        let (world, log) = (World::default(), RefCell::new(Vec::new()));
        let (of_world, of_log) = (&world, &log);
        let call = |number: u32| async move {
            // Odd ones wait for the clock of the policies.
            if number.is_multiple_of(2) {
                of_world.sleep(millis(25)).await;
            } else {
                Clock::from(of_world.clock()).sleep(millis(25)).await;
            }
            of_log.borrow_mut().push((number, of_world.now()));
        };
        Calls::new().run(&world, &mut Ten(0, call));
        let expected: Vec<_> =
            (0..10).map(|number| (number, millis(25 + 10 * u64::from(number)))).collect();
        assert_eq!(*log.borrow(), expected);
    }

    #[test]
    fn memory_is_used_again() {
        let world = World::default();
        let mut calls = Calls::new();
        let of_world = &world;
        let source = &mut Ten(0, |_| async move { of_world.sleep(millis(15)).await });
        while source.next_at().is_some() {
            while !calls.ready.lock().is_empty() {
                let slot = calls.ready.lock().pop_front().unwrap();
                calls.poll(slot);
            }
            calls.advance(&world, source);
        }
        assert_eq!(calls.slots.len(), 2, "two calls overlap");
    }
}
