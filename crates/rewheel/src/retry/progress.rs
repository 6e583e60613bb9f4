//! What async and blocking retries share: everything but the waiting.

use super::options::{Options, Setup};
use super::{Attempt, Hooks, Position, Retrying, Step};
use crate::classify::{Category, Class, Verdict};
use crate::clock::Moment;
use crate::error::{Error, Refused, Why};
use crate::nesting::Inside;
use crate::observer::Event;
use std::time::Duration;

/// How an attempt ended.
pub(super) enum Outcome<T, E> {
    Finished(Result<T, E>),
    TimedOut,
}

/// What follows.
pub(super) enum Next<T, E> {
    Return(Result<T, Error<E>>),
    Wait(Duration),
}

#[derive(Debug)]
pub(super) struct Progress<E, O> {
    pub(super) setup: Setup<O>,
    pub(super) position: Position,
    /// `NEVER` until it is known. Not an option: the bytes that an empty one leaves undefined would
    /// be copied with their neighbours, in steps that make the processor wait for its own stores.
    started: Moment,
    last: Option<E>,
    /// Of the last failure; `last` may be the error of an earlier one.
    category: Option<Category>,
}

impl<E, O: Options> Progress<E, O> {
    #[inline]
    pub(super) fn new(setup: Setup<O>) -> Progress<E, O> {
        let position = Position::starting_at(setup.first_attempt());
        Progress { setup, position, started: Moment::NEVER, last: None, category: None }
    }

    #[inline]
    pub(super) fn attempt(&self) -> Attempt {
        self.position.attempt(&self.setup.policy)
    }

    /// Begins the call, in the thread that makes the first attempt, and marks it for that.
    #[inline]
    pub(super) fn begin(&mut self) -> Option<Inside> {
        let inside = self.mark();
        let is_nested = inside.as_ref().map_or_else(Inside::is_marked, Inside::is_nested);
        self.position.suppress_if_nested(&self.setup.policy, is_nested);
        if self.setup.is_timed() {
            self.note_start();
        }
        inside
    }

    /// Counts the call, once it is certain to be made.
    #[inline]
    pub(super) fn deposit(&self) {
        if let Some(budget) = self.setup.budget() {
            budget.deposit();
        }
    }

    /// Marks this thread while an attempt runs, if this retry would repeat it.
    #[inline]
    pub(super) fn mark(&self) -> Option<Inside> {
        self.setup.policy.repeats().then(Inside::enter)
    }

    /// Takes the time of the start, if that has not happened yet.
    ///
    /// An untimed async call that is ready at once never reads a clock. One that is not has only
    /// been polled once, so this is still its start.
    pub(super) fn note_start(&mut self) -> Moment {
        if self.started == Moment::NEVER {
            self.started = self.setup.clock().now();
        }
        self.started
    }

    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.setup.cancel().is_some_and(crate::cancel::CancelToken::is_cancelled)
    }

    /// Returns when an attempt that starts now must end, if it must: with its own timeout, or
    /// with the deadline of the whole call.
    pub(super) fn attempt_ends(&mut self) -> Option<(Moment, Duration)> {
        let policy = self.setup.policy;
        if !policy.is_timed() {
            return None;
        }
        let is_first = self.attempt().number() == self.setup.first_attempt();
        let started = self.note_start();
        let now = if is_first { started } else { self.setup.clock().now() };
        let deadline = policy.deadline_limit().map(|limit| started.plus(limit));
        let timeout = policy.attempt_timeout_limit().map(|limit| now.plus(limit));
        let ends = deadline.into_iter().chain(timeout).min()?;
        Some((ends, ends.since(now)))
    }

    /// Returns whether the time for the whole call is used up.
    pub(super) fn is_over(&mut self) -> bool {
        let deadline = self.setup.policy.deadline_limit();
        deadline.is_some_and(|deadline| self.elapsed() >= deadline)
    }

    /// Decides what follows an attempt that was judged, and tells everybody.
    #[inline]
    pub(super) fn after<T, H: Hooks<T, E>>(
        &mut self,
        class: &Class,
        outcome: Outcome<T, E>,
        hooks: &mut H,
    ) -> Next<T, E> {
        match (class.verdict, outcome) {
            (Verdict::Done, Outcome::Finished(Ok(value))) => {
                self.succeeded(&value, hooks);
                Next::Return(Ok(value))
            }
            (_, outcome) => self.after_failure(class, outcome, hooks),
        }
    }

    #[inline]
    pub(super) fn succeeded<T, H: Hooks<T, E>>(&mut self, value: &T, hooks: &mut H) {
        let attempts = self.attempt().number();
        if self.setup.extras().is_some() {
            self.report_success(attempts);
        }
        hooks.succeeded(value, attempts);
    }

    /// Gives up without another attempt. `attempts` of them were made.
    pub(super) fn give_up<T, H: Hooks<T, E>>(
        &mut self,
        why: Why,
        attempts: u32,
        hooks: &mut H,
    ) -> Error<E> {
        let elapsed = self.elapsed();
        if let Some(statistics) = self.setup.statistics() {
            statistics.gave_up();
        }
        if let Some((name, observer)) = self.setup.observer() {
            observer.observe(&Event::GaveUp { name, why, attempts, elapsed });
        }
        let error = Error::new(Refused::new(why, None), attempts, elapsed, self.last.take())
            .with_category(self.category);
        hooks.gave_up(&error);
        error
    }

    #[cold]
    fn after_failure<T, H: Hooks<T, E>>(
        &mut self,
        class: &Class,
        outcome: Outcome<T, E>,
        hooks: &mut H,
    ) -> Next<T, E> {
        let attempt = self.attempt().number();
        self.report_failure(class);
        if let Some(statistics) = self.setup.statistics() {
            self.position.set_failure_ratio(statistics.failure_ratio());
        }
        // A judge may call an error done: there is nothing to repeat then.
        let verdict = if class.verdict == Verdict::Done { Verdict::Stop } else { class.verdict };
        let elapsed = self.elapsed();
        let mut step =
            self.position.after(&self.setup.policy, verdict, elapsed, self.setup.random());
        if let (Step::Wait(_), Some(budget)) = (step, self.setup.budget())
            && budget.withdraw().is_err()
        {
            step = Step::GiveUp(Why::BudgetExhausted);
        }
        let is_error = matches!(outcome, Outcome::Finished(Err(_)));
        let value = match outcome {
            Outcome::Finished(Ok(value)) => Some(value),
            Outcome::Finished(Err(error)) => {
                self.last = Some(error);
                None
            }
            Outcome::TimedOut => None,
        };
        match step {
            Step::Wait(delay) => {
                // An attempt that returned no error must not be blamed for an earlier one's.
                let error = self.last.as_ref().filter(|_| is_error);
                let retrying = Retrying { attempt, delay, category: class.category, error };
                self.report_retry(&retrying, hooks);
                Next::Wait(delay)
            }
            Step::Return => Next::Return(Err(self.give_up(Why::Stopped, attempt, hooks))),
            Step::GiveUp(why) => {
                let error = self.give_up(why, attempt, hooks);
                // A result that was not good enough is still the best there is.
                Next::Return(value.ok_or(error))
            }
        }
    }

    /// Counts an attempt that failed, or that was cut.
    pub(super) fn report_failure(&mut self, class: &Class) {
        self.category = Some(class.category);
        if let Some(statistics) = self.setup.statistics() {
            statistics.attempt_failed();
        }
        if let Some((name, observer)) = self.setup.observer() {
            let attempt = self.attempt().number();
            observer.observe(&Event::AttemptFailed { name, attempt, class });
        }
    }

    #[cold]
    fn report_success(&mut self, attempts: u32) {
        if let Some(statistics) = self.setup.statistics() {
            statistics.succeeded();
        }
        let elapsed = if self.setup.observer().is_some() { self.elapsed() } else { Duration::ZERO };
        if let Some((name, observer)) = self.setup.observer() {
            observer.observe(&Event::Succeeded { name, attempts, elapsed });
        }
    }

    fn report_retry<T, H: Hooks<T, E>>(&self, retrying: &Retrying<'_, E>, hooks: &mut H) {
        let Retrying { attempt, delay, .. } = *retrying;
        if let Some(statistics) = self.setup.statistics() {
            statistics.retried(delay);
        }
        if let Some((name, observer)) = self.setup.observer() {
            observer.observe(&Event::Retrying { name, attempt, delay });
        }
        hooks.retrying(retrying);
    }

    fn elapsed(&mut self) -> Duration {
        let started = self.note_start();
        self.setup.clock().now().since(started)
    }
}
