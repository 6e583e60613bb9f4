//! Audit log entries for changes made by the engine itself.

use super::AuditFields;
use crate::failure::{Failure, clean};
use crate::id::{Fence, HolderId};
use crate::job::Wanted;
use crate::limits::Limits;
use crate::state::{Cause, State};

/// A change that the engine made to a job. The audit log records only takeovers and jobs that ended without success.
///
/// ```
/// use rewheel_core::{Cause, Failure, Transition, Fence, State};
///
/// let failure = Failure::of_deadline();
/// let transition = Transition {
///     cause: Cause::Deadline,
///     from: State::Scheduled,
///     to: State::Dead,
///     holder: None,
///     fence: Fence::new(4),
///     wanted: None,
///     takeovers: 0,
///     takeovers_counted: 0,
///     failure: Some(&failure),
/// };
/// let note = transition.notes().next().expect("a death is noted");
/// assert_eq!(note.what, "dead");
/// assert_eq!(note.before.iter().next(), Some(("state", Some("scheduled"))));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Transition<'a> {
    /// What caused the change.
    pub cause: Cause,
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The holder of the job, if known.
    pub holder: Option<HolderId>,
    /// The fence of the holder's lease.
    pub fence: Fence,
    /// The pause or cancel that a user requested while the job was leased.
    pub wanted: Option<Wanted>,
    /// Number of takeovers so far, including this one.
    pub takeovers: u32,
    /// Number of takeovers that count against the job's limit.
    pub takeovers_counted: u32,
    /// The failure, if there is one.
    pub failure: Option<&'a Failure>,
}

/// An audit log entry without author, time and job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditNote {
    /// What happened: `takeover`, or the state in which the job ended.
    pub what: &'static str,
    /// The changed values before the change.
    pub before: AuditFields,
    /// The changed values after the change.
    pub after: AuditFields,
}

impl Transition<'_> {
    /// Returns the notes to write, in order. An end made by the engine is named after the state (`cancelled`); a user's change is
    /// named after the verb (`cancel`).
    pub fn notes(&self) -> impl Iterator<Item = AuditNote> + use<> {
        [self.takeover(), self.ending()].into_iter().flatten()
    }

    fn takeover(&self) -> Option<AuditNote> {
        (self.cause == Cause::Takeover).then(|| AuditNote {
            what: "takeover",
            before: self.before(),
            after: state(self.to)
                .with("takeovers", Some(self.takeovers))
                .with("takeovers_counted", Some(self.takeovers_counted)),
        })
    }

    fn ending(&self) -> Option<AuditNote> {
        match self.to {
            State::Scheduled | State::Leased | State::Paused | State::Succeeded => None,
            State::Dead | State::Failed | State::Cancelled => Some(AuditNote {
                what: self.to.as_str(),
                before: self.before(),
                after: self.after_end(),
            }),
        }
    }

    fn before(&self) -> AuditFields {
        let mut facts = state(self.from);
        if self.from == State::Leased {
            facts = facts.with("holder", self.holder).with("fence", Some(self.fence.get()));
        }
        match self.wanted {
            Some(wanted) => facts.with("wanted", Some(wanted.as_str())),
            None => facts,
        }
    }

    fn after_end(&self) -> AuditFields {
        let facts = state(self.to);
        let Some(failure) = self.failure else { return facts };
        let facts = facts.with("category", Some(failure.category()));
        let facts = match failure.code() {
            Some(code) => facts.with("code", Some(code)),
            None => facts,
        };
        let message = clean(failure.message(), Limits::AUDIT_MESSAGE_BYTES_MAX);
        if message.is_empty() { facts } else { facts.with("message", Some(message)) }
    }
}

fn state(state: State) -> AuditFields {
    AuditFields::default().with("state", Some(state))
}

#[cfg(test)]
mod tests {
    use super::{AuditFields, AuditNote, Failure, Fence, Limits, Transition};
    use crate::id::HolderId;
    use crate::job::Wanted;
    use crate::state::{Cause, State};
    use rewheel::Category;

    fn transition(cause: Cause, from: State, to: State) -> Transition<'static> {
        let holder = Some(HolderId::from_bytes([7; 16]));
        Transition {
            cause,
            from,
            to,
            holder,
            fence: Fence::new(3),
            wanted: None,
            takeovers: 2,
            takeovers_counted: 1,
            failure: None,
        }
    }

    fn whats(transition: &Transition<'_>) -> Vec<&'static str> {
        transition.notes().map(|note| note.what).collect()
    }

    fn said(facts: &AuditFields) -> String {
        let pairs: Vec<String> = facts
            .iter()
            .map(|(name, value)| format!("{name}={}", value.unwrap_or("none")))
            .collect();
        pairs.join(" ")
    }

    #[test]
    fn only_takeovers_and_ends_that_are_no_success_are_noted() {
        let every = [Cause::Settle, Cause::GiveBack, Cause::Takeover, Cause::Deadline];
        for (cause, to) in every.into_iter().flat_map(|c| State::ALL.map(|to| (c, to))) {
            let is_taken = cause == Cause::Takeover;
            let is_end = matches!(to, State::Dead | State::Failed | State::Cancelled);
            let mut expected = if is_taken { vec!["takeover"] } else { vec![] };
            expected.extend(is_end.then_some(to.as_str()));
            assert_eq!(whats(&transition(cause, State::Leased, to)), expected, "{cause:?} {to}");
        }
    }

    #[test]
    fn a_takeover_names_whom_it_was_taken_from() {
        let transition = transition(Cause::Takeover, State::Leased, State::Scheduled);
        let AuditNote { before, after, .. } = transition.notes().next().unwrap();
        let holder = HolderId::from_bytes([7; 16]);
        assert_eq!(said(&before), format!("state=leased holder={holder} fence=3"));
        assert_eq!(said(&after), "state=scheduled takeovers=2 takeovers_counted=1");
    }

    #[test]
    fn an_end_says_why_in_a_few_words() {
        let failure = Failure::new(Category::Timeout, Some("504"), &"é".repeat(1_000));
        let settled = transition(Cause::Settle, State::Leased, State::Dead);
        let note = Transition { failure: Some(&failure), ..settled }.notes().next().unwrap();
        let text = "é".repeat(Limits::AUDIT_MESSAGE_BYTES_MAX / 2);
        let expected = format!("state=dead category=timeout code=504 message={text}");
        assert_eq!(said(&note.after), expected);
        let bare = Failure::new(Category::Unknown, None, "");
        let note = Transition { failure: Some(&bare), ..settled }.notes().next().unwrap();
        assert_eq!(said(&note.after), "state=dead category=unknown");
    }

    #[test]
    fn an_end_says_what_it_obeyed() {
        let given_back = transition(Cause::GiveBack, State::Leased, State::Cancelled);
        let wanted = Transition { wanted: Some(Wanted::Cancel), holder: None, ..given_back };
        let note = wanted.notes().next().unwrap();
        assert_eq!(said(&note.before), "state=leased holder=none fence=3 wanted=cancel");
        assert_eq!(said(&note.after), "state=cancelled");
    }

    #[test]
    fn a_scheduled_job_has_no_holder() {
        let late = transition(Cause::Deadline, State::Scheduled, State::Dead);
        assert_eq!(said(&late.notes().next().unwrap().before), "state=scheduled");
    }
}
