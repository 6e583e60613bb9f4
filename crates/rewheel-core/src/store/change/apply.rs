//! Applies a user's change to a job, with the same result in every store.

use super::{Change, ChangeScope, ChangeVerb, Changed, Edit};
use crate::audit::AuditFields;
use crate::decision::DueReason;
use crate::job::{Job, Status, Wanted, When};
use crate::state::State;
use crate::timestamp::Timestamp;

impl Change {
    /// Returns the job after the change, with its version unchanged. Pure; the store only writes the result.
    ///
    /// # Errors
    /// Fails with the result of a change that changes nothing.
    pub fn apply(
        &self,
        before: &Job,
        now: Timestamp,
        payload_bytes_max: usize,
    ) -> Result<Job, Changed> {
        let is_of_engine = match self.scope {
            ChangeScope::Users => matches!(self.what, ChangeVerb::Abort),
            ChangeScope::Engine => true,
        };
        if before.lane.kind.is_reserved() != is_of_engine {
            return Err(Changed::Reserved);
        }
        self.what.apply(before, now, payload_bytes_max)
    }
}

impl ChangeVerb {
    /// Returns the job after the change of any job.
    fn apply(
        &self,
        before: &Job,
        now: Timestamp,
        payload_bytes_max: usize,
    ) -> Result<Job, Changed> {
        let (state, version) = (before.state(), before.version);
        let mut after = before.clone();
        if let Status::Leased { wanted, .. } = &mut after.status {
            *wanted = self.wants(*wanted).ok_or(Changed::WrongState(state))?;
        } else if !self.is_done(state) {
            let to = self.leads_to(state).ok_or(Changed::WrongState(state))?;
            match self {
                ChangeVerb::Pause | ChangeVerb::Resume | ChangeVerb::Cancel | ChangeVerb::Abort => {
                }
                ChangeVerb::Retry => go_on(now, &mut after, None)?,
                ChangeVerb::Redrive { deadline } => go_on(now, &mut after, *deadline)?,
                ChangeVerb::Edit(edit) => edit.apply(now, &mut after, payload_bytes_max)?,
            }
            if to != state {
                after.status = status(to, now);
            }
        }
        if after == *before {
            return Err(Changed::Unchanged { state, version });
        }
        Ok(after)
    }

    /// Returns the audit log values before and after the change.
    pub fn facts(&self, before: &Job, after: &Job) -> (AuditFields, AuditFields) {
        let of = |job: &Job| match self {
            ChangeVerb::Edit(edit) => edit.facts(job),
            ChangeVerb::Pause | ChangeVerb::Resume | ChangeVerb::Cancel | ChangeVerb::Abort
                if before.state() == State::Leased =>
            {
                AuditFields::default().with("wanted", job.status.wanted().map(Wanted::as_str))
            }
            ChangeVerb::Pause | ChangeVerb::Resume | ChangeVerb::Cancel | ChangeVerb::Abort => {
                state_of(job)
            }
            ChangeVerb::Retry | ChangeVerb::Redrive { .. } if before.deadline != after.deadline => {
                state_of(job).with("deadline", job.deadline.map(Timestamp::as_millis))
            }
            ChangeVerb::Retry | ChangeVerb::Redrive { .. } => state_of(job),
        };
        (of(before), of(after))
    }

    /// Returns whether a job without a holder is already in the requested state.
    const fn is_done(&self, state: State) -> bool {
        match self {
            ChangeVerb::Pause => matches!(state, State::Paused),
            ChangeVerb::Resume => matches!(state, State::Scheduled),
            ChangeVerb::Cancel | ChangeVerb::Abort => matches!(state, State::Cancelled),
            ChangeVerb::Retry | ChangeVerb::Redrive { .. } | ChangeVerb::Edit(_) => false,
        }
    }

    /// Returns the request for a leased job after this change. `None`: its holder cannot apply the
    /// change.
    const fn wants(&self, wanted: Option<Wanted>) -> Option<Option<Wanted>> {
        match (self, wanted) {
            // A pause does not replace a requested cancellation.
            (ChangeVerb::Pause, Some(wanted)) => Some(Some(wanted)),
            (ChangeVerb::Pause, None) => Some(Some(Wanted::Pause)),
            (ChangeVerb::Cancel | ChangeVerb::Abort, _) => Some(Some(Wanted::Cancel)),
            (ChangeVerb::Resume, Some(Wanted::Cancel)) => Some(Some(Wanted::Cancel)),
            (ChangeVerb::Resume, Some(Wanted::Pause) | None) => Some(None),
            (ChangeVerb::Retry | ChangeVerb::Redrive { .. } | ChangeVerb::Edit(_), _) => None,
        }
    }
}

impl Edit {
    fn apply(
        &self,
        now: Timestamp,
        job: &mut Job,
        payload_bytes_max: usize,
    ) -> Result<(), Changed> {
        if let Some(payload) = &self.payload {
            if payload.len() > payload_bytes_max {
                return Err(Changed::TooLarge { bytes_max: payload_bytes_max });
            }
            job.payload = Some(payload.clone());
        }
        if let Some(priority) = self.priority {
            job.lane.priority = priority;
        }
        if let Some(due) = self.due {
            job.due = due.resolve(now);
            job.because = DueReason::Person;
        }
        if let Some(deadline) = self.deadline {
            job.deadline = deadline.map(|deadline| deadline.resolve(now));
        }
        if let Some(attempts_max) = self.attempts_max {
            job.attempts_max = Some(attempts_max);
        }
        // As for a new job: a deadline before the due time is a mistake.
        let is_timed = self.due.is_some() || self.deadline.is_some();
        let is_late = |deadline: Timestamp| deadline <= now || deadline < job.due;
        if is_timed && job.deadline.is_some_and(is_late) {
            return Err(Changed::NeedsDeadline);
        }
        Ok(())
    }

    /// Returns the current values that the edit changes.
    fn facts(&self, job: &Job) -> AuditFields {
        let mut facts = AuditFields::default();
        if self.payload.is_some() {
            let text = job.payload.as_deref().map(String::from_utf8_lossy);
            facts = facts.with("payload", text);
        }
        if self.priority.is_some() {
            facts = facts.with("priority", Some(job.lane.priority.get()));
        }
        if self.due.is_some() {
            facts = facts.with("due", Some(job.due.as_millis()));
        }
        if self.deadline.is_some() {
            facts = facts.with("deadline", job.deadline.map(Timestamp::as_millis));
        }
        if self.attempts_max.is_some() {
            facts = facts.with("attempts_max", job.attempts_max);
        }
        facts
    }
}

fn state_of(job: &Job) -> AuditFields {
    AuditFields::default().with("state", Some(job.state()))
}

/// Makes a job due now, unless its deadline has passed.
fn go_on(now: Timestamp, job: &mut Job, deadline: Option<When>) -> Result<(), Changed> {
    if let Some(deadline) = deadline {
        job.deadline = Some(deadline.resolve(now));
    }
    if job.deadline.is_some_and(|deadline| deadline <= now) {
        return Err(Changed::NeedsDeadline);
    }
    if job.state() == State::Dead {
        job.attempts_before = job.attempt;
    }
    job.due = now;
    job.because = DueReason::Person;
    Ok(())
}

fn status(state: State, now: Timestamp) -> Status {
    match state {
        State::Scheduled => Status::Scheduled,
        State::Paused => Status::Paused,
        State::Cancelled => Status::Cancelled(now),
        State::Leased | State::Succeeded | State::Failed | State::Dead => {
            unreachable!("an operator cannot change a job to {state}")
        }
    }
}
