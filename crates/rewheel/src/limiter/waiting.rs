//! Lets callers wait for tokens in order of arrival.

use super::{RateLimiter, Shared};
use crate::clock::Moment;
use crate::error::{GiveUpReason, Refused};
use crate::queue::{Released, TURN_MAX, Ticket};
use crate::sync::{Ordering, lock};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A caller's position in the queue of a limiter. Its owner must call [`leave`](Waiting::leave).
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    ticket: Option<Ticket>,
    gives_up_at: Option<Moment>,
    since: Option<Moment>,
}

/// The state of a caller that wants to be admitted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    Refused(Refused),
    /// Ask again then, or when woken.
    Later(Moment),
}

/// The position of a caller that has just asked to join.
#[derive(Debug)]
enum Line {
    First,
    /// Another caller will wake it, or it was already in the queue.
    Behind,
    Full,
}

impl Waiting {
    /// Asks to be admitted, now or in turn.
    pub(crate) fn poll(&mut self, limiter: &RateLimiter, n: u32, waker: &Waker) -> Admission {
        let now = limiter.clock().now();
        let since = *self.since.get_or_insert(now);
        let admission = self.ask(limiter, n, now, waker);
        match admission {
            Admission::Later(_) => return admission,
            Admission::Admitted | Admission::Refused(_) => self.leave(limiter),
        }
        if admission == Admission::Admitted {
            limiter.shared.config.admitted(now.since(since));
        }
        match admission {
            Admission::Refused(refusal) => Admission::Refused(limiter.refused(refusal)),
            Admission::Admitted | Admission::Later(_) => admission,
        }
    }

    fn ask(&mut self, limiter: &RateLimiter, n: u32, now: Moment, waker: &Waker) -> Admission {
        let config = &limiter.shared.config;
        if u64::from(n) > config.rule.burst() {
            return Admission::Refused(Refused::new(GiveUpReason::AboveBurst, None));
        }
        let gives_up_at = *self.gives_up_at.get_or_insert_with(|| now.plus(config.wait_max));
        let is_turn = match self.ticket {
            Some(ticket) => limiter.answer(ticket, n, now, waker),
            None => limiter.shared.waiting.load(Ordering::Relaxed) == 0,
        };
        let ready_at = if is_turn {
            match limiter.take(n, now) {
                Ok(()) => return Admission::Admitted,
                Err(Refused { why: GiveUpReason::RateLimited, retry_in: Some(wait), .. }) => {
                    now.plus(wait)
                }
                Err(refused) => return Admission::Refused(refused),
            }
        } else {
            Moment::NEVER
        };
        // The first in the queue knows how long it takes, so it need not wait in vain.
        let known_too_long = is_turn && ready_at > gives_up_at;
        let refused = || {
            let retry_in = (ready_at < Moment::NEVER).then(|| ready_at.since(now));
            Admission::Refused(Refused::new(GiveUpReason::RateLimited, retry_in))
        };
        if known_too_long || now >= gives_up_at {
            return refused();
        }
        match self.join(limiter, now, waker) {
            Line::Full => refused(),
            // The other waiting callers have left since, so no caller is left to wake the first.
            Line::First if !is_turn => self.ask(limiter, n, now, waker),
            Line::First | Line::Behind if is_turn => Admission::Later(ready_at.min(gives_up_at)),
            // Those before may not answer, so it asks again.
            Line::First | Line::Behind => Admission::Later(now.plus(TURN_MAX).min(gives_up_at)),
        }
    }

    /// Joins the queue unless it is already in it.
    fn join(&mut self, limiter: &RateLimiter, now: Moment, waker: &Waker) -> Line {
        if self.ticket.is_some() {
            return Line::Behind;
        }
        let Shared { queue, waiting, config, .. } = &*limiter.shared;
        let mut waker = Some(waker.clone());
        let mut queue = lock(queue);
        let expired = queue.make_room(config.queue_max, now);
        let before = queue.len();
        let line = if before >= config.queue_max {
            Line::Full
        } else {
            let gives_up_at = self.gives_up_at.unwrap_or(Moment::NEVER);
            self.ticket = waker.take().map(|waker| queue.join(waker, gives_up_at));
            if before == 0 { Line::First } else { Line::Behind }
        };
        waiting.store(queue.len(), Ordering::Relaxed);
        drop(queue);
        expired.wake();
        line
    }

    /// Leaves the queue, and wakes the next caller.
    pub(crate) fn leave(&mut self, limiter: &RateLimiter) {
        let Some(ticket) = self.ticket.take() else { return };
        let now = limiter.clock().now();
        let mut queue = lock(&limiter.shared.queue);
        let released = queue.leave(ticket, now);
        limiter.shared.waiting.store(queue.len(), Ordering::Relaxed);
        drop(queue);
        released.wake();
    }
}

impl RateLimiter {
    /// Answers for a waiting caller; returns whether it is its turn.
    fn answer(&self, ticket: Ticket, n: u32, now: Moment, waker: &Waker) -> bool {
        let waker = waker.clone();
        let could_take = self.has_tokens(n, now);
        let mut queue = lock(&self.shared.queue);
        let answered = queue.answer(ticket, waker);
        let is_turn = queue.is_turn(ticket, now);
        let asked = if could_take && !is_turn {
            queue.ask_those_before(Some(ticket), now)
        } else {
            Released::default()
        };
        drop(queue);
        answered.wake();
        asked.wake();
        is_turn
    }

    /// Returns whether a caller that does not wait may pass those that do.
    pub(super) fn passes_waiting(&self, n: u32, now: Moment) -> bool {
        let could_take = self.has_tokens(n, now);
        let mut queue = lock(&self.shared.queue);
        let passes = queue.is_passed(now);
        let asked = if could_take && !passes {
            queue.ask_those_before(None, now)
        } else {
            Released::default()
        };
        drop(queue);
        asked.wake();
        passes
    }
}

/// Leaves the queue when the caller is dropped.
struct InLine<'a> {
    limiter: &'a RateLimiter,
    waiting: Waiting,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.waiting.leave(self.limiter);
    }
}

pub(super) async fn acquire(limiter: &RateLimiter, n: u32) -> Result<(), Refused> {
    let mut line = InLine { limiter, waiting: Waiting::default() };
    loop {
        let admission = poll_fn(|cx| Poll::Ready(line.waiting.poll(limiter, n, cx.waker()))).await;
        match admission {
            Admission::Admitted => return Ok(()),
            Admission::Refused(refused) => return Err(refused),
            Admission::Later(at) => limiter.clock().sleep_until_or_woken(at).await,
        }
    }
}
