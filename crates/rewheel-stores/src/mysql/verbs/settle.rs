//! Settles jobs: writes the decision after each attempt.

use super::super::error::VerbError;
use super::super::job_columns::{PAUSED, SCHEDULED};
use super::super::row::{bytes, count, get, id16, instant, millis, unsigned};
use super::super::transaction::Transaction;
use super::audit::Auditor;
use super::ending::{Ending, Live, end};
use super::follow_ups;
use super::results;
use super::successes::Successes;
use super::sweep::Budget;
use super::unreadable::Unreadable;
use super::verdicts::{Next, Verdicts};
use crate::follow_ups::FollowUps;
use mysql_async::Value;
use rewheel_core::store::{Outcome, Settled, Settlement};
use rewheel_core::{
    Cause, Decision, Failure, Fence, HolderId, JobId, Lease, Limits, Retain, State, Timestamp,
    Transition, Wanted,
};
use std::collections::{BTreeSet, HashMap};

/// How much of a batch one transaction handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Share {
    All,
    /// The first ones, as many as its time allows. The caller goes on with the others: so a slow server makes progress, too.
    AsTimeAllows,
}

pub(in super::super) async fn settle(
    tx: &mut Transaction<'_>,
    holder: HolderId,
    settlements: &[Settlement],
    share: Share,
) -> Result<Vec<Settled>, VerbError> {
    let leases: Vec<Lease> = settlements.iter().map(|settlement| settlement.lease).collect();
    let Some(mut settler) = Settler::find(tx, holder, &leases, Asked::Settle).await? else {
        return missing(tx, &leases, Asked::Settle).await;
    };
    let (mut answers, mut budget) = (Vec::with_capacity(settlements.len()), Budget::of(tx));
    for settlement in settlements {
        answers.push(settler.settle(tx, settlement).await?);
        if share == Share::AsTimeAllows && budget.is_spent().await {
            break;
        }
    }
    settler.write(tx).await?;
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
    let Some(mut settler) = Settler::find(tx, holder, leases, Asked::GiveBack).await? else {
        return missing(tx, leases, Asked::GiveBack).await;
    };
    let (mut answers, mut budget) = (Vec::with_capacity(leases.len()), Budget::of(tx));
    for lease in leases {
        answers.push(settler.give_back(tx, *lease, keep).await?);
        if budget.is_spent().await {
            break;
        }
    }
    settler.write(tx).await?;
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
    let jobs: Vec<JobId> = leases.iter().map(|lease| lease.job).collect();
    let seen = find_seen(tx, &jobs).await?;
    let answer = |lease: &Lease| repeated(tx.now, seen.get(&lease.job), None, *lease, asked);
    Ok(leases.iter().map(answer).collect())
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

    fn has(&self, lease: Lease) -> bool {
        self.0.get(&lease.job).is_some_and(|live| live.fence == lease.fence)
    }

    /// Takes a job if the holder has it under this lease. Guards every settle.
    fn take(&mut self, lease: Lease) -> Option<Live> {
        if self.has(lease) { self.0.remove(&lease.job) } else { None }
    }
}

/// The holder that settles.
struct Settler {
    id: HolderId,
    number: i64,
    alive: bool,
    held: Held,
    /// The jobs that it had not under these leases at first, as they were.
    others: HashMap<JobId, Option<Seen>>,
    successes: Successes,
    verdicts: Verdicts,
    /// The jobs that applied settlements submit.
    follow_ups: FollowUps,
    auditor: Auditor,
}

impl Settler {
    async fn find(
        tx: &mut Transaction<'_>,
        id: HolderId,
        leases: &[Lease],
        asked: Asked,
    ) -> Result<Option<Settler>, VerbError> {
        let alive = tx.alive(id).await?;
        let number = if alive.is_some() { alive } else { tx.number(id).await? };
        let Some(number) = number else { return Ok(None) };
        let held = Held::find(tx, number, leases).await?;
        // The holder may have them under another fence: then it has settled them before.
        let others = leases.iter().filter(|lease| !held.has(**lease)).map(|lease| lease.job);
        let others: Vec<JobId> = others.collect();
        let seen = find_seen(tx, &others).await?;
        let others = others.into_iter().map(|job| (job, seen.get(&job).cloned())).collect();
        let settled_by = match asked {
            Asked::Settle => number,
            Asked::GiveBack => given_back_by(number),
        };
        Ok(Some(Settler {
            id,
            number,
            alive: alive.is_some(),
            held,
            others,
            successes: Successes::of(id, number),
            verdicts: Verdicts::of(number, settled_by),
            follow_ups: FollowUps::default(),
            auditor: Auditor::of_holder(id),
        }))
    }

    /// Writes what was decided so far.
    async fn write(&mut self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        self.successes.write(tx).await?;
        self.verdicts.write(tx).await
    }

    async fn give_back(
        &mut self,
        tx: &mut Transaction<'_>,
        lease: Lease,
        keep: Retain,
    ) -> Result<Settled, VerbError> {
        let Some(live) = self.held.take(lease) else {
            return self.repeated(tx, lease, Asked::GiveBack).await;
        };
        let wanted = live.wanted;
        let state = wanted.map_or(State::Scheduled, Wanted::state);
        if state.is_live() {
            tx.report_lane(live.lane).await;
            self.let_go(tx, &live, state, None, None).await?;
        } else {
            // The line of a group reads the rows of its other jobs.
            self.verdicts.write(tx).await?;
            let settled_by = Some(given_back_by(self.number));
            end(tx, &live, &Ending { state, failure: None, settled_by, keep }).await?;
            let transition = live.transition(Cause::GiveBack, State::Leased, state);
            self.note(tx, &live, Transition { wanted, ..transition }).await?;
        }
        Ok(Settled::Applied(Outcome::LetGo(state)))
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
        if live.group_key.is_some() {
            // The line of a group reads the rows of its other jobs.
            self.verdicts.write(tx).await?;
        }
        self.record(tx, settled, &live).await?;
        if settled.is_plain_success() {
            self.successes.add(tx, &live, settled).await?;
            return Ok(Settled::Applied(Outcome::LetGo(State::Succeeded)));
        }
        live.attempt += u32::from(decision.uses_attempt());
        let failure = decision.failure().or(settled.failure.as_ref());
        let outcome = match decision.state(live.wanted) {
            State::Leased if self.alive => self.keep_lease(tx, &live, settled),
            // A dead holder must not keep a lease: the job is scheduled instead.
            state @ (State::Leased | State::Scheduled | State::Paused) => {
                let state = if state == State::Leased { State::Scheduled } else { state };
                self.let_go(tx, &live, state, Some(decision), failure).await?;
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
        if state == State::Dead && live.group_key.is_none() {
            self.verdicts.die(tx, live, failure).await?;
        } else {
            // The end of a job without retention deletes its records.
            self.verdicts.write_records(tx).await?;
            let (settled_by, keep) = (Some(self.number), settled.keep);
            end(tx, live, &Ending { state, failure, settled_by, keep }).await?;
            if let (State::Succeeded, false, Some(result)) =
                (state, keep.job.is_zero(), &settled.result)
            {
                let results = [(live.id, result.clone())];
                results::store(tx, tx.now.plus(keep.job), &results).await?;
            }
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

    fn keep_lease(&mut self, tx: &Transaction<'_>, live: &Live, settled: &Settlement) -> Outcome {
        let (due, because) = next_due(tx.now, &settled.decision);
        let due = due.unwrap_or(live.due);
        let overdue = due.plus(settled.hold).as_millis();
        let floor = Fence::new(unsigned(tx.shared.epoch.fence_floor()));
        let fence = settled.lease.fence.max(floor).next();
        let next = Next { due, because, failure: settled.failure.as_ref() };
        self.verdicts.keep(live, fence.get(), overdue, &next);
        Outcome::Kept { fence, due_in: due.since(tx.now) }
    }

    async fn let_go(
        &mut self,
        tx: &mut Transaction<'_>,
        live: &Live,
        state: State,
        decision: Option<&Decision>,
        failure: Option<&Failure>,
    ) -> Result<(), VerbError> {
        let (due, because) = decision.map_or((None, None), |decision| next_due(tx.now, decision));
        let due = due.unwrap_or(live.due);
        let [lane, place] = live.next_address(tx, state, due);
        let state = if state == State::Scheduled { SCHEDULED } else { PAUSED };
        let next = Next { due, because, failure };
        self.verdicts.let_go(tx, live, (state, lane, place), &next).await
    }

    /// Stores the record of a failed attempt, if it failed.
    async fn record(
        &mut self,
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
        self.verdicts.record(values, failure.message().len());
        if live.version > Limits::ATTEMPTS_LISTED_MAX as u64 {
            self.verdicts.write_records(tx).await?;
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
        let number = Some(self.number);
        if let Some(seen) = self.others.get(&lease.job) {
            return Ok(repeated(tx.now, seen.as_ref(), number, lease, asked));
        }
        // It may be a repetition within this same batch.
        self.write(tx).await?;
        let seen = find_seen(tx, &[lease.job]).await?;
        Ok(repeated(tx.now, seen.get(&lease.job), number, lease, asked))
    }
}

/// Returns the result of a settlement that matches no lease: it is a repetition, or too late.
fn repeated(
    now: Timestamp,
    seen: Option<&Seen>,
    holder: Option<i64>,
    lease: Lease,
    asked: Asked,
) -> Settled {
    let Some(seen) = seen else {
        return Settled::AlreadyApplied(Outcome::Gone);
    };
    let is_same = holder.is_some_and(|number| {
        let gave_back = asked == Asked::GiveBack && seen.by == given_back_by(number);
        seen.by == number || gave_back
    });
    if !is_same || seen.fence_settled != lease.fence {
        return Settled::Lost;
    }
    // A claim resets `kept`: the same holder may have claimed the job again.
    let is_ours = seen.kept && Some(seen.holder) == holder;
    Settled::AlreadyApplied(if is_ours {
        Outcome::Kept { fence: seen.fence, due_in: seen.due.since(now) }
    } else {
        Outcome::LetGo(seen.state)
    })
}

/// Returns when a job runs again and why, if the decision says so.
fn next_due(now: Timestamp, decision: &Decision) -> (Option<Timestamp>, Option<&'static str>) {
    match decision.wait() {
        Some((after, because)) => (Some(now.plus(after)), Some(because.as_str())),
        None => (None, None),
    }
}

/// The holder that settled a job last, and its current holder.
#[derive(Clone)]
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

/// Finds jobs in any state. Those that are not in the result do not exist.
async fn find_seen(
    tx: &mut Transaction<'_>,
    jobs: &[JobId],
) -> Result<HashMap<JobId, Seen>, VerbError> {
    // In one order, so that two settles of the same jobs do not deadlock.
    let (mut left, mut found): (BTreeSet<JobId>, _) =
        (jobs.iter().copied().collect(), HashMap::new());
    for sql in [
        include_str!("../sql/settle_seen.sql"),
        include_str!("../sql/settle_seen_dead.sql"),
        include_str!("../sql/settle_seen_finished.sql"),
        // An operator may have put a dead letter back to work in between.
        include_str!("../sql/settle_seen.sql"),
    ] {
        let list: Vec<Value> = left.iter().map(|id| id16(id.to_bytes())).collect();
        for row in tx.run_list(sql, &[], &list, &[]).await?.rows {
            let id = JobId::from_bytes(bytes(&row, 0)?);
            let state: String = get(&row, 1)?;
            let seen = Seen {
                state: state.parse().unwrap_or(State::Scheduled),
                by: get(&row, 2)?,
                fence_settled: Fence::new(unsigned(get(&row, 3)?)),
                holder: get(&row, 4)?,
                fence: Fence::new(unsigned(get(&row, 5)?)),
                due: instant(get(&row, 6)?),
                kept: get(&row, 7)?,
            };
            left.remove(&id);
            found.insert(id, seen);
        }
    }
    Ok(found)
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
