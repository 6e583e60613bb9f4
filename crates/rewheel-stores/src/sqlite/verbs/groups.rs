//! Keeps the lines of groups, and decides which job of each line may run.
//!
//! SQLite has one writer at a time, so every transaction that ends, stores or frees a job of a group leaves its line with the right head.

use super::super::SqliteStore;
use super::super::error::VerbError;
use super::super::row::column;
use super::super::transaction::Transaction;
use super::super::writer::count;
use super::ending::Live;
use crate::groups::{Line, Release};
use rewheel_core::store::{GroupName, GroupsReleased, StoreResult};
use rewheel_core::{Job, JobId, State};

/// How many lines `stuck_groups` reads with one statement.
const LINES_READ: usize = 1_000;

impl SqliteStore {
    pub(in super::super) async fn release_lines(
        &self,
        limit: usize,
    ) -> StoreResult<GroupsReleased> {
        let after = self.shared.groups_checked.get();
        // Usually no line needs anything: then the writer is not asked.
        let (checked, last, needy) = self.read(move |tx| check(tx, &after, limit)).await?;
        self.shared.groups_checked.set(last, checked, limit);
        if needy.is_empty() {
            return Ok(GroupsReleased { checked, released: 0 });
        }
        let released = self.write(needy.len(), move |tx| release_lines(tx, &needy)).await?;
        Ok(GroupsReleased { checked, released })
    }
}

/// Gives a new job its place in the line.
pub(super) fn join(tx: &Transaction<'_, '_>, job: &rewheel_core::NewJob) -> Result<(), VerbError> {
    let Some(Line { key, kind, tenant }) = Line::of_new(job) else { return Ok(()) };
    tx.execute(include_str!("../sql/group_join.sql"), (job.id.to_bytes(), key, kind, tenant))?;
    Ok(())
}

/// Keeps the line of a job up to date when the job ends.
pub(super) fn ended(
    tx: &mut Transaction<'_, '_>,
    live: &Live,
    state: State,
) -> Result<(), VerbError> {
    let Some(key) = &live.group_key else { return Ok(()) };
    let lane = tx.lane_of(live.lane)?;
    leave(tx, live.id, &Line::of(&lane, key), state)
}

/// Keeps the line of a dead letter up to date that is cancelled.
pub(super) fn cancelled(tx: &mut Transaction<'_, '_>, job: &Job) -> Result<(), VerbError> {
    let Some(group) = &job.group else { return Ok(()) };
    leave(tx, job.id, &Line::of(&job.lane, group.key.as_str()), State::Cancelled)
}

fn leave(
    tx: &mut Transaction<'_, '_>,
    job: JobId,
    line: &Line,
    state: State,
) -> Result<(), VerbError> {
    let id = job.to_bytes();
    if state == State::Dead {
        tx.execute(include_str!("../sql/group_mark.sql"), (id, true))?;
        step_down_dead(tx, line)?;
    } else {
        tx.execute(include_str!("../sql/group_leave.sql"), [id])?;
        tx.execute(include_str!("../sql/group_step_down.sql"), [id])?;
    }
    release(tx, line, Release::AfterWait)?;
    Ok(())
}

/// Returns the stored state of a job that becomes scheduled: it waits unless it is the head of its line.
pub(super) fn stored_state(
    tx: &Transaction<'_, '_>,
    job: &Job,
    state: State,
) -> Result<&'static str, VerbError> {
    if state != State::Scheduled || job.group.is_none() {
        return Ok(state.as_str());
    }
    let sql = include_str!("../sql/group_is_head.sql");
    let is_head = tx.find(sql, [job.id.to_bytes()], column)?.unwrap_or(false);
    Ok(if is_head { state.as_str() } else { BLOCKED })
}

/// Keeps the line of a redriven job up to date: the job has the place that it had.
pub(super) fn redriven(tx: &mut Transaction<'_, '_>, job: &Job) -> Result<(), VerbError> {
    if job.group.is_some() {
        tx.execute(include_str!("../sql/group_mark.sql"), (job.id.to_bytes(), false))?;
    }
    changed(tx, job)
}

/// Keeps the line of a live job up to date that an operator changed.
pub(super) fn changed(tx: &mut Transaction<'_, '_>, job: &Job) -> Result<(), VerbError> {
    let Some(group) = &job.group else { return Ok(()) };
    release(tx, &Line::of(&job.lane, group.key.as_str()), Release::AfterWait)?;
    Ok(())
}

/// How the state of a scheduled job is stored that waits for others of its group.
pub(in super::super) const BLOCKED: &str = "blocked";

/// Gives a line without a head its smallest member as head. Returns whether it did.
pub(super) fn release(
    tx: &mut Transaction<'_, '_>,
    line: &Line,
    how: Release<'_>,
) -> Result<bool, VerbError> {
    let Line { key, kind, tenant } = line;
    let next: Option<[u8; 16]> =
        tx.find(include_str!("../sql/group_next.sql"), (key, kind, tenant), column)?;
    let Some(next) = next else { return Ok(false) };
    let turn: i64 = tx
        .sql(include_str!("../sql/group_head.sql"))?
        .get()
        .query_row((next, key, kind, tenant, tx.now.as_millis()), |row| row.get(0))?;
    let is_new = how.inserted().contains(&JobId::from_bytes(next));
    let due_min = if is_new { i64::MIN } else { tx.now.as_millis() };
    let lane = tx.find(include_str!("../sql/release.sql"), (next, turn, due_min), column)?;
    match lane {
        Some(lane) => tx.report_lane(lane),
        None => drop(tx.execute(include_str!("../sql/release_dead.sql"), (next, turn))?),
    }
    Ok(true)
}

fn step_down_dead(tx: &Transaction<'_, '_>, line: &Line) -> Result<(), VerbError> {
    let Line { key, kind, tenant } = line;
    tx.execute(include_str!("../sql/group_step_down_dead.sql"), (key, kind, tenant))?;
    Ok(())
}

/// Removes heads and members that are no jobs any more, marks those that are dead letters, and takes the turn from a dead letter that does
/// not hold up its line: a process of a release that knows no groups may have ended the jobs.
fn repair(tx: &Transaction<'_, '_>, line: &Line) -> Result<(), VerbError> {
    let Line { key, kind, tenant } = line;
    for sql in [
        include_str!("../sql/group_stale_head.sql"),
        include_str!("../sql/group_stale_dead.sql"),
        include_str!("../sql/group_stale_members.sql"),
    ] {
        tx.execute(sql, (key, kind, tenant))?;
    }
    Ok(())
}

/// Returns how many lines were checked, the last of them, and those that need another head.
fn check(
    tx: &Transaction<'_, '_>,
    after: &Line,
    limit: usize,
) -> Result<(usize, Option<Line>, Vec<Line>), VerbError> {
    let statement = tx.sql(include_str!("../sql/release_groups.sql"))?;
    let mut statement = statement.get();
    let Line { key, kind, tenant } = after;
    let mut rows = statement.query((key, kind, tenant, count(limit as u64)))?;
    let (mut checked, mut last, mut needy) = (0, None, Vec::new());
    while let Some(row) = rows.next()? {
        let line = Line { key: row.get(0)?, kind: row.get(1)?, tenant: row.get(2)? };
        checked += 1;
        if row.get(3)? {
            needy.push(line.clone());
        }
        last = Some(line);
    }
    Ok((checked, last, needy))
}

fn release_lines(tx: &mut Transaction<'_, '_>, lines: &[Line]) -> Result<usize, VerbError> {
    let mut released = 0;
    for line in lines {
        repair(tx, line)?;
        released += usize::from(release(tx, line, Release::AfterWait)?);
    }
    Ok(released)
}

pub(in super::super) fn stuck_groups(
    tx: &Transaction<'_, '_>,
    limit: usize,
) -> Result<Vec<GroupName>, VerbError> {
    let (mut after, mut stuck) = (Line::default(), Vec::new());
    loop {
        let (checked, last, needy) = check(tx, &after, LINES_READ)?;
        stuck.extend(needy.iter().filter_map(Line::name));
        stuck.truncate(limit);
        match last {
            Some(last) if checked == LINES_READ && stuck.len() < limit => after = last,
            Some(_) | None => return Ok(stuck),
        }
    }
}
