//! Stores the jobs that settlements submit.

use super::super::error::VerbError;
use super::super::session::Session;
use super::groups::Freed;
use super::insert::{Insertion, find_states, lanes_changed};
use super::kinds;
use super::numbered_lanes::{Numbered, lanes};
use super::writes::{Live, Writes};
use crate::follow_ups::{FollowUps, Letter};
use crate::groups::Line;
use rewheel_core::store::{Insert, Inserted, Settlement, StoreChange};
use rewheel_core::{
    Actor, Cause, Fence, HolderId, Lane, NewJob, Retain, State, Timestamp, Transition,
};
use std::collections::HashMap;

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

/// Stores the jobs in the transaction of the settle that submits them.
pub(super) async fn store(
    session: &Session<'_>,
    submitting: Submitting<'_>,
    by: (HolderId, &Actor),
    now: Timestamp,
    freed: &mut Freed,
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
    let (answers, woken) = careful(session, &insert).await?;
    follow_ups.jobs = jobs;
    follow_ups.refused(&answers);
    freed.merge(bury(session, &follow_ups, by, now).await?);
    // The new jobs are released after the commit.
    freed.lines.extend(follow_ups.jobs.iter().filter_map(Line::of_new));
    Ok(Stored { jobs: follow_ups.jobs, answers, now, woken })
}

async fn careful(
    session: &Session<'_>,
    insert: &Insert<'_>,
) -> Result<(Vec<Inserted>, Option<StoreChange>), VerbError> {
    if insert.jobs.is_empty() {
        return Ok((Vec::new(), None));
    }
    let numbers = number(session, insert.jobs).await?;
    let mut insertion = Insertion::new(insert, Numbered::new(insert.jobs, numbers));
    // A kind was deleted meanwhile: the caller repeats the settle.
    let answers = insertion.careful(session).await?.ok_or_else(lanes_changed)?;
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
) -> Result<Freed, VerbError> {
    let known = find_states(session, follow_ups.letters.iter().map(|letter| letter.job.id)).await?;
    let letters: Vec<&Letter> =
        follow_ups.letters.iter().filter(|letter| !known.contains_key(&letter.job.id)).collect();
    if letters.is_empty() {
        return Ok(Freed::default());
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
    }
}
