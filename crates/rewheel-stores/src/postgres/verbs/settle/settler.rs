//! The holder that settles jobs, and what it may do to them.

use super::super::super::error::VerbError;
use super::super::super::row::{fence, holder_uuid, instant, job_id, uuid};
use super::super::super::session::Session;
use super::super::super::statements::{
    DUPLICATES_BEGIN, DUPLICATES_END, DUPLICATES_UNDO, FIND_HOLDER, SETTLE_FIND, SETTLE_SEEN,
};
use super::super::audit::actor;
use super::super::duplicates::ROUNDS_MAX;
use super::super::follow_ups::Replacing;
use super::super::groups::Touched;
use super::super::unreadable::Unreadable;
use super::super::writes::{Live, Writes};
use rewheel_core::store::{Outcome, Settled, Settlement, StoreError};
use rewheel_core::{Actor, Cause, Fence, HolderId, JobId, Lease, State, Timestamp, Transition};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// What a holder asks for. A result that arrives after the job was given back does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Settle,
    GiveBack,
}

/// Returns the stored number of a holder that gave a job back: its number, negated. A holder that settled the job is stored with its
/// plain number.
pub(super) fn given_back_by(number: i32) -> i32 {
    -number
}

/// The holder that settles.
pub(super) struct Settler {
    id: HolderId,
    /// `None` if the holder does not exist: then it holds no job.
    number: Option<i32>,
    alive: bool,
    /// Its name in the audit log.
    pub(super) who: Actor,
    pub(super) now: Timestamp,
    pub(super) held: HashMap<JobId, Live>,
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
    pub(super) async fn find(session: &Session<'_>, id: HolderId) -> Result<Settler, VerbError> {
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

    pub(super) fn named(&self) -> Option<(HolderId, i32)> {
        self.number.map(|number| (self.id, number))
    }

    /// Locks the jobs to settle, together with those that their follow-ups replace: to lock more jobs after a key was written would be
    /// out of order.
    pub(super) async fn lock_with_replaced(
        &mut self,
        session: &Session<'_>,
        settlements: &[Settlement],
    ) -> Result<(), VerbError> {
        let settled = settlements.iter().map(|settled| settled.lease.job);
        let replacing = Replacing::of(settlements);
        if replacing.is_empty() {
            return self.lock(session, settled).await;
        }
        for _ in 0..ROUNDS_MAX {
            let replaced = replacing.find(session).await?;
            session.execute(&DUPLICATES_BEGIN, &[]).await?;
            self.lock(session, settled.clone().chain(replaced.iter().copied())).await?;
            if replacing.find(session).await?.is_subset(&replaced) {
                return session.execute(&DUPLICATES_END, &[]).await.map(drop);
            }
            // Another transaction was faster with a key.
            session.execute(&DUPLICATES_UNDO, &[]).await?;
            self.held.clear();
        }
        let why = "a key was submitted too often at the same time: repeat the request";
        Err(StoreError::Unavailable(why.into()).into())
    }

    /// Adds the jobs that were locked and not settled.
    pub(super) fn touch_rest(&self, touched: &mut Touched) {
        self.held.values().filter(|live| live.grouped).for_each(|live| touched.lock(live.id));
    }

    /// Locks the jobs in the order of their ids, so that two callers with the same jobs cannot deadlock.
    pub(super) async fn lock(
        &mut self,
        session: &Session<'_>,
        jobs: impl Iterator<Item = JobId>,
    ) -> Result<(), VerbError> {
        let mut ids: Vec<Uuid> = jobs.map(uuid).collect();
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
    pub(super) fn take(&mut self, lease: Lease) -> Option<(Live, i32)> {
        let number = self.number?;
        let live = self.held.get(&lease.job)?;
        if live.state != State::Leased || live.holder != Some(number) || live.fence != lease.fence {
            return None;
        }
        self.held.remove(&lease.job).map(|live| (live, number))
    }

    pub(super) fn settle<'a>(
        &mut self,
        settled: &'a Settlement,
        writes: &mut Writes<'a>,
    ) -> Option<Settled> {
        let (mut live, number) = self.take(settled.lease)?;
        let decision = &settled.decision;
        if let Some(failure) = &settled.failure {
            writes.record(&live, settled, failure);
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
    pub(super) async fn answer_rest(
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
