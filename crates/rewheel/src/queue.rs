//! First-in, first-out queue of waiters, in which a waiter that does not answer blocks no other.
//!
//! A future that is not polled, as inside a `buffer_unordered` whose consumer is busy, cannot take its turn. If what it waits for
//! is there, those behind ask it to answer. A waiter that does not answer within [`TURN_MAX`] keeps its position, but the others
//! pass it until it answers.

use crate::clock::Moment;
use crate::duration::millis;
use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

/// How long a waiter may take to answer when it is asked: longer than a busy executor needs to poll a task. All other waiters ask
/// this often whether they may pass.
pub(crate) const TURN_MAX: Duration = millis(250);

/// How many waiters are woken at once to find out whether they answer. So a long queue is not woken as a whole.
const ASK_MAX: usize = 16;

/// A queue of waiters. Its owner keeps it behind a lock. Wakers run foreign code, so the queue neither clones nor drops one: it
/// returns them, to be woken or dropped outside of that lock.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// In the order of the tickets.
    waiting: VecDeque<Waiter>,
    tickets: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    gives_up_at: Moment,
    state: State,
}

#[derive(Debug)]
enum State {
    Asleep(Waker),
    /// Woken, and not polled since.
    Woken,
    /// Asked to answer at this time, and not polled since.
    Asked(Moment),
}

impl Waiter {
    /// Returns whether others may pass it.
    fn is_passed(&self, now: Moment) -> bool {
        match &self.state {
            State::Asleep(_) | State::Woken => self.gives_up_at.plus(TURN_MAX) <= now,
            State::Asked(at) => at.plus(TURN_MAX) <= now,
        }
    }

    /// Changes its state unless it was asked already; returns its waker, if it sleeps.
    fn rouse(&mut self, state: State) -> Option<Waker> {
        match std::mem::replace(&mut self.state, state) {
            State::Asleep(waker) => Some(waker),
            State::Woken => None,
            State::Asked(at) => {
                self.state = State::Asked(at);
                None
            }
        }
    }
}

/// Wakers that leave a queue, for use outside of its lock.
#[must_use = "a waiter sleeps until it is woken, and a waker must not be dropped under the lock"]
#[derive(Debug, Default)]
pub(crate) struct Released {
    woken: Vec<Waker>,
    next: Option<Waker>,
    dropped: Option<Waker>,
}

impl Released {
    /// Wakes and drops the wakers. No lock may be held.
    pub(crate) fn wake(self) {
        drop(self.dropped);
        self.next.into_iter().chain(self.woken).for_each(Waker::wake);
    }
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Joins the end of the queue.
    pub(crate) fn join(&mut self, waker: Waker, gives_up_at: Moment) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.waiting.push_back(Waiter { ticket, gives_up_at, state: State::Asleep(waker) });
        ticket
    }

    /// Answers for a waiter, with the waker to use from now on.
    pub(crate) fn answer(&mut self, ticket: Ticket, waker: Waker) -> Released {
        let Some(place) = self.place(ticket) else {
            return Released { dropped: Some(waker), ..Released::default() };
        };
        let state = &mut self.waiting[place].state;
        let dropped = match std::mem::replace(state, State::Asleep(waker)) {
            State::Asleep(before) => Some(before),
            State::Woken | State::Asked(_) => None,
        };
        Released { dropped, ..Released::default() }
    }

    /// Returns whether it is this ticket's turn: no waiter before it answers.
    pub(crate) fn is_turn(&self, ticket: Ticket, now: Moment) -> bool {
        let mut waiting = self.waiting.iter();
        let first = waiting.find(|waiter| waiter.ticket == ticket || !waiter.is_passed(now));
        first.is_some_and(|waiter| waiter.ticket == ticket)
    }

    /// Returns whether a caller that is not in the queue may pass all that are.
    pub(crate) fn is_passed(&self, now: Moment) -> bool {
        self.waiting.iter().all(|waiter| waiter.is_passed(now))
    }

    /// Wakes the first waiters before this ticket, which left their turn to others, or the first of all without a ticket.
    pub(crate) fn ask_those_before(&mut self, ticket: Option<Ticket>, now: Moment) -> Released {
        let before = self.waiting.iter_mut().filter(|waiter| !waiter.is_passed(now));
        let before = before.take_while(|waiter| Some(waiter.ticket) != ticket).take(ASK_MAX);
        let woken = before.filter_map(|waiter| waiter.rouse(State::Asked(now))).collect();
        Released { woken, ..Released::default() }
    }

    /// Leaves the queue, served or not, and wakes the waiter whose turn it is then.
    pub(crate) fn leave(&mut self, ticket: Ticket, now: Moment) -> Released {
        let Some(place) = self.place(ticket) else { return Released::default() };
        let was_first = self.waiting.iter().take(place).all(|waiter| waiter.is_passed(now));
        let dropped = self.waiting.remove(place).and_then(|waiter| match waiter.state {
            State::Asleep(waker) => Some(waker),
            State::Woken | State::Asked(_) => None,
        });
        let next = if was_first { self.wake_next(now) } else { None };
        Released { dropped, next, ..Released::default() }
    }

    /// Returns the waker of the waiter whose turn it is, if it sleeps.
    #[must_use = "the next in line sleeps until it is woken"]
    pub(crate) fn wake_next(&mut self, now: Moment) -> Option<Waker> {
        self.waiting.iter_mut().find(|waiter| !waiter.is_passed(now))?.rouse(State::Woken)
    }

    /// Removes the waiters that have waited too long, if a queue of this length is full: they will be refused.
    pub(crate) fn make_room(&mut self, waiters_max: usize, now: Moment) -> Released {
        if self.waiting.len() < waiters_max {
            return Released::default();
        }
        let mut expired = Released::default();
        // All wait equally long, so those who give up first came first.
        while self.waiting.front().is_some_and(|waiter| waiter.gives_up_at <= now) {
            match self.waiting.pop_front().map(|waiter| waiter.state) {
                Some(State::Asleep(waker)) => expired.woken.push(waker),
                Some(State::Woken | State::Asked(_)) | None => {}
            }
        }
        expired
    }

    fn place(&self, ticket: Ticket) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Queue;
    use crate::clock::Moment;
    use std::task::Waker;

    fn queue(gives_up_at: &[u64]) -> Queue {
        let mut queue = Queue::default();
        for at in gives_up_at {
            let _ = queue.join(Waker::noop().clone(), Moment::from_nanos(*at));
        }
        queue
    }

    #[test]
    fn those_whose_time_is_over_make_room() {
        let mut queue = queue(&[10, 20, 20, 30]);
        queue.make_room(5, Moment::from_nanos(25)).wake();
        assert_eq!(queue.len(), 4, "there is room for one more");
        let expired = queue.make_room(4, Moment::from_nanos(20));
        assert_eq!((expired.woken.len(), queue.len()), (3, 1));
        expired.wake();
    }

    /// A queue is full when there is too much work: then each further caller must be cheap.
    #[test]
    fn a_full_queue_is_neither_copied_nor_moved_for_a_caller_that_is_refused() {
        let mut queue = queue(&[30; 1_000]);
        let at = queue.waiting.as_slices().0.as_ptr();
        let expired = queue.make_room(1_000, Moment::from_nanos(20));
        assert_eq!((expired.woken.capacity(), queue.len()), (0, 1_000));
        assert_eq!(queue.waiting.as_slices().0.as_ptr(), at);
        expired.wake();
    }
}
