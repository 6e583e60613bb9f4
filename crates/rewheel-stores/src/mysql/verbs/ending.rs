//! Ends live jobs, as dead letters or as finished.

use super::super::error::VerbError;
use super::super::job_columns::LEASED;
use super::super::places;
use super::super::row::{bytes, count, get, id16, instant, maybe_bytes, unsigned, wanted};
use super::super::transaction::Transaction;
use super::given::Given;
use super::groups;
use super::keys::end_key;
use mysql_async::{Row, Value};
use rewheel_core::store::StoreError;
use rewheel_core::{Cause, Failure, Fence, JobId, Retain, State, Timestamp, Transition, Wanted};

/// A row of the hot table that this transaction has locked.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) id: JobId,
    /// As stored: it may be negative.
    pub(super) lane: i64,
    pub(super) place: i64,
    pub(super) key: Option<String>,
    pub(super) group_key: Option<String>,
    /// Its fence, before it is taken from its holder.
    pub(super) fence: Fence,
    /// Its counters at the end.
    pub(super) attempt: u32,
    pub(super) takeovers: u32,
    pub(super) takeovers_counted: u32,
    pub(super) wanted: Option<Wanted>,
    pub(super) claim: i64,
    pub(super) holder: i64,
    pub(super) state: u8,
    pub(super) due: Timestamp,
    pub(super) deadline: Option<i64>,
    pub(super) parent: Option<JobId>,
    /// Whether it was never settled nor given back, so that no failed attempt is on record.
    pub(super) unsettled: bool,
    /// How often the row was written: at least once for every attempt on record.
    pub(super) version: u64,
}

impl Live {
    /// Reads the first eighteen columns of `lock_live` and its like.
    pub(super) fn read(row: &Row) -> Result<Live, VerbError> {
        Ok(Live {
            id: JobId::from_bytes(bytes(row, 0)?),
            fence: Fence::new(unsigned(get(row, 1)?)),
            lane: get(row, 2)?,
            place: get(row, 3)?,
            wanted: wanted(get(row, 4)?)?,
            attempt: get(row, 5)?,
            key: get(row, 6)?,
            takeovers: get(row, 7)?,
            takeovers_counted: get(row, 8)?,
            group_key: get(row, 9)?,
            claim: get(row, 10)?,
            due: instant(get(row, 11)?),
            deadline: get(row, 12)?,
            parent: maybe_bytes(row, 13)?.map(JobId::from_bytes),
            holder: get(row, 14)?,
            state: get(row, 15)?,
            unsettled: get(row, 16)?,
            version: unsigned(get(row, 17)?),
        })
    }

    /// Returns where the job is.
    pub(super) fn address(&self) -> [Value; 2] {
        [self.lane.into(), self.place.into()]
    }

    /// Returns where the job is, and the lease under which this transaction locked it.
    pub(super) fn guard(&self) -> [Value; 4] {
        let [lane, place] = self.address();
        [lane, place, self.holder.into(), count(self.fence.get())]
    }

    /// Returns where the job is once it is scheduled or paused: a place that expresses its due time, the same as before if possible.
    pub(super) fn next_address(
        &self,
        tx: &Transaction<'_>,
        state: State,
        due: Timestamp,
    ) -> [i64; 2] {
        let place = if self.keeps_place(tx, due) { self.place } else { tx.place(due) };
        let lane = self.lane.abs();
        [if state == State::Scheduled { lane } else { -lane }, place]
    }

    /// Returns whether the place of the job expresses this due time. In a repetition another job may have it.
    pub(super) fn keeps_place(&self, tx: &Transaction<'_>, due: Timestamp) -> bool {
        !tx.repeated && (places::first(due)..=places::last(due)).contains(&self.place)
    }

    /// Describes what the engine does to the job, whether it takes it from a holder or not.
    pub(super) fn transition(&self, cause: Cause, from: State, to: State) -> Transition<'static> {
        Transition {
            cause,
            from,
            to,
            holder: None,
            fence: self.fence,
            wanted: None,
            takeovers: self.takeovers,
            takeovers_counted: self.takeovers_counted,
            failure: None,
        }
    }
}

/// How a job ends.
#[derive(Clone, Debug)]
pub(super) struct Ending<'a> {
    pub(super) state: State,
    pub(super) failure: Option<&'a Failure>,
    /// The holder whose settle ends it, to recognize a repeated settle.
    pub(super) settled_by: Option<i64>,
    pub(super) keep: Retain,
}

/// Returns category, code and message as they are stored.
pub(super) fn texts(failure: Option<&Failure>) -> [Value; 3] {
    match failure {
        Some(failure) => {
            [failure.category().as_str().into(), failure.code().into(), failure.message().into()]
        }
        None => [Value::NULL, Value::NULL, Value::NULL],
    }
}

/// Moves a job out of the hot table.
pub(super) async fn end(
    tx: &mut Transaction<'_>,
    live: &Live,
    end: &Ending<'_>,
) -> Result<(), VerbError> {
    match end.state {
        State::Dead => die(tx, live, end).await?,
        State::Succeeded | State::Failed | State::Cancelled => finish(tx, live, end).await?,
        State::Scheduled | State::Leased | State::Paused => {
            debug_assert!(false, "a job does not end as {}", end.state);
            return Ok(());
        }
    }
    delete(tx, live).await?;
    groups::ended(tx, live, end.state).await
}

async fn delete(tx: &mut Transaction<'_>, live: &Live) -> Result<(), VerbError> {
    let sql = include_str!("../sql/delete_jobs.sql");
    let (lane, place) = ([live.lane.into()], [live.place.into()]);
    let after = [live.holder.into(), live.state.into()];
    let deleted = tx.run_list(sql, &lane, &place, &after).await?.affected;
    expect_matched(deleted, 1)?;
    leave_tables(tx, live).await
}

/// Checks that a write matched the rows that this transaction has locked. Otherwise nothing may be counted, and the transaction is rolled
/// back.
pub(super) fn expect_matched(matched: u64, locked: usize) -> Result<(), VerbError> {
    if matched == locked as u64 {
        return Ok(());
    }
    let what = format!("a write changed {matched} jobs instead of {locked}: report this as a bug");
    Err(VerbError::Said(StoreError::Broken { what, source: None }))
}

/// Deletes the rows beside a job that leaves the hot table, and its lease.
pub(super) async fn leave_tables(tx: &mut Transaction<'_>, live: &Live) -> Result<(), VerbError> {
    if let Some(deadline) = live.deadline {
        let values = vec![deadline.into(), id16(live.id.to_bytes())];
        tx.execute(include_str!("../sql/drop_deadline.sql"), values).await?;
    }
    lose_lease(tx, live).await
}

/// Deletes these deadlines of jobs that leave the hot table.
pub(super) async fn drop_deadlines(
    tx: &mut Transaction<'_>,
    deadlines: &mut Given,
) -> Result<(), VerbError> {
    for given in deadlines.take() {
        tx.execute(include_str!("../sql/drop_deadlines.sql"), vec![given.into()]).await?;
    }
    Ok(())
}

/// Notes that a job is not leased any more, if it was.
pub(super) async fn lose_lease(tx: &mut Transaction<'_>, live: &Live) -> Result<(), VerbError> {
    if live.state != LEASED {
        return Ok(());
    }
    tx.lease_ended(live.claim, live.id);
    if live.wanted.is_some() {
        let values = vec![live.holder.into(), id16(live.id.to_bytes())];
        tx.execute(include_str!("../sql/drop_wanted.sql"), values).await?;
    }
    Ok(())
}

/// Replaces the deadline of a job in the table of deadlines.
pub(super) async fn move_deadline(
    tx: &mut Transaction<'_>,
    job: JobId,
    before: Option<Timestamp>,
    after: Option<Timestamp>,
) -> Result<(), VerbError> {
    if before == after {
        return Ok(());
    }
    let row = |at: Timestamp| vec![at.as_millis().into(), id16(job.to_bytes())];
    if let Some(before) = before {
        tx.execute(include_str!("../sql/drop_deadline.sql"), row(before)).await?;
    }
    if let Some(after) = after {
        tx.insert_rows(include_str!("../sql/insert_deadlines.sql"), 1, row(after)).await?;
    }
    Ok(())
}

async fn die(tx: &mut Transaction<'_>, live: &Live, end: &Ending<'_>) -> Result<(), VerbError> {
    let by = Value::from(end.settled_by);
    let mut values = vec![
        by.clone(),
        live.attempt.into(),
        live.takeovers.into(),
        live.takeovers_counted.into(),
        by.clone(),
        by,
    ];
    values.extend(texts(end.failure));
    values.push(tx.now.as_millis().into());
    values.extend(live.address());
    tx.execute(include_str!("../sql/end_dead.sql"), values).await.map(drop)
}

async fn finish(tx: &mut Transaction<'_>, live: &Live, end: &Ending<'_>) -> Result<(), VerbError> {
    if end.keep.job.is_zero() {
        drop_records(tx, live.id, live.parent, live.group_key.as_deref()).await?;
        tx.pruned += 1;
    } else {
        let by = Value::from(end.settled_by);
        let [category, code, message] = texts(end.failure);
        let mut values = vec![
            end.state.as_str().into(),
            by.clone(),
            live.attempt.into(),
            live.takeovers.into(),
            live.takeovers_counted.into(),
            by.clone(),
            by,
            category.clone(),
            category,
            code,
            message,
            tx.now.as_millis().into(),
            tx.now.plus(end.keep.job).as_millis().into(),
        ];
        values.extend(live.address());
        tx.execute(include_str!("../sql/end_finished.sql"), values).await?;
    }
    match &live.key {
        Some(key) => {
            let lane = tx.lane_of(live.lane).await?;
            let expires = tx.now.plus(end.keep.key);
            end_key(tx, &lane, key, live.id, end.state, expires).await
        }
        None => Ok(()),
    }
}

/// Deletes what is stored about a job that ends without retention.
pub(super) async fn drop_records(
    tx: &mut Transaction<'_>,
    job: JobId,
    parent: Option<JobId>,
    group_key: Option<&str>,
) -> Result<(), VerbError> {
    let id = || id16(job.to_bytes());
    tx.run_list(include_str!("../sql/drop_attempts.sql"), &[], &[id()], &[]).await?;
    drop_origin(tx, job, parent, group_key).await
}

/// Forgets where a job comes from that ends without retention: its parent, and its group.
pub(super) async fn drop_origin(
    tx: &mut Transaction<'_>,
    job: JobId,
    parent: Option<JobId>,
    group_key: Option<&str>,
) -> Result<(), VerbError> {
    let id = || id16(job.to_bytes());
    if let Some(parent) = parent {
        let values = vec![id16(parent.to_bytes()), id()];
        tx.execute(include_str!("../sql/drop_child.sql"), values).await?;
    }
    if let Some(key) = group_key {
        let values = vec![key.into(), id()];
        tx.execute(include_str!("../sql/drop_grouped.sql"), values).await?;
    }
    Ok(())
}
