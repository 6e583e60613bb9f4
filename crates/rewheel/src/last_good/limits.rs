//! Limits that one caller brings along, and that others do not have.

use crate::call_context::CallContext;
use crate::classify::Category;
use crate::error::{Error, GiveUpReason};
use crate::nesting::Inside;
use std::time::SystemTime;

/// What the surroundings of a caller impose on its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// A retry around the caller, here or in a calling service, leaves it one attempt.
    one_attempt: bool,
    /// When the service that has called this one stops waiting.
    deadline: Option<SystemTime>,
}

impl Limits {
    /// Returns those of the code that runs now.
    fn own() -> Limits {
        let deadline = CallContext::current().and_then(|context| context.deadline());
        Limits { one_attempt: Inside::is_marked(), deadline }
    }

    /// Returns those of the code that runs now, as far as they have ended its call.
    pub(super) fn that_ended<E>(error: &Error<E>) -> Limits {
        let own = Limits::own();
        if error.is_conclusive() {
            return Limits { one_attempt: false, deadline: None };
        }
        let is_nested = error.reason() == GiveUpReason::Nested;
        let is_late = matches!(error.reason(), GiveUpReason::Deadline | GiveUpReason::Timeout)
            || matches!(error.category(), Category::Deadline | Category::Timeout);
        Limits {
            one_attempt: own.one_attempt && is_nested,
            deadline: own.deadline.filter(|_| is_late),
        }
    }

    /// Returns whether the code that runs now may go on where these limits ended a call.
    pub(super) fn are_tighter_than_own(self) -> bool {
        let own = Limits::own();
        let has_more_time =
            self.deadline.is_some_and(|theirs| own.deadline.is_none_or(|own| own > theirs));
        has_more_time || self.one_attempt && !own.one_attempt
    }
}
