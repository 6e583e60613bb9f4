//! What the steps of a run hold while they are entered, and how it is given back.

use super::Machine;
use super::guards::Held;
use crate::breaker::OwnedPermit;
use crate::bulkhead;
use crate::classify::Class;
use crate::clock::Moment;
use crate::limiter;
use crate::pipeline::{Plan, STEPS_MAX, Step};
use crate::retry::Position;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// One for each step. There are none before it is begun, since clearing and dropping them is most of
/// what a call without policies would cost.
#[derive(Debug)]
pub(super) struct Slots(Option<[Slot; STEPS_MAX]>);

impl Slots {
    /// Not a constant: that would be copied whole.
    #[inline]
    pub(super) const fn none() -> Slots {
        Slots(None)
    }

    /// Ends a run that has left all its steps. Their slots hold nothing; to drop them one by one would cost more than to leave a step.
    #[inline]
    pub(super) fn end(&mut self) {
        debug_assert!(self.iter().all(|slot| matches!(slot, Slot::Empty)), "{self:?}");
        let _ = ManuallyDrop::new(self.0.take());
    }

    #[inline]
    pub(super) fn prepare(&mut self) {
        if self.0.is_none() {
            self.0 = Some([const { Slot::Empty }; STEPS_MAX]);
        }
    }
}

impl Deref for Slots {
    type Target = [Slot];

    #[inline]
    fn deref(&self) -> &[Slot] {
        self.0.as_ref().map_or(&[], |slots| slots)
    }
}

impl DerefMut for Slots {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Slot] {
        self.0.as_mut().map_or(&mut [], |slots| slots)
    }
}

/// What a step needs while it is entered.
#[derive(Debug)]
pub(super) enum Slot {
    Empty,
    Ends(Moment),
    Retrying {
        position: Position,
        started: Moment,
        deadline: Moment,
        attempt_ends: Moment,
        /// How many calls had been made before.
        attempts_before: u32,
    },
    Permit(crate::breaker::Token),
    KeyedPermit(OwnedPermit),
    BulkheadPermit,
    LimiterLine(limiter::Waiting),
    BulkheadLine(bulkhead::Waiting),
    Held(Held),
}

impl Machine {
    #[inline]
    pub(super) fn release_slot(&mut self, plan: &Plan, index: usize, class: Option<&Class>) {
        match &self.slots[index] {
            // Nothing to give back.
            Slot::Empty => {}
            Slot::Ends(_) | Slot::Retrying { .. } => self.slots[index] = Slot::Empty,
            Slot::Permit(token) => {
                let token = *token;
                self.slots[index] = Slot::Empty;
                if let Step::CircuitBreaker(breaker) = &plan.steps[index] {
                    if self.is_dropped {
                        breaker.machine().record_dropped(token);
                    } else {
                        let machine = breaker.machine();
                        machine.record(token, class.and_then(|class| machine.judge_class(class)));
                    }
                }
            }
            Slot::KeyedPermit(_)
            | Slot::BulkheadPermit
            | Slot::LimiterLine(_)
            | Slot::BulkheadLine(_)
            | Slot::Held(_) => self.give_back(plan, index, class),
        }
    }

    /// Gives back what the slot holds, which takes more than a permit does.
    #[inline(never)]
    fn give_back(&mut self, plan: &Plan, index: usize, class: Option<&Class>) {
        match (std::mem::replace(&mut self.slots[index], Slot::Empty), &plan.steps[index]) {
            (Slot::KeyedPermit(permit), _) if self.is_dropped => drop(permit),
            (Slot::KeyedPermit(permit), _) => permit.finish_class(class),
            (Slot::BulkheadPermit, Step::Bulkhead(bulkhead)) => bulkhead.release(),
            (Slot::LimiterLine(mut line), Step::RateLimiter(limiter)) => line.leave(limiter),
            (Slot::BulkheadLine(mut line), Step::Bulkhead(bulkhead)) => line.leave(bulkhead),
            (Slot::Held(held), step) => self.give_back_held(step, held, class),
            _ => {}
        }
    }

    /// Takes the place in a limiter's line that an earlier poll left here.
    pub(super) fn take_limiter_line(&mut self) -> limiter::Waiting {
        let slot = &mut self.slots[self.depth];
        let Slot::LimiterLine(line) = slot else { return limiter::Waiting::default() };
        let line = std::mem::take(line);
        *slot = Slot::Empty;
        line
    }

    pub(super) fn take_bulkhead_line(&mut self) -> bulkhead::Waiting {
        let slot = &mut self.slots[self.depth];
        let Slot::BulkheadLine(line) = slot else { return bulkhead::Waiting::default() };
        let line = std::mem::take(line);
        *slot = Slot::Empty;
        line
    }
}
