//! One call for all callers that want the same at the same time.

use crate::clock::{Clock, Moment, Sleep};
use crate::sync::{Mutex, lock};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::borrow::Borrow;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The flights under way, by key. There are at most as many as callers: a flight without callers is removed.
#[derive(Debug)]
pub(super) struct Flights<K, R> {
    by_key: Mutex<HashMap<K, Entry<R>, DefaultHashBuilder>>,
    clock: Clock,
    /// After this time, another caller makes the call as well: the first may hang, or its future may not be polled.
    lead_max: Duration,
}

#[derive(Debug)]
struct Entry<R> {
    flight: Arc<Flight<R>>,
    /// The callers that lead or wait.
    members: usize,
}

/// One call, and those who wait for its result.
#[derive(Debug)]
struct Flight<R>(Mutex<State<R>>);

#[derive(Debug)]
struct State<R> {
    phase: Phase<R>,
    /// Grows with every leader.
    leaders: u64,
    /// By the number of the waiter.
    waiters: Vec<(u64, Waker)>,
    waiters_ever: u64,
}

#[derive(Debug)]
enum Phase<R> {
    /// The first who asks becomes the leader.
    NoLeader,
    Led {
        since: Moment,
    },
    Landed(R),
}

/// What a caller gets from [`Flights::join`].
#[derive(Debug)]
pub(super) enum Joined<'a, K: Hash + Eq, R> {
    /// This caller makes the call.
    Leads(Lead<'a, K, R>),
    /// Another caller has made it.
    Landed(R),
}

impl<K: Hash + Eq + Clone, R: Clone> Flights<K, R> {
    pub(super) fn new(clock: Clock, lead_max: Duration) -> Flights<K, R> {
        let by_key = Mutex::new(HashMap::with_hasher(DefaultHashBuilder::default()));
        Flights { by_key, clock, lead_max }
    }

    /// Takes part in the flight of this key, and starts one if there is none.
    pub(super) fn join<Q>(&self, key: &Q) -> Joining<'_, K, R>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let key = key.to_owned();
        let mut by_key = lock(&self.by_key);
        let entry = by_key.entry(key.clone()).or_insert_with(|| {
            let phase = Phase::NoLeader;
            let state = State { phase, leaders: 0, waiters: Vec::new(), waiters_ever: 0 };
            Entry { flight: Arc::new(Flight(Mutex::new(state))), members: 0 }
        });
        entry.members += 1;
        let flight = Arc::clone(&entry.flight);
        drop(by_key);
        let member = Member { flights: self, key, flight };
        Joining { member: Some(member), waiter: None, timer: None }
    }

    /// Lets later callers start a flight of their own. Returns whether there was a flight.
    pub(super) fn detach<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Eq + ?Sized,
        K: Borrow<Q>,
    {
        let removed = lock(&self.by_key).remove_entry(key);
        removed.is_some()
    }

    /// Returns how many flights are under way.
    pub(super) fn len(&self) -> usize {
        lock(&self.by_key).len()
    }
}

/// A caller that takes part in a flight.
#[derive(Debug)]
struct Member<'a, K: Hash + Eq, R> {
    flights: &'a Flights<K, R>,
    key: K,
    flight: Arc<Flight<R>>,
}

impl<K: Hash + Eq, R> Member<'_, K, R> {
    /// Removes the flight from those that new callers can join.
    fn take_down(&self) -> bool {
        let mut by_key = lock(&self.flights.by_key);
        let is_current =
            by_key.get(&self.key).is_some_and(|entry| Arc::ptr_eq(&entry.flight, &self.flight));
        let removed = if is_current { by_key.remove_entry(&self.key) } else { None };
        drop(by_key);
        // The key is of the caller's type: dropped after the lock is released.
        drop(removed);
        is_current
    }
}

impl<K: Hash + Eq, R> Drop for Member<'_, K, R> {
    fn drop(&mut self) {
        let mut by_key = lock(&self.flights.by_key);
        let mut removed = None;
        if let Some(entry) = by_key.get_mut(&self.key)
            && Arc::ptr_eq(&entry.flight, &self.flight)
        {
            entry.members -= 1;
            if entry.members == 0 {
                removed = by_key.remove_entry(&self.key);
            }
        }
        drop(by_key);
        drop(removed);
    }
}

/// Waits for the result of a flight, or for its lead. Cancel safe.
#[derive(Debug)]
pub(super) struct Joining<'a, K: Hash + Eq, R> {
    /// `None` after the end.
    member: Option<Member<'a, K, R>>,
    /// The number of this waiter, and its waker in the list of the flight.
    waiter: Option<u64>,
    /// Until this caller takes over.
    timer: Option<(Moment, Pin<Box<Sleep>>)>,
}

impl<K: Hash + Eq, R> Unpin for Joining<'_, K, R> {}

/// What [`Joining`] found in the flight.
enum Found<R> {
    Landed(R),
    Lead(u64),
    /// Another caller leads; this one may take over at this moment.
    Wait(Moment),
}

impl<'a, K: Hash + Eq, R: Clone> Future for Joining<'a, K, R> {
    type Output = Joined<'a, K, R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let this = &mut *self;
            let Some(member) = &this.member else { return Poll::Pending };
            let (clock, lead_max) = (&member.flights.clock, member.flights.lead_max);
            // Cloning a waker is foreign code, so it happens before the lock is taken.
            let found = member.flight.ask(&mut this.waiter, cx.waker().clone(), clock, lead_max);
            let until = match found {
                Found::Landed(result) => {
                    this.waiter = None;
                    this.member = None;
                    return Poll::Ready(Joined::Landed(result));
                }
                Found::Lead(serial) => {
                    this.waiter = None;
                    let Some(member) = this.member.take() else { return Poll::Pending };
                    return Poll::Ready(Joined::Leads(Lead { member, serial, is_over: false }));
                }
                Found::Wait(until) => until,
            };
            if this.timer.as_ref().is_none_or(|(at, _)| *at != until) {
                this.timer = Some((until, Box::pin(clock.sleep(until.since(clock.now())))));
            }
            let timer = this.timer.as_mut().map(|(_, timer)| timer.as_mut());
            if timer.is_none_or(|timer| timer.poll(cx).is_pending()) {
                return Poll::Pending;
            }
            this.timer = None;
        }
    }
}

impl<R: Clone> Flight<R> {
    /// Returns the result, or makes the caller the leader, or lets it wait.
    fn ask(
        &self,
        waiter: &mut Option<u64>,
        waker: Waker,
        clock: &Clock,
        lead_max: Duration,
    ) -> Found<R> {
        let now = clock.now();
        let mut state = lock(&self.0);
        let (found, unused) = match &state.phase {
            Phase::Landed(result) => (Found::Landed(result.clone()), state.forget(*waiter)),
            Phase::Led { since } if now < since.plus(lead_max) => {
                let until = since.plus(lead_max);
                (Found::Wait(until), state.remember(waiter, waker))
            }
            Phase::Led { .. } | Phase::NoLeader => {
                state.phase = Phase::Led { since: now };
                state.leaders += 1;
                (Found::Lead(state.leaders), state.forget(*waiter))
            }
        };
        drop(state);
        // Foreign code as well.
        drop(unused);
        found
    }
}

impl<R> State<R> {
    /// Notes whom to wake. Returns the waker that it replaces.
    fn remember(&mut self, waiter: &mut Option<u64>, waker: Waker) -> Option<Waker> {
        let number = *waiter.get_or_insert_with(|| {
            self.waiters_ever += 1;
            self.waiters_ever
        });
        match self.waiters.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => Some(std::mem::replace(known, waker)),
            None => {
                self.waiters.push((number, waker));
                None
            }
        }
    }

    fn forget(&mut self, waiter: Option<u64>) -> Option<Waker> {
        let index = self.waiters.iter().position(|(known, _)| Some(*known) == waiter)?;
        Some(self.waiters.swap_remove(index).1)
    }
}

impl<K: Hash + Eq, R> Drop for Joining<'_, K, R> {
    fn drop(&mut self) {
        if let (Some(member), Some(_)) = (&self.member, self.waiter) {
            let waker = lock(&member.flight.0).forget(self.waiter);
            drop(waker);
        }
    }
}

/// The duty to make the call of a flight. If it is dropped without a result, one of those who wait becomes the leader.
#[derive(Debug)]
pub(super) struct Lead<'a, K: Hash + Eq, R> {
    member: Member<'a, K, R>,
    serial: u64,
    is_over: bool,
}

impl<K: Hash + Eq, R> Lead<'_, K, R> {
    /// Returns whether later callers can still join this flight: not after [`Flights::detach`].
    pub(super) fn is_current(&self) -> bool {
        let by_key = lock(&self.member.flights.by_key);
        let entry = by_key.get(&self.member.key);
        entry.is_some_and(|entry| Arc::ptr_eq(&entry.flight, &self.member.flight))
    }

    pub(super) fn key(&self) -> &K {
        &self.member.key
    }

    /// Gives the result to all who wait. Returns whether the flight was current until now.
    pub(super) fn land(mut self, result: R) -> bool {
        self.is_over = true;
        self.end(Phase::Landed(result));
        self.member.take_down()
    }

    /// As `land`, for a failure: if another caller has taken over, its result is still to come.
    pub(super) fn crash(mut self, result: R) {
        if lock(&self.member.flight.0).leaders == self.serial {
            self.is_over = true;
            // First: one that does not accept the failure joins again, and must not find this flight.
            self.member.take_down();
            self.end(Phase::Landed(result));
        }
    }

    /// Ends the lead, and wakes all who wait: any of them may be a future that is not polled, so waking one is not enough.
    fn end(&self, phase: Phase<R>) {
        let mut state = lock(&self.member.flight.0);
        let before = match &state.phase {
            // Another caller took over, and was faster.
            Phase::Landed(_) => phase,
            Phase::NoLeader | Phase::Led { .. } => std::mem::replace(&mut state.phase, phase),
        };
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        drop(before);
        for (_, waker) in waiters {
            waker.wake();
        }
    }
}

impl<K: Hash + Eq, R> Drop for Lead<'_, K, R> {
    fn drop(&mut self) {
        if !self.is_over && lock(&self.member.flight.0).leaders == self.serial {
            self.end(Phase::NoLeader);
        }
    }
}
