//! The future of a hedged call: attempts that race each other.

use super::Hedge;
use crate::budget::RetryBudget;
use crate::clock::{Moment, Sleep};
use crate::observer::Event;
use crate::sealed::Sealed;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Makes the attempts of a hedged call. You do not need to name this trait.
pub trait Tries: Sealed {
    /// The result of the call.
    type Output;
    /// One attempt.
    type Try: Future<Output = Self::Output>;

    /// Starts an attempt.
    #[doc(hidden)]
    fn start(&mut self, which: Which) -> Self::Try;

    /// Decides what a result means for the other attempts.
    #[doc(hidden)]
    fn judge(&mut self, attempt: &Self::Try, result: &Self::Output) -> Judged;

    /// Returns whether the attempts themselves count the call in this budget.
    #[doc(hidden)]
    fn deposits_into(&self, _: &RetryBudget) -> bool {
        false
    }
}

/// The first attempt of a call, or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first.
    First,
    /// Another one, while the first is running.
    Extra,
}

/// What the result of one attempt means for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The others are not needed: a success, an answer that is no success, or the caller cancelled.
    Final,
    /// Another attempt may still succeed.
    Failed,
    /// As `Failed`, and the attempt was not made: a policy refused it.
    Refused,
}

pin_project! {
    /// The future of a call under a [`Hedge`]: [`Hedge::call`], [`Call::hedge`](crate::Call::hedge).
    ///
    /// Cancel safe: dropping the future drops all attempts.
    #[must_use = "a future does nothing until it is awaited"]
    pub struct Hedging<'a, T: Tries> {
        hedge: &'a Hedge,
        tries: T,
        #[pin]
        first: Option<T::Try>,
        // Boxed: most calls have none. `None` where one has ended.
        extras: Vec<Option<Pin<Box<T::Try>>>>,
        #[pin]
        timer: Option<Sleep>,
        state: State,
        // When the first attempt began; `NEVER` until it had to wait.
        began: Moment,
        kept: Option<Kept<T::Output>>,
    }

    impl<T: Tries> PinnedDrop for Hedging<'_, T> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // The caller did not wait any longer. Of a call that was slow, the time so far is a lower bound, and without it
            // the percentile would forget that calls are slow.
            if *this.state == State::Running && !this.extras.is_empty() && this.first.is_some() {
                this.hedge.note(this.hedge.shared.clock.now().since(*this.began));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    /// An extra attempt may follow.
    Running,
    /// The budget pays no extra attempt.
    RunningWithoutMore,
    Over,
}

/// The failure to return if no attempt succeeds.
struct Kept<R> {
    result: R,
    judged: Judged,
}

impl<'a, T: Tries> Hedging<'a, T> {
    #[inline]
    pub(super) const fn new(hedge: &'a Hedge, tries: T) -> Hedging<'a, T> {
        Hedging {
            hedge,
            tries,
            first: None,
            extras: Vec::new(),
            timer: None,
            state: State::New,
            began: Moment::NEVER,
            kept: None,
        }
    }
}

impl<T: Tries> Future for Hedging<'_, T> {
    type Output = T::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        let mut this = self.as_mut().project();
        if *this.state == State::New {
            *this.state = State::Running;
            let budget = &this.hedge.shared.budget;
            if !this.tries.deposits_into(budget) {
                budget.deposit();
            }
            this.first.set(Some(this.tries.start(Which::First)));
        }
        loop {
            if let Poll::Ready(result) = self.as_mut().poll_tries(cx) {
                return Poll::Ready(result);
            }
            if self.as_mut().poll_delay(cx).is_pending() {
                return Poll::Pending;
            }
            self.as_mut().start_extra();
        }
    }
}

impl<T: Tries> Hedging<'_, T> {
    #[inline]
    fn poll_tries(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        let mut this = self.as_mut().project();
        if let Some(first) = this.first.as_mut().as_pin_mut()
            && let Poll::Ready(result) = first.poll(cx)
        {
            let judged = match &*this.first {
                Some(first) => this.tries.judge(first, &result),
                None => Judged::Failed,
            };
            if judged == Judged::Final {
                self.as_mut().note_first();
                return Poll::Ready(self.end(result, None));
            }
            this.first.set(None);
            keep(this.kept, result, judged);
        }
        for index in 0..self.extras.len() {
            let this = self.as_mut().project();
            let Some(extra) = &mut this.extras[index] else { continue };
            if let Poll::Ready(result) = extra.as_mut().poll(cx) {
                let judged = this.tries.judge(extra, &result);
                if judged == Judged::Final {
                    return Poll::Ready(self.end_by_extra(result, index));
                }
                this.extras[index] = None;
                keep(this.kept, result, judged);
            }
        }
        let is_running = self.first.is_some() || self.extras.iter().any(Option::is_some);
        if is_running {
            return Poll::Pending;
        }
        let this = self.project();
        match this.kept.take() {
            Some(kept) => {
                *this.state = State::Over;
                Poll::Ready(kept.result)
            }
            // Only a future that is polled after its end has neither.
            None => Poll::Pending,
        }
    }

    /// Notes how long the first attempt took.
    #[inline]
    fn note_first(self: Pin<&mut Self>) {
        let this = self.project();
        if this.hedge.tracks() {
            let latency = match *this.began {
                // It did not have to wait, so its time is not worth a look at the clock.
                Moment::NEVER => Duration::ZERO,
                began => this.hedge.shared.clock.now().since(began),
            };
            this.hedge.note(latency);
        }
    }

    #[cold]
    fn end_by_extra(mut self: Pin<&mut Self>, result: T::Output, index: usize) -> T::Output {
        // The first attempt is as slow as this at least. A first attempt that failed says nothing about latencies.
        if self.first.is_some() {
            self.as_mut().note_first();
        }
        self.end(result, Some(index))
    }

    /// Drops the attempts that lost.
    #[inline]
    fn end(self: Pin<&mut Self>, result: T::Output, winner: Option<usize>) -> T::Output {
        let mut this = self.project();
        *this.state = State::Over;
        this.first.set(None);
        if !this.extras.is_empty() {
            this.extras.clear();
            this.timer.set(None);
        }
        if let (Some(index), Some(observer)) = (winner, &this.hedge.shared.observer) {
            let name = &this.hedge.shared.name;
            observer.observe(&Event::HedgeWon { name, extra: number(index) });
        }
        result
    }

    /// Waits until an extra attempt may start; for ever if none may.
    fn poll_delay(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let shared = &this.hedge.shared;
        if *this.began == Moment::NEVER {
            // It has been polled only once, so this is its start.
            *this.began = shared.clock.now();
        }
        if *this.state != State::Running || this.extras.len() >= shared.extra_max as usize {
            return Poll::Pending;
        }
        if this.timer.is_none() {
            let Some(delay) = this.hedge.delay() else { return Poll::Pending };
            this.timer.set(Some(shared.clock.sleep(delay)));
        }
        let polled = this.timer.as_mut().as_pin_mut().map_or(Poll::Pending, |timer| timer.poll(cx));
        if polled.is_ready() {
            this.timer.set(None);
        }
        polled
    }

    #[cold]
    fn start_extra(self: Pin<&mut Self>) {
        let this = self.project();
        let shared = &this.hedge.shared;
        if shared.budget.withdraw().is_err() {
            *this.state = State::RunningWithoutMore;
            return;
        }
        let index = this.extras.len();
        this.extras.push(Some(Box::pin(this.tries.start(Which::Extra))));
        if let Some(observer) = &shared.observer {
            let after = shared.clock.now().since(*this.began);
            let name = &shared.name;
            observer.observe(&Event::HedgeStarted { name, extra: number(index), after });
        }
    }
}

/// A refusal never replaces a failure of the called service, which says more.
fn keep<R>(kept: &mut Option<Kept<R>>, result: R, judged: Judged) {
    let says_less = judged == Judged::Refused;
    if kept.as_ref().is_none_or(|kept| kept.judged == Judged::Refused || !says_less) {
        *kept = Some(Kept { result, judged });
    }
}

/// Returns the number of an extra attempt, counted from 1.
fn number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

impl<T: Tries> std::fmt::Debug for Hedging<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Hedging");
        debug.field("hedge", &self.hedge).field("state", &self.state);
        debug.field("extras", &self.extras.len()).finish_non_exhaustive()
    }
}
