//! Stores the jobs that settlements submit.

use super::super::error::VerbError;
use super::super::row::{job_id, tenant_text, uuid};
use super::super::session::{Param, Session};
use super::super::statements::FIND_REPLACED;
use super::groups::Touched;
use super::insert::{Insertion, find_states, lanes_changed};
use super::kinds;
use super::numbered_lanes::{Numbered, lanes};
use super::writes::{Live, Writes};
use crate::follow_ups::{FollowUps, Letter};
use crate::groups::Line;
use rewheel_core::store::{Insert, Inserted, Settlement, StoreChange};
use rewheel_core::{
    Actor, Cause, Fence, HolderId, JobId, Lane, NewJob, OnDuplicate, Retain, State, Timestamp,
    Transition,
};
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// The settlements of a transaction that were applied and submit jobs, each with the lane of its job.
pub(super) type Submitting<'a> = Vec<(&'a Settlement, i32)>;

/// The jobs that were stored, to be reported after the commit.
pub(in super::super) struct Stored {
    pub(in super::super) jobs: Vec<NewJob>,
    pub(in super::super) answers: Vec<Inserted>,
    pub(in super::super) now: Timestamp,
    /// The lanes of replaced jobs.
    pub(in super::super) woken: Option<StoreChange>,
}

/// The follow-ups that replace a job that waits, as one array per column: parent, kind, tenant and key.
#[derive(Default)]
pub(super) struct Replacing<'a> {
    parents: Vec<Uuid>,
    kinds: Vec<&'a str>,
    tenants: Vec<&'a str>,
    keys: Vec<&'a str>,
}

impl<'a> Replacing<'a> {
    pub(super) fn of(settlements: &'a [Settlement]) -> Replacing<'a> {
        let mut replacing = Replacing::default();
        for settled in settlements {
            for job in &settled.follow_ups {
                let Some(key) = &job.key else { continue };
                if job.duplicates.on_duplicate() == OnDuplicate::Replace {
                    replacing.parents.push(uuid(settled.lease.job));
                    replacing.kinds.push(job.kind.as_str());
                    replacing.tenants.push(tenant_text(job.tenant.as_ref()));
                    replacing.keys.push(key.as_str());
                }
            }
        }
        replacing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Finds the jobs that they would replace, without locking them.
    pub(super) async fn find(&self, session: &Session<'_>) -> Result<BTreeSet<JobId>, VerbError> {
        let params: [Param<'_>; 4] = [&self.parents, &self.kinds, &self.tenants, &self.keys];
        let rows = session.query(&FIND_REPLACED, &params).await?;
        rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
    }
}

/// Stores the jobs in the transaction of the settle that submits them.
pub(super) async fn store(
    session: &Session<'_>,
    submitting: Submitting<'_>,
    by: (HolderId, &Actor),
    now: Timestamp,
    touched: &mut Touched,
) -> Result<Stored, VerbError> {
    if submitting.is_empty() {
        return Ok(Stored { jobs: Vec::new(), answers: Vec::new(), now, woken: None });
    }
    let parents = submitting.iter().map(|(_, lane)| *lane);
    let parents = super::super::lanes::names(session, parents).await?;
    let mut follow_ups = FollowUps::default();
    for (settlement, lane) in submitting {
        let parent = parents.get(&lane).ok_or_else(lanes_changed)?;
        follow_ups.add(settlement, parent);
    }
    let jobs = std::mem::take(&mut follow_ups.jobs);
    let insert = FollowUps::insert(&jobs);
    let (answers, woken) = careful(session, &insert, touched).await?;
    follow_ups.jobs = jobs;
    follow_ups.refused(&answers);
    touched.merge(bury(session, &follow_ups, by, now).await?);
    touched.look_at(follow_ups.jobs.iter().filter_map(Line::of_new));
    Ok(Stored { jobs: follow_ups.jobs, answers, now, woken })
}

async fn careful(
    session: &Session<'_>,
    insert: &Insert<'_>,
    touched: &mut Touched,
) -> Result<(Vec<Inserted>, Option<StoreChange>), VerbError> {
    if insert.jobs.is_empty() {
        return Ok((Vec::new(), None));
    }
    let numbers = number(session, insert.jobs).await?;
    let mut insertion = Insertion::new(insert, Numbered::new(insert.jobs, numbers));
    // A kind was deleted meanwhile: the caller repeats the settle.
    let answers = insertion.careful(session).await?.ok_or_else(lanes_changed)?;
    touched.look_at(std::mem::take(&mut insertion.lines));
    Ok((answers, insertion.woken))
}

/// Numbers the lanes of jobs whose kinds exist, in the transaction of the settle. Not from the cache: with a number that is out of
/// date the settle would have to be undone.
async fn number(session: &Session<'_>, jobs: &[NewJob]) -> Result<HashMap<Lane, i32>, VerbError> {
    session.shared.lanes.numbers_in(session, lanes(jobs)).await
}

/// Stores refused jobs as dead letters.
async fn bury(
    session: &Session<'_>,
    follow_ups: &FollowUps,
    (holder, who): (HolderId, &Actor),
    now: Timestamp,
) -> Result<Touched, VerbError> {
    let known = find_states(session, follow_ups.letters.iter().map(|letter| letter.job.id)).await?;
    let letters: Vec<&Letter> =
        follow_ups.letters.iter().filter(|letter| !known.contains_key(&letter.job.id)).collect();
    if letters.is_empty() {
        return Ok(Touched::default());
    }
    let mut missing = follow_ups.kinds();
    let names: Vec<_> = missing.iter().map(|kind| kind.name.as_str()).collect();
    let exist = super::super::lanes::existing_kinds(session, &names).await?;
    missing.retain(|kind| !exist.contains(kind.name.as_str()));
    if !missing.is_empty() {
        kinds::put_kinds(session, &missing, &Actor::engine()).await?;
    }
    let jobs: Vec<NewJob> = letters.iter().map(|letter| letter.job.clone()).collect();
    let numbers = number(session, &jobs).await?;
    let insert = FollowUps::insert(&jobs);
    let lane_of = |job: &NewJob| numbers.get(&job.lane()).copied().ok_or_else(lanes_changed);
    let mut rows = Vec::with_capacity(jobs.len());
    for job in &jobs {
        rows.push((job, lane_of(job)?));
    }
    let mut insertion = Insertion::new(&insert, Numbered::new(&jobs, numbers.clone()));
    if insertion.store(session, &rows, Some(now)).await?.is_none() {
        return Err(lanes_changed().into());
    }
    let mut writes = Writes::default();
    for (letter, (job, lane)) in letters.iter().zip(&rows) {
        let (live, failure) = (live(job, *lane), letter.failure.clone());
        let transition = live.transition(Cause::Settle, State::Dead, Some(holder));
        writes.note(&live, &Transition { failure: Some(&failure), ..transition }, who);
        // The retention does not matter: a dead letter is kept until an operator handles it.
        writes.end(live, State::Dead, Some(failure), None, (now, Retain::default()));
    }
    writes.flush(session, now, None).await
}

/// A job as it was just stored.
fn live(job: &NewJob, lane: i32) -> Live {
    Live {
        id: job.id,
        lane,
        state: State::Scheduled,
        fence: Fence::new(0),
        wanted: None,
        attempt: 0,
        takeovers: 0,
        takeovers_counted: 0,
        started: false,
        holder: None,
        key: None,
        grouped: job.group_key.is_some(),
        unsettled: true,
        version: 1,
    }
}
