//! The logic that async and blocking retries share: everything except waiting.

use super::options::{Options, Setup};
use super::{Attempt, Hooks, Position, Retrying, Step};
use crate::cancel::CancelToken;
use crate::classify::{Category, Class, Verdict};
use crate::clock::Moment;
use crate::error::{Error, GiveUpReason, Refused};
use crate::nesting::{Inside, Outermost};
use crate::observer::Event;
use std::time::Duration;

/// How an attempt ended.
pub(super) enum Outcome<T, E> {
    Finished(Result<T, E>),
    TimedOut,
}

/// What follows an attempt.
pub(super) enum Next<T, E> {
    Return(Result<T, Error<E>>),
    Wait(Duration),
}

/// The history of a call.
#[derive(Debug)]
pub(super) struct Past<E> {
    position: Position,
    /// `NEVER` until it is known.
    started: Moment,
    last: Option<E>,
    /// Category of the last failure; `last` may be the error of an earlier one.
    category: Option<Category>,
}

impl<E> Past<E> {
    #[inline]
    pub(super) fn new<O: Options>(setup: &Setup<O>) -> Past<E> {
        let position = Position::starting_at(setup.first_attempt());
        Past { position, started: Moment::NEVER, last: None, category: None }
    }

    pub(super) fn started_at(self, started: Moment) -> Past<E> {
        Past { started, ..self }
    }

    /// Returns when the call began, `NEVER` if it is not known yet.
    pub(super) const fn started(&self) -> Moment {
        self.started
    }

    pub(super) const fn attempt<O>(&self, setup: &Setup<O>) -> Attempt {
        self.position.attempt(&setup.policy)
    }
}

/// A call in progress.
#[derive(Debug)]
pub(super) struct Progress<'a, E, O> {
    setup: &'a Setup<O>,
    past: &'a mut Past<E>,
}

impl<'a, E, O: Options> Progress<'a, E, O> {
    #[inline]
    pub(super) const fn new(setup: &'a Setup<O>, past: &'a mut Past<E>) -> Progress<'a, E, O> {
        Progress { setup, past }
    }

    #[inline]
    pub(super) const fn attempt(&self) -> Attempt {
        self.past.attempt(self.setup)
    }

    /// Begins the call, in the thread that makes the first attempt, and marks the thread.
    #[inline]
    pub(super) fn begin(&mut self) -> Inside {
        let inside = self.setup.mark();
        self.past.position.suppress_if_nested(&self.setup.policy, inside.is_nested());
        if self.past.position.is_suppressed()
            && let Some((name, observer)) = self.setup.observer()
        {
            observer.observe(&Event::RetrySuppressed { name });
        }
        if self.setup.is_timed() {
            self.note_start();
        }
        inside
    }

    /// Reads the start time, if that has not happened yet.
    ///
    /// An async call without time limits that is ready at once never reads a clock. Otherwise it
    /// has been polled only once, so this is still its start.
    pub(super) fn note_start(&mut self) -> Moment {
        if self.past.started == Moment::NEVER {
            self.past.started = self.setup.clock().now();
        }
        self.past.started
    }

    /// Returns when an attempt that starts now must end, if it must: by its own timeout, or by the
    /// deadline of the whole call.
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

    /// Returns whether the deadline of the whole call has passed.
    pub(super) fn is_over(&mut self) -> bool {
        let deadline = self.setup.policy.deadline_limit();
        deadline.is_some_and(|deadline| self.elapsed() >= deadline)
    }

    /// Decides what follows a classified attempt, and calls hooks and observers.
    #[inline]
    pub(super) fn after<T, H: Hooks<T, E>>(
        &mut self,
        class: &Class,
        outcome: Outcome<T, E>,
        hooks: &mut H,
    ) -> Next<T, E> {
        match (class.verdict, outcome) {
            (Verdict::Done, Outcome::Finished(Ok(value))) => {
                let attempts = self.attempt().number();
                self.setup.succeeded(&value, attempts, self.past.started, hooks);
                Next::Return(Ok(value))
            }
            (_, outcome) => self.after_failure(class, outcome, hooks),
        }
    }

    /// Gives up without another attempt, after `attempts` attempts.
    pub(super) fn give_up<T, H: Hooks<T, E>>(
        &mut self,
        why: GiveUpReason,
        attempts: u32,
        hooks: &mut H,
    ) -> Error<E> {
        let elapsed = self.elapsed();
        let why = self.past.position.reason(why);
        if let Some(statistics) = self.setup.statistics() {
            statistics.gave_up();
        }
        if let Some((name, observer)) = self.setup.observer() {
            observer.observe(&Event::GaveUp { name, why, attempts, elapsed });
        }
        let error = Error::new(Refused::new(why, None), attempts, elapsed, self.past.last.take())
            .with_category(self.past.category);
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
        // A judge may call an error done: then there is nothing to repeat.
        let verdict = if class.verdict == Verdict::Done { Verdict::Stop } else { class.verdict };
        let elapsed = self.elapsed();
        let Progress { setup, ref mut past } = *self;
        if let Some(statistics) = setup.statistics() {
            past.position.set_failure_ratio(statistics.failure_ratio());
        }
        let mut step = past.position.after(&setup.policy, verdict, elapsed, setup.random());
        if let (Step::Wait(_), Some(budget)) = (step, setup.budget())
            && budget.withdraw().is_err()
        {
            step = Step::GiveUp(GiveUpReason::BudgetExhausted);
        }
        let is_error = matches!(outcome, Outcome::Finished(Err(_)));
        let value = match outcome {
            Outcome::Finished(Ok(value)) => Some(value),
            Outcome::Finished(Err(error)) => {
                past.last = Some(error);
                None
            }
            Outcome::TimedOut => None,
        };
        match step {
            Step::Wait(delay) => {
                // An attempt that returned no error must not report an earlier one's.
                let error = past.last.as_ref().filter(|_| is_error);
                let retrying = Retrying { attempt, delay, category: class.category, error };
                setup.report_retry(&retrying, hooks);
                Next::Wait(delay)
            }
            Step::Return => Next::Return(Err(self.give_up(GiveUpReason::Stopped, attempt, hooks))),
            Step::GiveUp(why) => {
                let error = self.give_up(why, attempt, hooks);
                // A value that was rejected is still the best result available.
                Next::Return(value.ok_or(error))
            }
        }
    }

    /// Reports an attempt that failed, or that was cut.
    pub(super) fn report_failure(&mut self, class: &Class) {
        self.past.category = Some(class.category);
        if let Some(statistics) = self.setup.statistics() {
            statistics.attempt_failed();
        }
        if let Some((name, observer)) = self.setup.observer() {
            let attempt = self.attempt().number();
            observer.observe(&Event::AttemptFailed { name, attempt, class });
        }
    }

    fn elapsed(&mut self) -> Duration {
        let started = self.note_start();
        self.setup.clock().now().since(started)
    }
}

impl<O: Options> Setup<O> {
    /// Begins a plain call, whose first attempt needs no history: without options or time limits,
    /// and not inside another retry. Returns `None` for other calls.
    #[inline]
    pub(super) fn begin_plain(&self) -> Option<Outermost> {
        let policy = &self.policy;
        let is_plain = self.extras().is_none() && !policy.is_timed() && policy.suppresses();
        if is_plain { Outermost::enter() } else { None }
    }

    #[inline]
    pub(super) fn succeeded<T, E, H: Hooks<T, E>>(
        &self,
        value: &T,
        attempts: u32,
        started: Moment,
        hooks: &mut H,
    ) {
        if self.extras().is_some() {
            self.report_success(attempts, started);
        }
        hooks.succeeded(value, attempts);
    }

    #[cold]
    fn report_success(&self, attempts: u32, started: Moment) {
        if let Some(statistics) = self.statistics() {
            statistics.succeeded();
        }
        if let Some((name, observer)) = self.observer() {
            let elapsed = self.clock().now().since(started);
            observer.observe(&Event::Succeeded { name, attempts, elapsed });
        }
    }

    /// Marks this thread while an attempt runs, if this retry would repeat it.
    #[inline]
    pub(super) fn mark(&self) -> Inside {
        Inside::enter_if(self.policy.suppresses())
    }

    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel().is_some_and(CancelToken::is_cancelled)
    }

    /// Counts the call, once it is certain to be made.
    #[inline]
    pub(super) fn deposit(&self) {
        if let Some(budget) = self.budget() {
            budget.deposit();
        }
    }

    fn report_retry<T, E, H: Hooks<T, E>>(&self, retrying: &Retrying<'_, E>, hooks: &mut H) {
        let Retrying { attempt, delay, .. } = *retrying;
        if let Some(statistics) = self.statistics() {
            statistics.retried(delay);
        }
        if let Some((name, observer)) = self.observer() {
            observer.observe(&Event::Retrying { name, attempt, delay });
        }
        hooks.retrying(retrying);
    }
}
