//! Keeps the lines of groups, and decides which job of each line may run.
//!
//! Every transaction that ends, stores or frees a job of a group locks the row of its line first, and leaves the line with the right head.
//! A user's transaction may stay open for long, so it locks no line: the jobs that it submitted or unblocked are released by [`check`] and
//! [`release_lines`], or by the next insert into the line.

use super::super::error::VerbError;
use super::super::job_columns::{BLOCKED, LEASED, PAUSED, SCHEDULED};
use super::super::row::{bytes, get, id16, instant, maybe_bytes};
use super::super::transaction::Transaction;
use super::ending::Live;
use crate::groups::{Line, Release};
use mysql_async::Value;
use rewheel_core::store::GroupName;
use rewheel_core::{Job, JobId, State, Timestamp};

/// How many lines `stuck_groups` reads with one statement.
const LINES_READ: usize = 1_000;

/// Keeps the line of a job up to date when the job ends.
pub(super) async fn ended(
    tx: &mut Transaction<'_>,
    live: &Live,
    state: State,
) -> Result<(), VerbError> {
    let Some(key) = &live.group_key else { return Ok(()) };
    let lane = tx.lane_of(live.lane).await?;
    leave(tx, live.id, &Line::of(&lane, key), state).await
}

/// Keeps the line of a dead letter up to date that is cancelled.
pub(super) async fn cancelled(tx: &mut Transaction<'_>, job: &Job) -> Result<(), VerbError> {
    let Some(group) = &job.group else { return Ok(()) };
    leave(tx, job.id, &Line::of(&job.lane, group.key.as_str()), State::Cancelled).await
}

async fn leave(
    tx: &mut Transaction<'_>,
    job: JobId,
    line: &Line,
    state: State,
) -> Result<(), VerbError> {
    if tx.is_theirs() {
        return leave_alone(tx, job, state).await;
    }
    let (head, _) = lock(tx, line).await?;
    let id = id16(job.to_bytes());
    if state == State::Dead {
        tx.execute(include_str!("../sql/group_mark.sql"), vec![true.into(), id]).await?;
        step_down_dead(tx, line, head).await?;
    } else {
        tx.execute(include_str!("../sql/group_leave.sql"), vec![id]).await?;
        if head == Some(job) {
            tx.execute(include_str!("../sql/group_step_down.sql"), name(line)).await?;
        }
    }
    release(tx, line, Release::AfterWait).await?;
    Ok(())
}

/// Takes a job out of its line, and locks no row of others: a user's transaction may stay open for long. The line keeps its head, which is no
/// member any more, until [`release`] finds that.
async fn leave_alone(tx: &mut Transaction<'_>, job: JobId, state: State) -> Result<(), VerbError> {
    let id = id16(job.to_bytes());
    if state == State::Dead {
        tx.execute(include_str!("../sql/group_mark.sql"), vec![true.into(), id]).await.map(drop)
    } else {
        tx.execute(include_str!("../sql/group_leave.sql"), vec![id]).await.map(drop)
    }
}

/// Returns the stored state of a job that becomes scheduled: it waits unless it is the head of its line.
pub(super) async fn stored_state(
    tx: &mut Transaction<'_>,
    job: &Job,
    state: State,
) -> Result<u8, VerbError> {
    match (state, &job.group) {
        (State::Scheduled, Some(group)) => {
            let line = Line::of(&job.lane, group.key.as_str());
            let (head, _) = lock(tx, &line).await?;
            Ok(if head == Some(job.id) { SCHEDULED } else { BLOCKED })
        }
        (State::Scheduled, None) => Ok(SCHEDULED),
        (State::Leased, _) => Ok(LEASED),
        (State::Paused, _) => Ok(PAUSED),
        (State::Succeeded | State::Failed | State::Dead | State::Cancelled, _) => {
            unreachable!("a job that has ended is not live")
        }
    }
}

/// Keeps the line of a redriven job up to date: the job has the place that it had.
pub(super) async fn redriven(tx: &mut Transaction<'_>, job: &Job) -> Result<(), VerbError> {
    if job.group.is_some() {
        let values = vec![false.into(), id16(job.id.to_bytes())];
        tx.execute(include_str!("../sql/group_mark.sql"), values).await?;
    }
    changed(tx, job).await
}

/// Keeps the line of a live job up to date that an operator changed.
pub(super) async fn changed(tx: &mut Transaction<'_>, job: &Job) -> Result<(), VerbError> {
    let Some(group) = &job.group else { return Ok(()) };
    release(tx, &Line::of(&job.lane, group.key.as_str()), Release::AfterWait).await?;
    Ok(())
}

fn name(line: &Line) -> Vec<Value> {
    let Line { key, kind, tenant } = line;
    vec![key.as_str().into(), kind.as_str().into(), tenant.as_str().into()]
}

/// Locks a line, and returns its head and the number of its latest turn.
async fn lock(tx: &mut Transaction<'_>, line: &Line) -> Result<(Option<JobId>, i64), VerbError> {
    match tx.find(include_str!("../sql/lock_line.sql"), name(line)).await? {
        Some(row) => Ok((maybe_bytes(&row, 0)?.map(JobId::from_bytes), get(&row, 1)?)),
        None => {
            tx.execute(include_str!("../sql/insert_line.sql"), name(line)).await?;
            Ok((None, 0))
        }
    }
}

/// Returns whether a dead letter of the line's kind holds up its group.
async fn blocks_on_dead(tx: &mut Transaction<'_>, line: &Line) -> Result<bool, VerbError> {
    let kind = vec![line.kind.as_str().into()];
    let row = tx.find(include_str!("../sql/blocks_on_dead.sql"), kind).await?;
    row.map_or(Ok(false), |row| get(&row, 0))
}

/// Gives a line without a head its smallest member as head. Returns whether it did.
pub(super) async fn release(
    tx: &mut Transaction<'_>,
    line: &Line,
    how: Release<'_>,
) -> Result<bool, VerbError> {
    let (head, turn) = lock(tx, line).await?;
    // A user's transaction may have ended the head.
    if head.is_some() && !step_down_dead(tx, line, head).await? {
        return Ok(false);
    }
    let Some(next) = first(tx, line).await? else {
        let mut values = vec![tx.now.as_millis().into()];
        values.extend(name(line));
        tx.execute(include_str!("../sql/group_idle.sql"), values).await?;
        return Ok(false);
    };
    // Larger than any turn before, and not less than the time: after a restore, a counter alone would start lower than the numbers that
    // other services have seen.
    let turn = tx.now.as_millis().max(turn + 1);
    let mut values = vec![id16(next.to_bytes()), turn.into()];
    values.extend(name(line));
    tx.execute(include_str!("../sql/group_head.sql"), values).await?;
    let due_min = (!how.inserted().contains(&next)).then_some(tx.now);
    release_job(tx, next, turn, due_min).await?;
    Ok(true)
}

/// Returns the first member of a line. A dead letter counts only if its kind says so.
async fn first(tx: &mut Transaction<'_>, line: &Line) -> Result<Option<JobId>, VerbError> {
    let mut found = None;
    let blocks = blocks_on_dead(tx, line).await?;
    for dead in [false, true].into_iter().filter(|dead| !dead || blocks) {
        let mut values = vec![dead.into()];
        values.extend(name(line));
        if let Some(row) = tx.find(include_str!("../sql/group_next.sql"), values).await? {
            let member: (i64, [u8; 16]) = (get(&row, 0)?, bytes(&row, 1)?);
            found = Some(found.map_or(member, |other: (i64, [u8; 16])| other.min(member)));
        }
    }
    Ok(found.map(|(_, job)| JobId::from_bytes(job)))
}

async fn release_job(
    tx: &mut Transaction<'_>,
    job: JobId,
    turn: i64,
    due_min: Option<Timestamp>,
) -> Result<(), VerbError> {
    let id = id16(job.to_bytes());
    let row = tx.find(include_str!("../sql/release_find.sql"), vec![id.clone()]).await?;
    let Some(row) = row else {
        let values = vec![turn.into(), id];
        return tx.execute(include_str!("../sql/release_dead.sql"), values).await.map(drop);
    };
    let (lane, place, state): (i64, i64, u8) = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
    let due = instant(get(&row, 3)?);
    let values = if state == BLOCKED {
        let due = due_min.map_or(due, |min| due.max(min));
        let (place, lane) = (tx.place(due), lane.abs());
        let due = due.as_millis();
        vec![turn.into(), due.into(), SCHEDULED.into(), lane.into(), place.into(), id]
    } else {
        let due = due.as_millis();
        vec![turn.into(), due.into(), state.into(), lane.into(), place.into(), id]
    };
    tx.execute(include_str!("../sql/release.sql"), values).await?;
    tx.report_lane(lane).await;
    Ok(())
}

/// Takes the turn from a dead letter that does not hold up its line, and from a job that is not in the line any more. Returns whether it did.
async fn step_down_dead(
    tx: &mut Transaction<'_>,
    line: &Line,
    head: Option<JobId>,
) -> Result<bool, VerbError> {
    let Some(head) = head else { return Ok(false) };
    let values = vec![id16(head.to_bytes())];
    let row = tx.find(include_str!("../sql/group_member.sql"), values).await?;
    let is_dead: Option<bool> = row.map(|row| get(&row, 0)).transpose()?;
    let stays = match is_dead {
        None => false,
        Some(false) => true,
        Some(true) => blocks_on_dead(tx, line).await?,
    };
    if !stays {
        tx.execute(include_str!("../sql/group_step_down.sql"), name(line)).await?;
    }
    Ok(!stays)
}

/// Removes members that are no jobs any more, marks those that are dead letters, and takes the turn from a head that is neither a live job
/// nor a dead letter that holds up its line.
async fn repair(tx: &mut Transaction<'_>, line: &Line) -> Result<(), VerbError> {
    let (head, _) = lock(tx, line).await?;
    for row in tx.rows(include_str!("../sql/group_members.sql"), name(line)).await? {
        let (is_live, is_dead): (bool, bool) = (get(&row, 1)?, get(&row, 2)?);
        let id = id16(bytes(&row, 0)?);
        if !is_live && is_dead {
            tx.execute(include_str!("../sql/group_mark.sql"), vec![true.into(), id]).await?;
        } else if !is_live {
            tx.execute(include_str!("../sql/group_leave.sql"), vec![id]).await?;
        }
    }
    step_down_dead(tx, line, head).await.map(drop)
}

/// Deletes lines that have had no members since a time. Their turns are at least as old, and a new line begins with a turn that is not less
/// than its time.
pub(super) async fn prune(
    tx: &mut Transaction<'_>,
    until: i64,
    limit: usize,
) -> Result<(), VerbError> {
    let values = vec![until.into(), (limit as u64).into()];
    for row in tx.rows(include_str!("../sql/prune_lines.sql"), values).await? {
        let line = Line { key: get(&row, 0)?, kind: get(&row, 1)?, tenant: get(&row, 2)? };
        let has_head = maybe_bytes::<16>(&row, 3)?.is_some();
        let sql = if has_head || first(tx, &line).await?.is_some() {
            include_str!("../sql/keep_line.sql")
        } else {
            include_str!("../sql/delete_line.sql")
        };
        tx.execute(sql, name(&line)).await?;
    }
    Ok(())
}

/// What a check of lines found.
pub(in super::super) struct Checked {
    pub(in super::super) count: usize,
    pub(in super::super) last: Option<Line>,
    /// The lines that need another head.
    pub(in super::super) needy: Vec<Line>,
}

/// Checks lines with live jobs, after a line.
pub(in super::super) async fn check(
    tx: &mut Transaction<'_>,
    after: &Line,
    limit: usize,
) -> Result<Checked, VerbError> {
    let Line { key, kind, tenant } = after;
    let values: Vec<Value> = vec![
        key.as_str().into(),
        key.as_str().into(),
        key.as_str().into(),
        kind.as_str().into(),
        kind.as_str().into(),
        tenant.as_str().into(),
        (limit as u64).into(),
    ];
    let rows = tx.rows(include_str!("../sql/release_groups.sql"), values).await?;
    let mut checked = Checked { count: rows.len(), last: None, needy: Vec::new() };
    for row in rows {
        let line = Line { key: get(&row, 0)?, kind: get(&row, 1)?, tenant: get(&row, 2)? };
        if get(&row, 3)? {
            checked.needy.push(line.clone());
        }
        checked.last = Some(line);
    }
    Ok(checked)
}

pub(in super::super) async fn release_lines(
    tx: &mut Transaction<'_>,
    lines: &[Line],
) -> Result<usize, VerbError> {
    let mut released = 0;
    for line in lines {
        repair(tx, line).await?;
        released += usize::from(release(tx, line, Release::AfterWait).await?);
    }
    Ok(released)
}

pub(in super::super) async fn stuck_groups(
    tx: &mut Transaction<'_>,
    limit: usize,
) -> Result<Vec<GroupName>, VerbError> {
    let (mut after, mut stuck) = (Line::default(), Vec::new());
    loop {
        let checked = check(tx, &after, LINES_READ).await?;
        stuck.extend(checked.needy.iter().filter_map(Line::name));
        stuck.truncate(limit);
        match checked.last {
            Some(last) if checked.count == LINES_READ && stuck.len() < limit => after = last,
            Some(_) | None => return Ok(stuck),
        }
    }
}
