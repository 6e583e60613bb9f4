//! Walks the steps of a pipeline: inward to the call, outward with its result.
//!
//! It uses neither futures nor timers: it returns what it needs next, and the caller provides it.

mod slots;
mod guards;
mod limits;
mod report;

use self::guards::Passage;
use self::slots::{Slot, Slots};
use super::keyed::Policies;
use super::{Plan, Step};
use crate::budget::RetryBudget;
use crate::bulkhead;
use crate::classify::{Category, Class, Verdict};
use crate::clock::Moment;
use crate::error::{GiveUpReason, Refused};
use crate::limiter::Admission;
use crate::nesting::Inside;
use crate::observer::Event;
use crate::retry::{Attempt, Position, Retry, Retrying, Step as After};
use std::task::Waker;
use std::time::Duration;

/// What a run needs next.
#[derive(Debug)]
pub(super) enum Need {
    /// Make the call.
    Call(Attempt),
    /// Resume at this time, or when woken. The result of the last attempt is no longer needed.
    Wait(Moment),
    /// As `Wait`, after a failure that a retry repeats.
    Retry(WillRetry),
    /// Return what the last attempt returned, or, if that was a failure, why, after one of which
    /// category.
    Finish(Refused, Category),
}

/// A retry that was decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct WillRetry {
    /// When to ask again.
    pub(super) at: Moment,
    attempt: u32,
    delay: Duration,
    category: Category,
}

impl WillRetry {
    /// Returns what hooks hear of it. `error` is what the attempt returned.
    pub(super) const fn with<E>(self, error: Option<&E>) -> Retrying<'_, E> {
        let WillRetry { attempt, delay, category, .. } = self;
        Retrying { attempt, delay, category, error }
    }
}

/// A run of a pipeline.
#[derive(Debug)]
pub(super) struct Machine {
    slots: Slots,
    /// How many steps have been entered.
    depth: usize,
    state: State,
    /// Number of calls made.
    pub(super) attempts: u32,
    started: Option<Moment>,
    /// The retry budget of the key, if each key has its own.
    budget: Option<RetryBudget>,
    nested: bool,
    /// Category of the last failed call.
    last_category: Option<Category>,
    /// The innermost step, counted from 1, that this attempt waited for; 0 if it waited for none.
    queued_at: usize,
    /// Whether the last call failed in a way that another attempt may not.
    repeatable: bool,
    /// Whether the run was dropped during a call.
    is_dropped: bool,
    /// Whether the call was counted in the budget by another run.
    is_counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Entering,
    Calling,
    /// Waiting between two attempts.
    Resting(Moment),
}

/// Whether the call was made, this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Yes,
    No,
}

impl Machine {
    #[inline]
    pub(super) const fn new() -> Machine {
        Machine {
            slots: Slots::none(),
            depth: 0,
            state: State::Entering,
            attempts: 0,
            started: None,
            budget: None,
            nested: false,
            last_category: None,
            queued_at: 0,
            repeatable: false,
            is_dropped: false,
            is_counted: false,
        }
    }

    pub(super) const fn skip_deposit(&mut self) {
        self.is_counted = true;
    }

    /// Begins, in the thread that makes the first attempt.
    pub(super) fn begin(&mut self, plan: &Plan, policies: &dyn Policies, waker: &Waker) -> Need {
        self.slots.prepare();
        self.nested = Inside::is_marked();
        if plan.keyed_budget.is_some() {
            self.budget = policies.budget();
        }
        if plan.observer.is_some() || plan.clock.is_manual() {
            self.note_start(plan);
        }
        self.enter(plan, policies, waker)
    }

    /// As `begin`, where there is nothing to enter.
    #[inline]
    pub(super) const fn begin_plain(&mut self) -> Need {
        self.state = State::Calling;
        self.attempts = 1;
        Need::Call(Attempt::ONLY)
    }

    /// Goes on after a wait.
    pub(super) fn resume(&mut self, plan: &Plan, policies: &dyn Policies, waker: &Waker) -> Need {
        if let Some(need) = self.cut_if_over(plan) {
            return need;
        }
        match self.state {
            State::Resting(until) if plan.clock.now() < until => {
                Need::Wait(until.min(self.earliest_end()))
            }
            State::Resting(_) => {
                self.restart_attempt(plan);
                self.enter(plan, policies, waker)
            }
            State::Entering => self.enter(plan, policies, waker),
            State::Calling => Need::Wait(self.earliest_end()),
        }
    }

    /// Continues after the call returned a result of this class.
    pub(super) fn returned<T, E>(
        &mut self,
        plan: &Plan,
        class: &Class,
        result: &Result<T, E>,
    ) -> Need {
        let verdict = match (class.verdict, result) {
            // A judge may call an error done: then there is nothing to repeat, but it is no
            // success.
            (Verdict::Done, Err(_)) => Verdict::Stop,
            (verdict, _) => verdict,
        };
        if verdict != Verdict::Done {
            self.repeatable = matches!(verdict, Verdict::Retry | Verdict::RetryAfter(_));
            self.report_failure(plan, class);
        }
        self.leave(plan, class, verdict, None, Reached::Yes)
    }

    /// Gives up because the caller cancelled. A running attempt must have been dropped before.
    pub(super) fn cancel(&mut self, plan: &Plan) -> Need {
        self.release(plan, 0);
        let refused = Refused::new(GiveUpReason::Cancelled, None);
        self.report_end(plan, Verdict::Stop, refused);
        Need::Finish(refused, self.last_category.unwrap_or(Category::Cancelled))
    }

    /// Gives back everything when the run itself is dropped.
    pub(super) fn release_dropped(&mut self, plan: &Plan) {
        self.is_dropped = self.state == State::Calling;
        self.release(plan, 0);
    }

    /// Gives back whatever the steps from `depth` on hold. What they saw of the call was nothing.
    pub(super) fn release(&mut self, plan: &Plan, depth: usize) {
        self.leave_cut(plan, depth, None);
    }

    /// Leaves the steps from `depth` on, which record `class`, if there is one.
    fn leave_cut(&mut self, plan: &Plan, depth: usize, class: Option<&Class>) {
        if self.slots.is_empty() {
            return;
        }
        // The step that was being entered may hold a place in some line.
        for index in (depth..plan.steps.len().min(self.depth + 1)).rev() {
            self.release_slot(plan, index, class);
        }
        self.depth = self.depth.min(depth);
    }

    pub(super) fn elapsed(&self, plan: &Plan) -> Duration {
        self.started.map_or(Duration::ZERO, |started| plan.clock.now().since(started))
    }

    pub(super) fn note_start(&mut self, plan: &Plan) -> Moment {
        *self.started.get_or_insert_with(|| plan.clock.now())
    }

    /// Enters the steps that have not been entered yet, then calls.
    fn enter(&mut self, plan: &Plan, policies: &dyn Policies, waker: &Waker) -> Need {
        self.state = State::Entering;
        // One clock reading serves all the steps that are entered at once.
        let mut now = None;
        while let Some(step) = plan.steps.get(self.depth) {
            // Each writes its slot itself: handing one around copies it twice.
            let refused = match step {
                Step::Timeout(limit) | Step::AttemptTimeout(limit) => {
                    let ends = self.now(plan, &mut now).plus(*limit);
                    self.slots[self.depth] = Slot::Ends(ends);
                    None
                }
                Step::Retry(retry) => {
                    self.slots[self.depth] = self.begin_retry(plan, retry, &mut now);
                    None
                }
                Step::CircuitBreaker(breaker) => match breaker.machine().acquire() {
                    Ok(token) => {
                        self.slots[self.depth] = Slot::Permit(token);
                        None
                    }
                    Err(refused) => Some(refused),
                },
                Step::Keyed(_) | Step::Guard(_) => match self.enter_slot(plan, policies, waker) {
                    Passage::Entered => None,
                    Passage::Refused(refused) => Some(refused),
                    Passage::Failed(refused) => return self.failed_by_chaos(plan, refused),
                    Passage::Later(at) => return Need::Wait(at.min(self.earliest_end())),
                },
                Step::RateLimiter(limiter) => {
                    let mut line = self.take_limiter_line();
                    match line.poll(limiter, 1, waker) {
                        Admission::Admitted => None,
                        Admission::Refused(refused) => Some(refused),
                        Admission::Later(at) => {
                            self.slots[self.depth] = Slot::LimiterLine(line);
                            self.queued_at = self.depth + 1;
                            let at = plan.clock.convert(at, limiter.clock());
                            return Need::Wait(at.min(self.earliest_end()));
                        }
                    }
                }
                Step::Bulkhead(bulkhead) => {
                    let mut line = self.take_bulkhead_line();
                    match line.poll(bulkhead, waker) {
                        bulkhead::Entry::Entered(_) => {
                            self.slots[self.depth] = Slot::BulkheadPermit;
                            None
                        }
                        bulkhead::Entry::Refused(refused) => Some(refused),
                        bulkhead::Entry::Later(at) => {
                            self.slots[self.depth] = Slot::BulkheadLine(line);
                            self.queued_at = self.depth + 1;
                            let at = plan.clock.convert(at, bulkhead.clock());
                            return Need::Wait(at.min(self.earliest_end()));
                        }
                    }
                }
            };
            if let Some(refused) = refused {
                return self.refused(plan, refused);
            }
            self.depth += 1;
        }
        self.state = State::Calling;
        self.count_attempt(plan);
        Need::Call(self.attempt(plan, now))
    }

    fn refused(&mut self, plan: &Plan, refused: Refused) -> Need {
        let class = crate::Classify::classify(&refused);
        self.leave(plan, &class, class.verdict, Some(refused), Reached::No)
    }

    /// Moves outward with a result, until a retry wants another attempt or all steps are left.
    fn leave(
        &mut self,
        plan: &Plan,
        class: &Class,
        mut verdict: Verdict,
        refused: Option<Refused>,
        mut reached: Reached,
    ) -> Need {
        let mut earlier = None;
        let mut why = refused.unwrap_or(Refused::new(GiveUpReason::Stopped, None));
        while let Some(index) = self.depth.checked_sub(1) {
            if let Step::Retry(retry) = &plan.steps[index] {
                match self.after_attempt(plan, index, retry, verdict, reached) {
                    After::Wait(delay) => {
                        let until = plan.clock.now().plus(delay);
                        self.state = State::Resting(until);
                        let at = until.min(self.earliest_end());
                        let attempt = self.failed_attempt(index, retry);
                        let category = class.category;
                        return Need::Retry(WillRetry { at, attempt, delay, category });
                    }
                    After::Return => {}
                    After::GiveUp(reason) => {
                        if reason != GiveUpReason::Stopped {
                            why = Refused::new(reason, why.retry_in);
                            // The call was given up here, so a retry further out must not continue.
                            verdict = Verdict::Stop;
                        }
                    }
                }
            }
            if reached == Reached::No && self.has_called_since(index) {
                // This round was refused here, but an earlier one was not: for the outer steps a
                // call was made, and it failed.
                earlier = self.last_category.map(Class::stop);
                reached = Reached::Yes;
            }
            // A refusal here says nothing about the dependency.
            let seen = earlier.as_ref().unwrap_or(class);
            self.release_slot(plan, index, (reached == Reached::Yes).then_some(seen));
            self.depth = index;
        }
        self.slots.end();
        self.report_end(plan, verdict, why);
        Need::Finish(why, class.category)
    }

    /// Returns the number of the attempt that the retry at this step repeats.
    fn failed_attempt(&self, index: usize, retry: &Retry) -> u32 {
        match &self.slots[index] {
            Slot::Retrying { position, .. } => position.attempt(retry).number().saturating_sub(1),
            Slot::Empty
            | Slot::Ends(_)
            | Slot::Permit(_)
            | Slot::KeyedPermit(_)
            | Slot::BulkheadPermit
            | Slot::LimiterLine(_)
            | Slot::BulkheadLine(_)
            | Slot::Held(_) => self.attempts,
        }
    }

    /// Whether the retry at this step has made a call.
    fn has_called_since(&self, index: usize) -> bool {
        match &self.slots[index] {
            Slot::Retrying { attempts_before, .. } => self.attempts > *attempts_before,
            Slot::Empty
            | Slot::Ends(_)
            | Slot::Permit(_)
            | Slot::KeyedPermit(_)
            | Slot::BulkheadPermit
            | Slot::LimiterLine(_)
            | Slot::BulkheadLine(_)
            | Slot::Held(_) => false,
        }
    }

    fn after_attempt(
        &mut self,
        plan: &Plan,
        index: usize,
        retry: &Retry,
        verdict: Verdict,
        reached: Reached,
    ) -> After {
        if verdict == Verdict::Done {
            return After::Return;
        }
        let outer_end = self.ends().filter(|end| end.index < index).map(|end| end.at).min();
        let Slot::Retrying { position, started, attempt_ends, .. } = &mut self.slots[index] else {
            return After::Return;
        };
        if let Some(statistics) = &plan.statistics {
            position.set_failure_ratio(statistics.failure_ratio());
        }
        let now = plan.clock.now();
        let attempt = position.attempt(retry).number();
        let mut after = position.after(retry, verdict, now.since(*started), &plan.random);
        if let After::Wait(delay) = after {
            if outer_end.is_some_and(|end| now.plus(delay) >= end) {
                after = After::GiveUp(GiveUpReason::Deadline);
            } else if reached == Reached::Yes
                && self
                    .budget
                    .as_ref()
                    .or(plan.budget.as_ref())
                    .is_some_and(|b| b.withdraw().is_err())
            {
                // Repeating a call that never reached the dependency does not load it.

                after = After::GiveUp(GiveUpReason::BudgetExhausted);
            }
        }
        if let After::Wait(delay) = after {
            *attempt_ends = Moment::NEVER;
            if let Some(statistics) = &plan.statistics {
                statistics.retried(delay);
            }
            if let Some(observer) = &plan.observer {
                observer.observe(&Event::Retrying { name: &plan.name, attempt, delay });
            }
        }
        after
    }

    fn begin_retry(&mut self, plan: &Plan, retry: &Retry, now: &mut Option<Moment>) -> Slot {
        let is_timed = retry.is_timed() || self.started.is_some();
        let started = if is_timed { self.now(plan, now) } else { Moment::ZERO };
        let end =
            |limit: Option<Duration>| limit.map_or(Moment::NEVER, |limit| started.plus(limit));
        let mut position = Position::starting_at(1);
        position.suppress_if_nested(retry, self.nested);
        if position.is_suppressed()
            && let Some(observer) = &plan.observer
        {
            observer.observe(&Event::RetrySuppressed { name: &plan.name });
        }
        let (deadline, attempt_ends) =
            (end(retry.deadline_limit()), end(retry.attempt_timeout_limit()));
        let attempts_before = self.attempts;
        Slot::Retrying { position, started, deadline, attempt_ends, attempts_before }
    }

    /// Starts the time limit of the next attempt of the retry that has waited.
    fn restart_attempt(&mut self, plan: &Plan) {
        self.queued_at = 0;
        let Some(index) = self.depth.checked_sub(1) else { return };
        if let (Slot::Retrying { attempt_ends, .. }, Step::Retry(retry)) =
            (&mut self.slots[index], &plan.steps[index])
            && let Some(limit) = retry.attempt_timeout_limit()
        {
            *attempt_ends = plan.clock.now().plus(limit);
        }
    }

    fn attempt(&self, plan: &Plan, now: Option<Moment>) -> Attempt {
        let innermost = self.slots.iter().zip(&plan.steps).rev().find_map(|pair| match pair {
            (Slot::Retrying { position, .. }, Step::Retry(retry)) => Some(position.attempt(retry)),
            _ => None,
        });
        let attempt = innermost.unwrap_or(Attempt::ONLY);
        match self.earliest_end() {
            Moment::NEVER => attempt,
            end => {
                let now = now.unwrap_or_else(|| plan.clock.now());
                attempt.with_time_left(Some(end.since(now)))
            }
        }
    }

    fn now(&mut self, plan: &Plan, now: &mut Option<Moment>) -> Moment {
        let now = *now.get_or_insert_with(|| plan.clock.now());
        self.started.get_or_insert(now);
        now
    }
}
