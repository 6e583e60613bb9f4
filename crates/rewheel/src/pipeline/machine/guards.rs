//! Enters and leaves the steps whose state is in their slot: guards, and steps of a key that can wait.

use super::{Machine, Need, Reached, Slot};
use crate::adaptive::Started;
use crate::breaker::Outcome;
use crate::bulkhead::{self, Bulkhead};
use crate::classify::{Class, Classify};
use crate::clock::Moment;
use crate::error::Refused;
use crate::limiter::{self, Admission, RateLimiter};
use crate::pipeline::guard::Guard;
use crate::pipeline::keyed::{Entered, Policies};
use crate::pipeline::{Plan, Step};
use crate::throttle::{ClientThrottle, Counted};
use std::task::Waker;

/// What such a step holds.
#[derive(Debug)]
pub(in crate::pipeline) enum Held {
    Adaptive(Started),
    AdaptiveLine(bulkhead::Waiting),
    Throttled(Counted),
    KeyedThrottled(ClientThrottle, Counted),
    KeyedBulkhead(Bulkhead),
    KeyedBulkheadLine(Bulkhead, bulkhead::Waiting),
    KeyedLimiterLine(RateLimiter, limiter::Waiting),
    /// A chaos policy keeps the call until then.
    #[cfg_attr(not(feature = "chaos"), expect(dead_code, reason = "only a chaos step makes it"))]
    Chaos(Moment),
}

/// What comes of entering a step.
pub(super) enum Passage {
    Entered,
    Refused(Refused),
    /// Ask again then, or when woken.
    Later(Moment),
    /// The call fails as if it had been made.
    #[cfg_attr(not(feature = "chaos"), expect(dead_code, reason = "only a chaos step makes it"))]
    Failed(Refused),
}

impl Machine {
    /// Enters the step at this depth, or asks again whether it may.
    #[inline(never)]
    pub(super) fn enter_slot(
        &mut self,
        plan: &Plan,
        policies: &dyn Policies,
        waker: &Waker,
    ) -> Passage {
        let depth = self.depth;
        let passage =
            match (std::mem::replace(&mut self.slots[depth], Slot::Empty), &plan.steps[depth]) {
                (Slot::Held(held), step) => self.ask_again(plan, step, held, waker),
                (_, Step::Guard(guard)) => self.enter_guard(plan, guard, waker),
                (_, Step::Keyed(keyed)) => match policies.enter(keyed.index) {
                    Ok(entry) => self.enter_keyed(plan, entry.0, waker),
                    Err(refused) => Passage::Refused(refused),
                },
                _ => Passage::Entered,
            };
        if matches!(passage, Passage::Later(_)) && !self.is_in_chaos() {
            self.queued_at = depth + 1;
        }
        passage
    }

    fn hold(&mut self, held: Held) {
        self.slots[self.depth] = Slot::Held(held);
    }

    fn enter_guard(&mut self, plan: &Plan, guard: &Guard, waker: &Waker) -> Passage {
        match guard {
            Guard::Adaptive(_) => self.ask_again(
                plan,
                &plan.steps[self.depth],
                Held::AdaptiveLine(<_>::default()),
                waker,
            ),
            Guard::Throttle(throttle) => match throttle.enter() {
                Ok(counted) => {
                    self.hold(Held::Throttled(counted));
                    Passage::Entered
                }
                Err(refused) => Passage::Refused(refused),
            },
            #[cfg(feature = "chaos")]
            Guard::Chaos(chaos) => match chaos.draw() {
                None => Passage::Entered,
                Some(crate::chaos::Fault::Fail) => {
                    Passage::Failed(Refused::new(crate::GiveUpReason::Chaos, None))
                }
                Some(crate::chaos::Fault::Until(at)) => {
                    let at = plan.clock.convert(at, chaos.clock());
                    self.hold(Held::Chaos(at));
                    Passage::Later(at)
                }
            },
        }
    }

    fn enter_keyed(&mut self, plan: &Plan, entered: Entered, waker: &Waker) -> Passage {
        let step = &plan.steps[self.depth];
        match entered {
            Entered::Nothing => Passage::Entered,
            Entered::Permit(permit) => {
                self.slots[self.depth] = Slot::KeyedPermit(permit);
                Passage::Entered
            }
            Entered::Throttle(throttle, counted) => {
                self.hold(Held::KeyedThrottled(throttle, counted));
                Passage::Entered
            }
            Entered::Bulkhead(bulkhead) => {
                let held = Held::KeyedBulkheadLine(bulkhead, <_>::default());
                self.ask_again(plan, step, held, waker)
            }
            Entered::Line(limiter) => {
                let held = Held::KeyedLimiterLine(limiter, <_>::default());
                self.ask_again(plan, step, held, waker)
            }
        }
    }

    /// Asks a step in whose queue the call waits.
    fn ask_again(&mut self, plan: &Plan, step: &Step, held: Held, waker: &Waker) -> Passage {
        match (held, step) {
            (Held::AdaptiveLine(mut line), Step::Guard(Guard::Adaptive(limit))) => {
                match line.poll(limit.slots(), waker) {
                    bulkhead::Entry::Entered(in_use) => {
                        self.hold(Held::Adaptive(limit.started(in_use)));
                        Passage::Entered
                    }
                    bulkhead::Entry::Refused(refused) => Passage::Refused(refused),
                    bulkhead::Entry::Later(at) => {
                        self.hold(Held::AdaptiveLine(line));
                        Passage::Later(plan.clock.convert(at, limit.slots().clock()))
                    }
                }
            }
            (Held::KeyedBulkheadLine(bulkhead, mut line), _) => match line.poll(&bulkhead, waker) {
                bulkhead::Entry::Entered(_) => {
                    self.hold(Held::KeyedBulkhead(bulkhead));
                    Passage::Entered
                }
                bulkhead::Entry::Refused(refused) => Passage::Refused(refused),
                bulkhead::Entry::Later(at) => {
                    let at = plan.clock.convert(at, bulkhead.clock());
                    self.hold(Held::KeyedBulkheadLine(bulkhead, line));
                    Passage::Later(at)
                }
            },
            (Held::KeyedLimiterLine(limiter, mut line), _) => match line.poll(&limiter, 1, waker) {
                Admission::Admitted => Passage::Entered,
                Admission::Refused(refused) => Passage::Refused(refused),
                Admission::Later(at) => {
                    let at = plan.clock.convert(at, limiter.clock());
                    self.hold(Held::KeyedLimiterLine(limiter, line));
                    Passage::Later(at)
                }
            },
            (Held::Chaos(until), _) if plan.clock.now() < until => {
                self.hold(Held::Chaos(until));
                Passage::Later(until)
            }
            (Held::Chaos(_), _) => Passage::Entered,
            // These are held by steps that have been entered.
            (held, _) => {
                debug_assert!(false, "a step was entered twice: {held:?}");
                self.hold(held);
                Passage::Entered
            }
        }
    }

    /// Gives back what such a step holds, with the outcome of the call if there was one.
    #[inline(never)]
    pub(super) fn give_back_held(&self, step: &Step, held: Held, class: Option<&Class>) {
        let outcome = || if self.is_dropped { None } else { class.and_then(Outcome::of_class) };
        match (held, step) {
            (Held::Adaptive(started), Step::Guard(Guard::Adaptive(limit))) => {
                limit.record(started, outcome());
            }
            (Held::AdaptiveLine(mut line), Step::Guard(Guard::Adaptive(limit))) => {
                line.leave(limit.slots());
            }
            (Held::Throttled(counted), Step::Guard(Guard::Throttle(throttle))) => {
                throttle.record(counted, outcome());
            }
            (Held::KeyedThrottled(throttle, counted), _) => throttle.record(counted, outcome()),
            (Held::KeyedBulkhead(bulkhead), _) => bulkhead.release(),
            (Held::KeyedBulkheadLine(bulkhead, mut line), _) => line.leave(&bulkhead),
            (Held::KeyedLimiterLine(limiter, mut line), _) => line.leave(&limiter),
            (
                Held::Adaptive(_) | Held::AdaptiveLine(_) | Held::Throttled(_) | Held::Chaos(_),
                _,
            ) => {}
        }
    }

    /// Returns whether a chaos policy makes the call wait or hang now: as if the call had been made.
    pub(super) fn is_in_chaos(&self) -> bool {
        matches!(self.slots.get(self.depth), Some(Slot::Held(Held::Chaos(_))))
    }

    /// Counts an attempt.
    #[inline]
    pub(super) fn count_attempt(&mut self, plan: &Plan) {
        self.attempts = self.attempts.saturating_add(1);
        let budget = self.budget.as_ref().or(plan.budget.as_ref());
        if let (1, false, Some(budget)) = (self.attempts, self.is_counted, budget) {
            budget.deposit();
        }
    }

    /// Goes on after a chaos policy made the call fail.
    #[cold]
    pub(super) fn failed_by_chaos(&mut self, plan: &Plan, refused: Refused) -> Need {
        let class = refused.classify();
        self.count_attempt(plan);
        self.repeatable = true;
        self.report_failure(plan, &class);
        self.leave(plan, &class, class.verdict, Some(refused), Reached::Yes)
    }
}
