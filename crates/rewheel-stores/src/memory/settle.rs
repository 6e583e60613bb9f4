//! Settles jobs: writes the decision after each attempt.

use super::Weakness;
use super::world::{LetGo, Row, SettledBy, World};
use crate::follow_ups::{FollowUps, Letter};
use rewheel_core::store::{AttemptEnd, AttemptRecord, Outcome, Settled, Settlement};
use rewheel_core::{
    Actor, Cause, HolderId, JobId, Lease, Limits, NewJob, Retain, State, Timestamp, Transition,
    Wanted,
};
use std::time::Duration;

impl World {
    pub(super) fn settle(
        &mut self,
        holder: HolderId,
        settlement: &Settlement,
        now: Timestamp,
    ) -> Settled {
        if settlement.follow_ups.is_empty() {
            let answer = self.settle_job(holder, settlement, now);
            self.keep_result(settlement, answer, now);
            return answer;
        }
        // Read before: the job may be gone afterwards.
        let row = self.jobs.get(&settlement.lease.job);
        let lane = row.map(|row| row.job.lane.clone());
        let answer = self.settle_job(holder, settlement, now);
        self.keep_result(settlement, answer, now);
        let counts = matches!(answer, Settled::Applied(_));
        if counts && !self.is_weak(Weakness::FollowUpsLost)
            || self.is_weak(Weakness::FollowUpsOfAnySettle)
        {
            let mut follow_ups = FollowUps::default();
            lane.iter().for_each(|lane| follow_ups.add(settlement, lane));
            self.submit(follow_ups, holder, now);
        }
        if counts && self.is_weak(Weakness::InstantTwice) {
            let mut follow_ups = FollowUps::default();
            lane.iter().for_each(|lane| follow_ups.add(&of_instants(settlement), lane));
            self.submit(follow_ups, holder, now);
        }
        answer
    }

    /// Stores the jobs that a settle submitted.
    fn submit(&mut self, mut follow_ups: FollowUps, by: HolderId, now: Timestamp) {
        let answers = self.insert(&FollowUps::insert(&follow_ups.jobs), now);
        follow_ups.refused(&answers.expect("an insert of follow-ups returns no error"));
        for kind in follow_ups.kinds() {
            if !self.kinds.contains_key(&kind.name) {
                self.put_kind(&kind, &Actor::engine(), now);
            }
        }
        for Letter { job, failure } in follow_ups.letters {
            if self.jobs.contains_key(&job.id) {
                continue;
            }
            self.store(&job, None, now);
            let transition = self.jobs[&job.id].transition(State::Dead, Cause::Settle);
            let transition = Transition { failure: Some(&failure), ..transition };
            self.note_fate(job.id, &transition, Some(by), now);
            self.write(job.id, |row| row.job.failure = Some(failure));
            // The retention does not matter: a dead letter is kept until an operator handles it.
            self.let_go(job.id, State::Dead, Retain::default(), now);
        }
    }

    fn settle_job(&mut self, holder: HolderId, settlement: &Settlement, now: Timestamp) -> Settled {
        let lease = settlement.lease;
        let wanted = match self.guard(holder, lease, LetGo::Settled, now) {
            Ok(wanted) => wanted,
            Err(answer) => return answer,
        };
        let mut to = settlement.decision.state(wanted);
        if to == State::Leased && !self.is_alive(holder) {
            // A dead holder must not keep a lease.
            to = State::Scheduled;
        }
        let writes_payload = !self.is_weak(Weakness::NoSettledPayload);
        self.write(lease.job, |row| {
            row.record(holder, settlement, now);
            if let Some(payload) = settlement.payload.as_ref().filter(|_| writes_payload) {
                row.payload = payload.clone();
            }
            let how = if to == State::Leased { LetGo::Kept } else { LetGo::Settled };
            row.settled = Some(SettledBy { holder, fence: lease.fence, how });
        });
        if to == State::Leased {
            return self.write(lease.job, |row| {
                row.lease(holder, row.job.due.plus(settlement.hold), now);
                row.job.version = row.job.version.next();
                Settled::Applied(kept(row, now))
            });
        }
        if to == State::Scheduled {
            self.report_lane(lease.job);
        }
        let decision = &settlement.decision;
        let failure = decision.failure().or(settlement.failure.as_ref());
        let transition =
            Transition { failure, ..self.jobs[&lease.job].transition(to, Cause::Settle) };
        self.note_fate(lease.job, &transition, Some(holder), now);
        self.let_go(lease.job, to, settlement.keep, now);
        Settled::Applied(Outcome::LetGo(to))
    }

    pub(super) fn give_back(
        &mut self,
        holder: HolderId,
        lease: Lease,
        keep: Retain,
        now: Timestamp,
    ) -> Settled {
        let wanted = match self.guard(holder, lease, LetGo::GivenBack, now) {
            Ok(wanted) => wanted,
            Err(answer) => return answer,
        };
        let to = wanted.map_or(State::Scheduled, Wanted::state);
        self.write(lease.job, |row| {
            row.settled = Some(SettledBy { holder, fence: lease.fence, how: LetGo::GivenBack });
        });
        let transition = self.jobs[&lease.job].transition(to, Cause::GiveBack);
        self.note_fate(lease.job, &transition, Some(holder), now);
        self.let_go(lease.job, to, keep, now);
        self.report_lane(lease.job);
        Settled::Applied(Outcome::LetGo(to))
    }

    /// Checks that the holder still has the job, and returns what an operator wants of it. Other
    /// callers get the current outcome of the job. A result that arrives after the job was given
    /// back is discarded.
    fn guard(
        &self,
        holder: HolderId,
        lease: Lease,
        asked: LetGo,
        now: Timestamp,
    ) -> Result<Option<Wanted>, Settled> {
        let Some(row) = self.jobs.get(&lease.job) else {
            return Err(Settled::AlreadyApplied(Outcome::Gone));
        };
        let is_anyones = row.holder().is_some() && self.is_weak(Weakness::NoFence);
        if row.is_leased_as(holder, lease.fence) || is_anyones {
            return Ok(row.wanted());
        }
        let counts = |by: &SettledBy| asked == LetGo::GivenBack || by.how != LetGo::GivenBack;
        let is_his = |by: &SettledBy| by.holder == holder && by.fence == lease.fence && counts(by);
        let Some(by) = row.settled.filter(is_his) else { return Err(Settled::Lost) };
        // If the same holder let the job go and claimed it again, that is a different lease.
        let is_kept = by.how == LetGo::Kept && row.is_leased_as(holder, lease.fence.next());
        let outcome = if is_kept { kept(row, now) } else { Outcome::LetGo(row.job.state()) };
        Err(Settled::AlreadyApplied(outcome))
    }
}

/// Returns a settle that submits the jobs of instants again, under other ids.
fn of_instants(settlement: &Settlement) -> Settlement {
    let again = |job: &NewJob| {
        let mut id = job.id.to_bytes();
        id[15] ^= 1;
        NewJob { id: JobId::from_bytes(id), ..job.clone() }
    };
    let jobs = settlement.follow_ups.iter().filter(|job| job.instant.is_some());
    Settlement { follow_ups: jobs.map(again).collect(), ..settlement.clone() }
}

fn kept(row: &Row, now: Timestamp) -> Outcome {
    Outcome::Kept { fence: row.job.fence, due_in: row.job.due.since(now) }
}

impl Row {
    /// Writes the results of an attempt to the job, except for its state.
    fn record(&mut self, holder: HolderId, settlement: &Settlement, now: Timestamp) {
        let decision = &settlement.decision;
        let attempt = self.job.attempt + 1;
        if decision.uses_attempt() {
            self.job.attempt = attempt;
        }
        if let Some((after, because)) = decision.wait() {
            self.job.due = now.plus(after);
            self.job.because = because;
        }
        if let Some(failure) = decision.failure().or(settlement.failure.as_ref()) {
            self.job.failure = Some(failure.clone());
        }
        self.succeeded = super::results::success(holder, settlement, attempt, now);
        if let Some(failure) = settlement.failure.clone() {
            self.attempts.push(AttemptRecord {
                attempt,
                fence: settlement.lease.fence,
                holder,
                started: earlier(now, settlement.ran.started_ago),
                duration: settlement.ran.duration,
                ended: AttemptEnd::Failed(failure),
                decision: decision.as_str().to_owned(),
                delay: decision.wait().map(|(after, _)| after),
                dropped: 0,
            });
            self.trim_attempts();
        }
    }
}

impl Row {
    /// Drops records from the middle of a long history, and counts the dropped ones.
    fn trim_attempts(&mut self) {
        let (first, last) = (Limits::ATTEMPTS_FIRST_KEPT, Limits::ATTEMPTS_LAST_KEPT);
        let until = self.attempts.len().saturating_sub(last);
        if until <= first {
            return;
        }
        let gone: u64 = self.attempts.drain(first..until).map(|record| 1 + record.dropped).sum();
        if let Some(oldest) = self.attempts.get_mut(first) {
            oldest.dropped += gone;
        }
    }
}

pub(super) fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}
