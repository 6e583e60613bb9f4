//! Frees jobs of dead holders and overdue jobs, and ends jobs whose deadline has passed.

use super::super::error::{VerbError, unreadable};
use super::super::row::{column, millis, unsigned, wanted};
use super::super::transaction::Transaction;
use super::super::writer::count;
use super::audit::Auditor;
use super::ending::{Ending, Live, end};
use super::unreadable::Unreadable;
use rewheel_core::store::{StoreError, Sweep};
use rewheel_core::{
    Cause, Failure, Fence, HolderId, JobEvent, JobId, Retain, State, Transition, Wanted,
};
use rusqlite::Row;
use std::time::Duration;

pub(in super::super) fn sweep(
    tx: &mut Transaction<'_, '_>,
    sweep: &Sweep,
) -> Result<Vec<JobEvent>, VerbError> {
    let Sweep { by, limit, keep, watched } = *sweep;
    if tx.alive(by)?.is_none() {
        return Err(StoreError::HolderDead(by).into());
    }
    let mut events = Vec::new();
    let mut auditor = Auditor::of_holder(by);
    for (number, holder, alive) in holding(tx)? {
        let (until, hold_max) = if alive {
            (tx.now.min(watched.until).as_millis(), millis(watched.since))
        } else {
            (i64::MAX, i64::MAX)
        };
        for taken in find_taken(tx, number, (until, hold_max), limit - events.len())? {
            events.push(free(tx, taken, holder, &mut auditor, keep)?);
        }
        if events.len() >= limit {
            break;
        }
    }
    Ok(events)
}

/// Returns all holders that have jobs, by number, with their id if it is known, and whether they
/// are alive.
fn holding(tx: &Transaction<'_, '_>) -> Result<Vec<(i64, Option<HolderId>, bool)>, VerbError> {
    let statement = tx.sql(include_str!("../sql/holding.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([])?;
    let mut holders = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get::<_, Option<[u8; 16]>>(1)?.map(HolderId::from_bytes);
        holders.push((row.get(0)?, id, row.get(2)?));
    }
    Ok(holders)
}

/// A job that is taken from its holder.
struct Taken {
    live: Live,
    wanted: Option<Wanted>,
    started: bool,
}

fn find_taken(
    tx: &mut Transaction<'_, '_>,
    number: i64,
    (until, hold_max): (i64, i64),
    limit: usize,
) -> Result<Vec<Taken>, VerbError> {
    let (mut taken, mut unreadable) = (Vec::new(), Unreadable::default());
    {
        let statement = tx.sql(include_str!("../sql/sweep.sql"))?;
        let mut statement = statement.get();
        let mut rows = statement.query((number, until, count(limit as u64), hold_max))?;
        while let Some(row) = rows.next()? {
            let read = read_taken(tx, row);
            taken.extend(unreadable.check(JobId::from_bytes(row.get(1)?), read)?);
        }
    }
    unreadable.set_aside(tx)?;
    Ok(taken)
}

fn read_taken(tx: &mut Transaction<'_, '_>, row: &Row<'_>) -> Result<Taken, VerbError> {
    let live = Live {
        seq: row.get(0)?,
        id: JobId::from_bytes(row.get(1)?),
        lane: row.get(2)?,
        attempt: row.get(4)?,
        takeovers: row.get(5)?,
        takeovers_counted: row.get(6)?,
        key: row.get(8)?,
        fence: Fence::new(unsigned(row.get(9)?)),
        group_key: row.get(10)?,
    };
    // The later writes need the lane's name.
    tx.lane_of(live.lane)?;
    let started = row.get::<_, Option<bool>>(7)?.unwrap_or(false);
    Ok(Taken { live, wanted: wanted(row.get(3)?)?, started })
}

fn free(
    tx: &mut Transaction<'_, '_>,
    taken: Taken,
    holder: Option<HolderId>,
    auditor: &mut Auditor,
    keep: Retain,
) -> Result<JobEvent, VerbError> {
    let Taken { mut live, wanted, started } = taken;
    live.takeovers += 1;
    live.takeovers_counted += u32::from(started);
    tx.report_lane(live.lane);
    let lane = tx.lane_of(live.lane)?;
    let takeovers_max: Option<u32> =
        tx.find(include_str!("../sql/takeovers_max.sql"), [lane.kind.as_str()], column)?;
    let poison = started && takeovers_max.is_some_and(|max| live.takeovers_counted >= max);
    let state = match wanted {
        Some(wanted) => wanted.state(),
        None if poison => State::Dead,
        None => State::Scheduled,
    };
    let failure = (state == State::Dead).then(|| Failure::of_takeovers(live.takeovers_counted));
    let failure = failure.as_ref();
    if state.is_live() {
        let values = (live.seq, state.as_str(), live.takeovers, live.takeovers_counted);
        tx.execute(include_str!("../sql/take_over.sql"), values)?;
    } else {
        end(tx, &live, &Ending { state, failure, settled_by: None, keep })?;
    }
    let transition = live.transition(Cause::Takeover, State::Leased, state);
    auditor.note(tx, &live, &Transition { holder, wanted, failure, ..transition })?;
    Ok(JobEvent {
        job: live.id,
        kind: lane.kind,
        from: State::Leased,
        to: state,
        cause: Cause::Takeover,
        holder,
        at: tx.now,
    })
}

pub(in super::super) fn deadlines(
    tx: &mut Transaction<'_, '_>,
    grace: Duration,
    limit: usize,
) -> Result<Vec<JobEvent>, VerbError> {
    let now = tx.now.as_millis();
    let (mut found, mut unreadable) = (Vec::new(), Unreadable::default());
    {
        let statement = tx.sql(include_str!("../sql/deadlines.sql"))?;
        let mut statement = statement.get();
        let mut rows =
            statement.query((now, now.saturating_sub(millis(grace)), count(limit as u64)))?;
        while let Some(row) = rows.next()? {
            let read = read_late(tx, row);
            found.extend(unreadable.check(JobId::from_bytes(row.get(1)?), read)?);
        }
    }
    unreadable.set_aside(tx)?;
    let failure = Failure::of_deadline();
    let mut auditor = Auditor::of_engine();
    let mut events = Vec::with_capacity(found.len());
    for Late { live, from, holder, wanted } in found {
        let to = State::Dead;
        let ending = Ending {
            state: to,
            failure: Some(&failure),
            settled_by: None,
            keep: Retain::default(),
        };
        end(tx, &live, &ending)?;
        let transition = live.transition(Cause::Deadline, from, to);
        auditor.note(
            tx,
            &live,
            &Transition { holder, wanted, failure: Some(&failure), ..transition },
        )?;
        let kind = tx.lane_of(live.lane)?.kind;
        let (job, cause, at) = (live.id, Cause::Deadline, tx.now);
        events.push(JobEvent { job, kind, from, to, cause, holder, at });
    }
    Ok(events)
}

/// A job whose deadline has passed.
struct Late {
    live: Live,
    from: State,
    holder: Option<HolderId>,
    wanted: Option<Wanted>,
}

fn read_late(tx: &mut Transaction<'_, '_>, row: &Row<'_>) -> Result<Late, VerbError> {
    let live = Live {
        seq: row.get(0)?,
        id: JobId::from_bytes(row.get(1)?),
        lane: row.get(2)?,
        attempt: row.get(4)?,
        takeovers: row.get(5)?,
        takeovers_counted: row.get(6)?,
        key: None,
        fence: Fence::new(unsigned(row.get(8)?)),
        group_key: row.get(10)?,
    };
    // The later writes need the lane's name.
    tx.lane_of(live.lane)?;
    Ok(Late {
        live,
        from: row.get::<_, String>(3)?.parse().map_err(|_| unreadable("a state"))?,
        holder: row.get::<_, Option<[u8; 16]>>(7)?.map(HolderId::from_bytes),
        wanted: wanted(row.get(9)?)?,
    })
}
