//! Settles jobs: writes the decision after each attempt.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::{fence, holder_uuid, instant, job_id, millis, uuid};
use super::super::row_address::Taken;
use super::super::session::{Param, Session};
use super::super::statements::{
    FIND_HOLDER, SETTLE_DROP, SETTLE_FIND, SETTLE_KEEP, SETTLE_KEEP_RESULTS, SETTLE_PAYLOAD,
    SETTLE_SEEN,
};
use super::audit::actor;
use super::claim::columns;
use super::follow_ups::{self, Stored, Submitting};
use super::groups::Freed;
use super::results::{Results, portions};
use super::unreadable::Unreadable;
use super::writes::{Live, Writes};
use rewheel_core::store::{AttemptTiming, Outcome, Settled, Settlement, StoreResult};
use rewheel_core::{
    Actor, Cause, Fence, HolderId, JobId, Lease, Retain, State, SuccessCode, Timestamp, Transition,
    Wanted,
};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use uuid::Uuid;

impl PostgresStore {
    pub(in super::super) async fn settle_batch(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        let mut answers = Vec::with_capacity(settlements.len());
        for portion in portions(settlements) {
            let settled = self.settle_portion(holder, portion).await?;
            let ended = portion.iter().zip(&settled).filter(|(_, answer)| has_ended(answer));
            self.shared.acknowledged.ended(ended.map(|(settled, _)| settled.lease.job));
            answers.extend(settled);
        }
        Ok(answers)
    }

    async fn settle_portion(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        let plain = plain_ones(settlements);
        let Some(keep) = all_succeeded(&plain) else {
            return self.settle_mixed(holder, settlements).await;
        };
        // The most frequent case: one statement, without a read before it.
        let session = self.write().await?;
        let done = succeed(&session, holder, &plain, keep).await;
        let (done, taken) = session.end(done).await?;
        let applied = Settled::Applied(Outcome::LetGo(State::Succeeded));
        let done = match done {
            Some(done) => {
                self.shared.places.forget_lists(&taken);
                done
            }
            None => {
                // Only after the commit: behind a pooler it may fail, and then the list of leased jobs must stay.
                self.shared.places.settled(&taken);
                if plain.len() == settlements.len() {
                    return Ok(vec![applied; settlements.len()]);
                }
                plain.iter().map(|settled| settled.lease.job).collect()
            }
        };
        // A job that another transaction changed meanwhile was skipped: an operator may want to cancel it, which does not undo the
        // result. So the remaining jobs are settled under locks, and so are those that submit jobs.
        let is_done =
            |settled: &Settlement| done.contains(&settled.lease.job) && settled.is_plain();
        let rest: Vec<Settlement> =
            settlements.iter().filter(|settled| !is_done(settled)).cloned().collect();
        let mut rest = self.settle_mixed(holder, &rest).await?.into_iter();
        let answer = |settled: &Settlement| {
            if is_done(settled) { applied } else { rest.next().unwrap_or(Settled::Lost) }
        };
        Ok(settlements.iter().map(answer).collect())
    }

    async fn settle_mixed(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        let session = self.transaction().await?;
        let answers = settle_mixed(&session, holder, settlements).await;
        let (answers, lanes, stored, freed) = session.end(answers).await?;
        let applied = settlements
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| matches!(answer, Settled::Applied(_)));
        let places = &self.shared.places;
        places.settled(&places.take(applied.map(|(settled, _)| settled.lease)));
        if !lanes.is_empty() {
            self.shared.woken.wake(self.shared.lanes.report(lanes));
        }
        self.acknowledge(&stored.jobs, &stored.answers);
        self.wake_for(&stored.jobs, stored.now, &stored.answers);
        if let Some(lanes) = stored.woken {
            self.wake(lanes);
        }
        self.after_settled_groups(freed).await;
        Ok(answers)
    }

    pub(in super::super) async fn give_back_batch(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        let session = self.transaction().await?;
        let answers = give_back(&session, holder, leases, keep).await;
        let (answers, lanes, freed) = session.end(answers).await?;
        self.wake(self.shared.lanes.report(lanes));
        self.after_groups(freed).await;
        Ok(answers)
    }
}

/// Returns whether a job has ended for good. A dead letter may be redriven.
fn has_ended(answer: &Settled) -> bool {
    match answer {
        Settled::Applied(Outcome::LetGo(state)) => !state.is_live() && *state != State::Dead,
        Settled::Applied(Outcome::Kept { .. } | Outcome::Gone)
        | Settled::AlreadyApplied(_)
        | Settled::Lost => false,
    }
}

/// Returns the settlements that write nothing but the end of their jobs.
fn plain_ones(settlements: &[Settlement]) -> Cow<'_, [Settlement]> {
    let is_plain = |settled: &&Settlement| settled.is_plain();
    if settlements.iter().all(|settled| is_plain(&settled)) {
        return Cow::Borrowed(settlements);
    }
    settlements.iter().filter(is_plain).cloned().collect()
}

/// Returns the retention, if all settlements are successes with the same retention and each job is named once.
fn all_succeeded(settlements: &[Settlement]) -> Option<Retain> {
    let keep = settlements.first()?.keep;
    let mut named = HashSet::with_capacity(settlements.len());
    let mut plain = |settled: &Settlement| {
        settled.is_plain_success() && settled.keep == keep && named.insert(settled.lease.job)
    };
    settlements.iter().all(&mut plain).then_some(keep)
}

/// Returns the settled jobs, unless all were settled, and their row positions.
async fn succeed(
    session: &Session<'_>,
    holder: HolderId,
    settlements: &[Settlement],
    keep: Retain,
) -> Result<(Option<HashSet<JobId>>, Taken), VerbError> {
    // In the order of the columns: each row position belongs to its id.
    let mut sorted: Vec<&Settlement> = settlements.iter().collect();
    sorted.sort_unstable_by_key(|settled| uuid(settled.lease.job));
    let leases = || sorted.iter().map(|settled| settled.lease);
    let (ids, fences) = columns(leases());
    let taken = session.shared.places.take(leases());
    let places = &taken.places;
    let (holder, offset) = (holder_uuid(holder), session.offset());
    let (job, key) = (millis(keep.job), millis(keep.key));
    let row = if keep.job.is_zero() {
        session.one(&SETTLE_DROP, &[&holder, &offset, &ids, &fences, places, &key]).await?
    } else {
        let ran = |value: fn(&AttemptTiming) -> Duration| -> Vec<i64> {
            sorted.iter().map(|settled| millis(value(&settled.ran))).collect()
        };
        let (ago, took) = (ran(|ran| ran.started_ago), ran(|ran| ran.duration));
        let codes: Vec<Option<&str>> =
            sorted.iter().map(|settled| settled.code.as_ref().map(SuccessCode::as_str)).collect();
        let params: [Param<'_>; 10] =
            [&holder, &offset, &ids, &fences, places, &job, &key, &ago, &took, &codes];
        let given = Results::settled(settlements);
        if given.jobs.is_empty() {
            session.one(&SETTLE_KEEP, &params).await?
        } else {
            let mut params = params.to_vec();
            params.extend(given.params());
            session.one(&SETTLE_KEEP_RESULTS, &params).await?
        }
    };
    let done: Option<Vec<Uuid>> = row.try_get(0)?;
    Ok((done.map(|done| done.into_iter().map(job_id).collect()), taken))
}

/// Returns the results, the lanes to which jobs went back, the jobs that were submitted, and what happened to lines of groups.
pub(in super::super) async fn settle_mixed(
    session: &Session<'_>,
    holder: HolderId,
    settlements: &[Settlement],
) -> Result<(Vec<Settled>, HashSet<i32>, Stored, Freed), VerbError> {
    let mut settler = Settler::find(session, holder).await?;
    settler.lock(session, settlements.iter().map(|settled| settled.lease)).await?;
    let mut writes = Writes::default();
    let mut answers = Vec::with_capacity(settlements.len());
    let (mut lanes, mut submitting) = (HashSet::new(), Submitting::new());
    for settled in settlements {
        let lane = settler.held.get(&settled.lease.job).map(|live| live.lane);
        let answer = settler.settle(settled, &mut writes);
        if let Some(Settled::Applied(Outcome::LetGo(State::Scheduled))) = answer {
            lanes.extend(lane);
        }
        if let (Some(Settled::Applied(_)), Some(lane), false) =
            (answer, lane, settled.follow_ups.is_empty())
        {
            submitting.push((settled, lane));
        }
        answers.push(answer);
    }
    write_payloads(session, settlements, &answers).await?;
    let mut freed = writes.flush(session, settler.now, settler.named()).await?;
    let by = (holder, &settler.who);
    let stored = follow_ups::store(session, submitting, by, settler.now, &mut freed).await?;
    let leases = settlements.iter().map(|settled| settled.lease);
    let answers = settler.answer_rest(session, answers, leases, Asked::Settle).await?;
    Ok((answers, lanes, stored, freed))
}

/// Writes the payloads of settlements that were applied, before their rows move to other tables.
async fn write_payloads(
    session: &Session<'_>,
    settlements: &[Settlement],
    answers: &[Option<Settled>],
) -> Result<(), VerbError> {
    let applied = settlements
        .iter()
        .zip(answers)
        .filter(|(_, answer)| matches!(answer, Some(Settled::Applied(_))));
    let (ids, payloads): (Vec<Uuid>, Vec<&[u8]>) = applied
        .filter_map(|(settled, _)| Some((uuid(settled.lease.job), settled.payload.as_deref()?)))
        .unzip();
    if ids.is_empty() {
        return Ok(());
    }
    session.execute(&SETTLE_PAYLOAD, &[&ids, &payloads]).await.map(drop)
}

/// Returns the results, the lanes of the jobs, and what happened to lines of groups.
async fn give_back(
    session: &Session<'_>,
    holder: HolderId,
    leases: &[Lease],
    keep: Retain,
) -> Result<(Vec<Settled>, HashSet<i32>, Freed), VerbError> {
    let mut settler = Settler::find(session, holder).await?;
    settler.lock(session, leases.iter().copied()).await?;
    let mut lanes = HashSet::new();
    let mut writes = Writes::default();
    let mut answers = Vec::with_capacity(leases.len());
    for lease in leases {
        answers.push(settler.take(*lease).map(|(live, number)| {
            let state = live.wanted.map_or(State::Scheduled, Wanted::state);
            lanes.insert(live.lane);
            let by = Some((given_back_by(number), lease.fence));
            if state.is_live() {
                writes.let_go(live, state, None, by, None);
            } else {
                let transition = live.transition(Cause::GiveBack, state, Some(holder));
                writes.note(&live, &transition, &settler.who);
                writes.end(live, state, None, by, (settler.now, keep));
            }
            Settled::Applied(Outcome::LetGo(state))
        }));
    }
    let freed = writes.flush(session, settler.now, settler.named()).await?;
    let asked = Asked::GiveBack;
    let answers = settler.answer_rest(session, answers, leases.iter().copied(), asked).await?;
    Ok((answers, lanes, freed))
}

/// What a holder asks for. A result that arrives after the job was given back does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Settle,
    GiveBack,
}

/// Returns the stored number of a holder that gave a job back: its number, negated. A holder that settled the job is stored with its
/// plain number.
fn given_back_by(number: i32) -> i32 {
    -number
}

/// The holder that settles.
struct Settler {
    id: HolderId,
    /// `None` if the holder does not exist: then it holds no job.
    number: Option<i32>,
    alive: bool,
    /// Its name in the audit log.
    who: Actor,
    now: Timestamp,
    held: HashMap<JobId, Live>,
    seen: HashMap<JobId, Seen>,
    /// Jobs whose rows cannot be read: nothing was written to them.
    unreadable: HashSet<JobId>,
}

/// The holder that settled a job last, and its current holder.
struct Seen {
    state: State,
    by: Option<i32>,
    fence_settled: Option<Fence>,
    /// Whether the settling holder kept the job. The same holder may also have claimed it again.
    kept: bool,
    holder: Option<i32>,
    fence: Fence,
    due: Timestamp,
}

impl Settler {
    async fn find(session: &Session<'_>, id: HolderId) -> Result<Settler, VerbError> {
        let row = session.one(&FIND_HOLDER, &[&holder_uuid(id), &session.offset()]).await?;
        Ok(Settler {
            id,
            now: instant(row.try_get(0)?),
            number: row.try_get(1)?,
            alive: row.try_get::<_, Option<bool>>(2)?.unwrap_or(false),
            who: actor(id, row.try_get(3)?),
            held: HashMap::new(),
            seen: HashMap::new(),
            unreadable: HashSet::new(),
        })
    }

    fn named(&self) -> Option<(HolderId, i32)> {
        self.number.map(|number| (self.id, number))
    }

    /// Locks the jobs in the order of their ids, so that two callers with the same jobs cannot deadlock.
    async fn lock(
        &mut self,
        session: &Session<'_>,
        leases: impl Iterator<Item = Lease>,
    ) -> Result<(), VerbError> {
        let mut ids: Vec<Uuid> = leases.map(|lease| uuid(lease.job)).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut ours = Unreadable::default();
        for row in session.query(&SETTLE_FIND, &[&ids]).await? {
            let id = job_id(row.try_get(0)?);
            match Live::read(&row) {
                Ok(live) => drop(self.held.insert(id, live)),
                Err(trouble) => {
                    self.unreadable.insert(id);
                    let holder: Option<i32> = row.try_get(9)?;
                    if row.try_get::<_, &str>(2)? == State::Leased.as_str() && holder == self.number
                    {
                        ours.check::<()>(id, Err(trouble))?;
                    } else {
                        trouble.of_row()?;
                    }
                }
            }
        }
        // The attempts are over, but the decision cannot be applied to unreadable jobs.
        ours.set_aside(session).await
    }

    /// Takes a job if the holder has it under this lease. Guards every settle.
    fn take(&mut self, lease: Lease) -> Option<(Live, i32)> {
        let number = self.number?;
        let live = self.held.get(&lease.job)?;
        if live.state != State::Leased || live.holder != Some(number) || live.fence != lease.fence {
            return None;
        }
        self.held.remove(&lease.job).map(|live| (live, number))
    }

    fn settle<'a>(&mut self, settled: &'a Settlement, writes: &mut Writes<'a>) -> Option<Settled> {
        let (mut live, number) = self.take(settled.lease)?;
        let decision = &settled.decision;
        if let Some(failure) = &settled.failure {
            writes.record(settled, failure, live.attempt + 1);
        }
        live.attempt += u32::from(decision.uses_attempt());
        let failure = decision.failure().or(settled.failure.as_ref());
        let by = Some((number, settled.lease.fence));
        let due = decision.wait().map(|(after, because)| (self.now.plus(after), because.as_str()));
        let outcome = match (decision.state(live.wanted), due) {
            (State::Leased, Some(due)) if self.alive => {
                writes.keep(&live, due, due.0.plus(settled.hold), settled.failure.as_ref());
                let due_in = due.0.since(self.now);
                Outcome::Kept { fence: settled.lease.fence.next(), due_in }
            }
            // A dead holder must not keep a lease: the job is scheduled instead.
            (state @ (State::Leased | State::Scheduled | State::Paused), due) => {
                let state = if state == State::Leased { State::Scheduled } else { state };
                writes.let_go(live, state, due, by, failure);
                Outcome::LetGo(state)
            }
            (state @ (State::Succeeded | State::Failed | State::Dead | State::Cancelled), _) => {
                let transition = live.transition(Cause::Settle, state, Some(self.id));
                writes.note(&live, &Transition { failure, ..transition }, &self.who);
                writes.end(live, state, failure.cloned(), by, (self.now, settled.keep));
                writes.succeeded(settled, self.id, self.now);
                Outcome::LetGo(state)
            }
        };
        Some(Settled::Applied(outcome))
    }

    /// Fills in the results of settlements that matched no lease.
    async fn answer_rest(
        &mut self,
        session: &Session<'_>,
        answers: Vec<Option<Settled>>,
        leases: impl Iterator<Item = Lease> + Clone,
        asked: Asked,
    ) -> Result<Vec<Settled>, VerbError> {
        let rest = leases.clone().zip(&answers).filter(|(_, answer)| answer.is_none());
        let rest: Vec<Lease> = rest.map(|(lease, _)| lease).collect();
        self.look(session, rest.into_iter()).await?;
        Ok(answers
            .into_iter()
            .zip(leases)
            .map(|(answer, lease)| answer.unwrap_or_else(|| self.repeated(lease, asked)))
            .collect())
    }

    /// Reads which holder settled jobs that this holder does not have.
    async fn look(
        &mut self,
        session: &Session<'_>,
        leases: impl Iterator<Item = Lease>,
    ) -> Result<(), VerbError> {
        let ids: Vec<Uuid> = leases.map(|lease| uuid(lease.job)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        for row in session.query(&SETTLE_SEEN, &[&ids]).await? {
            let id = job_id(row.try_get(0)?);
            let Ok(state) = row.try_get::<_, &str>(1)?.parse() else {
                self.unreadable.insert(id);
                continue;
            };
            let seen = Seen {
                state,
                by: row.try_get(2)?,
                fence_settled: row.try_get::<_, Option<i64>>(3)?.map(fence),
                holder: row.try_get(4)?,
                fence: fence(row.try_get(5)?),
                due: instant(row.try_get(6)?),
                kept: row.try_get(7)?,
            };
            self.seen.insert(id, seen);
        }
        Ok(())
    }

    /// Returns the result of a settlement that matches no lease: it is a repetition, or too late.
    fn repeated(&self, lease: Lease, asked: Asked) -> Settled {
        if self.unreadable.contains(&lease.job) {
            return Settled::Lost;
        }
        let Some(seen) = self.seen.get(&lease.job) else {
            return Settled::AlreadyApplied(Outcome::Gone);
        };
        let is_same = self.number.is_some_and(|number| {
            let gave_back = asked == Asked::GiveBack && seen.by == Some(given_back_by(number));
            seen.by == Some(number) || gave_back
        });
        if !is_same || seen.fence_settled != Some(lease.fence) {
            return Settled::Lost;
        }
        let is_ours = seen.kept && seen.holder == self.number && seen.fence == lease.fence.next();
        Settled::AlreadyApplied(if is_ours {
            Outcome::Kept { fence: seen.fence, due_in: seen.due.since(self.now) }
        } else {
            Outcome::LetGo(seen.state)
        })
    }
}
