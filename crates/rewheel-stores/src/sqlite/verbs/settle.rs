//! Settles jobs: writes the decision after each attempt.

use super::super::error::VerbError;
use super::super::row::{instant, millis, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count;
use super::audit::Auditor;
use super::ending::{Ending, Live, end, texts};
use super::follow_ups;
use super::held::{Held, Successes};
use super::results;
use crate::follow_ups::FollowUps;
use rewheel_core::store::{Outcome, Settled, Settlement};
use rewheel_core::{
    Cause, Decision, Failure, Fence, HolderId, JobId, Lease, Limits, Retain, State, Timestamp,
    Transition, Wanted,
};
use rusqlite::types::ToSql;

pub(in super::super) fn settle(
    tx: &mut Transaction<'_, '_>,
    holder: HolderId,
    settlements: &[Settlement],
) -> Result<Vec<Settled>, VerbError> {
    let leases = || settlements.iter().map(|settlement| settlement.lease);
    let Some(mut settler) = Settler::find(tx, holder, leases())? else {
        return missing(tx, leases(), Asked::Settle);
    };
    let mut answers = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        answers.push(settler.settle(tx, settlement)?);
    }
    settler.successes.write(tx)?;
    let Settler { follow_ups, mut auditor, .. } = settler;
    follow_ups::store(tx, follow_ups, &mut auditor)?;
    Ok(answers)
}

pub(in super::super) fn give_back(
    tx: &mut Transaction<'_, '_>,
    holder: HolderId,
    leases: &[Lease],
    keep: Retain,
) -> Result<Vec<Settled>, VerbError> {
    let Some(mut settler) = Settler::find(tx, holder, leases.iter().copied())? else {
        return missing(tx, leases.iter().copied(), Asked::GiveBack);
    };
    let mut answers = Vec::with_capacity(leases.len());
    for lease in leases {
        let Some((live, wanted)) = settler.held.take(*lease) else {
            answers.push(settler.repeated(tx, *lease, Asked::GiveBack)?);
            continue;
        };
        let state = wanted.map_or(State::Scheduled, Wanted::state);
        if state.is_live() {
            tx.report_lane(live.lane);
            settler.let_go(tx, &live, state, given_back_by(settler.number), None, None)?;
        } else {
            let settled_by = Some(given_back_by(settler.number));
            end(tx, &live, &Ending { state, failure: None, settled_by, keep })?;
            let transition = live.transition(Cause::GiveBack, State::Leased, state);
            settler.note(tx, &live, Transition { wanted, ..transition })?;
        }
        answers.push(Settled::Applied(Outcome::LetGo(state)));
    }
    tx.report.get_or_insert_default();
    Ok(answers)
}

/// Returns the result for a holder that does not exist, so that it holds no job: missing jobs are gone, the others are lost.
fn missing(
    tx: &Transaction<'_, '_>,
    leases: impl Iterator<Item = Lease>,
    asked: Asked,
) -> Result<Vec<Settled>, VerbError> {
    leases.map(|lease| repeated(tx, None, lease, asked)).collect()
}

/// What a holder asks for. A result that arrives after the job was given back does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Settle,
    GiveBack,
}

/// Returns the stored number of a holder that gave a job back: its number, negated. A holder that settled the job is stored with its
/// plain number.
fn given_back_by(number: i64) -> i64 {
    -number
}

/// The holder that settles.
struct Settler {
    id: HolderId,
    number: i64,
    alive: bool,
    held: Held,
    successes: Successes,
    /// The jobs that applied settlements submit.
    follow_ups: FollowUps,
    auditor: Auditor,
}

impl Settler {
    fn find(
        tx: &Transaction<'_, '_>,
        id: HolderId,
        leases: impl Iterator<Item = Lease>,
    ) -> Result<Option<Settler>, VerbError> {
        let alive = tx.alive(id)?;
        let number = if alive.is_some() { alive } else { tx.number(id)? };
        let Some(number) = number else { return Ok(None) };
        let held = Held::find(tx, number, leases)?;
        let successes = Successes::of(id, number);
        let (alive, auditor) = (alive.is_some(), Auditor::of_holder(id));
        let follow_ups = FollowUps::default();
        Ok(Some(Settler { id, number, alive, held, successes, follow_ups, auditor }))
    }

    fn settle(
        &mut self,
        tx: &mut Transaction<'_, '_>,
        settled: &Settlement,
    ) -> Result<Settled, VerbError> {
        let Some((mut live, wanted)) = self.held.take(settled.lease) else {
            return self.repeated(tx, settled.lease, Asked::Settle);
        };
        if !settled.follow_ups.is_empty() {
            let lane = tx.lane_of(live.lane)?;
            self.follow_ups.add(settled, &lane);
        }
        if let Some(payload) = &settled.payload {
            tx.execute(include_str!("../sql/settle_payload.sql"), (live.seq, payload))?;
        }
        let decision = &settled.decision;
        self.record(tx, settled, live.attempt + 1)?;
        if settled.is_plain_success() {
            self.successes.add(tx, live, settled)?;
            return Ok(Settled::Applied(Outcome::LetGo(State::Succeeded)));
        }
        live.attempt += u32::from(decision.uses_attempt());
        let failure = decision.failure().or(settled.failure.as_ref());
        let outcome = match decision.state(wanted) {
            State::Leased if self.alive => self.keep_lease(tx, &live, settled)?,
            // A dead holder must not keep a lease: the job is scheduled instead.
            state @ (State::Leased | State::Scheduled | State::Paused) => {
                let state = if state == State::Leased { State::Scheduled } else { state };
                self.let_go(tx, &live, state, self.number, Some(decision), failure)?;
                if state == State::Scheduled {
                    tx.report_lane(live.lane);
                }
                Outcome::LetGo(state)
            }
            state @ (State::Succeeded | State::Failed | State::Dead | State::Cancelled) => {
                let settled_by = Some(self.number);
                let keep = settled.keep;
                end(tx, &live, &Ending { state, failure, settled_by, keep })?;
                if let (State::Succeeded, false, Some(result)) =
                    (state, keep.job.is_zero(), &settled.result)
                {
                    results::store(tx, live.id, tx.now.plus(keep.job), result)?;
                }
                let transition = live.transition(Cause::Settle, State::Leased, state);
                self.note(tx, &live, Transition { wanted, failure, ..transition })?;
                Outcome::LetGo(state)
            }
        };
        Ok(Settled::Applied(outcome))
    }

    fn note(
        &mut self,
        tx: &mut Transaction<'_, '_>,
        live: &Live,
        transition: Transition<'_>,
    ) -> Result<(), VerbError> {
        self.auditor.note(tx, live, &Transition { holder: Some(self.id), ..transition })
    }

    fn keep_lease(
        &self,
        tx: &Transaction<'_, '_>,
        live: &Live,
        settled: &Settlement,
    ) -> Result<Outcome, VerbError> {
        let (due, because) = next_due(tx.now, &settled.decision);
        let (category, code, message) = texts(settled.failure.as_ref());
        let values: [&dyn ToSql; 10] = [
            &live.seq,
            &self.number,
            &live.attempt,
            &due.map(Timestamp::as_millis),
            &because,
            &tx.now.as_millis(),
            &due.map(|due| due.plus(settled.hold).as_millis()),
            &category,
            &code,
            &message,
        ];
        tx.execute(include_str!("../sql/keep_lease.sql"), &values[..])?;
        let due_in = due.map_or_else(Default::default, |due| due.since(tx.now));
        Ok(Outcome::Kept { fence: settled.lease.fence.next(), due_in })
    }

    fn let_go(
        &self,
        tx: &Transaction<'_, '_>,
        live: &Live,
        state: State,
        by: i64,
        decision: Option<&Decision>,
        failure: Option<&Failure>,
    ) -> Result<(), VerbError> {
        let (due, because) = decision.map_or((None, None), |decision| next_due(tx.now, decision));
        let (category, code, message) = texts(failure);
        let values: [&dyn ToSql; 9] = [
            &live.seq,
            &state.as_str(),
            &live.attempt,
            &due.map(Timestamp::as_millis),
            &because,
            &by,
            &category,
            &code,
            &message,
        ];
        tx.execute(include_str!("../sql/let_go.sql"), &values[..])?;
        Ok(())
    }

    /// Stores the record of a failed attempt, if it failed.
    fn record(
        &self,
        tx: &Transaction<'_, '_>,
        settled: &Settlement,
        attempt: u32,
    ) -> Result<(), VerbError> {
        let Some(failure) = &settled.failure else { return Ok(()) };
        let started = tx.now.as_millis().saturating_sub(millis(settled.ran.started_ago));
        let values: [&dyn ToSql; 11] = [
            &settled.lease.job.to_bytes(),
            &attempt,
            &count(settled.lease.fence.get()),
            &self.id.to_bytes(),
            &started,
            &millis(settled.ran.duration),
            &failure.category().as_str(),
            &failure.code(),
            &failure.message(),
            &settled.decision.as_str(),
            &settled.decision.wait().map(|(after, _)| millis(after)),
        ];
        tx.execute(include_str!("../sql/insert_attempt.sql"), &values[..])?;
        // Every record has its own fence: a job with a small fence cannot have too many.
        if settled.lease.fence.get() > Limits::ATTEMPTS_LISTED_MAX as u64 {
            trim_attempts(tx, settled.lease.job)?;
        }
        Ok(())
    }

    fn repeated(
        &mut self,
        tx: &mut Transaction<'_, '_>,
        lease: Lease,
        asked: Asked,
    ) -> Result<Settled, VerbError> {
        // It may be a repetition within this same batch.
        self.successes.write(tx)?;
        repeated(tx, Some(self.number), lease, asked)
    }
}

/// Returns the result of a settlement that matches no lease: it is a repetition, or too late.
fn repeated(
    tx: &Transaction<'_, '_>,
    holder: Option<i64>,
    lease: Lease,
    asked: Asked,
) -> Result<Settled, VerbError> {
    let Some(seen) = find_seen(tx, lease.job)? else {
        return Ok(Settled::AlreadyApplied(Outcome::Gone));
    };
    let is_same = holder.is_some_and(|number| {
        let gave_back = asked == Asked::GiveBack && seen.by == Some(given_back_by(number));
        seen.by == Some(number) || gave_back
    });
    if !is_same || seen.fence_settled != Some(lease.fence) {
        return Ok(Settled::Lost);
    }
    let is_ours = seen.kept && seen.holder == holder && seen.fence == lease.fence.next();
    Ok(Settled::AlreadyApplied(if is_ours {
        Outcome::Kept { fence: seen.fence, due_in: seen.due.since(tx.now) }
    } else {
        Outcome::LetGo(seen.state)
    }))
}

/// Returns when a job runs again and why, if the decision says so.
fn next_due(now: Timestamp, decision: &Decision) -> (Option<Timestamp>, Option<&'static str>) {
    match decision.wait() {
        Some((after, because)) => (Some(now.plus(after)), Some(because.as_str())),
        None => (None, None),
    }
}

/// The holder that settled a job last, and its current holder.
struct Seen {
    state: State,
    by: Option<i64>,
    fence_settled: Option<Fence>,
    /// Whether the settling holder kept the job. The same holder may also have claimed it again.
    kept: bool,
    holder: Option<i64>,
    fence: Fence,
    due: Timestamp,
}

fn find_seen(tx: &Transaction<'_, '_>, job: JobId) -> Result<Option<Seen>, VerbError> {
    let fence = |number: i64| Fence::new(unsigned(number));
    tx.find(include_str!("../sql/settle_seen.sql"), [job.to_bytes()], |row| {
        let state: String = row.get(0)?;
        Ok(Seen {
            state: state.parse().unwrap_or(State::Scheduled),
            by: row.get(1)?,
            fence_settled: row.get::<_, Option<i64>>(2)?.map(fence),
            holder: row.get(3)?,
            fence: fence(row.get(4)?),
            due: instant(row.get(5)?),
            kept: row.get(6)?,
        })
    })
}

/// Drops records from the middle of a long history, and counts the dropped ones.
fn trim_attempts(tx: &Transaction<'_, '_>, job: JobId) -> Result<(), VerbError> {
    let (first, last) = (Limits::ATTEMPTS_FIRST_KEPT, Limits::ATTEMPTS_LAST_KEPT);
    let statement = tx.sql(include_str!("../sql/trim_attempts.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query((job.to_bytes(), first, last))?;
    let mut gone = 0;
    while let Some(row) = rows.next()? {
        gone += 1 + row.get::<_, i64>(0)?;
    }
    if gone > 0 {
        tx.execute(include_str!("../sql/count_dropped.sql"), (job.to_bytes(), last, gone))?;
    }
    Ok(())
}
