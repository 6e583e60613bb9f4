//! First-in, first-out queue of waiters.

use std::collections::VecDeque;
use std::task::Waker;

/// A queue of waiters. Its owner keeps it behind a lock, and wakes waiters outside of that lock.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// In the order of the tickets.
    waiting: VecDeque<(Ticket, Waker)>,
    tickets: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Joins the end of the queue.
    pub(crate) fn join(&mut self, waker: &Waker) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.waiting.push_back((ticket, waker.clone()));
        ticket
    }

    /// Returns whether it is this ticket's turn, and stores the waker for when it is.
    pub(crate) fn is_turn(&mut self, ticket: Ticket, waker: &Waker) -> bool {
        let first = self.waiting.front().is_some_and(|(first, _)| *first == ticket);
        if let Some(place) = self.place(ticket) {
            self.waiting[place].1.clone_from(waker);
        }
        first
    }

    /// Leaves the queue, served or not; returns the waker of the waiter that becomes first.
    #[must_use = "the next in line sleeps until it is woken"]
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        let place = self.place(ticket)?;
        self.waiting.remove(place);
        if place == 0 { self.first() } else { None }
    }

    /// Returns the waker of the first waiter.
    pub(crate) fn first(&self) -> Option<Waker> {
        self.waiting.front().map(|(_, waker)| waker.clone())
    }

    fn place(&self, ticket: Ticket) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |(waiting, _)| *waiting).ok()
    }
}
