//! One call that goes from target to target: everything except the calls themselves.

use super::{Order, Shared};
use crate::breaker::{Outcome, OwnedPermit};
use crate::classify::Category;
use crate::clock::Moment;
use crate::error::{Error, GiveUpReason, Refused};
use crate::observer::Event;
use crate::sync::Ordering;
use std::time::Duration;

/// What a call does next.
pub(super) enum Turn<E> {
    Call(usize, OwnedPermit),
    GiveUp(Error<E>),
}

pub(super) struct Round<'a, T, E> {
    shared: &'a Shared<T>,
    /// The position of the first target in the list.
    first: usize,
    /// By how many places the targets after the first are turned.
    turned: usize,
    /// How many targets were considered, from the first on.
    considered: usize,
    /// Whether the targets that are left out are considered now.
    last_resort: bool,
    tries: usize,
    attempts: u32,
    began: Moment,
    retry_in: Option<Duration>,
    last: Option<(Error<E>, Category)>,
}

impl<'a, T, E> Round<'a, T, E> {
    pub(super) fn new(shared: &'a Shared<T>) -> Round<'a, T, E> {
        let count = shared.targets.len();
        let (first, turned) = match shared.order {
            Order::AsListed => (0, 0),
            Order::RoundRobin => {
                let next = shared.next.fetch_add(1, Ordering::Relaxed);
                (next % count, next / count)
            }
        };
        if let Some(budget) = &shared.budget {
            budget.deposit();
        }
        Round {
            shared,
            first,
            turned,
            considered: 0,
            last_resort: false,
            tries: 0,
            attempts: 0,
            began: shared.clock.now(),
            retry_in: None,
            last: None,
        }
    }

    /// Returns the next target that may be called.
    pub(super) fn turn(&mut self) -> Turn<E> {
        if self.tries >= self.shared.tries_max {
            return self.give_up(GiveUpReason::TargetsExhausted);
        }
        loop {
            let Some(index) = self.next_index() else {
                let why = match self.last {
                    Some(_) => GiveUpReason::TargetsExhausted,
                    None => GiveUpReason::CircuitOpen,
                };
                return self.give_up(why);
            };
            match self.shared.targets[index].breaker.acquire_owned() {
                Err(refused) => {
                    let waits = self.retry_in.into_iter().chain(refused.retry_in);
                    self.retry_in = waits.min();
                }
                // The first try is never refused. Without a permit, nothing is left to pay.
                Ok(permit) => {
                    let budget = self.shared.budget.as_ref().filter(|_| self.attempts > 0);
                    if budget.is_some_and(|budget| budget.withdraw().is_err()) {
                        drop(permit);
                        return self.give_up(GiveUpReason::BudgetExhausted);
                    }
                    self.tries += 1;
                    return Turn::Call(index, permit);
                }
            }
        }
    }

    /// Returns the next target in order: first all that are not left out, and if none of them was called, the others.
    fn next_index(&mut self) -> Option<usize> {
        let count = self.shared.targets.len();
        loop {
            if self.considered == count {
                if self.last_resort || self.tries > 0 || self.shared.ejections.is_none() {
                    return None;
                }
                (self.considered, self.last_resort) = (0, true);
            }
            let index = self.index(self.considered, count);
            self.considered += 1;
            if self.shared.is_ejected(index) == self.last_resort {
                return Some(index);
            }
        }
    }

    /// Returns the target at a position of this round. The others follow the first in an order that changes with each round:
    /// otherwise one of them would get all calls of a target that is down.
    fn index(&self, position: usize, count: usize) -> usize {
        let after_first = match position.checked_sub(1) {
            Some(position) => 1 + (position + self.turned) % (count - 1),
            None => 0,
        };
        (self.first + after_first) % count
    }

    /// Records a result. Returns what the call returns, unless another target should be called.
    pub(super) fn after<V>(
        &mut self,
        index: usize,
        permit: OwnedPermit,
        result: Result<V, Error<E>>,
    ) -> Option<Result<V, Error<E>>> {
        let error = match result {
            Ok(value) => {
                permit.success();
                self.count(index, false);
                return Some(Ok(value));
            }
            Err(error) => error,
        };
        let (category, outcome) = (error.category(), outcome_of(&error));
        if let (Some(delay), Some(Outcome::Failure)) = (error.retry_in(), outcome) {
            permit.hear(delay);
        }
        permit.finish(outcome);
        if let Some(outcome) = outcome {
            self.count(index, outcome == Outcome::Failure);
        }
        self.attempts = self.attempts.saturating_add(error.attempts());
        // An outer retry repeats the call, but only after the other targets.
        if error.may_succeed_later() || error.reason() == GiveUpReason::Nested {
            let Shared { name, observer, .. } = self.shared;
            if let Some(observer) = observer {
                observer.observe(&Event::FailedOver { name, target: index, category });
            }
            self.keep(error, category);
            return None;
        }
        let why = Refused::new(error.reason(), error.retry_in());
        Some(Err(self.error(why, error, category)))
    }

    /// The refusal of a policy does not replace a failure of a target, which says more.
    fn keep(&mut self, error: Error<E>, category: Category) {
        if error.attempts() > 0 || self.last.is_none() {
            self.last = Some((error, category));
        }
    }

    fn count(&self, index: usize, failed: bool) {
        let Shared { ejections, clock, name, observer, .. } = self.shared;
        let Some((_, ejections)) = ejections else { return };
        if let (Some(ejected_for), Some(observer)) =
            (ejections.record(index, failed, clock.now()), observer)
        {
            observer.observe(&Event::TargetEjected { name, target: index, ejected_for });
        }
    }

    fn give_up(&mut self, why: GiveUpReason) -> Turn<E> {
        let refused = Refused::new(why, self.retry_in);
        Turn::GiveUp(match self.last.take() {
            // Only policies refused it: their reason is the reason.
            Some((error, _)) if self.attempts == 0 && why != GiveUpReason::BudgetExhausted => error,
            Some((error, category)) => self.error(refused, error, category),
            None => Error::new(refused, 0, self.elapsed(), None),
        })
    }

    fn error(&self, why: Refused, last: Error<E>, category: Category) -> Error<E> {
        Error::new(why, self.attempts, self.elapsed(), last.into_last())
            .with_category(Some(category))
    }

    fn elapsed(&self) -> Duration {
        self.shared.clock.now().since(self.began)
    }
}

/// Returns what an error says about the target.
fn outcome_of<E>(error: &Error<E>) -> Option<Outcome> {
    if error.attempts() == 0 {
        return None;
    }
    let category = error.category();
    if category == Category::Rejected {
        return Some(Outcome::Success);
    }
    category.blames_dependency().then_some(Outcome::Failure)
}
