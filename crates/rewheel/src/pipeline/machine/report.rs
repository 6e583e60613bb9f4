//! Reports the progress of a pipeline run to observers.

use super::Machine;
use crate::classify::{Category, Class, Verdict};
use crate::clock::Moment;
use crate::error::{Error, Refused};
use crate::observer::Event;
use crate::pipeline::Plan;
use crate::retry::Hooks;

impl Machine {
    /// Builds the error of a call that was given up.
    pub(in crate::pipeline) fn give_up<E>(
        &self,
        plan: &Plan,
        refused: Refused,
        category: Category,
        last: Option<E>,
    ) -> Error<E> {
        // The category of a refusal is already part of it.
        let is_said = crate::Classify::classify(&refused).category == category;
        Error::new(refused, self.attempts, self.elapsed(plan), last)
            .with_category((!is_said).then_some(category))
            .with_repeatable(self.repeatable)
    }

    /// Tells the hooks of a call that ends with a value: a good one, or the best there is.
    #[inline]
    pub(in crate::pipeline) fn tell_end<T, E, H: Hooks<T, E>>(
        &self,
        plan: &Plan,
        value: &T,
        (verdict, refused, category): (Verdict, Refused, Category),
        last: Option<E>,
        hooks: &mut H,
    ) {
        if verdict == Verdict::Done {
            hooks.succeeded(value, self.attempts);
        } else {
            hooks.gave_up(&self.give_up(plan, refused, category, last));
        }
    }

    pub(super) fn report_failure(&mut self, plan: &Plan, class: &Class) {
        self.last_category = Some(class.category);
        if let Some(statistics) = &plan.statistics {
            statistics.attempt_failed();
        }
        if let Some(observer) = &plan.observer {
            let attempt = self.attempt(plan, Some(Moment::ZERO)).number();
            observer.observe(&Event::AttemptFailed { name: &plan.name, attempt, class });
        }
    }

    pub(super) fn report_end(&self, plan: &Plan, verdict: Verdict, why: Refused) {
        let succeeded = verdict == Verdict::Done;
        if let Some(statistics) = &plan.statistics {
            if succeeded { statistics.succeeded() } else { statistics.gave_up() }
        }
        if let Some(observer) = &plan.observer {
            let (name, attempts, elapsed) = (&*plan.name, self.attempts, self.elapsed(plan));
            observer.observe(&if succeeded {
                Event::Succeeded { name, attempts, elapsed }
            } else {
                Event::GaveUp { name, why: why.why, attempts, elapsed }
            });
        }
    }
}
