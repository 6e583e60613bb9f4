//! First-in, first-out queue of waiters.

use std::collections::VecDeque;
use std::task::Waker;

/// A line of waiters. Whoever owns it keeps it behind a lock, and wakes outside of that lock.
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

    /// Goes to the end of the line.
    pub(crate) fn join(&mut self, waker: &Waker) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.waiting.push_back((ticket, waker.clone()));
        ticket
    }

    /// Returns whether it is this ticket's turn, and remembers whom to wake when it is.
    pub(crate) fn is_turn(&mut self, ticket: Ticket, waker: &Waker) -> bool {
        let first = self.waiting.front().is_some_and(|(first, _)| *first == ticket);
        if let Some(place) = self.place(ticket) {
            self.waiting[place].1.clone_from(waker);
        }
        first
    }

    /// Leaves the line, served or not; returns whom to wake if that lets another one be first.
    #[must_use = "the next in line sleeps until it is woken"]
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        let place = self.place(ticket)?;
        self.waiting.remove(place);
        if place == 0 { self.first() } else { None }
    }

    /// Returns whom to wake when there may be something for the first in line.
    pub(crate) fn first(&self) -> Option<Waker> {
        self.waiting.front().map(|(_, waker)| waker.clone())
    }

    fn place(&self, ticket: Ticket) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |(waiting, _)| *waiting).ok()
    }
}
