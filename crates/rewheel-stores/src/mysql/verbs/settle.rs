//! Settles jobs: writes the decision after each attempt.

use super::super::error::VerbError;
use super::super::job_columns::{PAUSED, SCHEDULED};
use super::super::row::{bytes, count, get, id16, instant, millis, unsigned};
use super::super::transaction::Transaction;
use super::audit::Auditor;
use super::ending::{Ending, Live, end, expect_matched, lose_lease, texts};
use super::follow_ups;
use super::results;
use super::successes::Successes;
use super::unreadable::Unreadable;
use crate::follow_ups::FollowUps;
use mysql_async::Value;
use rewheel_core::store::{Outcome, Settled, Settlement};
use rewheel_core::{
    Cause, Decision, Failure, Fence, HolderId, JobId, Lease, Limits, Retain, State, Timestamp,
    Transition, Wanted,
};
use std::collections::HashMap;

pub(in super::super) async fn settle(
    tx: &mut Transaction<'_>,
    holder: HolderId,
    settlements: &[Settlement],
) -> Result<Vec<Settled>, VerbError> {
    let leases: Vec<Lease> = settlements.iter().map(|settlement| settlement.lease).collect();
    let Some(mut settler) = Settler::find(tx, holder, &leases).await? else {
        return missing(tx, &leases, Asked::Settle).await;
    };
    let mut answers = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        answers.push(settler.settle(tx, settlement).await?);
    }
    settler.successes.write(tx).await?;
    let Settler { follow_ups, mut auditor, .. } = settler;
    follow_ups::store(tx, follow_ups, &mut auditor).await?;
    auditor.write(tx).await?;
    Ok(answers)
}

pub(in super::super) async fn give_back(
    tx: &mut Transaction<'_>,
    holder: HolderId,
    leases: &[Lease],
    keep: Retain,
) -> Result<Vec<Settled>, VerbError> {
    let Some(mut settler) = Settler::find(tx, holder, leases).await? else {
        return missing(tx, leases, Asked::GiveBack).await;
    };
    let mut answers = Vec::with_capacity(leases.len());
    for lease in leases {
        let Some(live) = settler.held.take(*lease) else {
            answers.push(settler.repeated(tx, *lease, Asked::GiveBack).await?);
            continue;
        };
        let wanted = live.wanted;
        let state = wanted.map_or(State::Scheduled, Wanted::state);
        if state.is_live() {
            tx.report_lane(live.lane).await;
            settler.let_go(tx, &live, state, given_back_by(settler.number), None, None).await?;
        } else {
            let settled_by = Some(given_back_by(settler.number));
            end(tx, &live, &Ending { state, failure: None, settled_by, keep }).await?;
            let transition = live.transition(Cause::GiveBack, State::Leased, state);
            settler.note(tx, &live, Transition { wanted, ..transition }).await?;
        }
        answers.push(Settled::Applied(Outcome::LetGo(state)));
    }
    settler.auditor.write(tx).await?;
    tx.report.get_or_insert_default();
    Ok(answers)
}

/// Returns the result for a holder that does not exist, so that it holds no job: missing jobs are gone, the others are lost.
async fn missing(
    tx: &mut Transaction<'_>,
    leases: &[Lease],
    asked: Asked,
) -> Result<Vec<Settled>, VerbError> {
    let mut answers = Vec::with_capacity(leases.len());
    for lease in leases {
        answers.push(repeated(tx, None, *lease, asked).await?);
    }
    Ok(answers)
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

/// The settled jobs that the holder has, locked, by id.
struct Held(HashMap<JobId, Live>);

impl Held {
    async fn find(
        tx: &mut Transaction<'_>,
        holder: i64,
        leases: &[Lease],
    ) -> Result<Held, VerbError> {
        // In one order, so that two settles of the same jobs do not deadlock.
        let mut ids: Vec<JobId> = leases.iter().map(|lease| lease.job).collect();
        ids.sort_unstable();
        ids.dedup();
        let list: Vec<Value> = ids.into_iter().map(|id| id16(id.to_bytes())).collect();
        let sql = include_str!("../sql/settle_find.sql");
        let rows = tx.run_list(sql, &[], &list, &[holder.into()]).await?.rows;
        let mut held = HashMap::with_capacity(rows.len());
        let mut unreadable = Unreadable::default();
        for row in rows {
            let id = JobId::from_bytes(bytes(&row, 0)?);
            if let Some(live) = unreadable.check(id, Live::read(&row))? {
                held.insert(id, live);
            }
        }
        // The attempts are over, but the decision cannot be applied to unreadable jobs.
        unreadable.set_aside(tx).await?;
        Ok(Held(held))
    }

    /// Takes a job if the holder has it under this lease. Guards every settle.
    fn take(&mut self, lease: Lease) -> Option<Live> {
        if self.0.get(&lease.job)?.fence != lease.fence {
            return None;
        }
        self.0.remove(&lease.job)
    }
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
    async fn find(
        tx: &mut Transaction<'_>,
        id: HolderId,
        leases: &[Lease],
    ) -> Result<Option<Settler>, VerbError> {
        let alive = tx.alive(id).await?;
        let number = if alive.is_some() { alive } else { tx.number(id).await? };
        let Some(number) = number else { return Ok(None) };
        let held = Held::find(tx, number, leases).await?;
        let successes = Successes::of(id, number);
        let (alive, auditor) = (alive.is_some(), Auditor::of_holder(id));
        let follow_ups = FollowUps::default();
        Ok(Some(Settler { id, number, alive, held, successes, follow_ups, auditor }))
    }

    async fn settle(
        &mut self,
        tx: &mut Transaction<'_>,
        settled: &Settlement,
    ) -> Result<Settled, VerbError> {
        let Some(mut live) = self.held.take(settled.lease) else {
            return self.repeated(tx, settled.lease, Asked::Settle).await;
        };
        if !settled.follow_ups.is_empty() {
            let lane = tx.lane_of(live.lane).await?;
            self.follow_ups.add(settled, &lane);
        }
        if let Some(payload) = &settled.payload {
            let mut values = vec![payload.as_slice().into()];
            values.extend(live.address());
            tx.execute(include_str!("../sql/settle_payload.sql"), values).await?;
        }
        let decision = &settled.decision;
        self.record(tx, settled, &live).await?;
        if settled.is_plain_success() {
            self.successes.add(tx, &live, settled).await?;
            return Ok(Settled::Applied(Outcome::LetGo(State::Succeeded)));
        }
        live.attempt += u32::from(decision.uses_attempt());
        let failure = decision.failure().or(settled.failure.as_ref());
        let outcome = match decision.state(live.wanted) {
            State::Leased if self.alive => self.keep_lease(tx, &live, settled).await?,
            // A dead holder must not keep a lease: the job is scheduled instead.
            state @ (State::Leased | State::Scheduled | State::Paused) => {
                let state = if state == State::Leased { State::Scheduled } else { state };
                self.let_go(tx, &live, state, self.number, Some(decision), failure).await?;
                if state == State::Scheduled {
                    tx.report_lane(live.lane).await;
                }
                Outcome::LetGo(state)
            }
            state @ (State::Succeeded | State::Failed | State::Dead | State::Cancelled) => {
                self.end(tx, &live, settled, state, failure).await?;
                Outcome::LetGo(state)
            }
        };
        Ok(Settled::Applied(outcome))
    }

    async fn end(
        &mut self,
        tx: &mut Transaction<'_>,
        live: &Live,
        settled: &Settlement,
        state: State,
        failure: Option<&Failure>,
    ) -> Result<(), VerbError> {
        let (settled_by, keep) = (Some(self.number), settled.keep);
        end(tx, live, &Ending { state, failure, settled_by, keep }).await?;
        if let (State::Succeeded, false, Some(result)) =
            (state, keep.job.is_zero(), &settled.result)
        {
            results::store(tx, live.id, tx.now.plus(keep.job), result).await?;
        }
        let transition = live.transition(Cause::Settle, State::Leased, state);
        self.note(tx, live, Transition { wanted: live.wanted, failure, ..transition }).await
    }

    async fn note(
        &mut self,
        tx: &mut Transaction<'_>,
        live: &Live,
        transition: Transition<'_>,
    ) -> Result<(), VerbError> {
        self.auditor.note(tx, live, &Transition { holder: Some(self.id), ..transition }).await
    }

    async fn keep_lease(
        &self,
        tx: &mut Transaction<'_>,
        live: &Live,
        settled: &Settlement,
    ) -> Result<Outcome, VerbError> {
        let (due, because) = next_due(tx.now, &settled.decision);
        let due = due.unwrap_or(live.due);
        let overdue = due.plus(settled.hold).as_millis();
        let [category, code, message] = texts(settled.failure.as_ref());
        let floor = tx.shared.epoch.fence_floor();
        let mut values = vec![
            floor.into(),
            live.attempt.into(),
            due.as_millis().into(),
            because.into(),
            tx.now.as_millis().into(),
            overdue.into(),
            category.clone(),
            code,
            category,
            message,
        ];
        values.extend(live.guard());
        let matched = tx.execute(include_str!("../sql/keep_lease.sql"), values).await?;
        expect_matched(matched, 1)?;
        let values = vec![overdue.into(), live.claim.into(), overdue.into()];
        tx.execute(include_str!("../sql/lower_overdue.sql"), values).await?;
        let fence = settled.lease.fence.max(Fence::new(unsigned(floor))).next();
        Ok(Outcome::Kept { fence, due_in: due.since(tx.now) })
    }

    async fn let_go(
        &self,
        tx: &mut Transaction<'_>,
        live: &Live,
        state: State,
        by: i64,
        decision: Option<&Decision>,
        failure: Option<&Failure>,
    ) -> Result<(), VerbError> {
        let (due, because) = decision.map_or((None, None), |decision| next_due(tx.now, decision));
        let due = due.unwrap_or(live.due);
        let [category, code, message] = texts(failure);
        let mut values = vec![
            if state == State::Scheduled { SCHEDULED } else { PAUSED }.into(),
            live.attempt.into(),
            due.as_millis().into(),
            because.into(),
            by.into(),
            category.clone(),
            code,
            category,
            message,
        ];
        values.extend(live.next_address(tx, state, due));
        values.extend(live.guard());
        let matched = tx.execute(include_str!("../sql/let_go.sql"), values).await?;
        expect_matched(matched, 1)?;
        lose_lease(tx, live).await
    }

    /// Stores the record of a failed attempt, if it failed.
    async fn record(
        &self,
        tx: &mut Transaction<'_>,
        settled: &Settlement,
        live: &Live,
    ) -> Result<(), VerbError> {
        let Some(failure) = &settled.failure else { return Ok(()) };
        let started = tx.now.as_millis().saturating_sub(millis(settled.ran.started_ago));
        let values = vec![
            id16(settled.lease.job.to_bytes()),
            (live.attempt + 1).into(),
            count(settled.lease.fence.get()),
            id16(self.id.to_bytes()),
            started.into(),
            millis(settled.ran.duration).into(),
            failure.category().as_str().into(),
            failure.code().into(),
            failure.message().into(),
            settled.decision.as_str().into(),
            settled.decision.wait().map(|(after, _)| millis(after)).into(),
        ];
        tx.execute(include_str!("../sql/insert_attempt.sql"), values).await?;
        if live.version > Limits::ATTEMPTS_LISTED_MAX as u64 {
            trim_attempts(tx, settled.lease.job).await?;
        }
        Ok(())
    }

    async fn repeated(
        &mut self,
        tx: &mut Transaction<'_>,
        lease: Lease,
        asked: Asked,
    ) -> Result<Settled, VerbError> {
        // It may be a repetition within this same batch.
        self.successes.write(tx).await?;
        repeated(tx, Some(self.number), lease, asked).await
    }
}

/// Returns the result of a settlement that matches no lease: it is a repetition, or too late.
async fn repeated(
    tx: &mut Transaction<'_>,
    holder: Option<i64>,
    lease: Lease,
    asked: Asked,
) -> Result<Settled, VerbError> {
    let Some(seen) = find_seen(tx, lease.job).await? else {
        return Ok(Settled::AlreadyApplied(Outcome::Gone));
    };
    let is_same = holder.is_some_and(|number| {
        let gave_back = asked == Asked::GiveBack && seen.by == given_back_by(number);
        seen.by == number || gave_back
    });
    if !is_same || seen.fence_settled != lease.fence {
        return Ok(Settled::Lost);
    }
    // A claim resets `kept`: the same holder may have claimed the job again.
    let is_ours = seen.kept && Some(seen.holder) == holder;
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
    by: i64,
    fence_settled: Fence,
    /// Whether the settling holder kept the job.
    kept: bool,
    holder: i64,
    fence: Fence,
    due: Timestamp,
}

async fn find_seen(tx: &mut Transaction<'_>, job: JobId) -> Result<Option<Seen>, VerbError> {
    for sql in [
        include_str!("../sql/settle_seen.sql"),
        include_str!("../sql/settle_seen_dead.sql"),
        include_str!("../sql/settle_seen_finished.sql"),
        // An operator may have put a dead letter back to work in between.
        include_str!("../sql/settle_seen.sql"),
    ] {
        let Some(row) = tx.find(sql, vec![id16(job.to_bytes())]).await? else { continue };
        let state: String = get(&row, 0)?;
        return Ok(Some(Seen {
            state: state.parse().unwrap_or(State::Scheduled),
            by: get(&row, 1)?,
            fence_settled: Fence::new(unsigned(get(&row, 2)?)),
            holder: get(&row, 3)?,
            fence: Fence::new(unsigned(get(&row, 4)?)),
            due: instant(get(&row, 5)?),
            kept: get(&row, 6)?,
        }));
    }
    Ok(None)
}

/// Drops records from the middle of a long history, and counts the dropped ones.
async fn trim_attempts(tx: &mut Transaction<'_>, job: JobId) -> Result<(), VerbError> {
    let (first, last) = (Limits::ATTEMPTS_FIRST_KEPT, Limits::ATTEMPTS_LAST_KEPT);
    let id = id16(job.to_bytes());
    let rows = tx.rows(include_str!("../sql/attempt_numbers.sql"), vec![id.clone()]).await?;
    if rows.len() <= first + last {
        return Ok(());
    }
    let (mut gone, mut dropped) = (Vec::new(), 0);
    let end = rows.len() - last;
    for row in &rows[first..end] {
        gone.push(Value::from(get::<i64>(row, 0)?));
        dropped += 1 + get::<i64>(row, 1)?;
    }
    tx.run_list(include_str!("../sql/trim_attempts.sql"), &[], &gone, &[id]).await?;
    let values = vec![dropped.into(), get::<i64>(&rows[end], 0)?.into()];
    tx.execute(include_str!("../sql/count_dropped.sql"), values).await.map(drop)
}
