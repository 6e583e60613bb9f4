//! Settles jobs: writes the decision after each attempt.

mod settler;

use self::settler::{Asked, Settler, given_back_by};
use super::super::PostgresStore;
use super::super::bins::width_ms;
use super::super::error::VerbError;
use super::super::row::{holder_uuid, instant, job_id, millis, uuid};
use super::super::row_address::Taken;
use super::super::session::{Param, Session};
use super::super::statements::{SETTLE_DROP, SETTLE_KEEP, SETTLE_KEEP_RESULTS, SETTLE_PAYLOAD};
use super::claim::columns;
use super::follow_ups::{self, Stored, Submitting};
use super::groups::Freed;
use super::results::{Results, portions};
use super::writes::Writes;
use rewheel_core::store::{AttemptTiming, Outcome, Settled, Settlement, StoreResult};
use rewheel_core::{Cause, HolderId, JobId, Lease, Retain, State, SuccessCode, Wanted};
use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;
use uuid::Uuid;

/// A claim replaces the row of a job, and the result of the attempt deletes or replaces it again.
const ROWS_PER_RESULT: u64 = 2;

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
            let ended = ended.map(|(settled, _)| (settled.lease.job, settled.keep.job));
            self.shared.acknowledged.ended(ended, self.time());
            answers.extend(settled);
        }
        if let Some(vacuum) = &self.shared.vacuum {
            vacuum.note(ROWS_PER_RESULT * settlements.len() as u64);
        }
        self.open_bins().await;
        Ok(answers)
    }

    async fn settle_portion(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        // The statements for plain settlements pass over jobs with a group.
        let jobs = settlements.iter().map(|settled| settled.lease.job);
        let grouped = self.shared.places.grouped(jobs);
        let plain = plain_ones(settlements, &grouped);
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
fn plain_ones<'s>(
    settlements: &'s [Settlement],
    grouped: &HashSet<JobId>,
) -> Cow<'s, [Settlement]> {
    let is_plain =
        |settled: &&Settlement| settled.is_plain() && !grouped.contains(&settled.lease.job);
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
        let width = width_ms(keep.job);
        let params: [Param<'_>; 11] =
            [&holder, &offset, &ids, &fences, places, &job, &key, &ago, &took, &codes, &width];
        let given = Results::settled(settlements);
        let row = if given.jobs.is_empty() {
            session.one(&SETTLE_KEEP, &params).await?
        } else {
            let mut params = params.to_vec();
            params.extend(given.params());
            session.one(&SETTLE_KEEP_RESULTS, &params).await?
        };
        session.shared.bins.kept(instant(row.try_get(1)?), keep.job, ids.len());
        row
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
    settler.lock_with_replaced(session, settlements).await?;
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
    let mut touched = writes.flush(session, settler.now, settler.named()).await?;
    let by = (holder, &settler.who);
    let stored = follow_ups::store(session, submitting, by, settler.now, &mut touched).await?;
    settler.touch_rest(&mut touched);
    let leases = settlements.iter().map(|settled| settled.lease);
    let answers = settler.answer_rest(session, answers, leases, Asked::Settle).await?;
    let freed = touched.leave(session, settler.now).await?;
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
    settler.lock(session, leases.iter().map(|lease| lease.job)).await?;
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
    let mut touched = writes.flush(session, settler.now, settler.named()).await?;
    settler.touch_rest(&mut touched);
    let asked = Asked::GiveBack;
    let answers = settler.answer_rest(session, answers, leases.iter().copied(), asked).await?;
    Ok((answers, lanes, touched.leave(session, settler.now).await?))
}
