//! The limits on time of a run, and what happens when one is over.

use super::{Machine, Need, Reached, Slot, State};
use crate::classify::{Category, Class, Verdict};
use crate::clock::Moment;
use crate::error::{GiveUpReason, Refused};
use crate::pipeline::{Plan, Step};

/// A limit on time that runs now, and the step that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) index: usize,
    pub(super) at: Moment,
    /// Of a whole retry, which has nothing left to decide when it is over.
    is_deadline: bool,
}

impl Machine {
    /// Returns when the first of the limits that run now is over.
    pub(in crate::pipeline) fn earliest_end(&self) -> Moment {
        self.slots[..self.depth].iter().fold(Moment::NEVER, |earliest, slot| match slot {
            Slot::Ends(at) => earliest.min(*at),
            Slot::Retrying { deadline, attempt_ends, .. } => {
                earliest.min(*deadline).min(*attempt_ends)
            }
            Slot::Empty
            | Slot::Permit(_)
            | Slot::KeyedPermit(_)
            | Slot::BulkheadPermit
            | Slot::LimiterLine(_)
            | Slot::BulkheadLine(_)
            | Slot::Held(_) => earliest,
        })
    }

    /// Returns whether one of the limits that run now is over.
    pub(in crate::pipeline) fn is_over(&self, plan: &Plan) -> bool {
        let now = plan.clock.now();
        self.ends().any(|end| end.at <= now)
    }

    /// Ends what is inside a limit that is over.
    pub(in crate::pipeline) fn cut_if_over(&mut self, plan: &Plan) -> Option<Need> {
        // Asking the time is not free: only where some limit runs.
        self.ends().next()?;
        let now = plan.clock.now();
        // The outermost: what those further in would have to say cannot matter any more.
        let over = self.ends().find(|end| end.at <= now)?;
        let class = Class::retry(Category::Timeout);
        // A call that still waited in a queue has attempted nothing.
        let is_in_chaos = self.is_in_chaos();
        if is_in_chaos {
            self.count_attempt(plan);
        }
        let is_called = self.state == State::Calling || is_in_chaos;
        let reached = if is_called { Reached::Yes } else { Reached::No };
        let had_its_time = reached == Reached::Yes && self.had_its_time(plan, &over);
        if reached == Reached::Yes {
            // While the retry that knows the number of the attempt is still entered.
            self.report_failure(plan, &class);
        }
        self.leave_cut(plan, over.index + 1, had_its_time.then_some(&class));
        let (why, verdict) = if over.is_deadline {
            let why = self.reason_of_deadline(over.index);
            self.release(plan, over.index);
            (why, Verdict::Stop)
        } else {
            (GiveUpReason::Timeout, Verdict::Retry)
        };
        Some(self.leave(plan, &class, verdict, Some(Refused::new(why, None)), reached))
    }

    fn reason_of_deadline(&self, index: usize) -> GiveUpReason {
        match &self.slots[index] {
            Slot::Retrying { position, .. } => position.reason(GiveUpReason::Deadline),
            Slot::Empty
            | Slot::Ends(_)
            | Slot::Permit(_)
            | Slot::KeyedPermit(_)
            | Slot::BulkheadPermit
            | Slot::LimiterLine(_)
            | Slot::BulkheadLine(_)
            | Slot::Held(_) => GiveUpReason::Deadline,
        }
    }

    /// Returns whether the running attempt had all the time of the limit, and no answer is a failure,
    /// also for a breaker inside of the limit. An attempt that waited in a queue inside of the limit,
    /// or that follows another attempt inside of it, may have just begun.
    fn had_its_time(&self, plan: &Plan, over: &End) -> bool {
        if self.queued_at > over.index {
            return false;
        }
        if !over.is_deadline && plan.is_limit_of_attempt(over.index) {
            return true;
        }
        let mut inside = self.slots.iter().zip(&plan.steps).skip(over.index);
        inside.all(|pair| match pair {
            (Slot::Retrying { position, .. }, Step::Retry(retry)) => {
                !position.attempt(retry).is_retry()
            }
            _ => true,
        })
    }

    /// Every limit on time that runs now, outermost first.
    pub(super) fn ends(&self) -> impl Iterator<Item = End> {
        let limit =
            |index, at, is_deadline| (at < Moment::NEVER).then_some(End { index, at, is_deadline });
        self.slots[..self.depth]
            .iter()
            .enumerate()
            .flat_map(move |(index, slot)| match slot {
                Slot::Ends(at) => [limit(index, *at, false), None],
                Slot::Retrying { deadline, attempt_ends, .. } => {
                    [limit(index, *deadline, true), limit(index, *attempt_ends, false)]
                }
                Slot::Empty
                | Slot::Permit(_)
                | Slot::KeyedPermit(_)
                | Slot::BulkheadPermit
                | Slot::LimiterLine(_)
                | Slot::BulkheadLine(_)
                | Slot::Held(_) => [None, None],
            })
            .flatten()
    }
}
