//! Does what people ask for.

use super::verbs::PAYLOAD_BYTES_MAX;
use super::world::{Note, Row, World};
use rewheel_core::store::{Change, Changed, Edit, What};
use rewheel_core::{
    Actor, Because, Facts, Job, JobId, Keep, State, Status, Timestamp, Wanted, When,
};

/// What is asked, whichever job it is about.
struct Request<'a> {
    what: &'a What,
    by: &'a Actor,
    keep: Keep,
    now: Timestamp,
}

impl World {
    pub(super) fn change(
        &mut self,
        change: &Change,
        by: &Actor,
        keep: Keep,
        now: Timestamp,
    ) -> Changed {
        let Some(row) = self.jobs.get(&change.job) else { return Changed::NotFound };
        let (state, version) = (row.job.state(), row.job.version);
        if change.if_version.is_some_and(|wanted| wanted != version) {
            return Changed::VersionChanged(version);
        }
        if is_so(&change.what, row) {
            return Changed::Unchanged { state, version };
        }
        let request = Request { what: &change.what, by, keep, now };
        if state == State::Leased
            && let Some(wanted) = wanted_by(&change.what)
        {
            return self.want(change.job, wanted, &request);
        }
        let Some(to) = change.what.leads_to(state) else { return Changed::WrongState(state) };
        match &change.what {
            What::Pause | What::Resume | What::Cancel => self.move_to(change.job, to, &request),
            What::Retry => self.run_again(change.job, None, &request),
            What::Redrive { deadline } => self.run_again(change.job, *deadline, &request),
            What::Edit(edit) => self.edit(change.job, edit, &request),
        }
    }

    /// Tells the holder of a job what a person wants of it.
    fn want(&mut self, id: JobId, new: Option<Wanted>, request: &Request<'_>) -> Changed {
        let (old, version) = self.write(id, |row| {
            let old = row.wanted();
            if let Status::Leased { wanted, .. } = &mut row.job.status {
                *wanted = new;
            }
            row.job.version = row.job.version.next();
            (old, row.job.version)
        });
        self.changed(id, wanted_fact(old), wanted_fact(new), request);
        match new {
            Some(_) => Changed::Wanted { version },
            None => Changed::Applied { state: State::Leased, version },
        }
    }

    /// Moves a job that nobody holds.
    fn move_to(&mut self, id: JobId, to: State, request: &Request<'_>) -> Changed {
        let Job { version, status, .. } = self.jobs[&id].job;
        // Noted first: nothing may be left of the job afterwards.
        self.changed(id, state_fact(status.state()), state_fact(to), request);
        self.let_go(id, to, request.keep, request.now);
        Changed::Applied { state: to, version: version.next() }
    }

    /// Lets a job run now, unless nobody would want that.
    fn run_again(&mut self, id: JobId, new: Option<When>, request: &Request<'_>) -> Changed {
        let now = request.now;
        let job = &self.jobs[&id].job;
        let deadline = new.map(|deadline| deadline.resolve(now)).or(job.deadline);
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Changed::NeedsDeadline;
        }
        self.write(id, |row| {
            if row.job.state() == State::Dead {
                row.job.attempts_before = row.job.attempt;
            }
            row.job.deadline = deadline;
            row.job.due = now;
            row.job.because = Because::Person;
        });
        self.move_to(id, State::Scheduled, request)
    }

    fn edit(&mut self, id: JobId, edit: &Edit, request: &Request<'_>) -> Changed {
        if edit.payload.as_ref().is_some_and(|payload| payload.len() > PAYLOAD_BYTES_MAX) {
            return Changed::TooLarge { bytes_max: PAYLOAD_BYTES_MAX };
        }
        let old = self.jobs[&id].whole();
        let before = edited_facts(edit, &self.jobs[&id]);
        self.write(id, |row| row.edit(edit, request.now));
        let row = &self.jobs[&id];
        let state = old.state();
        if row.whole() == old {
            return Changed::Unchanged { state, version: old.version };
        }
        let after = edited_facts(edit, row);
        let version = self.write(id, |row| {
            row.job.version = row.job.version.next();
            row.job.version
        });
        self.changed(id, before, after, request);
        Changed::Applied { state, version }
    }

    /// Writes a change down, and lets watchers look.
    fn changed(&mut self, id: JobId, before: Facts, after: Facts, request: &Request<'_>) {
        let note = Note {
            who: request.by,
            what: request.what.as_str(),
            job: Some(id),
            kind: self.jobs[&id].job.lane.kind.clone(),
            before,
            after,
        };
        self.note(note, request.now);
        self.is_reason_to_look = true;
    }
}

impl Row {
    fn edit(&mut self, edit: &Edit, now: Timestamp) {
        if let Some(payload) = &edit.payload {
            self.payload.clone_from(payload);
        }
        if let Some(priority) = edit.priority {
            self.job.lane.priority = priority;
        }
        if let Some(due) = edit.due {
            self.job.due = due.resolve(now);
            self.job.because = Because::Person;
        }
        if let Some(deadline) = edit.deadline {
            self.job.deadline = deadline.map(|deadline| deadline.resolve(now));
        }
        if let Some(attempts_max) = edit.attempts_max {
            self.job.attempts_max = Some(attempts_max);
        }
    }
}

/// Whether a job is already what a person asks for.
fn is_so(what: &What, row: &Row) -> bool {
    let is_leased = row.job.state() == State::Leased;
    match what {
        What::Pause if is_leased => row.wanted().is_some(),
        What::Pause => row.job.state() == State::Paused,
        What::Resume if is_leased => row.wanted() != Some(Wanted::Pause),
        What::Resume => row.job.state() == State::Scheduled,
        What::Cancel if is_leased => row.wanted() == Some(Wanted::Cancel),
        What::Cancel => row.job.state() == State::Cancelled,
        What::Retry | What::Redrive { .. } | What::Edit(_) => false,
    }
}

/// Returns what is wanted of a leased job from now on, where its holder is to obey.
fn wanted_by(what: &What) -> Option<Option<Wanted>> {
    match what {
        What::Pause => Some(Some(Wanted::Pause)),
        What::Resume => Some(None),
        What::Cancel => Some(Some(Wanted::Cancel)),
        What::Retry | What::Redrive { .. } | What::Edit(_) => None,
    }
}

fn state_fact(state: State) -> Facts {
    Facts::default().with("state", Some(state))
}

fn wanted_fact(wanted: Option<Wanted>) -> Facts {
    Facts::default().with("wanted", wanted.map(Wanted::as_str))
}

/// Returns what an edit is about, as the row has it.
fn edited_facts(edit: &Edit, row: &Row) -> Facts {
    let mut facts = Facts::default();
    if edit.payload.is_some() {
        facts = facts.with("payload", Some(String::from_utf8_lossy(&row.payload)));
    }
    if edit.priority.is_some() {
        facts = facts.with("priority", Some(row.job.lane.priority.get()));
    }
    if edit.due.is_some() {
        facts = facts.with("due", Some(row.job.due.as_millis()));
    }
    if edit.deadline.is_some() {
        facts = facts.with("deadline", row.job.deadline.map(Timestamp::as_millis));
    }
    if edit.attempts_max.is_some() {
        facts = facts.with("attempts_max", row.job.attempts_max);
    }
    facts
}
